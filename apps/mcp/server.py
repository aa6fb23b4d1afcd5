"""The MCP server: the official SDK's low-level server over the table of tools.

The decorator server of the SDK answers a misspelt argument as if it had not been given; here arguments are checked by
``apps.mcp.arguments``. Handlers run the table's synchronous functions in the thread of the request, so that they use
its database connection.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import mcp_types as types
from asgiref.sync import sync_to_async
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from apps.access.errors import Refusal
from apps.mcp import calling, resources
from apps.mcp.errors import ToolError, of_refusal
from apps.mcp.instructions import instructions
from apps.mcp.replies import META_KEY
from apps.mcp.table import BY_NAME, TOOLS, Tool

T = TypeVar("T")
Worker: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]


async def _in_own_thread(function: Callable[[], Any]) -> Any:
    return await sync_to_async(function, thread_sensitive=True)()


_worker: ContextVar[Worker] = ContextVar("cograph_mcp_worker", default=_in_own_thread)

NAME = "cograph"
VERSION = "0.1.0"
RESOURCE_NOT_FOUND = -32002


@contextlib.contextmanager
def working_by(worker: Worker) -> Iterator[None]:
    """Messages that are taken up inside have the functions of tools run by ``worker``."""
    token = _worker.set(worker)
    try:
        yield
    finally:
        _worker.reset(token)


def working() -> Worker:
    """What runs the functions of tools for the message at hand."""
    return _worker.get()


def server() -> Server[Any]:
    """The server with the instructions of this deployment. It holds no state of any caller."""
    return _server(instructions())


@lru_cache(maxsize=4)
def _server(text: str) -> Server[Any]:
    made: Server[Any] = Server(
        NAME,
        version=VERSION,
        title="Cograph",
        instructions=text,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        get_tool_input_schema=lambda name: BY_NAME[name].schema if name in BY_NAME else None,
    )
    # A span for each message, which the SDK makes by itself: nothing in the portal collects them.
    made.middleware.clear()
    return made


async def _list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=list(tool_definitions()))


@lru_cache(maxsize=1)
def tool_definitions() -> tuple[types.Tool, ...]:
    return tuple(_definition(tool) for tool in TOOLS)


def _definition(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False
        ),
    )


async def _call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name not in BY_NAME:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool. Known are {', '.join(BY_NAME)}.")
    try:
        outcome = await _in_request(params.name, lambda: calling.call_tool(params.name, params.arguments or {}))
    except ToolError as error:
        outcome = calling.Outcome(error.line, {"error": error.code}, is_error=True)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=outcome.text)],
        is_error=outcome.is_error,
        _meta={META_KEY: dict(outcome.meta)} if outcome.meta is not None else None,
    )


async def _list_resources(context: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    try:
        found = await _in_request("resources/list", lambda: resources.listed(calling.current_viewer()))
    except ToolError as error:
        raise MCPError(types.INTERNAL_ERROR, error.line) from None
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=one.uri, name=one.name, description=one.description, mime_type=one.mime_type)
            for one in found
        ]
    )


async def _list_templates(
    context: Any, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(
                uri_template=one.uri, name=one.name, description=one.description, mime_type=one.mime_type
            )
            for one in resources.TEMPLATES
        ]
    )


async def _read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    try:
        text, kind = await _in_request("resources/read", lambda: resources.read(calling.current_viewer(), uri))
    except ToolError as error:
        code = RESOURCE_NOT_FOUND if error.code == "not_found" else types.INTERNAL_ERROR
        raise MCPError(code, error.line) from None
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=kind)])


async def _in_request(what: str, function: Callable[[], T]) -> T:
    """Run as the caller, in the thread that asked, where the database connection is. Raises ToolError and MCPError
    alone.

    SECURITY: of any other exception the SDK tells the caller the text, in the protocols before 2026.
    """

    def run() -> T:
        with calling.entered():
            return function()

    try:
        return await working()(run)  # type: ignore[no-any-return]
    except (ToolError, MCPError):
        raise
    except Refusal as refusal:
        raise of_refusal(refusal) from None
    except Exception as failure:
        raise calling.failed(what, failure) from None
