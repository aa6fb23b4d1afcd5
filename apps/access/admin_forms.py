"""Forms of admin pages that several rooms use."""

from __future__ import annotations

from django import forms
from django.contrib.auth.models import Group

from apps.access.rules import Level


class GrantForm(forms.Form):
    group = forms.ModelChoiceField(queryset=Group.objects.order_by("name"))
    level = forms.ChoiceField(choices=Level.choices)
