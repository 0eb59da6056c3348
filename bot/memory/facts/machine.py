"""What a machine is: operating system, kernel, processors, memory, disks, clock. Sizes, never their fill."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.facts.reading import OF_FILE, Reading, Source, by_line, environment, source
from bot.memory.facts.sizes import human, of_kib

_OS = "operating system"
_WORDS = r"[A-Za-z][\w .,()/:+-]{1,80}"
_ARCH = r"(x86_64|x86-64|amd64|aarch64|arm64|armv7l|armhf|i[3-6]86|ppc64le|s390x|riscv64)"
_KERNEL = r"([0-9]{1,3}\.[0-9]{1,4}\.[0-9A-Za-z._+~-]{1,60})"
_SIZE = r"([0-9.]{1,9}(?:[BKMGTP]i?B?)?)"
_NO_DISK = re.compile(
    r"(?:tmpfs|devtmpfs|udev|overlay|shm|none|squashfs|efivarfs|/dev/loop\S{0,10}|cgroup\S{0,10})"
)


def _uname_all(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if hit := re.match(rf"Linux \S{{1,80}} {_KERNEL} #.{{1,200}}? {_ARCH}(?: |$)", line):
            yield environment("kernel", hit[1])
            yield environment("architecture", hit[2])


def _uname_parts(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if hit := re.fullmatch(rf"(?:Linux )?(?:\S{{1,60}} )?{_KERNEL}(?: {_ARCH})?", line):
            yield environment("kernel", hit[1])
            if hit[2]:
                yield environment("architecture", hit[2])


def _count(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    filled = [line.strip() for line in lines if line.strip()]
    if len(filled) == 1 and re.fullmatch(r"[1-9][0-9]{0,3}", filled[0]):
        yield environment("CPU count", filled[0])


def _cpuinfo(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    processors = 0
    for line in lines:
        if hit := re.match(r"model name\t?: ?([\w ().,@/+-]{3,100})", line):
            yield environment("CPU model", hit[1])
        processors += bool(re.match(r"processor\t?: ?[0-9]{1,4}$", line))
    if processors and command[0] == "cat /proc/cpuinfo":
        yield environment("CPU count", str(processors))


def _free(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    unit = {"m": "Mi", "g": "Gi", "k": "Ki", "b": "B"}.get((command[1] or "-k")[1:2], "")
    for line in lines:
        if not (hit := re.match(rf"(Mem|内存|Swap|交换)[:：] {{1,20}}{_SIZE}(?:\s|$)", line)):
            continue
        printed = hit[2] if hit[2][-1].isalpha() else hit[2] + unit
        size = of_kib(hit[2]) if hit[2].isdigit() and unit == "Ki" else human(printed)
        what = "memory size" if hit[1] in ("Mem", "内存") else "swap size"
        if size or what == "swap size":
            yield environment(what, size or "none", "" if size else "there is no swap")


def _meminfo(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if hit := re.fullmatch(r"(MemTotal|SwapTotal): {1,20}([0-9]{1,15}) kB", line):
            what = "memory size" if hit[1] == "MemTotal" else "swap size"
            size = of_kib(hit[2])
            if size or what == "swap size":
                yield environment(what, size or "none", "" if size else "there is no swap")


def _df(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    """Rows of `df`, `df -h`, `df -hT`, `df -m`; the header says whether a type stands in the second column."""
    in_kib = not re.search(r" -\w{0,4}[hHmBg]", command[0])
    for line in lines:
        parts = line.split()
        if len(parts) < 6 or not parts[-1].startswith("/") or not re.fullmatch(r"[0-9]{1,3}%", parts[-2]):
            continue
        at, kind = parts[-1], parts[1] if len(parts) == 7 else ""
        printed = parts[-5]
        if (
            _NO_DISK.fullmatch(parts[0])
            or _NO_DISK.fullmatch(kind)
            or not re.fullmatch(r"[\w./+@-]{1,80}", at)
        ):
            continue
        if re.match(r"/(?:run|dev|proc|sys|snap|boot/efi)(?:/|$)", at):
            continue
        size = of_kib(printed) if printed.isdigit() and in_kib else human(printed)
        if size and not size.endswith((" B", " KiB")) and not re.search(r" -\w{0,4}i", command[0]):
            yield environment(f"size of {at}", size, f"{at} has a size of {size}")
        if re.fullmatch(r"[a-z][a-z0-9.]{1,14}", kind):
            yield environment(f"file system of {at}", kind, f"{at} is an {kind} file system")


def _lsblk(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        hit = re.match(
            rf"([a-z]{{2,8}}[0-9a-z]{{0,8}}) {{1,30}}(?:[0-9]{{1,3}}:[0-9]{{1,3}} {{1,8}}[01] {{1,8}})?{_SIZE} .{{0,20}}\bdisk\b",
            line,
        )
        if hit and not hit[1].startswith(("loop", "sr", "zram", "ram")) and (size := human(hit[2])):
            yield environment(f"size of disk {hit[1]}", size, f"the disk {hit[1]} has {size}")


def _mounts(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if hit := re.match(r"/dev/\S{1,60} on (/[\w./+@-]{0,80}) type ([a-z][a-z0-9.]{1,14}) \(", line):
            yield environment(f"file system of {hit[1]}", hit[2], f"{hit[1]} is an {hit[2]} file system")


def _swap(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if (
            hit := re.match(rf"(/[\w./-]{{1,60}}) {{1,20}}(?:partition|file) {{1,20}}{_SIZE}(?:\s|$)", line)
        ) and (size := human(hit[2])):
            yield environment(f"swap on {hit[1]}", size, f"{hit[1]} is swap of {size}")


def _zone(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if hit := re.fullmatch(r"(?:.{10,60}[ 0-9])?([A-Z]{3,5})(?: [0-9]{4})?", line):
            yield environment("time zone abbreviation", hit[1], f"the clock shows {hit[1]}")


def _named_zone(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    filled = [line.strip() for line in lines if line.strip()]
    if len(filled) == 1 and (
        hit := re.fullmatch(
            r"(?:.{0,80}zoneinfo/)?([A-Z][A-Za-z_]{1,20}(?:/[A-Z][A-Za-z_+-]{1,30}){0,2}(?:[+-][0-9]{1,2})?)",
            filled[0],
        )
    ):
        yield environment("time zone", hit[1])


def _one_word(attribute: str, pattern: str, says: str = "") -> Source:
    """The reader of an output that is one word from a closed shape."""
    known = re.compile(pattern)

    def read(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
        filled = [line.strip() for line in lines if line.strip()]
        if len(filled) == 1 and known.fullmatch(filled[0]):
            yield environment(attribute, filled[0], says.format(filled[0]))

    return Source(re.compile(""), read, bare=True)


def _bare(command: str, attribute: str, pattern: str, says: str = "") -> Source:
    return source(command, _one_word(attribute, pattern, says).read, bare=True)


MACHINE: tuple[Source, ...] = (
    source(rf"{OF_FILE} /etc/(?:\*|os)-release|{OF_FILE} /usr/lib/os-release", by_line(
        (_OS, rf"PRETTY_NAME=\"?({_WORDS})\"?$", "the operating system is {}"))),
    _bare(r"cat /etc/(?:redhat|centos|rocky|almalinux|system)-release", _OS, _WORDS),
    source(r"cat /etc/alpine-release", by_line((_OS, r"([0-9]{1,2}\.[0-9.]{1,10})$", "the operating system is Alpine Linux {}")), bare=True),
    source(r"cat /etc/debian_version", by_line(("Debian version", r"([0-9]{1,2}\.[0-9]{1,2})$", "")), bare=True),
    source(r"lsb_release (?:-a|-d|-ds|-sd|-da)", by_line((_OS, rf"(?:Description|描述)[:：]\s{{0,4}}({_WORDS})", ""))),
    _bare(r"lsb_release (?:-ds|-sd|-d -s|-s -d)", _OS, rf"\"?{_WORDS}\"?"),
    source(r"hostnamectl(?: status)?", by_line(
        (_OS, rf" {{0,20}}Operating System: ({_WORDS})", ""),
        ("kernel", rf" {{0,20}}Kernel: Linux {_KERNEL}", ""),
        ("architecture", rf" {{0,20}}Architecture: {_ARCH}", ""),
        ("virtualisation", r" {0,20}Virtualization: ([a-z][a-z0-9-]{1,20})", ""),
        ("hardware model", r" {0,20}Hardware Model: ([\w .,()/+-]{2,60})", ""))),
    source(r"uname -(?:a|srvmpio|-all)", _uname_all),
    source(r"uname -(?:r|sr|srm|rm|mr|s -r)", _uname_parts, bare=True),
    _bare(r"uname -[mpi]|arch|dpkg --print-architecture", "architecture", _ARCH),
    source(r"cat /proc/version", by_line(("kernel", rf"Linux version {_KERNEL} ", ""))),
    source(r"lscpu", by_line(
        ("CPU count", r"(?:CPU\(s\)|CPU)[:：] {1,60}([0-9]{1,4})$", ""),
        ("CPU model", r" {0,4}(?:Model name|型号名称)[:：] {1,60}([\w ().,@/+-]{3,100})", ""),
        ("architecture", rf"(?:Architecture|架构)[:：] {{1,60}}{_ARCH}", ""),
        ("virtualisation", r" {0,4}(?:Hypervisor vendor|超管理器厂商)[:：] {1,60}([A-Za-z][\w-]{1,20})", ""))),
    source(r"nproc(?: --all)?|getconf _NPROCESSORS_ONLN", _count, bare=True),
    source(rf"{OF_FILE} /proc/cpuinfo", _cpuinfo),
    source(r"free(?: (-[hmgkb]))?(?: -[twl]){0,3}", _free),
    source(rf"{OF_FILE} /proc/meminfo", _meminfo),
    source(r"df(?: -[a-zA-Z]{1,4}| -x \w{1,12}| --\w{2,12}| /[\w./-]{0,80}){0,8}", _df),
    source(r"lsblk(?: .{0,80})?", _lsblk),
    source(r"mount|findmnt|cat /proc/mounts", _mounts),
    source(r"swapon (?:-s|--show|--summary)(?: .{0,40})?", _swap),
    source(r"timedatectl(?: status| show)?", by_line(
        ("time zone", r" {0,30}(?:Time zone: |Timezone=|时区：)([A-Z][\w+-]{1,20}(?:/[\w+-]{1,30}){0,2})", ""),
        ("NTP service", r" {0,30}(?:NTP service|Network time on): (active|inactive|yes|no|n/a)", ""),
        ("clock synchronisation", r" {0,30}(?:System clock synchronized|NTP synchronized): (yes|no)", ""))),
    source(r"date(?: \+%Z)?", _zone, bare=True),
    source(r"cat /etc/timezone|readlink (?:-f )?/etc/localtime|timedatectl show .{0,40}--value", _named_zone, bare=True),
    _bare(r"systemd-detect-virt(?: -[vc])?|virt-what", "virtualisation", r"[a-z][a-z0-9-]{1,20}"),
    _bare(r"getenforce", "SELinux mode", r"Enforcing|Permissive|Disabled"),
    source(r"sestatus", by_line(("SELinux mode", r"Current mode: {1,30}(enforcing|permissive)", ""), ("SELinux status", r"SELinux status: {1,30}(enabled|disabled)", ""))),
    _bare(r"ps (?:-p ?1|--pid 1|-q 1) -o (?:comm|comm=|cmd=)(?: .{0,10})?|cat /proc/1/comm", "service manager", r"(?:systemd|init|runit|s6-svscan|openrc-init|tini|dumb-init)"),
    _bare(r"stat -f ?-?c ?%T /sys/fs/cgroup/?", "cgroup file system", r"cgroup2fs|tmpfs"),
    source(r"localectl(?: status)?|locale", by_line(("locale", r" {0,12}(?:System Locale: )?LANG=([A-Za-z_]{1,12}(?:\.[A-Za-z0-9-]{2,12})?)", ""))),
    _bare(r"cat /sys/class/dmi/id/(?:product_name|sys_vendor)", "hardware model", r"[\w .()/+-]{2,60}"),
)  # fmt: skip
