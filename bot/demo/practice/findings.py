"""From a need and what was run for it to a sentence with its figures, in the language of the question. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.demo.practice import output
from bot.demo.practice.reading import Lang, Ran
from bot.demo.practice.topics import Need, Topic

FULL = 85  # percent of a file system that is worth a warning
SCARCE = 10  # percent of memory available below which it is scarce


@dataclass(frozen=True, slots=True)
class Finding:
    topic: Topic
    host: str
    text: str
    alarming: bool = False


def pick(lang: Lang, en: str, zh: str) -> str:
    return zh if lang == "zh" else en


def answers(need: Need, ran: Ran) -> bool:
    """Whether this run settled the need; if not, the next alternative is tried."""
    if ran.exit is None:
        return False
    if need.key == "service.unit" and ran.command.startswith("systemctl"):
        return bool(output.active(ran.stdout))
    if ran.command.startswith("journalctl"):
        return ran.exit == 0 and "No journal files" not in ran.output
    return ran.exit == 0 and bool(ran.output)


def find(need: Need, ran: Ran, cores: int | None, lang: Lang) -> Finding | None:
    """What a run that settled the need shows; None when it only helps other findings."""
    alarming, text = _look(need, ran, cores, lang)
    return Finding(need.topic, ran.host, text, alarming) if text else None


Seen = tuple[bool, str]  # alarming, sentence


def _look(need: Need, ran: Ran, cores: int | None, lang: Lang) -> Seen:
    match need.key:
        case "memory.top" | "load.top":
            return _top(ran, lang, by_memory=need.key == "memory.top")
        case "load.average":
            return _load(ran, cores, lang)
        case "load.cores":
            return False, ""
        case "service.unit":
            return _unit(need.name, ran, lang)
        case "version":
            said = output.version(need.name, ran.output)
            return (False, said) if said else _unread(ran, lang)
        case key:
            return _READERS[key](ran, lang)


def _unread(ran: Ran, lang: Lang) -> Seen:
    return False, pick(
        lang,
        f"`{ran.command}` ran, but I cannot read its output",
        f"`{ran.command}` 已执行，但我看不懂它的输出",
    )


def _space(ran: Ran, lang: Lang) -> Seen:
    found = output.file_systems(ran.stdout)
    if not found:
        return _unread(ran, lang)
    full = [f for f in found if f.percent >= FULL]
    if not full:
        f = found[0]
        return False, pick(
            lang,
            f"nothing is filling up: the fullest file system is {f.mount} at {f.percent} % "
            f"({f.used} of {f.size} used, {f.free} free)",
            f"没有快满的，最满的文件系统是 {f.mount}，已用 {f.percent}%（{f.size} 中用了 {f.used}，剩余 {f.free}）",
        )
    each = [
        pick(
            lang,
            f"{f.mount} is {f.percent} % full ({f.used} of {f.size} used, {f.free} free)",
            f"{f.mount} 已用 {f.percent}%（{f.size} 中用了 {f.used}，剩余 {f.free}）",
        )
        for f in full[:4]
    ]
    return True, pick(lang, "filling up: ", "快满了：") + pick(lang, "; ", "；").join(each)


def _inodes(ran: Ran, lang: Lang) -> Seen:
    found = output.file_systems(ran.stdout)
    if not found:
        return False, ""
    f = found[0]
    return f.percent >= FULL, pick(
        lang,
        f"inodes: {f.mount} uses most, {f.percent} % ({f.used} of {f.size})",
        f"inode：{f.mount} 用得最多，{f.percent}%（{f.size} 中用了 {f.used}）",
    )


def _logs_size(ran: Ran, lang: Lang) -> Seen:
    biggest = output.biggest_file(ran.stdout)
    if not biggest:
        return False, pick(lang, "/var/log holds no plain file", "/var/log 下没有普通文件")
    name, size = biggest
    return False, pick(
        lang, f"the biggest file in /var/log is {name} ({size})", f"/var/log 中最大的文件是 {name}（{size}）"
    )


def _memory(ran: Ran, lang: Lang) -> Seen:
    m = output.memory(ran.stdout)
    if not m or not m.total:
        return _unread(ran, lang)
    left = round(100 * m.available / m.total)
    scarce = left < SCARCE or (m.swap_total > 0 and m.swap_used * 2 > m.swap_total)
    text = pick(
        lang,
        f"{'scarce' if scarce else 'enough'}, {m.available} MB of {m.total} MB available ({left} %), {m.used} MB used",
        f"{'紧张' if scarce else '充足'}，共 {m.total} MB，可用 {m.available} MB（{left}%），已用 {m.used} MB",
    )
    if m.swap_total:
        text += pick(
            lang, f", swap {m.swap_used} of {m.swap_total} MB", f"，交换分区 {m.swap_used}/{m.swap_total} MB"
        )
    else:
        text += pick(lang, ", no swap", "，没有交换分区")
    return scarce, text


def _top(ran: Ran, lang: Lang, *, by_memory: bool) -> Seen:
    found = output.processes(ran.stdout)
    if not found:
        return False, ""
    p = max(found, key=lambda one: one.memory if by_memory else one.cpu)
    name = p.command if len(p.command) <= 60 else p.command[:59] + "…"
    if by_memory:
        return False, pick(
            lang,
            f"most memory: `{name}` (pid {p.pid}) with {p.memory:g} %",
            f"占内存最多的进程：`{name}`（pid {p.pid}），{p.memory:g}%",
        )
    return False, pick(
        lang,
        f"most CPU: `{name}` (pid {p.pid}) with {p.cpu:g} %",
        f"占 CPU 最多的进程：`{name}`（pid {p.pid}），{p.cpu:g}%",
    )


def _load(ran: Ran, cores: int | None, lang: Lang) -> Seen:
    found = output.load(ran.stdout)
    if not found:
        return _unread(ran, lang)
    one, five, fifteen = found
    high = one > (cores or 4)
    text = pick(
        lang,
        f"{'high' if high else 'normal'}, {one:.2f}, {five:.2f}, {fifteen:.2f} over 1, 5, 15 minutes",
        f"{'偏高' if high else '正常'}，1、5、15 分钟平均值为 {one:.2f}、{five:.2f}、{fifteen:.2f}",
    )
    if cores:
        text += pick(lang, f" on {cores} cores", f"，共 {cores} 核")
    if up := output.up_for(ran.stdout):
        text += pick(lang, f"; up for {up}", f"；已运行 {up}")
    return high, text


def _idle(ran: Ran, lang: Lang) -> Seen:
    found = output.idle(ran.stdout)
    if not found:
        return _unread(ran, lang)
    return found[1] > 20, pick(
        lang,
        f"CPU {found[0]} % idle, {found[1]} % waiting for disks",
        f"CPU 空闲 {found[0]}%，等待磁盘 {found[1]}%",
    )


def _failed(ran: Ran, lang: Lang) -> Seen:
    if not ran.command.startswith("systemctl"):
        n = len(output.processes(ran.stdout))
        return False, pick(
            lang,
            f"systemd does not answer here, so failed units cannot be listed; `ps` shows {n} processes",
            f"这里的 systemd 不可用，无法列出失败的单元；`ps` 显示 {n} 个进程",
        )
    failed = output.failed_units(ran.stdout)
    if failed is None:
        return _unread(ran, lang)
    if not failed:
        return False, pick(lang, "no failed units", "没有失败的服务单元")
    names = ", ".join(failed[:6])
    return True, pick(
        lang, f"{len(failed)} failed units: {names}", f"{len(failed)} 个失败的服务单元：{names}"
    )


def _unit(unit: str, ran: Ran, lang: Lang) -> Seen:
    if ran.command.startswith("systemctl"):
        state, when = output.active(ran.stdout), output.since(ran.stdout)
        up = state.startswith("active")
        text = pick(lang, f"{unit} is {state}", f"{unit} 的状态是 {state}")
        return not up, text + (pick(lang, f" since {when}", f"，自 {when}") if when else "")
    stem = unit.removesuffix(".service").removesuffix("-server").removesuffix("ql").rstrip("0123456789")
    found = [
        p for p in output.processes(ran.stdout) if stem in p.command.split()[0] or f"{stem}:" in p.command
    ]
    if not found:
        return True, pick(
            lang,
            f"{unit} does not run: systemd has no such unit or does not answer, and `ps` shows no such process",
            f"{unit} 没有运行：systemd 没有这个单元或不可用，`ps` 里也没有这样的进程",
        )
    p = found[0]
    return False, pick(
        lang,
        f"{unit} runs as `{p.command[:60]}` (pid {p.pid}); systemd does not say more here",
        f"{unit} 正在运行：`{p.command[:60]}`（pid {p.pid}）；这里的 systemd 没有更多信息",
    )


def _errors(ran: Ran, lang: Lang) -> Seen:
    journal = ran.command.startswith("journalctl")
    lines = output.error_lines(ran.stdout, all_are=journal)
    where = "journal" if journal else ran.command.split()[-1]
    if not lines:
        return False, pick(lang, f"no errors in {where}", f"{where} 中没有错误")
    last = lines[-1] if len(lines[-1]) <= 160 else lines[-1][:159] + "…"
    last = last.replace("`", "'")
    return True, pick(
        lang,
        f"{len(lines)} error lines in {where}; the last: `{last}`",
        f"{where} 中有 {len(lines)} 行错误；最后一行：`{last}`",
    )


def _ports(ran: Ran, lang: Lang) -> Seen:
    found = output.ports(ran.stdout)
    if found is None:
        return _unread(ran, lang)
    if not found:
        return False, pick(lang, "no TCP port is listening", "没有正在监听的 TCP 端口")
    shown = ", ".join(str(port) for port in found[:30])
    return False, pick(
        lang, f"{len(found)} TCP ports listen: {shown}", f"正在监听 {len(found)} 个 TCP 端口：{shown}"
    )


def _connections(ran: Ran, lang: Lang) -> Seen:
    summary = output.tcp_summary(ran.stdout)
    if not summary:
        return _unread(ran, lang)
    return False, pick(lang, f"TCP connections: {summary}", f"TCP 连接：{summary}")


_READERS: dict[str, Callable[[Ran, Lang], Seen]] = {
    "disk.space": _space,
    "disk.inodes": _inodes,
    "disk.logs": _logs_size,
    "memory.use": _memory,
    "load.vmstat": _idle,
    "service.failed": _failed,
    "service.errors": _errors,
    "logs.errors": _errors,
    "logs.kernel": _errors,
    "network.ports": _ports,
    "network.summary": _connections,
}


def cores_of(runs: Sequence[Ran], host: str) -> int | None:
    """How many cores a host has, if that was looked at."""
    for ran in reversed(runs):
        if ran.host == host and ran.command in ("nproc", "lscpu") and ran.exit == 0:
            return output.cores(ran.stdout)
    return None
