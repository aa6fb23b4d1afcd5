"""Which paths of a repository are documents, of which kind, and why the others are not (``repository-documents.md`` 3).

Pure functions over paths: nothing is read, nothing is asked.
"""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass

from apps.repos.globs import matches_any


class Kind(enum.StrEnum):
    """What a document is. Metadata only: all kinds are chunked, searched and readable alike."""

    REPO_DOC = "repo_doc"
    WORKFLOW = "workflow"
    EXAMPLE = "example"
    TEST = "test"
    CONFIG = "config"

    @property
    def label(self) -> str:
        return KIND_LABELS[self]


KIND_LABELS = {
    Kind.REPO_DOC: "Repo Doc",
    Kind.WORKFLOW: "Workflow",
    Kind.EXAMPLE: "Example",
    Kind.TEST: "Test",
    Kind.CONFIG: "Config",
}

DOC_EXTENSIONS = frozenset({".md", ".mdx", ".rst"})
TEST_CODE_EXTENSIONS = frozenset({".go", ".py", ".ts", ".tsx", ".js"})
EXAMPLE_EXTENSIONS = DOC_EXTENSIONS | TEST_CODE_EXTENSIONS | {".json", ".toml", ".yaml", ".yml"}
CONFIG_EXTENSIONS = frozenset({".cfg", ".conf", ".ini", ".json", ".toml", ".yaml", ".yml"})
CONFIG_FOLDERS = frozenset({"deploy", "deployment", "helm", "k8s", "ops", ".devcontainer"})
EXAMPLE_FOLDERS = frozenset({"example", "examples", "sample", "samples"})
TEST_FOLDERS = frozenset({"test", "tests"})
ROOT_CONFIG = re.compile(
    r"dockerfile|makefile|(?:docker-)?compose\.y.*ml|go\.mod|go\.work|package\.json|package-lock\.json|pyproject\.toml"
)
HIDDEN_BUT_READ = frozenset({".devcontainer", ".github"})
EXCLUDED_FOLDERS = frozenset({"node_modules", "dist", "build", "venv", "__pycache__"})
"""Folders of the exclusion list that begin with a dot fall under the rule for all such folders."""

SIDE_FOLDERS = frozenset(
    [
        "fixture",
        "fixtures",
        "__fixtures__",
        "testdata",
        "test-data",
        "test_data",
        "__snapshots__",
        "snapshots",
        "__mocks__",
        "mocks",
        "golden",
        "goldens",
        "vendor",
        "vendored",
        "third_party",
        "archive",
        "archived",
    ]
)
"""Folders of text that is kept for tests or comes from elsewhere (``retrieval.md`` 6.7)."""

BINARY_EXTENSIONS = frozenset(
    [
        ".7z",
        ".a",
        ".avi",
        ".avif",
        ".bin",
        ".bmp",
        ".bz2",
        ".class",
        ".dll",
        ".dylib",
        ".eot",
        ".exe",
        ".flac",
        ".gif",
        ".gz",
        ".ico",
        ".icns",
        ".jar",
        ".jpeg",
        ".jpg",
        ".lib",
        ".mkv",
        ".mov",
        ".mp3",
        ".mp4",
        ".o",
        ".obj",
        ".ogg",
        ".otf",
        ".parquet",
        ".pdf",
        ".png",
        ".psd",
        ".pyc",
        ".rar",
        ".so",
        ".sqlite",
        ".tar",
        ".tgz",
        ".tif",
        ".tiff",
        ".ttf",
        ".war",
        ".wasm",
        ".wav",
        ".webm",
        ".webp",
        ".woff",
        ".woff2",
        ".xz",
        ".zip",
        ".zst",
    ]
)


@dataclass(frozen=True, slots=True)
class Filters:
    """The three glob lists of a repository. ``only`` empty means all; ``exclude`` wins."""

    only: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """A path is taken with a kind, or not taken with a reason: ``no rule``, ``filtered`` or ``binary``."""

    kind: Kind | None
    reason: str = ""
    excluded_folder: bool = False
    """Dropped because of a parent folder; links in there are nobody's business."""


def split(path: str) -> tuple[list[str], str, str]:
    """Folders, name and extension (with its dot, in lower case; empty without one) of a path."""
    *folders, name = path.split("/")
    dot = name.rfind(".")
    return folders, name, name[dot:].lower() if dot >= 0 else ""


@functools.lru_cache(maxsize=50_000)
def is_side(path: str) -> bool:
    """Whether the file lies in a folder of fixtures, vendored or archived text."""
    return not SIDE_FOLDERS.isdisjoint(path.lower().split("/")[:-1])


def in_excluded_folder(folders: list[str]) -> bool:
    return any(
        folder in EXCLUDED_FOLDERS or (folder.startswith(".") and folder not in HIDDEN_BUT_READ) for folder in folders
    )


def kind_by_rules(path: str) -> Kind | None:
    """The first rule that fits, without looking at folder exclusions. Extensions, names and folders: without case."""
    folders, name, extension = split(path.lower())
    if extension in DOC_EXTENSIONS:
        return Kind.REPO_DOC
    if folders == [".github", "workflows"] and extension in {".yml", ".yaml"}:
        return Kind.WORKFLOW
    if extension in EXAMPLE_EXTENSIONS and not EXAMPLE_FOLDERS.isdisjoint(folders):
        return Kind.EXAMPLE
    if not TEST_FOLDERS.isdisjoint(folders) and (
        extension in TEST_CODE_EXTENSIONS and (name.startswith("test_") or name.endswith("_test.go"))
    ):
        return Kind.TEST
    if (
        name.startswith(".env")
        or (not folders and ROOT_CONFIG.fullmatch(name))
        or (folders and folders[0] in CONFIG_FOLDERS and extension in CONFIG_EXTENSIONS)
    ):
        return Kind.CONFIG
    return None


def decide(path: str, filters: Filters) -> Decision:
    """What becomes of ``path``. ``include`` adds what no rule takes or a folder exclusion drops; ``only`` then limits
    all of it, and ``exclude`` has the last word."""
    folders, _, extension = split(path)
    excluded_folder = in_excluded_folder(folders)
    by_rules = kind_by_rules(path)
    included = bool(filters.include) and matches_any(path, filters.include)
    kind = (by_rules or Kind.REPO_DOC) if included else (None if excluded_folder else by_rules)
    if (filters.only and not matches_any(path, filters.only)) or (
        filters.exclude and matches_any(path, filters.exclude)
    ):
        return Decision(None, "filtered" if kind else _reason(extension), excluded_folder=not included)
    if kind is None:
        return Decision(None, _reason(extension), excluded_folder=excluded_folder)
    return Decision(kind)


def _reason(extension: str) -> str:
    return "binary" if extension in BINARY_EXTENSIONS else "no rule"


def title_of(kind: Kind, path: str, own_title: str | None) -> str:
    """The title shown for a document: its own for prose, else the file name; ``Kind: file name`` for other kinds."""
    name = path.rsplit("/", 1)[-1]
    if kind is Kind.REPO_DOC:
        return own_title or name
    return f"{kind.label}: {name}"
