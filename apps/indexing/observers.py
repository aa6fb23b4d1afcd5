"""Registry of those who want to know when documents are stored or removed, in the same transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol
from uuid import UUID

Act = Literal["created", "replaced", "moved", "trashed", "restored"]


@dataclass(frozen=True, slots=True)
class DocumentRef:
    source_kind: str
    source_id: UUID
    document_id: UUID
    path: str


@dataclass(frozen=True, slots=True)
class DocumentChange:
    ref: DocumentRef
    act: Act
    old_path: str | None = None
    version_hash: str = ""
    frontmatter: Mapping[str, object] = field(default_factory=dict)
    warnings: frozenset[str] = frozenset()
    """Codes of what reading the document gave rise to."""


class DocumentObserver(Protocol):
    """Writes rows, uses no network, and lets exceptions end the transaction it is called in."""

    def stored(self, changes: Sequence[DocumentChange]) -> None: ...

    def removing(self, documents: Sequence[DocumentRef]) -> AbstractContextManager[None]: ...


_observers: list[DocumentObserver] = []


def register_document_observer(observer: DocumentObserver) -> None:
    if observer not in _observers:
        _observers.append(observer)


def documents_stored(changes: Sequence[DocumentChange]) -> None:
    """Tells every observer of one batch; called by the room that stored it, inside its transaction."""
    if changes:
        for observer in _observers:
            observer.stored(changes)


@contextmanager
def removing_documents(documents: Sequence[DocumentRef]) -> Iterator[None]:
    """Stands around the deletion of ``documents``: observers see the rows before and after."""
    with ExitStack() as stack:
        if documents:
            for observer in _observers:
                stack.enter_context(observer.removing(documents))
        yield
