"""Every setting of the deployment, read once from environment variables.

Two shapes: ``COGRAPH_<NAME>`` for the whole site and ``COGRAPH_<AREA>__<NAME>`` for one area. Rooms never look at the
environment: they read ``settings.COGRAPH``, the frozen value made here. A bad value or an unknown ``COGRAPH_…`` name
stops the start with one line that names it, the allowed values and the nearest known name.
"""

from __future__ import annotations

import base64
import dataclasses
import difflib
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from apps.markup.values import Limits

PREFIX = "COGRAPH_"
TRUE = frozenset({"1", "true", "on"})
FALSE = frozenset({"0", "false", "off"})


class ConfigurationError(ValueError):
    """A setting that cannot be used; its text is one line meant for the operator."""


@dataclass(frozen=True, slots=True)
class Git:
    ssh: bool = False
    known_hosts: str = ""
    file_roots: tuple[str, ...] = ()
    fetch_seconds: int = 1800
    sync_hour: int = 2


@dataclass(frozen=True, slots=True)
class Upload:
    batch_files: int = 500
    batch_bytes: int = 104_857_600
    zip_bytes: int = 209_715_200
    zip_unpacked_bytes: int = 1_073_741_824
    zip_ratio: int = 100
    zip_entries: int = 20_000
    staged_bytes: int = 2_147_483_648


@dataclass(frozen=True, slots=True)
class Collections:
    trash_days: int = 30
    versions: int = 50


@dataclass(frozen=True, slots=True)
class Embedding:
    backend: str = "minilm"
    url: str = ""
    model: str = ""
    api_key: str = field(default="", repr=False)
    dimension: int | None = None
    batch_size: int = 256
    weight: float | None = None
    min_cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Retrieval:
    candidates: int = 300
    dense_exact: str = "auto"
    lexical: str = "apps.indexing.lexical.PostgresLexical"
    reranker: str = ""
    # The constants of ranking (``retrieval.md`` 3.1, 7.2 to 7.5).
    bm25_k1: float = 1.2
    body_b: float = 0.75
    body_length_most: float = 4.0
    heading_weight: float = 2.0
    heading_b: float = 0.3
    path_weight: float = 0.5
    rank_offset: float = 60.0
    page_boost: float = 0.3
    page_rows: int = 3
    page_coverage: float = 0.55
    superseded_factor: float = 0.6
    deprecated_factor: float = 0.6
    archived_factor: float = 0.4
    side_factor: float = 0.6


@dataclass(frozen=True, slots=True)
class Graph:
    expansion_enabled: bool = True
    expansion_hops: int = 1
    expansion_max_nodes: int = 20
    expansion_decay: float = 0.6
    expansion_inferred: bool = False
    expansion_types: tuple[str, ...] = ()
    proposers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Jobs:
    workers: int = 2
    lease_seconds: float = 60
    renew_seconds: float = 20
    sweep_seconds: float = 60
    running_syncs: int = 2
    embeds_per_endpoint: int = 1
    live_per_user: int = 20
    live_total: int = 1000
    text_bytes: int = 67_108_864


@dataclass(frozen=True, slots=True)
class Session:
    hours: int = 8
    remember_days: int = 30


@dataclass(frozen=True, slots=True)
class Login:
    failures_per_account: int = 5
    failures_per_address: int = 20
    window_minutes: int = 15


@dataclass(frozen=True, slots=True)
class Throttle:
    anonymous: int = 60
    user: int = 600
    search: int = 120
    upload: int = 60
    mcp: int = 240


@dataclass(frozen=True, slots=True)
class Mcp:
    briefing: str = ""


@dataclass(frozen=True, slots=True)
class Oidc:
    issuer: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    trusted_domains: tuple[str, ...] = ()
    groups_claim: str = "groups"
    admin_group: str = ""


@dataclass(frozen=True, slots=True)
class QueryLog:
    candidates: bool = False


@dataclass(frozen=True, slots=True)
class Retention:
    audit_days: int = 400
    query_log_days: int = 30
    payload_days: int = 7
    payload_error_days: int = 30
    reports: int = 20


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of one deployment. Sizes are bytes, times as the name says."""

    data_dir: str = "~/.local/share/cograph"
    bind: str = "127.0.0.1:8000"
    django_secret_key: str = field(default="", repr=False)
    secrets_key: tuple[str, ...] = field(default=(), repr=False)
    admin_password: str = field(default="", repr=False)
    allowed_hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    trusted_proxies: int = 0
    public_read: bool = False
    allowed_private_hosts: tuple[str, ...] = ()
    external_images: tuple[str, ...] = ()
    statement_seconds: int = 15
    debug: bool = False
    log_level: str = "info"
    token: str = field(default="", repr=False)
    venv: str = ""
    chromium: str = "/usr/bin/chromium"
    require_browser: bool = False

    git: Git = field(default_factory=Git)
    markup: Limits = field(default_factory=Limits)
    upload: Upload = field(default_factory=Upload)
    collections: Collections = field(default_factory=Collections)
    embedding: Embedding = field(default_factory=Embedding)
    retrieval: Retrieval = field(default_factory=Retrieval)
    graph: Graph = field(default_factory=Graph)
    jobs: Jobs = field(default_factory=Jobs)
    session: Session = field(default_factory=Session)
    login: Login = field(default_factory=Login)
    throttle: Throttle = field(default_factory=Throttle)
    mcp: Mcp = field(default_factory=Mcp)
    oidc: Oidc = field(default_factory=Oidc)
    query_log: QueryLog = field(default_factory=QueryLog)
    retention: Retention = field(default_factory=Retention)

    @property
    def data_path(self) -> Path:
        return Path(self.data_dir).expanduser()


def known_names() -> dict[str, tuple[str | None, str, object]]:
    """Environment name -> (area or None, field name, type), for the reader, the docs and the test of both."""
    names: dict[str, tuple[str | None, str, object]] = {}
    for name, kind in typing.get_type_hints(Configuration).items():
        if dataclasses.is_dataclass(kind):
            for inner, inner_kind in typing.get_type_hints(kind).items():
                names[f"{PREFIX}{name.upper()}__{inner.upper()}"] = (name, inner, inner_kind)
        else:
            names[f"{PREFIX}{name.upper()}"] = (None, name, kind)
    return names


def read(environ: Mapping[str, str]) -> Configuration:
    """The configuration that ``environ`` describes. Raises ConfigurationError with one line for the operator."""
    names = known_names()
    values: dict[str | None, dict[str, object]] = {None: {}}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX):
            continue
        if variable not in names:
            nearest = difflib.get_close_matches(variable, names, n=1, cutoff=0.5)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise ConfigurationError(f"{variable} is not a setting of Cograph{hint}")
        area, name, kind = names[variable]
        values.setdefault(area, {})[name] = _convert(variable, text, kind)
    plain = Configuration()
    areas = {
        area: dataclasses.replace(getattr(plain, area), **chosen) for area, chosen in values.items() if area is not None
    }
    configuration = dataclasses.replace(plain, **values[None], **areas)  # type: ignore[arg-type]
    _check(configuration)
    return configuration


def split(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated list, without blanks around them and without empty ones."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def database_url(environ: Mapping[str, str]) -> str:
    """DATABASE_URL; empty when the embedded server is to be used. The value may hold a password and is never echoed."""
    url = environ.get("DATABASE_URL", "").strip()
    if url and not url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError("DATABASE_URL must begin with postgresql:// (PostgreSQL 16 or newer)")
    return url


def host_and_port(bind: str) -> tuple[str, int]:
    """`127.0.0.1:8000` or `[::1]:8000` in two parts. Raises ValueError."""
    host, separator, port = bind.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(bind)
    return host, int(port)


def _convert(variable: str, text: str, kind: object) -> object:
    text = text.strip()
    if kind is bool:
        if text.lower() in TRUE:
            return True
        if text.lower() in FALSE:
            return False
        raise ConfigurationError(f"{variable} is {text!r}; allowed are 1, 0, true, false, on, off")
    if kind == tuple[str, ...]:
        return split(text)
    if kind in (int, int | None):
        try:
            number = int(text)
        except ValueError:
            raise ConfigurationError(f"{variable} is {text!r}; allowed is a whole number of 0 or more") from None
        if number < 0:
            raise ConfigurationError(f"{variable} is {text!r}; allowed is a whole number of 0 or more")
        return number
    if kind in (float, float | None):
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not math.isfinite(amount) or amount < 0:
            raise ConfigurationError(f"{variable} is {text!r}; allowed is a number of 0 or more")
        return amount
    return text


def _is_fernet_key(text: str) -> bool:
    try:
        return len(base64.urlsafe_b64decode(text.encode("ascii"))) == 32
    except (ValueError, UnicodeEncodeError):
        return False


_BOUNDS: dict[str, dict[str, tuple[float, float]]] = {
    "git": {"sync_hour": (0, 23)},
    "retrieval": {
        "candidates": (100, 300),
        "bm25_k1": (0.01, 10),
        "body_b": (0, 0.99),
        "body_length_most": (1, 1000),
        "heading_weight": (0, 100),
        "heading_b": (0, 0.99),
        "path_weight": (0, 100),
        "rank_offset": (0, 10_000),
        "page_boost": (0, 10),
        "page_rows": (1, 100),
        "page_coverage": (0, 1),
        "superseded_factor": (0.01, 1),
        "deprecated_factor": (0.01, 1),
        "archived_factor": (0.01, 1),
        "side_factor": (0.01, 1),
    },
    "graph": {"expansion_hops": (1, 3)},
}
"""Least and largest value of numbers, by area and field."""


def _check(configuration: Configuration) -> None:
    def refuse(name: str, value: object, allowed: str) -> None:
        raise ConfigurationError(f"{PREFIX}{name} is {value!r}; allowed: {allowed}")

    try:
        host_and_port(configuration.bind)
    except ValueError:
        refuse("BIND", configuration.bind, "address:port, for example 127.0.0.1:8000 or [::1]:8000")
    for key in configuration.secrets_key:
        if not _is_fernet_key(key):  # the value is a secret and is not repeated
            raise ConfigurationError(
                f"{PREFIX}SECRETS_KEY holds a key that is not 32 bytes in URL-safe base64; "
                "allowed: one such key, or several separated by commas"
            )
    if not configuration.jobs.workers:
        refuse("JOBS__WORKERS", 0, "1 or more")
    if configuration.log_level not in {"debug", "info", "warning", "error"}:
        refuse("LOG_LEVEL", configuration.log_level, "debug, info, warning, error")
    for area, fields in _BOUNDS.items():
        for name, (least, most) in fields.items():
            value = getattr(getattr(configuration, area), name)
            if not least <= value <= most:
                refuse(f"{area}__{name}".upper(), value, f"{least} to {most}")
    if configuration.retrieval.dense_exact not in {"auto", "always"}:
        refuse("RETRIEVAL__DENSE_EXACT", configuration.retrieval.dense_exact, "auto, always")
    if configuration.jobs.renew_seconds >= configuration.jobs.lease_seconds:
        refuse("JOBS__RENEW_SECONDS", configuration.jobs.renew_seconds, "less than COGRAPH_JOBS__LEASE_SECONDS")
    if len(configuration.mcp.briefing) > 2000:
        refuse("MCP__BRIEFING", f"{len(configuration.mcp.briefing)} characters", "at most 2000 characters")
