"""The slug of a repository in an address: three parts, compared without case (``api-and-mcp.md`` 1.2)."""

from __future__ import annotations

from django.urls import register_converter

PART = r"(?!\.{1,2}/)[A-Za-z0-9._~-]+"


class SlugConverter:
    regex = rf"{PART}/{PART}/(?!\.{{1,2}}(?:/|$))[A-Za-z0-9._~-]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class SlugPartConverter(SlugConverter):
    """One of the three parts, as the REST addresses name them."""

    regex = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+"


register_converter(SlugConverter, "repository")
register_converter(SlugPartConverter, "slug_part")
