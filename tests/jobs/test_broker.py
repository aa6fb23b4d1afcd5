"""The broker between the shared queue and one cluster."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from apps.jobs import heartbeat
from apps.jobs.broker import CanaryBroker
from apps.jobs.claims import claim
from apps.jobs.clusters import hung
from apps.jobs.queue import enqueue, send
from tests.jobs.conftest import ROOT

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv(heartbeat.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def names(found) -> list[str]:
    return [SignedPackage.loads(payload)["name"] for _, payload in found or []]


def test_a_canary_comes_first_and_again_after_a_while(cluster, monkeypatch):
    broker = CanaryBroker(list_key="cograph")
    send("8f6b1f66-5a0e-4e36-9a4e-2c2f3b1f7c11")
    assert names(broker.dequeue()) == ["canary"]
    assert broker.dequeue() is None, "the canary has not been answered"
    heartbeat.answer_canary()
    assert names(broker.dequeue()) == ["8f6b1f66-5a0e-4e36-9a4e-2c2f3b1f7c11"]
    monkeypatch.setattr(broker, "_next_canary", 0.0)
    assert broker.dequeue() is None, "a message was handed over and not yet taken"
    assert not heartbeat.is_stuck(cluster)
    monkeypatch.setattr(heartbeat, "HANDED_SECONDS", 0.0)
    assert heartbeat.is_stuck(cluster)
    with heartbeat.working():
        pass
    assert not heartbeat.is_stuck(cluster)
    assert names(broker.dequeue()) == ["canary"]


def test_a_busy_cluster_leaves_messages_to_others_until_its_worker_is_gone(cluster):
    broker = CanaryBroker(list_key="cograph")
    broker.dequeue()
    heartbeat.answer_canary()
    send("8f6b1f66-5a0e-4e36-9a4e-2c2f3b1f7c11")
    script = """
        import time
        from apps.jobs import heartbeat
        with heartbeat.working():
            print("works", flush=True)
            time.sleep(60)
    """
    worker = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, cwd=ROOT)
    assert worker.stdout
    with worker.stdout:
        worker.stdout.readline()
        assert broker.dequeue() is None
        assert OrmQ.objects.count() == 1
        worker.kill()
        worker.wait()
    assert names(broker.dequeue()) == ["8f6b1f66-5a0e-4e36-9a4e-2c2f3b1f7c11"]


def test_waiting_messages_are_a_sign_of_trouble_only_while_workers_are_free(settings, kind):
    send("8f6b1f66-5a0e-4e36-9a4e-2c2f3b1f7c11")
    assert not hung()
    OrmQ.objects.update(lock=timezone.now() - timedelta(seconds=61))
    assert hung()
    name = kind(lambda run: None)
    for number in range(settings.COGRAPH.jobs.workers):
        claim(enqueue(name, key=str(number)).job.pk)
    assert not hung()
