"""Rendered pages, kept in memory while there is room: parsing and cleaning cost more than all else of a page."""

from __future__ import annotations

import threading
from collections import OrderedDict

KEPT_PAGES = 128
KEPT_CHARACTERS = 24_000_000


class KeptPages:
    """Pages by everything they are made of, the least used thrown away first.

    What a page looks like depends on its text and on where its links lead, never on who reads it, and both are in the
    key; the rows themselves are fetched in every request, inside the scope of the reader.
    """

    def __init__(self, pages: int = KEPT_PAGES, characters: int = KEPT_CHARACTERS) -> None:
        self._pages: OrderedDict[tuple[object, ...], str] = OrderedDict()
        self._limits = (pages, characters)
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> str | None:
        with self._lock:
            page = self._pages.get(key)
            if page is not None:
                self._pages.move_to_end(key)
            return page

    def put(self, key: tuple[object, ...], page: str) -> None:
        most_pages, most_characters = self._limits
        with self._lock:
            if key in self._pages or len(page) > most_characters // 8:
                return
            self._pages[key] = page
            self._size += len(page)
            while self._size > most_characters or len(self._pages) > most_pages:
                _, dropped = self._pages.popitem(last=False)
                self._size -= len(dropped)
