"""What the folder of a Postgres tells about its server: alive or not, ready or not, its last words."""

from __future__ import annotations

import os
from pathlib import Path

_STATUS_LINE = 7  # of postmaster.pid, from 0: starting, ready, stopping (src/include/utils/pidfile.h)
_TAIL_BYTES = 4_000


def server_pid(data: Path) -> int | None:
    """The process that serves this data folder; a stale pid file or a zombie is none."""
    lines = _pid_file(data)
    if not lines or not lines[0].strip().isdigit():
        return None
    pid = int(lines[0])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return pid if _is_ours(pid, data) else None


def is_ready(data: Path) -> bool:
    """Whether the server says in its pid file that it takes connections."""
    lines = _pid_file(data)
    return len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"


def last_words(folder: Path) -> str:
    """Why the server ended, in one line: what it said before its log collector took over, else its log."""
    early = folder / "start.log"
    told = tail(early)
    if told and "redirecting log output" not in told:
        return told
    logs = [log for log in folder.glob("server-*.log") if log.stat().st_size]
    logs.sort(key=lambda log: log.stat().st_mtime_ns)
    return tail(logs[-1]) if logs else told or "it wrote no log"


def tail(log: Path) -> str:
    """The last lines of a file in one; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines()]
    except OSError:
        return ""
    return " | ".join([line for line in lines if line][-4:])


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _is_ours(pid: int, data: Path) -> bool:
    """After kill -9 the pid may be a zombie's or, much later, a stranger's: look at /proc where there is one."""
    process = Path(f"/proc/{pid}")
    if not process.parent.joinpath("self").exists():
        return True
    try:
        state = (
            process.joinpath("stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[0]
        )
        words = process.joinpath("cmdline").read_bytes().split(b"\0")
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X") and os.fsencode(data) in words
