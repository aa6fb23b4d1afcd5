"""One call of a tool, from its name and raw arguments to the result: checked, bounded, logged, errors in words."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from django.db import DatabaseError
from django.utils import timezone

from apps.access.errors import Refusal
from apps.access.origin import current_origin
from apps.collections import catalogue as collections
from apps.mcp import arguments
from apps.mcp.bounds import cut_to_tokens, room_for, tokens_of
from apps.mcp.errors import ToolError, of_refusal
from apps.mcp.replies import Call, Reply
from apps.mcp.table import BY_NAME, Tool
from apps.repos import catalogue as repos
from apps.retrieval import query_log
from apps.retrieval.models import Door

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

logger = logging.getLogger(__name__)

Opener: TypeAlias = Callable[[], contextlib.AbstractContextManager["User"]]

_opener: ContextVar[Opener | None] = ContextVar("cograph_mcp_opener", default=None)
_viewer: ContextVar[User | None] = ContextVar("cograph_mcp_viewer", default=None)


@contextlib.contextmanager
def opened_by(opener: Opener) -> Iterator[None]:
    """Each call inside asks ``opener`` who is calling, in the thread that does the work, and leaves it when done."""
    token = _opener.set(opener)
    try:
        yield
    finally:
        _opener.reset(token)


def calling_as(user: User) -> contextlib.AbstractContextManager[None]:
    """Calls inside run with the rights of ``user`` and nobody else's."""
    return opened_by(lambda: contextlib.nullcontext(user))


@contextlib.contextmanager
def entered() -> Iterator[None]:
    """Around the work of one request. Raises LookupError when nobody is calling: there is no call without a caller."""
    opener = _opener.get()
    if opener is None:
        raise LookupError("nobody is calling")
    with opener() as user:
        token = _viewer.set(user)
        try:
            yield
        finally:
            _viewer.reset(token)


def current_viewer() -> User:
    """Raises LookupError outside ``entered``."""
    user = _viewer.get()
    if user is None:
        raise LookupError("nobody is calling")
    return user


@dataclass(frozen=True, slots=True)
class Outcome:
    """``meta`` goes into ``_meta["cograph/result"]``."""

    text: str
    meta: Mapping[str, Any] | None = None
    is_error: bool = False


def call_tool(name: str, given: Mapping[str, Any]) -> Outcome:
    """The result of one call. Raises KeyError for a tool that does not exist; everything else is in the result."""
    tool = BY_NAME[name]
    viewer = current_viewer()
    if not tool.logged:
        return _outcome(tool, viewer, given)
    asked = given.get(tool.logged)
    query = asked if isinstance(asked, str) else ""
    named = _named(given, viewer)
    keys = [(source.kind, source.pk) for source in named.values()]
    with query_log.noting(
        by=viewer, door=Door.MCP, tool=name.removeprefix("cograph_"), query=query, named=keys
    ) as note:
        return _outcome(tool, viewer, given, named, note)


def try_tool(tool: Tool, viewer: Viewer, given: Mapping[str, Any]) -> Outcome:
    """The result of a call that no agent made: the same words, no row in the query log."""
    return _outcome(tool, viewer, given)


def _outcome(
    tool: Tool,
    viewer: Viewer,
    given: Mapping[str, Any],
    named: Mapping[str, Source] = MappingProxyType({}),
    note: query_log.Note | None = None,
) -> Outcome:
    try:
        reply = _run(tool, viewer, given, named)
    except ToolError as error:
        if note is not None:
            note.refused(error.code)
        return Outcome(error.line, {"error": error.code}, is_error=True)
    text = cut_to_tokens(reply.text())
    if note is not None:
        note.answered(reply.sources, tokens=tokens_of(text))
    return Outcome(text, reply.result())


def _run(tool: Tool, viewer: Viewer, given: Mapping[str, Any], named: Mapping[str, Source]) -> Reply:
    checked = arguments.check(tool.arguments, given, tool.exactly_one)
    room = room_for(more=arguments.asks_for_more(tool.arguments, checked))
    call = Call(viewer=viewer, arguments=checked, now=timezone.now(), room=room, tool=tool.name, named=named)
    try:
        return tool.run(call)
    except Refusal as refusal:
        raise of_refusal(refusal) from None
    except ToolError:
        raise
    except Exception as failure:
        raise failed(tool.name, failure) from None


def failed(what: str, failure: Exception) -> ToolError:
    """What the caller is told of a failure that nobody meant.

    SECURITY: a trace tells of paths and rows; the log has it, under the id that the caller gets.
    """
    if isinstance(failure, DatabaseError):
        logger.warning("%s failed in the database: %s", what, type(failure).__name__)
        return ToolError("unavailable", "the database did not answer in time; ask for less, or try again")
    logger.error("%s failed", what, exc_info=failure)
    request_id = current_origin().request_id or "without id"
    return ToolError("unavailable", f"this call failed on the server (request {request_id})")


def _named(given: Mapping[str, Any], viewer: User) -> dict[str, Source]:
    """The readable sources that the call names, by argument, so that the log can ask whether they opted out."""
    found: dict[str, Source] = {}
    for name, look_up in (("repository", repos.repository_at), ("collection", collections.collection_at)):
        value = given.get(name)
        if isinstance(value, str) and value and "\0" not in value and len(value) <= 255:
            with contextlib.suppress(Refusal):
                found[name] = look_up(viewer, value)
    return found
