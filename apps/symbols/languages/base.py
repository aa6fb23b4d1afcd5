"""How one language is read: a query that finds what matters, and a few rules that a query cannot say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from apps.symbols.values import Import, SymbolKind

MAX_SIGNATURE_CHARS = 500
LONGEST_SIGNATURE = 16_384
"""Bytes that are looked at for the characters that are kept."""
MAX_DOC_CHARS = 2000
LONGEST_CHAIN = 800
"""Bytes of a reference that are looked at: of a longer one its end."""
LOOKED_BACK = 200
"""Bytes above a definition in which a comment ends that belongs to it."""

_CHAIN = re.compile(r"(?!\d)[\w$]+(?:(?:\.|::|\?\.|->)[\w$]+)*\Z")
_LAST = re.compile(r"(?<![\w$])((?!\d)[\w$]+)\s*\Z")
_SEPARATORS = re.compile(r"\?\.|::|->")
_C_COMMENTS = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|(?P<comment>/\*.*?\*/|//[^\n]*)", re.DOTALL
)
_HASH_COMMENTS = re.compile(
    r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|(?P<comment>#[^\n]*)", re.DOTALL
)
_MARKS = re.compile(r"\n[ \t]*(?:/\*\*?|\*+/|\*|//[/!]?|#+)?[ \t]?")


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


class Grammar:
    """One language. Captures of ``query``: ``def.<kind>``, ``call`` (a chain of names), ``invocation`` (a call whose
    parts stand apart), ``base``, ``import``, ``package``, ``outer``. ``strings`` are the node types of string literals.

    A file has definitions by the thousand: each call of a node costs as much as a line of Python, so what is known is
    handed on. ``data`` are the bytes of the file, ``body`` is what ``body`` gave for the node.
    """

    name: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]
    separator: ClassVar[str] = "."
    query: ClassVar[str]
    strings: ClassVar[tuple[str, ...]] = ("string",)
    scopes: ClassVar[frozenset[SymbolKind]] = frozenset({"class", "interface", "struct", "enum", "trait"})
    """Kinds whose functions are methods."""
    has_block_comments: ClassVar[bool] = True
    comment_types: ClassVar[frozenset[str]] = frozenset({"comment", "line_comment", "block_comment"})

    def load(self) -> Language:
        raise NotImplementedError

    @cached_property
    def language(self) -> Language:
        return self.load()

    @cached_property
    def compiled(self) -> Query:
        return Query(self.language, self.query)

    @cached_property
    def of_strings(self) -> Query:
        return Query(self.language, f"[{' '.join(f'({kind})' for kind in self.strings)}] @string")

    @cached_property
    def of_errors(self) -> Query:
        return Query(self.language, "[(ERROR) (MISSING)] @error")

    def parser(self) -> Parser:
        return Parser(self.language)

    def captures(self, root: Node) -> dict[str, list[Node]]:
        return QueryCursor(self.compiled).captures(root)

    def prepared(self, data: bytes) -> bytes:
        """The file as it is parsed: valid syntax that the grammar does not know is made alike to what it knows, every
        byte in its place."""
        return data

    def repaired(self, data: bytes) -> bytes:
        """The same, with more effort: asked for when there are errors."""
        return data

    def errors(self, root: Node) -> int:
        """How many places of a tree could not be read."""
        return sum(map(len, QueryCursor(self.of_errors).captures(root).values()))

    def strings_between(self, root: Node, start: int, end: int) -> list[Node]:
        """The string literals that touch a range of bytes."""
        cursor = QueryCursor(self.of_strings)
        cursor.set_byte_range(start, end)
        return cursor.captures(root).get("string", [])

    # What a language may say differently

    def package(self, path: str, named: str) -> str:
        """The name under which the rest of the repository imports this file. ``named``: what its package clause says,
        where a language has one."""
        return named

    def module_name(self, path: str, package: str) -> str:
        """First part of the qualified names of the file."""
        return package

    def outer(self, node: Node, around: Mapping[int, Node]) -> Node:
        """The node whose lines belong to a definition: with its decorators or its export keyword. ``around``: what was
        captured as ``outer``, by the id of the ``definition`` that it holds."""
        return node

    def owner(self, node: Node) -> str:
        """Name of the type that a definition belongs to without standing inside it (Go receivers, Rust impl)."""
        return ""

    def refine(self, kind: SymbolKind, name: str, node: Node) -> SymbolKind:
        return kind

    def exported(self, name: str, node: Node, outer: Node) -> bool:
        return True

    def exports(self, nodes: Sequence[Node], data: bytes) -> tuple[dict[str, str], bool]:
        """What a file says of its exports elsewhere than where they are defined: the name for others with the name
        here, and whether nothing else is exported. ``nodes``: what was captured as ``export``."""
        return {}, False

    def is_test(self, node: Node, data: bytes) -> bool:
        """Whether a definition is marked as a test, in whatever file it stands."""
        return False

    def module_doc(self, root: Node, packages: Sequence[Node], data: bytes) -> str:
        """What a file says of itself. ``packages``: what its package clauses name."""
        return ""

    def imports(self, node: Node) -> list[Import]:
        return []

    def invocation(self, node: Node) -> tuple[str, str] | None:
        """(qualifier, name) of an ``invocation``."""
        return None

    def is_test_file(self, path: str) -> bool:
        parts = path.lower().split("/")
        stem = parts[-1].rsplit(".", 1)[0]
        return (
            any(part in {"test", "tests", "__tests__", "spec", "testing"} for part in parts[:-1])
            or stem.startswith("test_")
            or stem.endswith(("_test", ".test", ".spec", "_spec"))
        )

    def names(self, node: Node) -> list[Node]:
        """The names that one definition node brings."""
        name = node.child_by_field_name("name")
        return [name] if name is not None else []

    def subject(self, node: Node) -> str:
        """The type that a base belongs to when it does not stand inside that type (Rust impl)."""
        return ""

    def body(self, node: Node) -> Node | None:
        """What a signature leaves out: a body, or the value of a variable."""
        return (
            node.child_by_field_name("body") or node.child_by_field_name("right") or node.child_by_field_name("value")
        )

    def signature(self, node: Node, body: Node | None, data: bytes) -> str:
        """The definition up to its body or value, blanks collapsed: what a caller must know."""
        raw = data[node.start_byte : body.start_byte if body is not None else node.end_byte]
        text = raw[:LONGEST_SIGNATURE].decode("utf-8", "replace")
        if self.has_block_comments:
            if "/*" in text or "//" in text:
                text = _C_COMMENTS.sub(_without_comment, text)
        elif "#" in text:
            text = _HASH_COMMENTS.sub(_without_comment, text)
        text = " ".join((_on_one_line(text) if "\n" in text else text).split())
        return text.rstrip("{:=;").strip()[:MAX_SIGNATURE_CHARS]

    def doc(self, node: Node, outer: Node, body: Node | None, data: bytes) -> str:
        """The comment right above a definition."""
        if not self._may_follow_comment(outer.start_byte, data):
            return ""
        lines: list[str] = []
        below = outer
        comment = below.prev_sibling
        while comment is not None and comment.type in self.comment_types:
            text = data[comment.start_byte : comment.end_byte].decode("utf-8", "replace")
            if comment.end_point[0] + 1 < below.start_point[0] and not text.endswith("\n"):
                break
            if comment.start_point[0] < below.start_point[0] and not _begins_line(comment.start_byte, data):
                break  # it tells of what stands before it
            lines.insert(0, text.rstrip("\n"))
            below, comment = comment, comment.prev_sibling
        return clean_comment("\n".join(lines))

    def _may_follow_comment(self, start: int, data: bytes) -> bool:
        """Looked up in the bytes: to ask for the sibling of a node costs a walk from the root."""
        floor = max(0, start - LOOKED_BACK)
        above = data[floor:start].rstrip()
        if not above or above.endswith(b"*/"):
            return True
        end = floor + len(above)
        line = max(data.rfind(b"\n", max(0, end - MAX_DOC_CHARS), end), end - MAX_DOC_CHARS, 0)
        return data.find(b"//", line, end) >= 0


def _begins_line(start: int, data: bytes) -> bool:
    return not data[data.rfind(b"\n", 0, start) + 1 : start].strip()


def _without_comment(match: re.Match[str]) -> str:
    return " " if match["comment"] else match.group()


def _on_one_line(text: str) -> str:
    """Lines joined; without the comma that only a list of lines has."""
    joined: list[str] = []
    last = ""
    for line in filter(None, map(str.strip, text.split("\n"))):
        if line[0] in ")]":
            if last.endswith(","):
                joined[-1] = last[:-1]
        elif last and last[-1] not in "([":
            joined.append(" ")
        joined.append(line)
        last = line
    return "".join(joined)


def clean_comment(text: str) -> str:
    """The words of a comment, without the marks of its lines."""
    if not text:
        return ""
    said = _MARKS.sub("\n", f"\n{text}")
    if "*/" in said:
        said = "\n".join(map(_without_end, said.split("\n")))
    return said.strip()[:MAX_DOC_CHARS]


def _without_end(line: str) -> str:
    bare = line.rstrip(" \t")
    return bare[:-1].rstrip("*").rstrip(" \t") if bare.endswith("*/") else line


def chain(text: str, *, whole: bool = True) -> tuple[str, str] | None:
    """(qualifier, name) of a reference as written: ``a.b.c`` gives (``a.b``, ``c``), ``f().x`` gives (``?``, ``x``).

    Without ``whole`` it is only the end of what is written.
    """
    if text.isidentifier() and whole:
        return "", text
    text = text.removeprefix("await ")
    if text.startswith("super()."):
        text = f"super.{text[8:]}"
    if whole:
        if "::<" in text:
            text = _without_turbofish(text)
        for opening in "<[":
            if opening in text and text.endswith((">", "]")):
                text = text.split(opening, 1)[0]
    text = text.strip()
    if whole and _CHAIN.match(text):
        parts = _SEPARATORS.sub(".", text).split(".")
        return ".".join(parts[:-1]), parts[-1]
    last = _LAST.search(text)
    return ("?", last.group(1)) if last else None


def _without_turbofish(text: str) -> str:
    """``Vec::<T>::new`` is ``Vec::new``."""
    kept: list[str] = []
    depth = done = 0
    for at, character in enumerate(text):
        if character == "<" and (depth or text[at - 2 : at] == "::"):
            if not depth:
                kept.append(text[done : at - 2])
            depth += 1
        elif character == ">" and depth:
            depth -= 1
            done = at + 1
    return text if depth else "".join([*kept, text[done:]])


def dotted_path(path: str, roots: tuple[str, ...] = ("src", "lib", "python")) -> str:
    """``src/a/b.py`` gives ``a.b``: source roots are no part of a module's name."""
    parts = path.rsplit(".", 1)[0].split("/")
    while len(parts) > 1 and parts[0] in roots:
        parts = parts[1:]
    return ".".join(parts)
