"""Forms of the admin pages of repositories: fields and their words, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django import forms

from apps.repos.models import Repository
from apps.repos.registration import SETTINGS

if TYPE_CHECKING:
    Base = forms.ModelForm[Repository]
else:
    Base = forms.ModelForm


class LinesField(forms.CharField):
    """A list of texts, one on each line."""

    widget = forms.Textarea(attrs={"rows": 4, "cols": 60})

    def prepare_value(self, value: object) -> object:
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def to_python(self, value: object) -> object:  # type: ignore[override]
        text = value if isinstance(value, str) else ""
        return [line.strip() for line in text.splitlines() if line.strip()]


class RepositoryForm(Base):
    only = LinesField(required=False, help_text="Globs from the root, one a line; empty: all files.")
    include = LinesField(
        required=False, help_text="Adds files that no rule takes, such as .claude/skills/** and .agents/skills/**."
    )
    exclude = LinesField(required=False, help_text="Has the last word.")
    docs_roots = LinesField(required=False, help_text="Folders that /x in a link may start from, besides docs.")
    new_credential = forms.CharField(
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Access token or SSH key. Write-only: enter one to replace what is set.",
    )
    new_credential_user = forms.CharField(required=False, help_text="User name, if the host wants one.")

    class Meta:
        model = Repository
        fields: ClassVar[list[str]] = [*sorted(SETTINGS), "visibility"]


class NewRepositoryForm(RepositoryForm):
    name = forms.CharField(required=False, help_text="Last part of the slug, for another branch of one address.")
