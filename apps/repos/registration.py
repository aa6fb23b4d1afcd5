"""Registering, changing and deleting repositories: the workflows behind every face."""

from __future__ import annotations

import secrets as random_secrets
import string
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.access import audit, rules
from apps.access.audit import Act
from apps.access.errors import Conflict, Forbidden, Invalid
from apps.access.rules import Right, Visibility
from apps.access.secrets import encrypt
from apps.access.visibility import set_visibility
from apps.indexing.analyzer import languages
from apps.jobs import control
from apps.jobs.models import Cause, Job, Status
from apps.jobs.queue import Enqueued, enqueue
from apps.repos import addresses, remotes
from apps.repos.addresses import BadAddress, GitAddress
from apps.repos.globs import BadPattern, check_pattern
from apps.repos.lookup import writable_for
from apps.repos.models import Absence, CredentialKind, LinkStyle, Repository, RepositoryDocument, Schedule
from apps.repos.schedules import next_run

if TYPE_CHECKING:
    from apps.access.models import User

MAX_PATTERNS = 100
WRITER_FIELDS = frozenset({"description"})
SETTINGS = frozenset(
    {
        "branch",
        "depth",
        "description",
        "docs_roots",
        "exclude",
        "git_url",
        "include",
        "language",
        "link_style",
        "link_template",
        "logs_queries",
        "max_chars",
        "max_words",
        "only",
        "overlap_words",
        "schedule",
    }
)
"""What ``change_repository`` takes; slug, owner, visibility and credential have workflows of their own."""


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A credential as entered. ``kind`` is ``token`` or ``ssh_key``; ``user`` may stay empty for most hosts."""

    secret: str
    user: str = ""
    kind: str = CredentialKind.TOKEN


@dataclass(frozen=True, slots=True)
class Registered:
    repository: Repository
    job: Job


def register_repository(
    *,
    by: User,
    git_url: str,
    name: str = "",
    slug: str = "",
    visibility: str = Visibility.PRIVATE,
    credential: NewCredential | None = None,
    trusted_path: bool = False,
    owner: User | None = None,
    sync: bool = True,
    **settings: Any,
) -> Registered:
    """Add a repository and queue its first sync.

    ``name`` replaces the last part of the slug (a second branch of one address); ``slug`` gives it whole (the samples).
    ``trusted_path`` is for the command line: local paths need no root. ``settings`` are those of ``change_repository``.
    Raises Forbidden for all but administrators (slugs are global, a conflict tells of hidden ones), Invalid naming the
    field, Conflict when the slug is taken.
    """
    if not rules.is_administrator(by):
        raise Forbidden("Only administrators register repositories.")
    address = remotes.accepted(git_url, trusted_path=trusted_path)
    remotes.check_reachable(address)
    if visibility not in Visibility.values:
        raise Invalid(f"A visibility is one of {', '.join(Visibility.values)}.", field="visibility")
    try:
        chosen = slug or addresses.slug_of(address, name)
        addresses.check_slug(chosen)
    except BadAddress as error:
        raise Invalid(str(error), field="name" if name else "git_url") from None
    repository = Repository(
        slug=chosen,
        git_url=address.url,
        trusted_path=trusted_path and address.is_local,
        visibility=visibility,
        owner=owner or by,
    )
    _apply(repository, {name: value for name, value in settings.items() if name != "git_url"})
    if credential is not None:
        _set_credential(repository, credential, address.scheme)
    with transaction.atomic():
        _save_new(repository)
        audit.record(Act.SOURCE_CREATED, by=by, target=repository, after=_shown(repository))
        if not sync:
            return Registered(repository, Job())
        job = enqueue("sync", source=repository, params={"sync": True}, by=by).job
    return Registered(repository, job)


def _save_new(repository: Repository) -> None:
    try:
        with transaction.atomic():
            repository.save(force_insert=True)
    except IntegrityError:
        raise Conflict(
            f"{repository.slug} is registered already ({repository.get_absolute_url()}). Give another branch a name of"
            " its own.",
            field="git_url",
        ) from None


@transaction.atomic
def change_repository(*, repository: Repository, by: User, **changes: Any) -> Repository:
    """Change settings of a repository and return the fresh row. They take effect with the next sync.

    A writer may change the description; everything else takes an administrator. An address on another server forgets
    the credential. Switching the schedule to manual ends queued scheduled runs. Raises NotFound, Forbidden, or Invalid
    naming the field.
    """
    right = Right.WRITE if set(changes) <= WRITER_FIELDS else Right.ADMINISTER
    held = _locked(repository, by, right)
    before = _shown(held)
    if changes.get("git_url") not in (None, held.git_url):
        address = remotes.accepted(changes["git_url"])
        remotes.check_reachable(address)
        if held.credential is not None and _server(address) != _server(addresses.parse(held.git_url)):
            # SECURITY: who gave it meant it for one server; another one must not be handed it unasked.
            _forget_credential(held)
            audit.record(Act.CREDENTIAL_CHANGED, by=by, target=held, after={"credential": "none, with the server"})
        held.git_url, held.trusted_path = address.url, False
    _apply(held, {name: value for name, value in changes.items() if name != "git_url"})
    held.save()
    after = _shown(held)
    if before != after:
        audit.record(
            Act.SOURCE_CHANGED,
            by=by,
            target=held,
            before={name: before[name] for name in before if before[name] != after[name]},
            after={name: after[name] for name in after if before[name] != after[name]},
        )
    if before["schedule"] != held.schedule and held.schedule == Schedule.MANUAL:
        _cancel_scheduled(held, by)
    return held


def _server(address: GitAddress) -> tuple[str, str, int | None]:
    return address.scheme, address.host.lower(), address.port


@transaction.atomic
def move_local(*, repository: Repository, by: User, folder: Path) -> Repository:
    """Follow a repository of this machine to the folder where it lies now. For Cograph itself and its operator, who
    vouch for the path; no request names one. Raises NotFound or Forbidden."""
    held = _locked(repository, by, Right.ADMINISTER)
    before = _shown(held)
    held.git_url, held.trusted_path = str(folder), True
    held.save(update_fields=["git_url", "trusted_path"])
    audit.record(Act.SOURCE_CHANGED, by=by, target=held, before=before, after=_shown(held))
    return held


def change_visibility(*, repository: Repository, visibility: str, by: User) -> Repository:
    """Administrators only. Raises NotFound, Forbidden, Invalid."""
    changed = set_visibility(source=repository, visibility=visibility, by=by)
    fresh: Repository = Repository.objects.get(pk=changed.pk)
    return fresh


@transaction.atomic
def set_credential(*, repository: Repository, credential: NewCredential | None, by: User) -> Repository:
    """Enter, replace or (None) forget the credential. Administrators only."""
    held = _locked(repository, by, Right.ADMINISTER)
    if credential is None:
        _forget_credential(held)
    else:
        _set_credential(held, credential, addresses.parse(held.git_url).scheme)
    held.save(update_fields=["credential_kind", "credential_user", "credential"])
    audit.record(Act.CREDENTIAL_CHANGED, by=by, target=held, after={"credential": "changed" if credential else "none"})
    return held


@transaction.atomic
def enable_webhook(*, repository: Repository, by: User) -> tuple[Repository, str]:
    """Follow pushes by webhook with a new secret, which is shown once. Administrators only."""
    held = _locked(repository, by, Right.ADMINISTER)
    secret = random_secrets.token_urlsafe(32)
    held.schedule, held.next_sync_at = Schedule.WEBHOOK, None
    held.hook_secret = encrypt(secret)
    held.hook_id = uuid.uuid4()
    held.save(update_fields=["schedule", "next_sync_at", "hook_secret", "hook_id"])
    audit.record(Act.CREDENTIAL_CHANGED, by=by, target=held, after={"webhook secret": "changed"})
    return held, secret


@transaction.atomic
def delete_repository(*, repository: Repository, by: User) -> None:
    """Hide a repository at once and free its slug; a ``purge`` job removes its rows. Administrators only."""
    held = _locked(repository, by, Right.ADMINISTER)
    held.deleted_at = timezone.now()
    held.save(update_fields=["deleted_at"])
    audit.record(Act.SOURCE_DELETED, by=by, target=held, before=_shown(held))
    control.source_deleted(held, by=by)


# -- what a writer may ask for


def request_sync(*, repository: Repository, by: User, force: bool = False) -> Enqueued:
    """Queue a sync, or join the live one. Raises NotFound, Forbidden, Throttled."""
    held = writable_for(by, repository.pk)
    return enqueue("sync", source=held, params={"sync": True, "force": force}, by=by)


def request_chunk_anew(*, repository: Repository, by: User) -> Enqueued:
    """Queue a sync that reads and chunks every document again. Raises NotFound, Forbidden, Throttled."""
    held = writable_for(by, repository.pk)
    return enqueue("sync", source=held, params={"sync": True, "chunk_anew": True}, by=by)


@transaction.atomic
def approve_deletions(
    *, repository: Repository, by: User, documents: Sequence[uuid.UUID | str] | None = None
) -> Enqueued:
    """Let held deletions (all, or those of ``documents``) happen, by a job. Raises NotFound, Forbidden, Invalid."""
    return _decide(repository, by, documents, Absence.APPROVED, Act.DELETIONS_APPROVED)


@transaction.atomic
def discard_deletions(
    *, repository: Repository, by: User, documents: Sequence[uuid.UUID | str] | None = None
) -> Enqueued:
    """Keep documents although the latest commit does not hold them. Raises NotFound, Forbidden, Invalid."""
    return _decide(repository, by, documents, Absence.KEPT, Act.DELETIONS_DISCARDED)


def _decide(
    repository: Repository, by: User, documents: Sequence[uuid.UUID | str] | None, absence: Absence, act: Act
) -> Enqueued:
    held = _locked(repository, by, Right.WRITE)
    rows = RepositoryDocument.objects.filter(repository=held).held()
    if documents is not None:
        try:
            wanted = {uuid.UUID(str(id_)) for id_ in documents}
        except ValueError:
            raise Invalid("A document id is not valid.", field="documents") from None
        rows = rows.filter(pk__in=wanted)
    paths = list(rows.order_by("path").values_list("path", flat=True))
    if not paths:
        raise Invalid("No deletion of these documents waits.", field="documents")
    rows.update(absence=absence)
    audit.record(act, by=by, target=held, after={"documents": len(paths), "paths": paths[:100]})
    return enqueue("sync", source=held, params={"approve": True}, by=by)


# -- parts


def _locked(repository: Repository, by: User, right: Right) -> Repository:
    Repository.objects.select_for_update().filter(pk=repository.pk).order_by().values_list("pk").first()
    held: Repository = Repository.objects.get_for(by, right, pk=repository.pk)
    return held


def _cancel_scheduled(repository: Repository, by: User) -> None:
    queued: Any = Job.objects.of_source(repository.kind, repository.pk).filter(
        kind="sync", status=Status.QUEUED, cause=Cause.SCHEDULE
    )
    for job in queued:
        control.cancel(job, by=by)


def _apply(repository: Repository, changes: Mapping[str, Any]) -> None:
    """Check and set settings; the row is saved by the caller."""
    unknown = sorted(set(changes) - SETTINGS)
    if unknown:
        raise Invalid(f"{unknown[0]} is no setting of a repository.", code="unknown_field", field=unknown[0])
    for name, value in changes.items():
        if name in {"only", "include", "exclude"}:
            value = _patterns(name, value)
        elif name == "branch":
            value = _branch(value)
        elif name == "language" and value not in languages():
            raise Invalid(f"The language is one of {', '.join(languages())}.", field="language")
        elif name == "docs_roots":
            value = [root.strip("/") for root in value if root.strip("/")]
        setattr(repository, name, value)
    if "schedule" in changes:
        repository.next_sync_at = next_run(repository.schedule, timezone.now())
    if repository.language not in languages():
        raise Invalid(f"A language is one of {', '.join(languages())}.", field="language")
    if repository.link_style == LinkStyle.TEMPLATE:
        _check_template(repository.link_template)
    try:
        repository.clean_fields(exclude=["slug", "owner", "hook_id"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise Invalid(messages[0], field=field) from None
    if repository.overlap_words > repository.max_words // 2:
        raise Invalid("The overlap is at most half of the words a chunk.", code="out_of_range", field="overlap_words")


def _patterns(name: str, patterns: Sequence[str]) -> list[str]:
    cleaned = [pattern.strip() for pattern in patterns if pattern.strip()]
    if len(cleaned) > MAX_PATTERNS:
        raise Invalid(f"At most {MAX_PATTERNS} patterns.", field=name)
    for pattern in cleaned:
        try:
            check_pattern(pattern)
        except BadPattern as error:
            raise Invalid(f"{pattern[:60]}: {error}.", field=name) from None
    return cleaned


def _branch(branch: str) -> str:
    branch = branch.strip(" ")
    if branch in ("", "default"):
        return ""
    try:
        addresses.check_branch(branch)
    except BadAddress as error:
        raise Invalid(str(error), field="branch") from None
    return branch


def _check_template(template: str) -> None:
    try:
        holes = {tuple(hole) for _, *hole in string.Formatter().parse(template) if hole[0] is not None}
    except ValueError:
        holes = {("",)}
    # SECURITY: nothing but the bare names: an attribute tells of the server, a width of a billion fills its memory.
    if holes - {(name, "", None) for name in ("commit", "path", "start", "end")}:
        raise Invalid("A template may hold {commit}, {path}, {start} and {end}.", field="link_template")
    if not template.startswith(("https://", "http://")):
        raise Invalid("A template begins with https:// or http://.", field="link_template")


def _set_credential(repository: Repository, credential: NewCredential, scheme: str) -> None:
    kind = CredentialKind(credential.kind)
    if kind == CredentialKind.NONE or not credential.secret.strip():
        raise Invalid("Enter the token or key.", field="credential")
    if (kind == CredentialKind.SSH_KEY) != (scheme == "ssh"):
        raise Invalid("https addresses take a token, ssh addresses a key.", field="credential")
    if kind == CredentialKind.TOKEN and any(ord(character) < 33 for character in credential.secret):
        raise Invalid("A token holds no blanks.", field="credential")
    repository.credential_kind = kind
    repository.credential_user = credential.user.strip()
    repository.credential = encrypt(credential.secret)


def _forget_credential(repository: Repository) -> None:
    repository.credential_kind, repository.credential_user, repository.credential = CredentialKind.NONE, "", None


def _shown(repository: Repository) -> dict[str, Any]:
    """Settings as the audit trail keeps them; no secrets are among them."""
    return {"slug": repository.slug, **{name: getattr(repository, name) for name in sorted(SETTINGS)}}
