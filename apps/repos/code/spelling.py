"""Command line flags and environment variables that source code spells. Pure, linear in the text."""

from __future__ import annotations

import re

_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?![\w-])")
_GO_FLAG = re.compile(
    r"\b(?:flag|flags|pflag|fs|Flags\(\)|FlagSet)\.(?:\w+)\((?:&?[\w.]+,\s*)?\"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\""
)
_READ = re.compile(
    r"(?:environ(?:\.get|\.setdefault|\.pop)?|[gG]etenv|GetEnv|LookupEnv|\benv|var_os|env::var)[\[(]{1,2}\s*[\"'`]"
    r"([A-Za-z_][A-Za-z0-9_]*)[\"'`]"
)
_ATTRIBUTE = re.compile(r"(?:process|import\.meta)\.env\.([A-Za-z_][A-Za-z0-9_]*)")
_SPELLED = re.compile(r"[\"'`]([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)[\"'`]")
_HINTS = ("env(", "env[", "nviron", "etEnv", "upEnv", "var_os", "env::var")
"""One of them stands wherever a variable is read: most files have none."""
MOST_NAMES = 2000


def flags_in(text: str, language: str) -> list[str]:
    """Flags as typed on a command line, two hyphens in front."""
    found = {match.group() for match in _FLAG.finditer(text)} if "--" in text else set()
    if language == "go":
        found |= {f"--{match[1]}" for match in _GO_FLAG.finditer(text)}
    return sorted(found)[:MOST_NAMES]


def env_names_in(text: str) -> list[str]:
    """Names of environment variables: read from the environment, or spelled as a string in upper case."""
    found = set(_SPELLED.findall(text))
    if ".env." in text:
        found.update(_ATTRIBUTE.findall(text))
    if any(hint in text for hint in _HINTS):
        found.update(_READ.findall(text))
    return sorted(found)[:MOST_NAMES]
