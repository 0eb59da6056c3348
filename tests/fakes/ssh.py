"""A real OpenSSH sshd on loopback with its own keys, in an account whose shell start-up file is as bad as it gets."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import asyncssh

from bot.demo.host import account
from bot.ssh.inventory import Host

BASHRC = """echo noise on stdout; echo noise on stderr >&2
ls() { echo hijacked; }; export -f ls; alias cat='echo hijacked'; export LD_TRICK=1 PATH=/nowhere:$PATH
"""


def sshd_path() -> str | None:
    return shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin")


def pair(path: Path, comment: str = "test") -> asyncssh.SSHKey:
    """Write a private key (0600) and its .pub; return the private key."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment=comment)
    key.write_private_key(str(path))
    path.chmod(0o600)
    key.write_public_key(str(path.with_name(path.name + ".pub")))
    return key


def public(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Sshd:
    """`sshd -D -e` as this account. The log-in's HOME is the folder, whose .bashrc is polluted."""

    def __init__(self, folder: Path, *, more: str = "") -> None:
        self.folder, self.port = folder, free_port()
        self.host_key = pair(folder / "host")
        self.user_key = pair(folder / "id")
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(f"web-1 {public(self.host_key)}\nbastion {public(self.host_key)}\n")
        (folder / "authorized").write_text(public(self.user_key) + "\n")
        (folder / ".bashrc").write_text(BASHRC)
        (folder / "conf").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nX11Forwarding no\n"
            f"SetEnv HOME={folder}\n{more}"
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True, mode=0o755)
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sshd_path() or "sshd", "-D", "-e", "-f", str(self.folder / "conf")],
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError("sshd does not listen: " + (self.folder / "log").read_text())

    def stop(self) -> None:
        assert self.process is not None
        for pid in self.sessions():
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGTERM)
        self.process.terminate()
        self.process.wait(10)

    def sessions(self) -> list[int]:
        """The processes that serve connections, with their own children of the name sshd."""
        assert self.process is not None
        found, todo = [], [self.process.pid]
        while todo:
            children = [
                pid for pid, parent, name in _processes() if parent == todo[0] and name.startswith("sshd")
            ]
            found += children
            todo = [*todo[1:], *children]
        return found

    def host(self, **changed: object) -> Host:
        fields: dict[str, object] = {
            "name": "web-1",
            "address": "127.0.0.1",
            "port": self.port,
            "user": account(),
            "known_hosts": self.known_hosts,
            "identity": (self.folder / "id",),
        }
        return Host(**{**fields, **changed})  # type: ignore[arg-type]


def _processes() -> list[tuple[int, int, str]]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            name, _, rest = stat.partition("(")[2].rpartition(")")
            found.append((int(entry.name), int(rest.split()[1]), name))
    return found


def gone(mark: str, seconds: float = 3.0) -> bool:
    """No process has the mark any more; one that was just killed is given its moment to vanish."""
    ends = time.monotonic() + seconds
    while alive(mark):
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


def alive(mark: str) -> list[int]:
    """Processes of this machine (this one aside) that have the mark in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line:
                found.append(int(entry.name))
    return found
