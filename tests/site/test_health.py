from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps.jobs.models import Clock
from apps.jobs.sweep import SWEEP_CLOCK
from cograph_site import health


def test_api_fact_28_healthz_touches_no_database(client: Client) -> None:
    """Without the django_db mark any query would fail."""
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
class TestReadyz:
    @pytest.fixture(autouse=True)
    def _swept(self) -> None:
        Clock.objects.update_or_create(name=SWEEP_CLOCK, defaults={"at": timezone.now()})

    def test_ready_is_a_word(self, client: Client) -> None:
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready"})

    def test_no_sweep_for_five_minutes_is_not_ready(self, client: Client) -> None:
        Clock.objects.filter(name=SWEEP_CLOCK).update(at=timezone.now() - timedelta(minutes=5, seconds=1))
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})

    def test_missing_migrations_are_not_ready(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(health, "_migrated", False)
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE app = 'cograph_site'")
        assert client.get("/readyz").status_code == 503

    def test_only_administrators_see_why(self, client: Client) -> None:
        users = get_user_model().objects
        staff = users.create_user("stan", is_staff=True)
        client.force_login(staff)
        assert client.get("/readyz").json() == {"status": "ready"}
        client.force_login(users.create_superuser("ada"))
        checks = client.get("/readyz").json()["checks"]
        assert {"database", "migrations", "sweep", "last_sweep", "workers", "embedder"} < set(checks)
        assert checks["disk_free_bytes"] > 0

    def test_other_verbs_are_refused(self, client: Client) -> None:
        assert client.post("/healthz").status_code == 405
        assert client.post("/readyz").status_code == 405
