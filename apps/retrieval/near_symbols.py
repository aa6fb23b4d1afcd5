"""Spellings to try when nothing was found: names of symbols near in letters to the words that stand nowhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from apps.access.compiled import readable_ids
from apps.indexing.analyzer import fold
from apps.indexing.statements import Fragment
from apps.markup.nearest import NearestNames
from apps.repos.code.alike import alike
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.retrieval.values import Question

MOST_WORDS = 3
"""Words that a spelling is looked for: one statement each, and one for all names."""
MOST_ALIKE = 50
_WORD = re.compile(r"\w(?:[\w.:]*\w)?")
_PART = re.compile(r"[^\W_]+")
_LIKE_CODE = re.compile(r"[_.:]|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class Spelling:
    """``name`` of a symbol in place of ``word``; ``query`` is the whole question with it."""

    word: str
    name: str
    query: str


def spellings(viewer: Viewer, question: Question, absent: Sequence[str]) -> list[Spelling]:
    """The most alike name of a symbol, at least 60 % alike, for the likeliest names among the words that hold one of
    ``absent``.

    SECURITY: names come from repositories that ``viewer`` may read, and of these from the ones that were asked.
    """
    words = _written(question.query, absent)[:MOST_WORDS]
    named = [id for kind, id in question.sources if kind == Repository.kind]
    if not words or (question.sources and not named):
        return []
    scope = Fragment(*readable_ids(Repository, viewer))
    if named:
        sql = f"SELECT r.id FROM ({scope.sql}) AS r (id) WHERE r.id = ANY(%s::uuid[])"  # noqa: S608 - Django's own SQL
        scope = Fragment(sql, (*scope.params, named))
    close = {word: alike(scope, word, MOST_ALIKE) for word in words}
    places = {(one.repository_id, one.number) for found in close.values() for one in found}
    if not places:
        return []
    near = Q(pk__in=())
    for repository in {repository for repository, _ in places}:
        near |= Q(repository=repository, number__in=[number for other, number in places if other == repository])
    rows = CodeNode.objects.filter(near, test=False).values_list("repository_id", "number", "name")
    names = {(repository, number): name for repository, number, name in rows}
    found = []
    for word, symbols in close.items():
        held = (names.get((one.repository_id, one.number)) for one in symbols)
        name = NearestNames(name for name in held if name).find(word)
        if name is not None and name != word:
            found.append(Spelling(word, name, question.query.replace(word, name, 1)))
    return found


def _written(query: str, absent: Sequence[str]) -> list[str]:
    """Words as the query writes them: those that look like code first, then the longest. ``absent`` are parts of them,
    folded."""
    missing = set(absent)
    words = [
        match[0] for match in _WORD.finditer(query) if any(part in missing for part in _PART.findall(fold(match[0])))
    ]
    return sorted(dict.fromkeys(words), key=lambda word: (not _LIKE_CODE.search(word), -len(word), word))
