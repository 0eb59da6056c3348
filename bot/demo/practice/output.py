"""Reads what diagnostic programs print, figures only, whatever language the sentences are in. Pure.

Each function gives None or an empty result for output it does not know; it never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NO_REAL_DISK = frozenset(
    {"tmpfs", "devtmpfs", "udev", "none", "shm", "efivarfs", "squashfs", "cgroup", "proc", "sysfs"}
)
_NO_REAL_MOUNT = ("/dev", "/proc", "/sys", "/run", "/snap", "/boot/efi")
_DF = re.compile(r"^(\S.*?)\s+([\d.,]+\S*)\s+([\d.,]+\S*)\s+(-?[\d.,]+\S*)\s+(\d+)%\s+(/.*)$")


@dataclass(frozen=True, slots=True)
class FileSystem:
    mount: str
    size: str
    used: str
    free: str
    percent: int


def file_systems(df: str) -> list[FileSystem]:
    """Of `df -h` or `df -i`; without those in memory, fullest first, a bind mount counted once."""
    found: dict[tuple[str, str, str], FileSystem] = {}
    for line in df.splitlines():
        match = _DF.match(line) if len(line) < 1_000 else None
        if not match:
            continue
        device, size, used, free, percent, mount = match.groups()
        mount = mount.strip()
        if device in _NO_REAL_DISK or mount.startswith(_NO_REAL_MOUNT):
            continue
        same = (device, size, used)
        if same not in found or len(mount) < len(found[same].mount):
            found[same] = FileSystem(mount, size, used, free, int(percent))
    return sorted(found.values(), key=lambda f: (-f.percent, f.mount))


@dataclass(frozen=True, slots=True)
class Memory:
    """In MB."""

    total: int
    used: int
    available: int
    swap_total: int
    swap_used: int


def memory(text: str) -> Memory | None:
    """Of `free -m` or /proc/meminfo."""
    kb = {key: int(value) for key, value in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    if "MemTotal" in kb:
        total, swap = kb["MemTotal"], kb.get("SwapTotal", 0)
        free = kb.get("MemAvailable", kb.get("MemFree", 0) + kb.get("Cached", 0) + kb.get("Buffers", 0))
        parts = (total, total - free, free, swap, swap - kb.get("SwapFree", swap))
        return Memory(*(part // 1024 for part in parts))
    main = re.search(r"^\s*Mem[^:]*:((?:\s+\d+){3,6})", text, re.MULTILINE)
    if not main:
        return None
    figures = [int(n) for n in main[1].split()]
    swap_line = re.search(r"^\s*Swap[^:]*:\s+(\d+)\s+(\d+)", text, re.MULTILINE)
    # the last of six columns is what is available; old versions of free print only what is free
    available = figures[5] if len(figures) == 6 else figures[2]
    swaps = (int(swap_line[1]), int(swap_line[2])) if swap_line else (0, 0)
    return Memory(figures[0], figures[1], available, *swaps)


@dataclass(frozen=True, slots=True)
class Process:
    pid: str
    command: str
    cpu: float
    memory: float


def processes(ps: str) -> list[Process]:
    """Of any `ps` whose header names PID, %CPU, %MEM and COMMAND; without ps itself and kernel threads."""
    lines = ps.splitlines()
    header = lines[0].split() if lines else []
    names = {name.upper(): at for at, name in enumerate(header)}
    command = names.get("COMMAND", names.get("CMD"))
    if command is None or not {"PID", "%CPU", "%MEM"} <= names.keys():
        return []
    out = []
    for line in lines[1:]:
        cells = line.split(None, len(header) - 1)
        if len(cells) < len(header):
            continue
        what = cells[command].strip()
        try:
            one = Process(cells[names["PID"]], what, float(cells[names["%CPU"]]), float(cells[names["%MEM"]]))
        except ValueError:
            continue
        if what.split()[0] != "ps" and not what.startswith("["):
            out.append(one)
    return out


def load(text: str) -> tuple[float, float, float] | None:
    """Of `uptime` or /proc/loadavg: over 1, 5 and 15 minutes."""
    match = re.search(r"load averages?:\s*(\d+[.,]\d+),?\s+(\d+[.,]\d+),?\s+(\d+[.,]\d+)", text) or re.match(
        r"\s*(\d+\.\d+) (\d+\.\d+) (\d+\.\d+) \d+/\d+", text
    )
    if not match:
        return None
    one, five, fifteen = (float(n.replace(",", ".")) for n in match.groups())
    return one, five, fifteen


def up_for(text: str) -> str:
    """Of `uptime`: `12 days, 3:04`."""
    match = re.search(r"\bup\s+(.+?),\s+\d+ users?\b", text)
    return match[1].strip() if match else ""


def cores(text: str) -> int | None:
    """Of `nproc` or `lscpu`."""
    match = re.match(r"\s*(\d+)\s*$", text) or re.search(r"^CPU\(s\):\s+(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def idle(vmstat: str) -> tuple[int, int] | None:
    """Of `vmstat 1 2`: percent idle and percent waiting for disks, over the last second."""
    lines = [line.split() for line in vmstat.splitlines()]
    header = next((line for line in lines if "id" in line and "wa" in line), None)
    if header is None or len(lines[-1]) != len(header):
        return None
    last = dict(zip(header, lines[-1], strict=True))
    return (int(last["id"]), int(last["wa"])) if last["id"].isdigit() and last["wa"].isdigit() else None


def failed_units(text: str) -> list[str] | None:
    """Of `systemctl --failed`; None when it is no such list."""
    found = [re.match(r"^[\s●*x×]*(\S+\.\w+)\s+\S+\s+failed\b", line) for line in text.splitlines()]
    units = [match[1] for match in found if match]
    return units if units or re.search(r"\b0 loaded units\b|^\s*UNIT\s", text, re.MULTILINE) else None


def active(status: str) -> str:
    """Of `systemctl status NAME`: `active (running)`; empty when it does not say."""
    match = re.search(r"^\s*Active:\s+(\w+(?: \([\w-]+\))?)", status, re.MULTILINE)
    return match[1] if match else ""


def since(status: str) -> str:
    match = re.search(r"^\s*Active:.*?\bsince\s+([^;\n]+)", status, re.MULTILINE)
    return match[1].strip() if match else ""


_NO_ERROR = re.compile(
    r"\b(err(or)?s?|panic)=\S+|\berr(or)?s?:\s*0\b|\b(no|0) errors?\b", re.I
)  # settings, counts
_ERROR = re.compile(r"\berr(or)?s?\s*[=:]\s*0\b|\b(no|0) errors?\b", re.I)
_ERROR = re.compile(
    r"\berr(or)?s?\b|\bfail(ed|ure|s)?\b|\bfatal\b|\bpanic\b|\boom\b|out of memory|segfault|critical", re.I
)


def error_lines(text: str, *, all_are: bool) -> list[str]:
    """Lines that tell of an error. all_are: the program printed only such (journalctl -p err)."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-- ")]
    return lines if all_are else [line for line in lines if _ERROR.search(_NO_ERROR.sub("", line))]


def ports(text: str) -> list[int] | None:
    """Listening TCP ports of `ss -tln`, `netstat -tln` or /proc/net/tcp; None when it is no such list."""
    if not re.search(r"local.address", text, re.IGNORECASE):
        return None
    found = set()
    for line in text.splitlines():
        cells = line.split()
        raw = re.match(r"\s*\d+: [0-9A-F]{8,32}:([0-9A-F]{4}) \S+ 0A ", line)
        if raw:
            found.add(int(raw[1], 16))
        elif "LISTEN" in cells:
            found.update(_first_port(cells))
    return sorted(found)


def _first_port(cells: Iterable[str]) -> list[int]:
    for cell in cells:
        match = re.fullmatch(r"\S*[:.](\d{1,5})", cell)
        if match:
            return [int(match[1])]
    return []


def tcp_summary(text: str) -> str:
    """Of `ss -s`: `41 (estab 5, closed 12, …)`."""
    match = re.search(r"^TCP:\s+(\d+ \([^)\n]*\))", text, re.MULTILINE)
    return match[1] if match else ""


def biggest_file(ls: str) -> tuple[str, str] | None:
    """Of `ls -lhS`: name and size of the first file."""
    match = re.search(r"^-\S+\s+\d+\s+\S+\s+\S+\s+(\S+)\s+\S+\s+\S+\s+\S+\s+(.+)$", ls, re.MULTILINE)
    return (match[2], match[1]) if match else None


_VERSION = {
    "Python": r"(Python \d[\w.+]*)",
    "OpenSSH": r"(OpenSSH)_(?:for_Windows_)?(\d[\w.]*)",
    "PostgreSQL": r"(PostgreSQL)\)? (\d[\w.]*)",
    "nginx": r"(nginx)/(\d[\w.]*)",
    "kernel": r"^(Linux) \S+ (\S+)",
    "OS": r'^PRETTY_NAME="?([^"\n]+)"?',
    "Redis": r"(?:Redis server v=|redis-cli )(\d[\w.]*)",
    "MySQL": r"(?:Ver|from) (\d[\w.-]*)",
    "Docker": r"(Docker version \d[\w.]*)",
    "Node.js": r"^(v\d[\w.]*)",
    "Java": r'version "([^"]+)"',
    "Git": r"git version (\d[\w.]*)",
    "OpenSSL": r"OpenSSL (\d[\w.]*)",
    "Apache": r"Apache/(\d[\w.]*)",
    "Bash": r"version (\d[^\s(]*)",
}


def version(program: str, text: str) -> str:
    """`Python 3.11.7`; the first line when the program prints something unusual, empty when nothing."""
    match = re.search(_VERSION[program], text, re.MULTILINE)
    if not match:
        first = next((line.strip() for line in text.splitlines() if re.search(r"\d\.\d", line)), "")
        return f"{program}: {first[:80]}" if first else ""
    said = " ".join(group for group in match.groups() if group)
    plain = program.split(maxsplit=1)[0]
    return said if said[0].isalpha() and said[0] != "v" else f"{plain} {said}"
