"""Units of build files: stages and instructions, targets and recipes, directive blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from apps.markup.chunking.units import LONGEST_NAME, Unit

_HEREDOC = re.compile(r"<<-?[\"']?(\w+)[\"']?")
_DIRECTIVE = re.compile(r"([A-Za-z]\w*)\b")


def scan_dockerfile(lines: Sequence[str]) -> tuple[Unit, ...]:
    """Stages with their instructions; instructions before the first ``FROM`` stand alone."""
    instructions: list[Unit] = []
    number = 1
    while number <= len(lines):
        word = _DIRECTIVE.match(lines[number - 1].lstrip())
        if word is None:
            number += 1
            continue
        end = _instruction_end(lines, number)
        instructions.append(Unit(word.group(1).upper(), number, end))
        number = end + 1
    units: list[Unit] = []
    stage: list[Unit] = []
    for instruction in instructions:
        if instruction.name == "FROM":
            if stage:
                units.append(_stage(lines, stage))
            stage = [instruction]
        elif stage:
            stage.append(instruction)
        else:
            units.append(instruction)
    if stage:
        units.append(_stage(lines, stage))
    return tuple(units)


def _instruction_end(lines: Sequence[str], start: int) -> int:
    """Last line of the instruction: continued lines, comments between them, and here-documents."""
    waiting = _HEREDOC.findall(lines[start - 1])
    number = start
    continued = lines[start - 1].rstrip().endswith("\\")
    while number < len(lines) and (continued or waiting):
        number += 1
        line = lines[number - 1]
        if waiting:
            if line.strip() == waiting[0]:
                waiting.pop(0)
        elif not line.lstrip().startswith("#"):
            continued = line.rstrip().endswith("\\")
            waiting = _HEREDOC.findall(line)
    return number


def _stage(lines: Sequence[str], instructions: list[Unit]) -> Unit:
    words = lines[instructions[0].start_line - 1].split()
    lowered = [word.lower() for word in words]
    if "as" in lowered[:-1]:
        name = words[lowered.index("as") + 1]
    else:
        name = next((word for word in words[1:] if not word.startswith("--")), "FROM")
    return Unit(name[:LONGEST_NAME], instructions[0].start_line, instructions[-1].end_line, tuple(instructions))


def scan_makefile(lines: Sequence[str]) -> tuple[Unit, ...]:
    """Targets with their recipes. Assignments and ``define`` blocks belong to no target."""
    units: list[Unit] = []
    target: tuple[str, int] | None = None
    last = 0
    defining = False
    continued = False
    for number, line in enumerate(lines, 1):
        body = line.rstrip()
        was_continued, continued = continued, body.endswith("\\")
        if defining:
            defining = not body.startswith("endef")
        elif line.startswith("\t") or was_continued:
            last = number
        elif body and not body.startswith("#"):
            if target is not None:
                units.append(Unit(target[0], target[1], last))
            name = _target(body)
            target = (name, number) if name else None
            last = number
            defining = body.startswith("define ")
    if target is not None:
        units.append(Unit(target[0], target[1], last))
    return tuple(units)


def _target(line: str) -> str:
    colon = line.find(":")
    if colon <= 0 or line[0] == " " or "=" in line[:colon] or line[colon:].startswith((":=", "::=", ":::=")):
        return ""
    return line[:colon].strip()[:LONGEST_NAME]


def scan_go_mod(lines: Sequence[str]) -> tuple[Unit, ...]:
    """Directives of ``go.mod`` and ``go.work``, a bracketed block as one."""
    units: list[Unit] = []
    number = 1
    while number <= len(lines):
        line = lines[number - 1]
        word = _DIRECTIVE.match(line)
        if word is None:
            number += 1
            continue
        end = number
        if line.partition("//")[0].rstrip().endswith("("):
            while end < len(lines) and not lines[end - 1].startswith(")"):
                end += 1
        units.append(Unit(word.group(1), number, end))
        number = end + 1
    return tuple(units)
