"""The practice host's files in its data folder: keys (0600), port, and the lock that several processes share."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh


def identity(folder: Path) -> Path:
    """The private key that may log in."""
    return folder / "id_ed25519"


def host_key(folder: Path) -> Path:
    """The private key the host proves itself with."""
    return folder / "host_ed25519"


def public_key(folder: Path) -> asyncssh.SSHKey:
    """The public half of the key that may log in."""
    return asyncssh.read_private_key(str(identity(folder))).convert_to_public()


def host_public_line(folder: Path) -> str:
    """Type and key of the host, as known_hosts has them."""
    line = asyncssh.read_private_key(str(host_key(folder))).export_public_key("openssh").decode()
    return " ".join(line.split()[:2])


def prepare(folder: Path) -> None:
    """Make the folder and both keys where they are missing; what exists is kept."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(folder):
        for path in (identity(folder), host_key(folder)):
            if not path.exists():
                new_key(path, comment="opsthread practice host")


def new_key(path: Path, *, comment: str) -> None:
    """A fresh ed25519 pair: `path` (0600) and `path`.pub; never over an existing file."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment=comment)
    write(path.with_name(path.name + ".pub"), key.export_public_key("openssh").decode(), mode=0o644)
    write(path, key.export_private_key("openssh").decode())


def write(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Whole or not at all: others may read the file at any time."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
        os.fchmod(out.fileno(), mode)
    Path(name).replace(path)


def stored_port(folder: Path) -> int:
    """The port of the last start; 0 when there is none."""
    try:
        port = int((folder / "port").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
    return port if 0 < port < 65_536 else 0


def store_port(folder: Path, port: int) -> None:
    """Remember the port for the next start and for other processes."""
    write(folder / "port", f"{port}\n")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time; the system lets go of it when a process dies."""
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
