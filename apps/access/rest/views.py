"""The base of every REST endpoint. A verb answers only when the view states its door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.http import HttpResponse
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.views import APIView

from apps.access import rules, tokens
from apps.access.errors import Forbidden, Unauthenticated
from apps.access.models import ApiToken, TokenScope
from apps.access.rest import idempotency, throttles
from apps.access.rest.rendering import PlainJsonRenderer
from apps.access.rest.schema import DoorSchema
from apps.access.rest.strict import NoQuery, StrictSerializer, read_body, read_query
from apps.access.viewers import viewer_of

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request
    from rest_framework.response import Response
    from rest_framework.serializers import BaseSerializer

    from apps.access.models import User
    from apps.access.viewers import Viewer

SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Door:
    """What one verb of an endpoint asks for and gives; the check at run time and the schema both come from it.

    ``right``: ``open``, ``self`` (any signed-in user), ``read``, ``write``, ``manage`` or ``administer``. Rights over
    a source are tested by the scoped look-up of the view; ``administer`` without a source is tested here.
    ``anonymous`` lets callers without account in while public reading is on. ``creates`` takes an Idempotency-Key.
    ``example`` (an answer) and ``codes`` (status to codes beyond the conventions') are for the schema. ``bucket`` is
    the throttle; ``body_limit`` the longest body in bytes, where it is not the common one. ``of_source``: even
    ``administer`` is a right over what the path names, so that hidden and absent stay alike. ``also`` lists further
    good answers; ``tagged`` says that the answer has an ETag, or that the verb honours If-Match; ``media`` are
    content types, each with an example, that a good answer may have instead of JSON.
    """

    right: str
    summary: str
    scope: TokenScope = TokenScope.READ
    query: type[StrictSerializer] = NoQuery
    input: type[StrictSerializer] | None = None
    output: type[BaseSerializer[Any]] | None = None
    status: int = HTTPStatus.OK
    creates: bool = False
    bucket: str = "user"
    session_only: bool = False
    description: str = ""
    example: Any = None
    codes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    body_limit: Callable[[], int] | None = None
    of_source: bool = False
    also: tuple[int, ...] = ()
    tagged: bool = False
    media: tuple[tuple[str, str], ...] = ()

    @property
    def anonymous(self) -> bool:
        return self.right in ("read", "open") and self.scope == TokenScope.READ


class JsonOnly(BaseContentNegotiation):
    """Answers are JSON, whatever Accept says: a wrong header is no reason to give nothing."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        from rest_framework.utils.mediatypes import media_type_matches

        return next((one for one in parsers if media_type_matches(one.media_type, request.content_type)), None)

    def select_renderer(self, request: Any, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class ApiView(APIView):
    """An endpoint. Subclasses state ``doors`` and write one method for each, which returns a ``Response``.

    ``authorize`` runs before every handler and before a kept answer is given again: it looks up, by the caller's
    scope, what the path names.
    """

    doors: ClassVar[Mapping[str, Door]] = {}
    schema = DoorSchema()
    content_negotiation_class = JsonOnly
    renderer_classes = [PlainJsonRenderer]

    query: dict[str, Any]
    """The checked query string."""

    @property
    def door(self) -> Door:
        """The door of this request. Raises MethodNotAllowed when the view states none for the verb."""
        method = str(self.request.method)
        found = self.doors.get("GET" if method in ("HEAD", "OPTIONS") else method)
        if found is None:
            raise MethodNotAllowed(method)
        return found

    @property
    def viewer(self) -> Viewer:
        """Whose eyes to use for reading."""
        if self.token is not None:
            return self.user
        return viewer_of(self.request._request)

    @property
    def user(self) -> User:
        """The signed-in account, for acts. Only behind doors that need one."""
        return cast("User", self.request.user)

    @property
    def token(self) -> ApiToken | None:
        return self.request.auth if isinstance(self.request.auth, ApiToken) else None

    @property
    def allowed_methods(self) -> list[str]:
        stated = [method for method in ("GET", "POST", "PUT", "PATCH", "DELETE") if method in self.doors]
        return [*stated, "HEAD", "OPTIONS"] if "GET" in stated else stated

    def authorize(self, **names: Any) -> None:
        """Look up what the path names. Raises NotFound, Forbidden. The default is for paths that name nothing."""

    def body(self) -> dict[str, Any]:
        """The checked body, by the door's input serializer."""
        serializer = self.door.input
        if serializer is None:
            raise TypeError("the door states no input")
        return read_body(self.request, serializer)

    def kept_body(self, data: Any) -> Any:
        """What of an answer is stored for an Idempotency-Key; secrets are taken out here."""
        return data

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.format_kwarg = None
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        self.perform_authentication(request)
        self._check_caller(self.door)
        token = self.token
        identity = throttles.identity_of(cast("Any", request), token)
        throttles.count("anonymous" if identity.startswith("address:") else "user", identity)
        if self.door.bucket != "user":
            throttles.count(self.door.bucket, identity)
        self.query = read_query(request, self.door.query)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.args, self.kwargs = args, kwargs
        self.request = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        response: Any
        try:
            self.initial(self.request, *args, **kwargs)
            self.authorize(**kwargs)
            response = self._answer(**kwargs)
        except Exception as failure:
            response = self.handle_exception(failure)
        self.response = self.finalize_response(self.request, response, *args, **kwargs)
        return self.response

    def _answer(self, **names: Any) -> HttpResponseBase:
        method = str(self.request.method)
        if method == "OPTIONS":
            return HttpResponse(status=204, headers={"Allow": ", ".join(self.allowed_methods)})
        handler = getattr(self, "get" if method == "HEAD" else method.lower())

        def act() -> Response:
            return cast("Response", handler(self.request, **names))

        key = idempotency.key_of(self.request) if self.door.creates else None
        if key is None:
            return act()
        return idempotency.once(self.request, self.user, key, act, kept=self.kept_body)

    def _check_caller(self, door: Door) -> None:
        """Everything about the caller that can be told before any look-up."""
        if door.right == "open":
            return
        user = cast("Viewer", self.request.user)
        if not rules.is_signed_in(user) and not (door.anonymous and rules.may_look_around(user)):
            raise Unauthenticated
        token = self.token
        if token is not None:
            if door.session_only:
                raise Forbidden("This is done in a signed-in session, not with a token.", code="insufficient_scope")
            if not tokens.allows(token, door.scope):
                raise Forbidden(
                    f"The token lacks the scope {door.scope.value}. Make one that has it.", code="insufficient_scope"
                )
        if door.right == "administer" and not door.of_source and not rules.is_administrator(self.viewer):
            raise Forbidden("Only administrators do this.")
