"""known_hosts by the host's *name*: looking up, saying what differs, and taking a key over on purpose."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import asyncssh

from bot.errors import HostKeyMismatch
from bot.ssh.records import Host

Found = tuple[Any, ...]  # what asyncssh's matcher gives: keys, CAs, revoked keys and four X.509 lists


def lookup(host: Host) -> Found:
    """What known_hosts says under the host's name, whatever its address and port. Raises HostKeyMismatch.

    A missing file knows nobody. Handing asyncssh the answer, not the file, matters: an empty file would
    make it fall back to ~/.ssh/known_hosts.
    """
    try:
        known = asyncssh.import_known_hosts(host.known_hosts.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = asyncssh.import_known_hosts("")
    except (OSError, ValueError) as error:
        raise HostKeyMismatch(f"{host.known_hosts} cannot be used to check {host.name}: {error}") from None
    return tuple(known.match(host.name, "", None))


def mismatch(host: Host, offered: str) -> HostKeyMismatch:
    """The refusal, with both fingerprints, or with how to make a first acquaintance."""
    keys, authorities = lookup(host)[:2]
    mend = f"`opsthread hosts trust {host.name} --fingerprint {offered}`"
    if keys:
        known = ", ".join(key.get_fingerprint() for key in keys)
        return HostKeyMismatch(
            f"the key of {host.name} has changed: {host.known_hosts} has {known}, it offers {offered}. Nothing is "
            f"run there until somebody has compared the new one on the host itself and runs {mend}"
        )
    under = " or signed by a known authority" if authorities else ""
    return HostKeyMismatch(
        f"the key of {host.name} is not in {host.known_hosts}{under}: it offers {offered}. Compare it on the "
        f"host itself (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then {mend}"
    )


def stamp(path: Path) -> tuple[int, int]:
    """Changes whenever the file does; (0, 0) when there is none."""
    try:
        stat = path.stat()
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)


def trust(host: Host, key: asyncssh.SSHKey) -> None:
    """Write this key, and no other, under the host's name. Other names and authorities stay as they are."""
    path = host.known_hosts
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    kept = [left for line in lines if (left := _without(line, host.name)) is not None]
    public = key.export_public_key("openssh").decode().split()
    text = "".join(f"{line}\n" for line in [*kept, f"{host.name} {public[0]} {public[1]}"])
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".known_hosts-")
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
        os.fchmod(out.fileno(), 0o644)
    Path(name).replace(path)


def _without(line: str, name: str) -> str | None:
    """The line without the keys it gives this very name; patterns and @markers are others' business."""
    words = line.split()
    if not words or words[0].startswith(("#", "@")):
        return line
    if words[0].startswith("|"):
        try:
            hashed = asyncssh.import_known_hosts(line).match(name, "", None)[0]
        except ValueError:
            return line
        return None if hashed else line
    names = [each for each in words[0].split(",") if each != name]
    return " ".join([",".join(names), *words[1:]]) if names else None
