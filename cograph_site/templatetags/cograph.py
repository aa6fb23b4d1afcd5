"""How values look on a page: times, numbers, sizes, states, icons. Everything that comes in is escaped."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from datetime import datetime, timedelta
from urllib.parse import quote

from django import template
from django.conf import settings
from django.urls import get_urlconf, reverse
from django.utils import formats, timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from cograph_site.errors import words_of

register = template.Library()

STATES: dict[str, tuple[str, str]] = {
    # jobs
    "queued": ("", "queued"),
    "running": ("info", "running"),
    "success": ("ok", "success"),
    "warnings": ("warn", "done with warnings"),
    "error": ("bad", "error"),
    "cancelled": ("", "cancelled"),
    # items of a job
    "created": ("ok", "created"),
    "replaced": ("info", "replaced"),
    "unchanged": ("", "unchanged"),
    "moved": ("info", "moved"),
    "removed": ("", "removed"),
    "skipped": ("warn", "skipped"),
    "held": ("warn", "held"),
    "quarantined": ("bad", "quarantined"),
    # sources
    "never synced": ("", "never synced"),
    "ready": ("ok", "ready"),
    "empty": ("", "empty"),
    "not found upstream": ("bad", "not found upstream"),
    "stale": ("warn", "stale"),
    "syncing": ("info", "syncing"),
    # documents
    "indexed": ("ok", "indexed"),
    "truncated": ("warn", "truncated"),
    "not_indexed": ("", "not indexed"),
    # chunks of two versions
    "same": ("", "as before"),
    "added": ("ok", "added"),
    "changed": ("info", "changed"),
    "gone": ("bad", "gone"),
    # vectors
    "embedded": ("ok", "embedded"),
    "pending": ("", "no vector yet"),
    # visibility
    "public": ("accent", "public"),
    "private": ("", "private"),
    "admin_only": ("warn", "administrators only"),
    # findings
    "warning": ("warn", "warning"),
    "info": ("info", "note"),
    "failed": ("bad", "failed"),
}
"""State → (class of the badge, word). One word for one state, on every page."""

ICONS: dict[str, str] = {
    "logo": '<circle cx="6" cy="6" r="2.6"/><circle cx="18" cy="8" r="2.6"/><circle cx="10" cy="18" r="2.6"/>'
    '<path d="M8.6 6.5l6.8 1M7 8.4l2.2 7.1M16.5 10.2l-5 5.8"/>',
    "book": '<path d="M4 5a2 2 0 0 1 2-2h14v16H6a2 2 0 0 0-2 2zM4 5v16M20 19v2H6"/>',
    "branch": '<circle cx="6" cy="5" r="2"/><circle cx="6" cy="19" r="2"/><circle cx="18" cy="7" r="2"/>'
    '<path d="M6 7v10M18 9c0 4-6 4-11 6"/>',
    "file": '<path d="M6 3h8l4 4v14H6zM14 3v4h4"/>',
    "folder": '<path d="M3 6h6l2 2h10v11H3z"/>',
    "clock": '<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3 2"/>',
    "external": '<path d="M14 4h6v6M20 4l-9 9M10 5H5v14h14v-5"/>',
    "menu": '<path d="M4 7h16M4 12h16M4 17h16"/>',
    "user": '<circle cx="12" cy="8" r="4"/><path d="M4 21c1-5 4-7 8-7s7 2 8 7"/>',
    "theme": '<circle cx="12" cy="12" r="8"/><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor"/>',
    "search": '<circle cx="11" cy="11" r="6.5"/><path d="M16 16l5 5"/>',
    "sync": '<path d="M20 12a8 8 0 0 1-14 5.3M4 12a8 8 0 0 1 14-5.3M18 3v4h-4M6 21v-4h4"/>',
    "lock": '<rect x="5" y="11" width="14" height="9" rx="1.5"/><path d="M8 11V8a4 4 0 0 1 8 0v3"/>',
}


@register.simple_tag
def icon(name: str) -> SafeString:
    """A decorative picture; the words beside it carry the meaning."""
    return _DRAWN[name]


_DRAWN = {
    name: mark_safe(  # noqa: S308  # constants of this file only
        f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">{shape}</svg>'
    )
    for name, shape in ICONS.items()
}


@register.simple_tag
def address(name: str) -> str:
    """``{% url %}`` of a page without arguments, looked up once: the frame of each page names a dozen."""
    return _address(name, get_urlconf() or settings.ROOT_URLCONF)


@functools.lru_cache(maxsize=256)
def _address(name: str, urls: str) -> str:
    return reverse(name, urlconf=urls)


@register.simple_tag
def badge(state: str, warnings: int = 0) -> SafeString:
    """A state as word and colour; ``success`` with warnings is "done with warnings"."""
    return _badge("warnings" if state == "success" and warnings else str(state), get_language())


@functools.lru_cache(maxsize=1024)
def _badge(state: str, language: str | None) -> SafeString:
    kind, word = STATES.get(state, ("", state.replace("_", " ")))
    return format_html('<span class="{}">{}</span>', f"badge {kind}".strip(), _(word) if word else "")


@register.filter
def word(state: str) -> str:
    """The word of a state, without the badge."""
    return STATES.get(state, ("", str(state).replace("_", " ")))[1]


@register.filter
def number(value: int | float | None) -> str:
    """``126000`` → ``126,000``, grouped as the language groups."""
    return "–" if value is None else _grouped(value, get_language())


@functools.lru_cache(maxsize=4096, typed=True)
def _grouped(value: int | float, language: str | None) -> str:
    return str(formats.number_format(value, use_l10n=True, force_grouping=True))


@register.filter
def size(value: int | None) -> str:
    """Bytes → ``812 bytes``, ``4.2 KiB``, ``1.3 MiB``, ``2.0 GiB``."""
    if value is None:
        return "–"
    if value < 1024:
        return _("%(n)s bytes") % {"n": number(value)}
    amount = float(value)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        if amount < 1024 or unit == "TiB":
            break
    digits = 1 if amount < 100 else 0
    return f"{formats.number_format(round(amount, digits), digits, force_grouping=True)} {unit}"


def in_words(seconds: float) -> str:
    """A stretch of time, one unit: ``40 s``, ``12 min``, ``3 h``, ``5 days``, ``4 months``, ``2 years``."""
    if seconds < 1:
        return f"{round(seconds * 1000)} ms" if seconds > 0 else "0 s"
    for limit, unit, name in (
        (90, 1, "s"),
        (5400, 60, "min"),
        (129600, 3600, "h"),
        (86400 * 60, 86400, "days"),
        (86400 * 700, 86400 * 30.4, "months"),
    ):
        if seconds < limit:
            return f"{round(seconds / unit)} {name}"
    return f"{round(seconds / 31556952)} years"


@register.filter
def duration(value: timedelta | float | None) -> str:
    """A stretch of time in words; seconds when a number."""
    if value is None:
        return "–"
    return in_words(value.total_seconds() if isinstance(value, timedelta) else float(value))


@register.filter
def milliseconds(value: int | None) -> str:
    return "–" if value is None else in_words(value / 1000)


@register.filter
def ago(value: datetime | None) -> SafeString | str:
    """Relative time with the exact UTC time as title, in ``<time>``."""
    if value is None:
        return _("never")
    passed = (timezone.now() - value).total_seconds()
    sense = 0 if abs(passed) < 10 else 1 if passed > 0 else -1
    words = _passed(in_words(abs(passed)) if sense else "", sense, get_language())
    return stamp(value, words)


@functools.lru_cache(maxsize=1024)
def _passed(time: str, sense: int, language: str | None) -> str:
    """Lists ask for the same few sentences in every row."""
    if not sense:
        return _("just now")
    return (_("%(time)s ago") if sense > 0 else _("in %(time)s")) % {"time": time}


@register.filter
def exact(value: datetime | None) -> SafeString | str:
    """The time itself, to the minute, UTC."""
    return stamp(value, f"{value:%Y-%m-%d %H:%M}") if value else _("never")


@functools.lru_cache(maxsize=4096)
def stamp(value: datetime, words: str) -> SafeString:
    utc = value.astimezone(timezone.get_fixed_timezone(0))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M:%S} UTC", words
    )


@register.filter
def commit(value: str | None) -> str:
    """A commit as people say it: seven letters."""
    return (value or "")[:7]


@register.filter
def path_quote(value: str) -> str:
    """A repository path as part of an address; slashes stay."""
    return quote(value, safe="/~")


@register.filter
def unlocalize(value: float) -> str:
    """A number for an SVG attribute: a point, whatever the language writes."""
    return f"{value:g}"


@register.filter
def percent(part: int | float | None, whole: int | float | None) -> int:
    """Whole per cent, never 100 before it is done."""
    if not part or not whole:
        return 0
    return min(100, int(part * 100 / whole))


@register.filter
def marked(pieces: Iterable[tuple[str, bool]]) -> SafeString:
    """Text cut at the matched words, as pairs (piece, matched).

    SECURITY: highlighting splits and escapes; no tag is ever pasted into text that came from a document.
    """
    return mark_safe(  # noqa: S308  # every piece has been escaped
        "".join(format_html("<mark>{}</mark>", piece) if hit else conditional_escape(piece) for piece, hit in pieces)
    )


@register.filter
def error_title(status: int) -> str:
    return words_of(status).title


@register.filter
def error_text(status: int) -> str:
    return words_of(status).message


@register.filter
def error_remedy(status: int) -> str:
    return words_of(status).remedy
