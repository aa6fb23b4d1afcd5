"""Pushes told by a git host (``repository-documents.md`` 6.10).

Every refusal is the same: an unknown hook, a wrong signature, no secret and a deleted repository cannot be told apart.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from django.db import IntegrityError, transaction

from apps.access.errors import NotFound
from apps.access.secrets import SecretUnreadable, decrypt
from apps.jobs.models import Cause, Job
from apps.jobs.queue import enqueue
from apps.repos.models import Repository, Schedule, WebhookDelivery

MAX_BODY = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a host puts signature, event and delivery id. ``token``: the secret itself is sent, not a signature."""

    signature: str
    event: str
    pushes: tuple[str, ...]
    delivery: tuple[str, ...]
    prefix: str = ""
    token: bool = False


PROVIDERS: Mapping[str, Provider] = {
    "github": Provider("X-Hub-Signature-256", "X-GitHub-Event", ("push",), ("X-GitHub-Delivery",), prefix="sha256="),
    "gitlab": Provider(
        "X-Gitlab-Token",
        "X-Gitlab-Event",
        ("Push Hook",),
        ("Idempotency-Key", "X-Gitlab-Event-UUID", "X-Gitlab-Webhook-UUID"),
        token=True,
    ),
    "gitea": Provider("X-Gitea-Signature", "X-Gitea-Event", ("push",), ("X-Gitea-Delivery",)),
    "forgejo": Provider("X-Forgejo-Signature", "X-Forgejo-Event", ("push",), ("X-Forgejo-Delivery",)),
    "bitbucket": Provider("X-Hub-Signature", "X-Event-Key", ("repo:push",), ("X-Request-UUID",), prefix="sha256="),
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a delivery led to: a job, or (``job`` None) nothing to do. Faces answer 202 and 204."""

    job: Job | None


def receive(provider: str, hook_id: str, headers: Mapping[str, str], body: bytes) -> Taken:
    """Take a delivery. ``headers`` are looked up without case. Raises NotFound for every kind of refusal."""
    kind = PROVIDERS.get(provider)
    given = {name.lower(): value for name, value in headers.items()}
    repository = _repository(hook_id)
    secret = _secret(repository)
    shape = kind or PROVIDERS["github"]
    # SECURITY: the same comparison is made whether or not there is such a hook.
    valid = _is_signed(shape, secret, given.get(shape.signature.lower(), ""), body)
    if not valid or kind is None or repository is None or len(body) > MAX_BODY:
        raise NotFound
    if given.get(kind.event.lower(), "") not in kind.pushes or not _is_followed(repository, body):
        return Taken(None)
    named = next((given[name.lower()] for name in kind.delivery if given.get(name.lower())), "")
    delivery = named[:200] or hashlib.sha256(body).hexdigest()
    try:
        with transaction.atomic():
            WebhookDelivery.objects.create(repository=repository, delivery=delivery)
            return Taken(enqueue("sync", source=repository, params={"sync": True}, cause=Cause.WEBHOOK).job)
    except IntegrityError:
        return Taken(None)


def _repository(hook_id: str) -> Repository | None:
    try:
        wanted = uuid.UUID(hook_id)
    except ValueError:
        wanted = uuid.UUID(int=0)
    found: Repository | None = (
        Repository.objects.live().filter(hook_id=wanted, schedule=Schedule.WEBHOOK, hook_secret__isnull=False).first()
    )
    return found


def _secret(repository: Repository | None) -> str:
    if repository is None or repository.hook_secret is None:
        return ""
    try:
        return decrypt(repository.hook_secret)
    except SecretUnreadable:
        return ""


def _is_signed(provider: Provider, secret: str, given: str, body: bytes) -> bool:
    """Whether the delivery proves knowledge of the secret. Takes the same time for a missing one."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    expected = secret if provider.token else provider.prefix + digest
    same = hmac.compare_digest(expected.encode(), given.strip().encode())
    return same and bool(secret)


def _is_followed(repository: Repository, body: bytes) -> bool:
    """Whether a push touches the branch that the repository follows."""
    try:
        payload = json.loads(_json_of(body))
    except (ValueError, RecursionError):
        return False
    if not isinstance(payload, dict):
        return False
    pushed = _branches(payload)
    followed = repository.branch or repository.synced_branch or _default_branch(payload)
    return not followed or followed in pushed


def _json_of(body: bytes) -> str:
    """What a host sent; GitHub and its like put it into a form field, unless they are told to send JSON."""
    text = body.decode("utf-8", "replace")
    return parse_qs(text).get("payload", [""])[0] if text.startswith("payload=") else text


def _branches(payload: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    ref = payload.get("ref")
    if isinstance(ref, str) and ref.startswith("refs/heads/"):
        found.add(ref.removeprefix("refs/heads/"))
    push = payload.get("push")
    changes = push.get("changes") if isinstance(push, dict) else None
    for change in changes if isinstance(changes, list) else ():
        new = change.get("new") if isinstance(change, dict) else None
        if isinstance(new, dict) and new.get("type") == "branch":
            found.add(str(new.get("name", "")))
    return found


def _default_branch(payload: Mapping[str, Any]) -> str:
    for name in ("repository", "project"):
        inner = payload.get(name)
        if isinstance(inner, dict) and isinstance(inner.get("default_branch"), str):
            return str(inner["default_branch"])
    return ""
