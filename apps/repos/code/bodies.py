"""The text of symbols, from the stored text of their files."""

from __future__ import annotations

from dataclasses import dataclass

from apps.repos.models import RepositoryFile
from apps.repos.models_code import CodeFile, CodeNode


@dataclass(frozen=True, slots=True)
class Body:
    """Lines of a file, verbatim; ``start_line`` counts from 1."""

    text: str
    start_line: int
    end_line: int
    total_lines: int


def text_of_file(file: CodeFile) -> str | None:
    """The text of a source file as it was indexed; None when it is not stored."""
    rows = RepositoryFile.objects.filter(repository=file.repository_id, path=file.path)
    return rows.values_list("text", flat=True).first()


def body_of(node: CodeNode, *, context_lines: int = 0) -> Body | None:
    """The lines of a symbol with up to ``context_lines`` around it; None when the text of its file is not stored."""
    text = text_of_file(node.file)
    if text is None:
        return None
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    start = max(1, node.start_line - context_lines)
    end = min(len(lines), node.end_line + context_lines)
    return Body("\n".join(lines[start - 1 : end]), start, end, len(lines))
