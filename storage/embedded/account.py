"""Under which account the server runs: Postgres refuses root, so root needs a way around.

As an ordinary user: that user. As root: root inside a user namespace of its own, where it is called
1000; where the kernel forbids that, `nobody`, with a home of its own because nobody can enter root's.
The folder records which it was, for files made in one way cannot be read in another.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from storage.errors import EmbeddedPostgresError

SYSTEM_DIR = Path("/var/lib/opsthread")
_NAMESPACE = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
_RECORD = "account.json"


class Mode(StrEnum):
    PLAIN = "plain"  # the account `uid`: this process's own, or one that root changes to
    NAMESPACE = "namespace"  # root, in a user namespace


@dataclass(frozen=True, slots=True)
class Account:
    """Who the server is, and `home`: the folder with its data, log and socket."""

    mode: Mode
    uid: int
    gid: int
    home: Path

    def popen(self, words: Sequence[str | Path], **more: Any) -> subprocess.Popen[bytes]:
        """Start a program as this account, in a session of its own, without our environment (keys!)."""
        changed: Mapping[str, Any] = {}
        if self.mode is Mode.PLAIN and self.uid != os.geteuid():
            changed = {"user": self.uid, "group": self.gid, "extra_groups": []}
        prefix = _NAMESPACE if self.mode is Mode.NAMESPACE else []
        return subprocess.Popen(
            [*prefix, *words],
            stdin=subprocess.DEVNULL,
            cwd=self.home,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
            start_new_session=True,
            **changed,
            **more,
        )

    def own(self, path: Path) -> None:
        """Give a file or folder of ours to the account."""
        if self.mode is Mode.PLAIN and self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)


def settle(folder: Path, *, system_dir: Path = SYSTEM_DIR, prefer: Mode | None = None) -> Account:
    """The recorded account of a folder, or, the first time, the one that works here. Records it.

    prefer: root's way, when not the first that works. Raises EmbeddedPostgresError.
    """
    record = folder / _RECORD
    if record.exists():
        return _recorded(record)
    me = os.geteuid()
    if me != 0:
        account = Account(Mode.PLAIN, me, os.getegid(), folder)
    elif prefer is not Mode.PLAIN and _namespaces_work():
        account = Account(Mode.NAMESPACE, 0, 0, folder)
    else:
        account = _nobody(folder, system_dir)
    _write(record, account)
    return account


def _recorded(record: Path) -> Account:
    try:
        values = json.loads(record.read_text(encoding="utf-8"))
        account = Account(Mode(values["mode"]), values["uid"], values["gid"], Path(values["home"]))
    except (ValueError, KeyError, TypeError) as error:
        raise EmbeddedPostgresError(f"{record} is damaged; restore it or use a new data folder") from error
    me = os.geteuid()
    if me not in (0, account.uid):
        raise EmbeddedPostgresError(
            f"the database under {record.parent} belongs to another account (uid {account.uid});"
            " run as that account, or set OPSTHREAD_DATA_DIR to a folder of your own"
        )
    if account.mode is Mode.NAMESPACE and not _namespaces_work():
        raise EmbeddedPostgresError(
            f"the database under {record.parent} was made in a user namespace, and the system allows none now"
            " (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces)"
        )
    return account


def _write(record: Path, account: Account) -> None:
    fresh = record.with_suffix(".new")
    values = {"mode": account.mode, "uid": account.uid, "gid": account.gid, "home": str(account.home)}
    fresh.write_text(json.dumps(values) + "\n", encoding="utf-8")
    fresh.replace(record)


def _namespaces_work() -> bool:
    try:
        done = subprocess.run([*_NAMESPACE, "true"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _nobody(folder: Path, system_dir: Path) -> Account:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedPostgresError(
            "Postgres does not run as root, and there is no account `nobody`; run as an ordinary user"
        ) from None
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    home = system_dir / name
    try:
        system_dir.mkdir(parents=True, exist_ok=True)
        system_dir.chmod(0o755)
        home.mkdir(mode=0o700, exist_ok=True)
        os.chown(home, entry.pw_uid, entry.pw_gid)
    except OSError as error:
        raise EmbeddedPostgresError(
            f"Postgres does not run as root, and {home} cannot be made for `nobody` ({error.strerror});"
            " run as an ordinary user"
        ) from error
    return Account(Mode.PLAIN, entry.pw_uid, entry.pw_gid, home)


def reachable_binaries(account: Account, folder: Path) -> Path:
    """The programs' folder, or, when the account cannot enter it (below /root), a copy beside its home."""
    try:
        with account.popen([folder / "postgres", "--version"], stdout=subprocess.DEVNULL) as probe:
            if probe.wait(timeout=20) == 0:
                return folder
    except OSError:
        pass
    install = folder.parent
    mark = hashlib.sha256(f"{install}:{(folder / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:12]
    copy = account.home.parent / f"programs-{mark}"
    if not copy.exists():
        fresh = copy.with_suffix(f".{os.getpid()}")
        shutil.rmtree(fresh, ignore_errors=True)
        for part in ("bin", "lib", "share"):
            shutil.copytree(install / part, fresh / part, symlinks=True)
        fresh.chmod(0o755)
        fresh.rename(copy)
    return copy / "bin"
