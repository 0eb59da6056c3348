"""Runs a command under strace as an ordinary user and names what it did that a read does not do."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 10
NOBODY = 65534
_TRACED = (
    "execve,open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,mknod,mknodat,link,linkat,"
    "symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,truncate,ftruncate,setxattr,lsetxattr,fsetxattr,"
    "removexattr,lremovexattr,fremovexattr,utime,utimes,utimensat,futimesat,mount,umount2,pivot_root,chroot,swapon,swapoff,reboot,"
    "sethostname,setdomainname,settimeofday,clock_settime,adjtimex,clock_adjtime,init_module,finit_module,delete_module,ptrace,"
    "kill,tkill,tgkill,rt_sigqueueinfo,pidfd_send_signal,connect,prlimit64"
)
_OPENED = re.compile(r'(?:open(?:at2?)?|creat)\((?:AT_FDCWD, )?"([^"]*)"(?:\.\.\.)?, (?:\{flags=)?([A-Z_|]+)')
_CLOCK_READ = re.compile(r"(?:clock_)?adjtim\w*\((?:\w+, )?\{modes=0\W")
_LIMIT_OF_OTHERS = re.compile(r"prlimit64\([1-9]\d*, \w+, [^N]")
# What any program may open for writing: nothing is kept there.
_SINKS = re.compile(r"/dev/(?:null|tty|pts/\d+|fd/\d+|stdout|stderr)|/proc/self/fd/\d+")


@dataclass(frozen=True, slots=True)
class Traced:
    """What one run did."""

    deeds: tuple[str, ...]  # lines of strace for what a read does not do, by whatever outcome
    connects: tuple[str, ...]  # where it connected to, netlink apart
    started: tuple[str, ...]  # names of the programs that ran


def missing() -> str | None:
    """Why nothing can be traced here; None when it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    try:
        found = trace("/bin/true")
    except OSError as error:
        return f"strace does not work here: {error}"
    return None if "true" in found.started else "strace may not trace here"


def trace(run: str) -> Traced:
    """Run a shell text for at most LIMIT_S seconds, in the clean environment that hosts give it, as nobody if we are root."""
    with tempfile.TemporaryDirectory(prefix="opsthread-strace-") as folder:
        os.chmod(folder, 0o777)
        record = Path(folder) / "record"
        ordinary = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        child = subprocess.Popen(
            ["strace", "-f", "-qq", "-s", "200", "-e", "signal=none", "-e", f"trace=?{_TRACED.replace(',', ',?')}",
             "-o", str(record), "/bin/sh", "-c", run],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent",
                 "LC_ALL": "C.UTF-8", "TERM": "dumb", "PAGER": "cat", "SYSTEMD_PAGER": "cat", "LESSSECURE": "1"},
            **ordinary,  # type: ignore[call-overload]
        )  # fmt: skip
        try:
            child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        text = record.read_text("utf-8", "replace") if record.exists() else ""
    return _read(text)


def _read(text: str) -> Traced:
    deeds: dict[str, None] = {}
    connects: dict[str, None] = {}
    started: dict[str, None] = {}
    ours = {line.split(None, 1)[0] for line in text.splitlines() if line}
    for line in text.splitlines():
        pid, _, call = line.partition(" ")
        call = call.strip()
        name = call.partition("(")[0]
        if name == "execve":
            if call.endswith("= 0") and (found := re.match(r'execve\("(?:[^"]*/)?([^"/]+)"', call)):
                started[found[1]] = None
        elif name in ("open", "openat", "openat2", "creat"):
            found = _OPENED.match(call)
            writes = name == "creat" or (
                found and re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE", found[2])
            )
            if writes and not (found and _SINKS.fullmatch(found[1])):
                deeds[call] = None
        elif name == "connect":
            if "AF_NETLINK" not in call:
                connects[_address(call)] = None
        elif name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "pidfd_send_signal"):
            numbers = re.findall(r"\((-?\d+)(?:, (\d+))?", call)[0]
            own = numbers[0] in ours or numbers[0] in ("0", pid) or (name == "tgkill" and numbers[1] in ours)
            if not own and not call.rstrip(")").split(") =")[0].endswith(", 0"):
                deeds[call] = None
        elif name in ("adjtimex", "clock_adjtime"):
            if not _CLOCK_READ.match(call):
                deeds[call] = None
        elif name == "prlimit64":
            if _LIMIT_OF_OTHERS.match(call):
                deeds[call] = None
        elif re.fullmatch(r"[a-z]\w*", name) and "resumed" not in name:
            deeds[call] = None
    return Traced(tuple(deeds), tuple(connects), tuple(started))


def _address(call: str) -> str:
    if found := re.search(r'sun_path=@?"([^"]*)"', call):
        return f"unix:{found[1]}"
    port = re.search(r"sin6?_port=htons\((\d+)\)", call)
    host = re.search(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]*)"', call)
    return f"{host[1] if host else '?'}:{port[1] if port else '?'}" if port else call
