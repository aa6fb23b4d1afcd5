"""Documents that moved and were edited in one push: known by the texts they share (``repository-documents.md`` 6.5)."""

from __future__ import annotations

import dataclasses
import hashlib
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence

from django.db import connection

from apps.repos.plan import KnownDocument
from apps.repos.storing import Outcome

MOST_VANISHED = 5000
"""With more vanished documents than this a push is a replacement, not a move."""


class MoveFinder:
    """Pairs new documents with vanished ones that share half of the larger one's chunk texts.

    ``left`` are the vanished documents that nothing continues. Texts of vanished documents are loaded at first use.
    """

    def __init__(self, vanished: Sequence[KnownDocument]) -> None:
        self.left = list(vanished)
        self._texts: dict[uuid.UUID, Counter[bytes]] | None = None
        self._holders: dict[bytes, set[uuid.UUID]] = defaultdict(set)

    def resolve(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """The outcomes, new documents replaced by moves where a vanished one goes on."""
        if not self.left or all(outcome.known is not None for outcome in outcomes):
            return list(outcomes)
        texts = self._load()
        known = {document.id: document for document in self.left}
        resolved: list[Outcome] = []
        for outcome in outcomes:
            found = self._match(outcome, texts, known) if outcome.known is None else None
            if found is not None:
                outcome = dataclasses.replace(outcome, known=known.pop(found), moved=True)
            resolved.append(outcome)
        self.left = [document for document in self.left if document.id in known]
        return resolved

    def _match(
        self, outcome: Outcome, texts: dict[uuid.UUID, Counter[bytes]], known: dict[uuid.UUID, KnownDocument]
    ) -> uuid.UUID | None:
        own = Counter(_digest(chunk.text) for chunk in outcome.read.chunks)
        total = sum(own.values())
        shared: Counter[uuid.UUID] = Counter()
        for digest, count in own.items():
            for holder in self._holders.get(digest, ()):
                if holder in known:
                    shared[holder] += min(count, texts[holder][digest])
        fitting = [
            (count / max(total, sum(texts[holder].values())), known[holder])
            for holder, count in shared.items()
            if 2 * count >= max(total, sum(texts[holder].values())) and known[holder].kind == outcome.taken.kind
        ]
        if not fitting:
            return None
        return min(fitting, key=lambda pair: (-pair[0], pair[1].raw_path))[1].id

    def _load(self) -> dict[uuid.UUID, Counter[bytes]]:
        if self._texts is None:
            self._texts = defaultdict(Counter)
            ids = [document.id for document in self.left][:MOST_VANISHED]
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT document_id, sha256(convert_to(coalesce(text, source), 'UTF8')) FROM repo_document_chunks"
                    " WHERE document_id = ANY(%s)",
                    [ids],
                )
                for document_id, digest in cursor.fetchall():
                    self._texts[document_id][bytes(digest)] += 1
                    self._holders[bytes(digest)].add(document_id)
        return self._texts


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
