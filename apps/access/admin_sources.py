"""What the admin pages of all kinds of sources share: confirmed actions, grants and visibility.

Every act calls a workflow that tests the rights of whoever asks; a refusal is shown by name, row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.contrib import admin, messages
from django.http import HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from apps.access import grants
from apps.access.admin_base import ScopedAdmin, act_on_rows
from apps.access.admin_forms import GrantForm, OwnerForm
from apps.access.errors import Invalid, Refusal
from apps.access.rules import Right, Visibility
from apps.access.visibility import set_owner

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apps.access.models import User

Act = Callable[["User", Any], Any]
SOURCE_ACTIONS = ("grant_group", "make_public", "make_private", "make_admin_only", "change_owner")


def actor(request: HttpRequest) -> User:
    return cast("User", request.user)


def row_action(name: str, words: str, act: Act, *, done: str, sentence: str, verb: str = "") -> Any:
    """An action of a source admin that asks first and then does ``act`` with whoever asks and each row.

    ``words`` stand in the list of actions, ``verb`` on the button, where it differs.
    """

    @admin.action(description=words)
    def run(page: SourceAdmin, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return page._act(request, rows, act, done=done, action=name, verb=verb or words, sentence=sentence)

    run.__name__ = name
    return run


def _hand_over(row: Any, name: str, *, by: User) -> None:
    """Make the user called ``name`` the owner of ``row``; an empty name makes it nobody's."""
    type(row).objects.get_for(by, Right.ADMINISTER, pk=row.pk)  # before a name says whether it is somebody's
    owner = grants.find_grantee("user", name) if name else None
    if name and owner is None:
        raise Invalid("There is no user of this name.", field="name")
    set_owner(source=row, owner=cast("User | None", owner), by=by)


class SourceAdmin(ScopedAdmin):
    """Base of the admin page of a kind of source. Subclasses set ``plural`` and say how a visibility is changed."""

    plural: ClassVar[str]
    """As in "these collections"."""

    def change_visibility(self, by: User, row: Any, visibility: Visibility) -> Any:
        raise NotImplementedError

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except Refusal as refusal:
            where = f"{refusal.field}: " if refusal.field else ""
            messages.error(request, f"{where}{refusal.message} Nothing was changed.")
            return HttpResponseRedirect(request.get_full_path())

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing: sources have no form of related rows."""

    def _confirmed(
        self, request: HttpRequest, rows: Any, *, action: str, sentence: str, verb: str, form: Any = None
    ) -> HttpResponse | None:
        """None when the person has confirmed; else the page that asks."""
        if request.POST.get("confirmed") and (form is None or form.is_valid()):
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": verb,
            "sentence": sentence,
            "verb": verb,
            "rows": rows,
            "action": action,
            "form": form,
            "back": request.get_full_path(),
        }
        return TemplateResponse(request, "admin/act.html", context)

    def _act(self, request: HttpRequest, rows: Any, act: Act, *, done: str, **words: str) -> HttpResponse | None:
        asked = self._confirmed(request, rows, **words)
        if asked is None:
            act_on_rows(request, rows, lambda row: act(actor(request), row), done=done)
        return asked

    @admin.action(description="Grant to a group")
    def grant_group(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        form = GrantForm(request.POST if request.POST.get("confirmed") else None)
        asked = self._confirmed(
            request,
            rows,
            action="grant_group",
            verb="Grant",
            sentence=f"The group will be able to read, or read and write, these {self.plural}.",
            form=form,
        )
        if asked is None:
            group, level = form.cleaned_data["group"], form.cleaned_data["level"]
            act_on_rows(
                request,
                rows,
                lambda row: grants.grant(source=row, to=group, level=level, by=actor(request)),
                done=f"Granted on {{n}} {self.plural}.",
            )
        return asked

    @admin.action(description="Make public")
    def make_public(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self._visibility(
            request, rows, Visibility.PUBLIC, "make_public", "Every signed-in user will read these."
        )

    @admin.action(description="Make private")
    def make_private(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        sentence = "Owners, grants and administrators will read these."
        return self._visibility(request, rows, Visibility.PRIVATE, "make_private", sentence)

    @admin.action(description="Make administrators only")
    def make_admin_only(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        sentence = "Only administrators will read these; grants to users and grants of others than administrators end."
        return self._visibility(request, rows, Visibility.ADMIN_ONLY, "make_admin_only", sentence)

    @admin.action(description="Change owner")
    def change_owner(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        form = OwnerForm(request.POST if request.POST.get("confirmed") else None)
        asked = self._confirmed(
            request,
            rows,
            action="change_owner",
            verb="Change owner",
            sentence=f"Who owns {self.plural} reads and manages them, and so no longer does who owned them before.",
            form=form,
        )
        if asked is None:
            act_on_rows(
                request,
                rows,
                lambda row: _hand_over(row, form.cleaned_data["name"], by=actor(request)),
                done=f"Owner of {{n}} {self.plural} changed.",
            )
        return asked

    def _visibility(
        self, request: HttpRequest, rows: Any, visibility: Visibility, action: str, sentence: str
    ) -> HttpResponse | None:
        return self._act(
            request,
            rows,
            lambda by, row: self.change_visibility(by, row, visibility),
            done=f"Visibility of {{n}} {self.plural} changed.",
            action=action,
            verb="Change visibility",
            sentence=sentence,
        )
