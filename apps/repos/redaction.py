"""Secrets in repository files, taken out before anything is stored (``repository-documents.md`` 4.2).

Pure and linear. Every replacement stays on its line, so lines and anchors do not move. A false hit costs a reader one
value; a miss publishes a secret: the rules lean to the first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

from apps.repos.discovery import Kind
from apps.repos.values_below import words_below

REDACTED = "[redacted]"

SAMPLE_ENDINGS = (".example", ".sample", ".template", ".dist", ".defaults")
SECRET_PARTS = frozenset(
    {
        "password",
        "passwd",
        "pwd",
        "secret",
        "token",
        "key",
        "credential",
        "credentials",
        "auth",
        "private",
        "dsn",
        "salt",
        "cert",
        "signature",
    }
)
CONFIG_SECRET = re.compile(
    r"(?:\A|[_\-. ])(?:passwords?|passwd|secrets?|tokens?|api[_\-. ]?keys?|private[_\-. ]?keys?|credentials?)"
    r"(?:\Z|[_\-. ])"
)
PLACEHOLDER = re.compile(
    r"<[^<>]*>|x{3,}|\*{3,}|\.{3,}|change[-_ ]?me|changeit|placeholder|todo|tbd|none|null|nil|example|dummy"
    r"|your[-_ ].*|my[-_](?:password|secret|token|key)|replace[-_ ]?(?:me|this).*|insert[-_ ].*",
    re.IGNORECASE,
)
REFERENCE = re.compile(
    r"\$\{[^{}]*\}|\$\{\{.*\}\}|\$\(.*\)|\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|\{\{.*\}\}|<%.*%>|vault:\S+|ref\+\S+|op://\S+"
    r"|!(?:Ref|Sub|GetAtt|env|vault)\b.*|\*[\w-]+|secrets?\.[\w.-]+|env\.[\w.-]+|vars\.[\w.-]+"
)
BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "enabled", "disabled"})
USERINFO = re.compile(r"(?P<head>[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'\"]*):(?P<secret>[^\s/@'\"]+)(?=@)")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

ENV_LINE = re.compile(r"(?P<head>\s*(?:export\s+|set\s+)?(?P<key>[A-Za-z_][\w.\-]*)\s*[=:][ \t]*)(?P<value>.*)")
COMMENTED = re.compile(r"(?P<head>#\s*(?:export\s+)?(?P<key>[A-Za-z_]\w*)=)(?P<value>.*)")
CONFIG_LINE = re.compile(
    r"(?P<head>\s*(?:-\s+)?[\"']?(?P<key>[A-Za-z_][\w.\- ]{0,120}?)[\"']?[ \t]*(?::=|[:=])[ \t]*)(?P<value>\S.*)"
)
INLINE_PAIR = re.compile(
    r"(?P<head>[\"']?(?P<key>[A-Za-z_][\w.\-]{0,120})[\"']?[ \t]*[:=][ \t]*)"
    r"(?P<quote>[\"'])(?P<value>[^\"'\n]{8,})(?P=quote)"
)
ENV_INSTRUCTION = re.compile(r"(?P<head>\s*(?:ENV|ARG)\s+(?P<key>[A-Za-z_]\w*)[ =]\s*)(?P<value>\S.*)", re.IGNORECASE)

TOKENS = re.compile(
    "|".join(
        (
            r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[0-9A-Z]{16}\b",  # AWS
            r"\bAIza[0-9A-Za-z_\-]{35}",  # Google
            r"\bya29\.[0-9A-Za-z_\-]{20,}",
            r"\bGOCSPX-[0-9A-Za-z_\-]{20,}",
            r"\bgh[pousr]_[0-9A-Za-z]{36,255}",  # GitHub
            r"\bgithub_pat_[0-9A-Za-z_]{22,255}",
            r"\bgl(?:pat|dt|rt|ptt|ft|soat|imt|agent|oas|cbt)-[0-9A-Za-z_\-.]{20,}",  # GitLab
            r"\bATBB[0-9A-Za-z]{32}",  # Bitbucket
            r"\bATATT3[0-9A-Za-z_\-=]{20,}",  # Atlassian
            r"\bxox[abeoprs]-(?:\d-)?[0-9A-Za-z\-]{10,}",  # Slack
            r"\bxapp-\d-[0-9A-Za-z\-]{10,}",
            r"https://hooks\.slack\.com/(?:services|workflows)/[0-9A-Za-z/_\-]{20,}",
            r"https://(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/\d{15,}/[0-9A-Za-z_\-]{20,}",
            r"\b[MNO][0-9A-Za-z_\-]{23,25}\.[0-9A-Za-z_\-]{6}\.[0-9A-Za-z_\-]{27,}",  # Discord bot
            r"\b\d{8,10}:AA[0-9A-Za-z_\-]{33}\b",  # Telegram
            r"\bsk-ant-[0-9A-Za-z_\-]{20,}",  # Anthropic
            r"\bsk-(?:proj-|svcacct-|admin-|or-v1-)[0-9A-Za-z_\-]{20,}",  # OpenAI, OpenRouter
            r"\bsk-[0-9A-Za-z]{32,}",
            r"\bhf_[0-9A-Za-z]{30,}",  # Hugging Face
            r"\bgsk_[0-9A-Za-z]{40,}",  # Groq
            r"\bxai-[0-9A-Za-z]{40,}",
            r"\bpplx-[0-9A-Za-z]{40,}",
            r"\br8_[0-9A-Za-z]{30,}",  # Replicate
            r"\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,}",  # Stripe
            r"\bwhsec_[0-9A-Za-z]{24,}",
            r"\bSG\.[0-9A-Za-z_\-]{16,}\.[0-9A-Za-z_\-]{16,}",  # SendGrid
            r"\bnpm_[0-9A-Za-z]{36}",
            r"\bpypi-AgEI[0-9A-Za-z_\-]{40,}",
            r"\bdop_v1_[0-9a-f]{64}",  # DigitalOcean
            r"\bhv[sbr]\.[0-9A-Za-z_\-]{20,}",  # HashiCorp Vault
            r"\bdckr_pat_[0-9A-Za-z_\-]{20,}",
            r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",  # Shopify
            r"\bAccountKey=[0-9A-Za-z+/]{40,}={0,2}",  # Azure
            r"\bcgr_[0-9A-Za-z_\-]{43}",  # our own
            r"\beyJ[0-9A-Za-z_\-]{8,}\.eyJ[0-9A-Za-z_\-]{8,}\.[0-9A-Za-z_\-]{8,}",  # JSON web token
        )
    )
)
# Every token that `TOKENS` knows is a run of at least 15 of these bytes with one of the hints in it: one translation of
# the text tells nearly all lines apart from secrets, and the patterns run over what is left.
SHORTEST_TOKEN = 15
TOKEN_BYTES = re.compile(rb"[0-9A-Za-z_\-.:/+=]")
TOKEN_SHAPE = bytes(0x78 if TOKEN_BYTES.match(bytes((code,))) else 0x20 for code in range(256))
TOKEN_HINTS = re.compile(
    rb"AKIA|ASIA|AGPA|AIDA|AROA|ANPA|AIza|ya29|GOCSPX|gh[pousr]_|github_pat|gl[a-z]+-|ATBB|ATATT|xox|xapp|hooks\.slack"
    rb"|discord|\.[0-9A-Za-z_\-]{6}\.|:AA|sk-|hf_|gsk_|xai-|pplx-|r8_|[sr]k_|whsec|SG\.|npm_|pypi-|dop_|hv[sbr]\.|dckr|shp"
    rb"|AccountKey|cgr_|eyJ"
)
KEY_MARK = "-----BEGIN "
KEY_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----")


@dataclass(frozen=True, slots=True)
class Redacted:
    """``text`` without secrets, the number of values taken out, and the lines (from 1) where that happened."""

    text: str
    count: int
    lines: tuple[int, ...]


def redact_file(text: str, path: str, kind: Kind) -> Redacted:
    """``text`` of a repository file as it may be stored. Every line keeps its number."""
    name = path.rsplit("/", 1)[-1].lower()
    lines = text.split("\n")
    touched: set[int] = set()
    count = 0

    def put(at: int, line: str, hits: int) -> None:
        nonlocal count
        if hits:
            lines[at] = line
            touched.add(at + 1)
            count += hits

    if name.startswith(".env"):
        sample = name.endswith(SAMPLE_ENDINGS)
        for at, line in _env_values(lines, sample=sample):
            put(at, line, 1)
    elif kind in (Kind.CONFIG, Kind.WORKFLOW):
        for at, line in enumerate(lines):
            put(at, *_config_line(line))
        for at, word in list(words_below(lines, _secret_key)):
            if _config_secret(word["value"]):
                put(at, lines[at][: word.start("value")] + REDACTED + lines[at][word.end("value") :], 1)
    for first, last in _key_blocks(lines) if KEY_MARK in text else ():
        for at in range(first, last + 1):
            put(at, _inside_key_block(lines[at], first=at == first, last=at == last), 1 if at == first else 0)
            if first < at < last:
                lines[at] = REDACTED if lines[at].strip() else lines[at]
                touched.add(at + 1)
    for at in _token_lines("\n".join(lines) if count else text):
        put(at, *TOKENS.subn(REDACTED, lines[at]))
    return (
        Redacted(text="\n".join(lines), count=count, lines=tuple(sorted(touched))) if count else Redacted(text, 0, ())
    )


def _env_values(lines: list[str], *, sample: bool) -> list[tuple[int, str]]:
    """Lines of an environment file whose value must go. A quoted value may run over several lines."""
    changed: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        body = line.lstrip()
        # A commented-out assignment is often a secret of yesterday; prose after a hash has no "=".
        found = (COMMENTED if body.startswith("#") else ENV_LINE).fullmatch(body if body.startswith("#") else line)
        if found is None:
            at += 1
            continue
        head = line[: len(line) - len(found["value"])]
        value = found["value"].rstrip()
        quote = value[:1] if value[:1] in {'"', "'"} else ""
        end = at
        if quote and not _closed(value, quote) and not body.startswith("#"):
            end = next((n for n in range(at + 1, len(lines)) if lines[n].rstrip().endswith(quote)), at)
        bare = _bare(value) if end == at else value + "\n".join(lines[at + 1 : end + 1])
        if _env_secret(found["key"], bare, sample=sample):
            changed.append((at, f"{head}{REDACTED}"))
            changed.extend((n, REDACTED) for n in range(at + 1, end + 1))
        at = end + 1
    return changed


def _closed(value: str, quote: str) -> bool:
    return value.find(quote, 1) > 0


def _bare(value: str) -> str:
    """The value without quotes and without a comment after it."""
    value = value.strip()
    if value[:1] in {'"', "'"}:
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else value[1:]
    return re.split(r"\s#", value, maxsplit=1)[0].strip()


def _env_secret(key: str, value: str, *, sample: bool) -> bool:
    if not value or value.lower() in BOOLEANS or re.fullmatch(r"[+-]?\d{1,5}", value) or value == REDACTED:
        return False
    if REFERENCE.fullmatch(value) or PLACEHOLDER.fullmatch(value):
        return False
    if not sample:
        return True
    return not SECRET_PARTS.isdisjoint(key_parts(key)) or USERINFO.search(value) is not None or _looks_random(value)


def key_parts(key: str) -> list[str]:
    """The words of a key: ``dbPassword``, ``DB_PASSWORD`` and ``db-password`` have the same ones."""
    return [part for part in re.split(r"[^a-z0-9]+", CAMEL.sub("_", key).lower()) if part]


def _looks_random(value: str) -> bool:
    """16 or more base64 or hex characters with over 3.5 bits of entropy each."""
    if not re.fullmatch(r"[A-Za-z0-9+/_=\-]{16,}", value):
        return False
    counts = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return entropy > 3.5


def _config_line(line: str) -> tuple[str, int]:
    """A line of a configuration or workflow file, and how many values were taken out of it."""
    hits = 0
    found = CONFIG_LINE.match(line) or ENV_INSTRUCTION.match(line)
    if found is not None and _secret_key(found["key"]):
        raw = found["value"]
        value = (
            _bare(raw.rstrip().rstrip(",")) if raw[:1] in {'"', "'"} else re.split(r"\s#", raw.rstrip().rstrip(","))[0]
        )
        if _config_secret(value):
            at = line.index(value, len(found["head"]))
            line = line[:at] + REDACTED + line[at + len(value) :]
            hits += 1

    def replace(pair: re.Match[str]) -> str:
        nonlocal hits
        if not _secret_key(pair["key"]) or not _config_secret(pair["value"]):
            return pair.group()
        hits += 1
        return f"{pair['head']}{pair['quote']}{REDACTED}{pair['quote']}"

    line = INLINE_PAIR.sub(replace, line)

    def strip_user(match: re.Match[str]) -> str:
        nonlocal hits
        if REFERENCE.fullmatch(match["secret"]) or PLACEHOLDER.fullmatch(match["secret"]):
            return match.group()
        hits += 1
        return f"{match['head']}:{REDACTED}"

    if "://" in line:
        line = USERINFO.sub(strip_user, line)
    return line, hits


def _secret_key(key: str) -> bool:
    return CONFIG_SECRET.search("_".join(key_parts(key))) is not None


def _config_secret(value: str) -> bool:
    return (
        len(value) >= 8
        and not any(character.isspace() for character in value)
        and value != REDACTED
        and value[:1] not in {"{", "[", "|", ">", "&"}
        and REFERENCE.fullmatch(value) is None
        and PLACEHOLDER.fullmatch(value) is None
    )


def _token_lines(text: str) -> list[int]:
    """Numbers (from 0) of the lines that may hold a token: those with a long run of its characters and a hint in it."""
    raw = text.encode("utf-8", "surrogatepass")
    shape, run = raw.translate(TOKEN_SHAPE), b"x" * SHORTEST_TOKEN
    found: list[int] = []
    line = counted = 0
    at = shape.find(run)
    while at >= 0:
        end = shape.find(b" ", at)
        if end < 0:
            end = len(shape)
        if TOKEN_HINTS.search(raw, at, end):
            line += raw.count(b"\n", counted, at)
            counted = at
            if not found or found[-1] != line:
                found.append(line)
        at = shape.find(run, end)
    return found


def _key_blocks(lines: list[str]) -> list[tuple[int, int]]:
    """First and last line (from 0) of each private key block; one that never ends goes on while it looks like one."""
    blocks: list[tuple[int, int]] = []
    at = 0
    while at < len(lines):
        found = KEY_BEGIN.search(lines[at])
        if found is None:
            at += 1
            continue
        end_mark = f"-----END {found.group(1)}-----"
        last = at
        while end_mark not in lines[last] and last + 1 < len(lines):
            following = lines[last + 1]
            if end_mark not in following and not re.fullmatch(
                r"[\s>#*/\"'|+]*[A-Za-z0-9+/=:,;. \-]*[\s\"',\\]*", following
            ):
                break
            last += 1
        blocks.append((at, last))
        at = last + 1
    return blocks


def _inside_key_block(line: str, *, first: bool, last: bool) -> str:
    """The first and last line of a key block keep what stands before and after the marks."""
    if first:
        found = KEY_BEGIN.search(line)
        at = found.end() if found else 0
        head, end = line[:at], line.find("-----END ", at)
        return f"{head}{REDACTED}{line[end:]}" if end >= 0 else f"{head}{REDACTED if line[at:].strip() else ''}"
    if last and "-----END " in line:
        return line[line.index("-----END ") :]
    return REDACTED
