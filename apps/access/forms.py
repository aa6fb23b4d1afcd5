"""Forms of the admin: fields only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import Group

if TYPE_CHECKING:
    Base = forms.ModelForm[Group]
else:
    Base = forms.ModelForm


class GroupForm(Base):
    managed_by_provider = forms.BooleanField(
        required=False,
        label="Managed by the sign-in provider",
        help_text="Members are set at each sign-in from the provider's claim, and only there.",
    )

    class Meta:
        model = Group
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        profile = getattr(self.instance, "profile", None) if self.instance.pk else None
        self.fields["managed_by_provider"].initial = bool(profile and profile.managed_by_provider)
