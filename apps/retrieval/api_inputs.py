"""What the REST endpoints of search and chunks take."""

from __future__ import annotations

from typing import Any

from rest_framework.fields import empty

from apps.access.rest.strict import Boolean, Choice, Integer, Listed, StrictSerializer, Text
from apps.retrieval.chunk_reading import MOST_NEIGHBOURS
from apps.retrieval.context import DEFAULT_TOKENS, MAX_TASK_CHARS, MAX_TOKENS, MIN_TOKENS
from apps.retrieval.filters import KINDS
from apps.retrieval.routing import MAX_QUERY_CHARS as ROUTED_CHARS
from apps.retrieval.routing import MAX_TOP_K
from apps.retrieval.search import MAX_RELATED
from apps.retrieval.snippets import DEFAULT_CHARS, MAX_CHARS, MIN_CHARS
from apps.retrieval.values import MAX_QUERY_CHARS

MODES = ("mixed", "docs", "code", "wiki")
LONGEST_FILTER = 1000
LONGEST_CURSOR = 2000
MOST_SOURCES = 50
MOST_RETRIEVED = 25


class Query(Text):
    """The text of a search. NULs alone are no empty query, which is refused, but one without words, which is answered:
    the visible sign for NUL stands for them."""

    def run_validation(self, data: Any = empty) -> Any:
        if isinstance(data, str) and "\0" in data and not data.replace("\0", " ").strip():
            data = "\N{SYMBOL FOR NULL}"
        return super().run_validation(data)


class QuestionInput(StrictSerializer):
    """What every search takes. The query is taken literally: there is no query language."""

    query = Query(max_length=MAX_QUERY_CHARS, query_text=True)
    limit = Integer(min_value=1, max_value=100, default=25)
    cursor = Text(max_length=LONGEST_CURSOR, default="", help_text="`next_cursor` of the page before.")
    explain = Boolean(default=False, help_text="Adds the parts of the score.")


class SourceFilters(StrictSerializer):
    """Which sources are asked, and what of them."""

    sources = Listed(
        child=Text(min_length=1, max_length=300),
        max_length=MOST_SOURCES,
        default=list,
        help_text="`repository:host/owner/name`, `repository:id` or `collection:id`.",
    )
    kinds = Listed(child=Choice(KINDS), max_length=len(KINDS), default=list)
    path = Text(max_length=LONGEST_FILTER, default="", help_text="Prefix or glob.")
    language = Text(max_length=40, default="", help_text="Of code.")
    tag = Text(max_length=LONGEST_FILTER, default="")
    type = Text(max_length=LONGEST_FILTER, default="")
    status = Text(max_length=LONGEST_FILTER, default="")
    since = Text(max_length=10, default="", help_text="First day, such as 2026-05-03.")
    until = Text(max_length=10, default="", help_text="Last day.")


class SearchInput(QuestionInput, SourceFilters):
    """A search over every readable source, or over those that are named."""


class RepositorySearchInput(QuestionInput):
    """A search in one repository."""

    mode = Choice(MODES, default="mixed")
    snippet_chars = Integer(min_value=MIN_CHARS, max_value=MAX_CHARS, default=DEFAULT_CHARS)
    path = Text(max_length=LONGEST_FILTER, default="", help_text="Prefix or glob.")
    since = Text(max_length=10, default="", help_text="First day, such as 2026-05-03.")
    until = Text(max_length=10, default="", help_text="Last day.")


class CollectionSearchInput(QuestionInput):
    """A search in one collection."""

    snippet_chars = Integer(min_value=MIN_CHARS, max_value=MAX_CHARS, default=DEFAULT_CHARS)


class ChunkQuery(StrictSerializer):
    """What is shown beside a chunk."""

    neighbours = Integer(min_value=0, max_value=MOST_NEIGHBOURS, default=0, help_text="Chunks before and after.")


class SuggestQuery(StrictSerializer):
    """What has been typed so far."""

    q = Text(max_length=200, default="", query_text=True, help_text="Two characters or more.")


class RouteInput(StrictSerializer):
    """A question whose sources are wanted."""

    query = Text(max_length=ROUTED_CHARS, query_text=True)
    top_k = Integer(min_value=1, max_value=MAX_TOP_K, default=3, help_text="Of repositories, and of collections.")


class RetrieveInput(StrictSerializer):
    """A question to documents, code or both."""

    query = Query(max_length=MAX_QUERY_CHARS, query_text=True)
    repository = Text(max_length=300, default="", help_text="`host/owner/name`.")
    mode = Choice(MODES, default="mixed", help_text="`wiki` is another word for `docs`.")
    top_k = Integer(min_value=1, max_value=MOST_RETRIEVED, default=10, help_text="Rows of each block.")
    snippet_chars = Integer(min_value=MIN_CHARS, max_value=MAX_CHARS, default=DEFAULT_CHARS)
    related = Integer(min_value=0, max_value=MAX_RELATED, default=3, help_text="Passages beside a row of code.")
    path = Text(max_length=LONGEST_FILTER, default="", help_text="Prefix or glob.")
    since = Text(max_length=10, default="", help_text="First day, such as 2026-05-03.")
    until = Text(max_length=10, default="", help_text="Last day.")
    explain = Boolean(default=False, help_text="Adds the parts of the score.")
    cursor = Text(max_length=LONGEST_CURSOR, default="", help_text="`next_cursor` of the page before.")


class ContextInput(StrictSerializer):
    """A task that sections are wanted for."""

    task = Text(max_length=MAX_TASK_CHARS, query_text=True)
    max_tokens = Integer(min_value=MIN_TOKENS, max_value=MAX_TOKENS, default=DEFAULT_TOKENS)
    repository = Text(max_length=300, default="", help_text="`host/owner/name`.")
    collection = Text(max_length=100, default="", help_text="Its id.")


class DocumentQuestion(StrictSerializer):
    """A question, and a document that it may have found."""

    query = Text(max_length=MAX_QUERY_CHARS, query_text=True)
    document = Text(min_length=1, max_length=100, help_text="Its id.")
    mode = Choice(MODES, default="mixed")


class ExplainInput(DocumentQuestion, SourceFilters):
    """A question and the document whose place in its answer is asked for."""
