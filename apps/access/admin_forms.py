"""Forms of admin pages that several rooms use."""

from __future__ import annotations

from django import forms
from django.contrib.auth.models import Group

from apps.access.rules import Level


class OwnerForm(forms.Form):
    name = forms.CharField(label="user name", required=False, help_text="Empty: nobody owns them.")


class GrantForm(forms.Form):
    group = forms.ModelChoiceField(queryset=Group.objects.order_by("name"))
    level = forms.ChoiceField(choices=Level.choices)
