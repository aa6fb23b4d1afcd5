"""docutils, made safe and lenient: nothing is read from disk or net, unknown directives and roles keep their content.

Source of the rules: ``markup.md`` 7.1. Sphinx replaces the same two look-ups of docutils for the same reason.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles

from apps.markup.values import Warning_

_SETTINGS = {
    "raw_enabled": False,
    "file_insertion_enabled": False,
    "_disable_config": True,
    "doctitle_xform": False,
    "sectsubtitle_xform": False,
    "docinfo_xform": False,
    "smart_quotes": False,
    "syntax_highlight": "none",
    "report_level": 2,
    "halt_level": 6,
    "line_length_limit": 1 << 60,
    "input_encoding": "unicode",
}
# Directives that read a file by their argument, and options by which others do.
_READING = frozenset({"include", "literalinclude", "raw", "graphviz", "uml", "plantuml", "download", "drawio-image"})
_READING_OPTIONS = frozenset({"file", "url"})
_NUMBERED = frozenset({"pep", "rfc"})
_TITLED = re.compile(r"^(?P<title>.+?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
_DOCUMENT_LISTS = frozenset({"toctree"})
# docutils ends lines where ``str.splitlines`` does; here only LF does.
_NO_LINE_ENDS = dict.fromkeys(map(ord, "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), " ")
# docutils keeps its look-ups in module globals, so one document is read at a time.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(slots=True)
class RstReading:
    """A document tree and what was met on the way."""

    document: nodes.document
    warnings: list[Warning_] = field(default_factory=list)
    refused: list[tuple[str, int]] = field(default_factory=list)
    """Argument of a directive that would have read something, and its line."""
    documents: list[tuple[str, int]] = field(default_factory=list)
    """Entries of a list of documents (``toctree``), with their lines."""


class PageReference(nodes.reference):
    """A ``:doc:`` reference; ``target`` is the document as written."""


class LabelReference(nodes.reference):
    """A ``:ref:`` reference; ``target`` is the label as written."""


def read_rst(text: str) -> RstReading:
    """Parse reStructuredText. Raises RecursionError when it is nested too deep for docutils."""
    with _ONE_AT_A_TIME, _lenient() as reading:
        settings = {**_SETTINGS, "warning_stream": io.StringIO()}
        reading.document = publish_doctree(text.translate(_NO_LINE_ENDS), settings_overrides=settings)
    document = reading.document
    for message in [*document.findall(nodes.system_message), *document.transform_messages]:
        # Levels: 1 info, 2 warning, 3 error, 4 severe.
        if message["level"] >= 2:
            content = " ".join(each.astext() for each in message.findall(nodes.paragraph))
            reading.warnings.append(
                Warning_("rst_message", message.get("line", 1) or 1, 1, " ".join(content.split())[:300])
            )
    lines = [line.strip() for line in text.split("\n")]
    for message in list(document.findall(nodes.system_message)):
        if message.parent is not None:
            message.parent.replace(message, _refused_texts(message, lines))
    for problem in list(document.findall(nodes.problematic)):
        problem.parent.replace(problem, nodes.Text(problem.astext()))
    return reading


def _refused_texts(message: nodes.system_message, lines: Sequence[str]) -> list[nodes.Node]:
    """What docutils could not read as the author meant it, such as a broken table: it stays on the page as written.
    ``lines`` are those of the document, without blanks around them."""
    kept: list[nodes.Node] = []
    for literal in message.findall(nodes.literal_block):
        # The message stands by the first line, the last, or one between.
        own = [line.strip() for line in literal.astext().split("\n")]
        near = message.get("line", 1)
        places = range(max(near - len(own), 0), near + len(own))
        equal = (at for at in places if lines[at : at + 1] == own[:1] and lines[at : at + len(own)] == own)
        literal.line = next(equal, near - 1) + 1
        literal["shown"] = True
        kept.append(literal)
    return kept


@contextmanager
def _lenient() -> Iterator[RstReading]:
    reading = RstReading(nodes.document(None, None))  # type: ignore[arg-type]
    module: Any = directives
    role_module: Any = roles
    find_directive, find_role = module.directive, role_module.role

    def directive(name: str, language: Any, document: nodes.document) -> tuple[Any, list[Any]]:
        found, messages = find_directive(name, language, document)
        if found is None or name in _READING:
            return _unknown(name, reading), []
        return _stamped(found, reading), messages

    def role(name: str, language: Any, lineno: int, reporter: Any) -> tuple[Any, list[Any]]:
        found, messages = find_role(name, language, lineno, reporter)
        if found is None:
            return _unknown_role(name.rpartition(":")[2]), []
        return (_titled(found) if name.lower() in _NUMBERED else found), messages

    module.directive, role_module.role = directive, role
    try:
        yield reading
    finally:
        module.directive, role_module.role = find_directive, find_role


def _titled(found: Any) -> Any:
    """A role for numbered papers that also takes a title, ``:pep:`title <3333#part>```, as Sphinx has it."""

    def role(
        name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
    ) -> tuple[list[nodes.Node], list[nodes.Node]]:
        titled = _TITLED.match(text)
        number, mark, part = titled["target"].partition("#") if titled else ("", "", "")
        if titled is not None and not number.isdecimal():
            return [nodes.inline(rawtext, titled["title"])], []
        made: tuple[list[nodes.Node], list[nodes.Node]]
        made = found(name, rawtext, number if titled else text, lineno, inliner, options)
        for node in made[0]:
            if titled is not None and isinstance(node, nodes.reference):
                node["refuri"] += mark + part
                node.children = [nodes.Text(titled["title"])]
        return made

    return role


class _AnyOption(dict[str, Callable[[Any], Any]]):
    """An option table that takes every name: those of its directive, and what other tools add to them."""

    def __missing__(self, key: str) -> Callable[[Any], Any]:
        return lambda argument: argument

    def __bool__(self) -> bool:
        return True


def _span(directive: Any) -> tuple[int, int]:
    return directive.lineno, directive.lineno + directive.block_text.rstrip().count("\n")


def _refuse(directive: Any, reading: RstReading, argument: str) -> list[nodes.Node]:
    line, last = _span(directive)
    message = f"{directive.name} would read a file or an address; it is shown as written"
    reading.warnings.append(Warning_("rst_file_refused", line, 1, message))
    if argument:
        reading.refused.append((argument, line))
    literal = nodes.literal_block(directive.block_text, directive.block_text)
    literal.line = line
    literal["lines"] = (line, last)
    literal["shown"] = True
    return [literal]


def _stamped(found: Any, reading: RstReading) -> Any:
    """A known directive whose nodes also know the lines that it covers."""

    class Stamped(found):  # type: ignore[misc]
        # Sphinx gives the directives of docutils options of its own: without these the whole directive is refused.
        option_spec = _AnyOption(found.option_spec) if found.option_spec else found.option_spec

        def run(self) -> list[nodes.Node]:
            reading_option = next((self.options[each] for each in _READING_OPTIONS if self.options.get(each)), "")
            if reading_option:
                return _refuse(self, reading, str(reading_option))
            made: list[nodes.Node] = super().run()
            for node in made:
                if isinstance(node, (nodes.literal_block, nodes.table)):
                    node["lines"] = _span(self)
            if self.options.get("caption") and any(isinstance(node, nodes.literal_block) for node in made):
                inline, messages = self.state.inline_text(self.options["caption"], self.lineno)
                made = [nodes.rubric("", "", *inline), *messages, *made]
            return made

    return Stamped


def _unknown(name: str, reading: RstReading) -> type[Directive]:
    class Unknown(Directive):
        optional_arguments = 1
        final_argument_whitespace = True
        has_content = True
        option_spec: ClassVar[Any] = _AnyOption()

        def run(self) -> Sequence[nodes.Node]:
            argument = self.arguments[0] if self.arguments else ""
            if name in _READING:
                written = argument if name != "raw" else self.options.get("file") or self.options.get("url") or ""
                return _refuse(self, reading, str(written))
            container = nodes.container()
            if name in _DOCUMENT_LISTS:
                for number, entry in enumerate(self.content):
                    if target := entry.strip():
                        titled = _TITLED.match(target)
                        reading.documents.append(
                            (titled["target"] if titled else target, self.content_offset + number + 1)
                        )
                container += nodes.paragraph("", "\n".join(self.content))
                return [container]
            if argument:
                inline, messages = self.state.inline_text(argument, self.lineno)
                container += nodes.paragraph(argument, "", *inline, *messages)
            self.state.nested_parse(self.content, self.content_offset, container)
            return [container]

    return Unknown


def _unknown_role(name: str) -> Any:
    def role(
        _role: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
    ) -> tuple[list[nodes.Node], list[nodes.Node]]:
        text = text.replace("\x00", "\\")
        titled = _TITLED.match(text)
        shown = titled["title"] if titled else text
        target = titled["target"] if titled else text
        made: type[nodes.reference] | None = {"doc": PageReference, "ref": LabelReference}.get(name)
        if made is None:
            return [nodes.inline(rawtext, shown.removeprefix("~").removeprefix("!"))], []
        reference = made(rawtext, shown, target=target)
        reference.line = lineno
        return [reference], []

    return role
