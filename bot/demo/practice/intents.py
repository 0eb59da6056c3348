"""What kind of thing a person wants, apart from topics: a command, a change, to go on, a greeting. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.demo.practice.reading import LONG, Host

_KNOWN = (
    "apt-cache awk cat curl date df dig dmesg docker du echo env file find free git grep head hostname hostnamectl id "
    "ip journalctl kill kubectl ls lsblk lscpu lsof mount netstat nproc openssl ping pgrep printenv ps pwd redis-cli rm "
    "sed service sleep sort ss ssh stat sudo systemctl tail timedatectl top touch uname uptime vmstat w wc which who whoami"
)
_PROGRAMS = frozenset(_KNOWN.split())
_RUN = re.compile(
    r"^\s*(?:(?:please|can you|could you|now|请|帮我|麻烦)\s*)*(?:run|execute|exec|运行|执行)(?:一下|命令)?\s*[:：]?\s*(.+)$",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"```(?:\w*\n)?(.+?)```|`([^`\n]+)`", re.DOTALL)
_ON_HOST = re.compile(
    r"\s+on\s+[\w.-]+(?:(?:\s*,\s*|\s+and\s+)[\w.-]+)*\s*[.?!]?$|\s*[,，]?\s*在\s*[\w.-]+\s*上\s*[。？]?$",
    re.IGNORECASE,
)

_VERBS = {
    "restart": r"restart|重启|重新启动",
    "reload": r"reload|重载|重新加载",
    "start": r"start|启动|开启",
    "stop": r"stop|停止|停掉|关闭",
}
_LEAD = r"(?:^|[.!;,，。；]\s*|\b(?:please|you|now|and|then|to|just|go ahead and)\s+|请|帮我|麻烦|把|可以|能否|然后|再)\s*"
_CHANGES = tuple(
    (
        verb,
        re.compile(
            rf"{_LEAD}(?:{words})\s*(?:the\s+|一下\s*)?(?:service\s+|服务\s*)?([A-Za-z][A-Za-z0-9@._-]*)",
            re.IGNORECASE,
        ),
    )
    for verb, words in _VERBS.items()
)
_NO_UNIT = re.compile(
    r"it|the|that|this|them|again|now|of|with|by|from|looking|checking|\w+ing|a|an|all|everything|on|at|in|and|or|here",
    re.IGNORECASE,
)
_CONTINUE = re.compile(
    r"^\W*(?:please\s+|请)?(?:(?:continue|go on|carry on|keep going|proceed|resume)\b|继续|接着|往下)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?|thank you|你好|您好|嗨|早上好|谢谢)",
    re.I,
)
_ALL = re.compile(
    r"\ball (?:the )?(?:hosts|servers|machines)\b|\b(?:every (?:host|server|machine)|everywhere)\b|所有|全部|每台",
    re.I,
)
_UNKNOWN_HOST = re.compile(
    r"\b(?:on|host|server)\s+([A-Za-z][\w.]*[\d-][\w.-]*)|在\s*([A-Za-z][A-Za-z0-9_.]*[\d-][A-Za-z0-9_.-]*)\s*上",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a service that a person asks for."""

    verb: str
    unit: str

    @property
    def command(self) -> str:
        return f"systemctl {self.verb} {self.unit}"


def literal_command(question: str) -> str | None:
    """The command a person wrote out: in backticks, or behind "run" when it begins with a known program."""
    if len(question) >= LONG:
        return None  # it may have been cut, and half a command is another command
    quoted = _QUOTED.search(question)
    asked = _RUN.match(question)
    if quoted:
        command = (quoted[1] or quoted[2]).strip()
        return command if command and (asked or _is_known(command)) else None
    command = (asked[1] if asked else question).strip().splitlines()[0] if question.strip() else ""
    if asked:
        command = _ON_HOST.sub("", command).strip()
        return command if _is_known(command) else None
    return command if command.split(" ", 1)[0] == "echo" and "\n" not in question.strip() else None


def _is_known(command: str) -> bool:
    first = command.split(maxsplit=1)[0].rsplit("/", 1)[-1] if command.split() else ""
    return first in _PROGRAMS or re.fullmatch(r"python3?|node|nginx|psql|mysql|java", first) is not None


def change_of(question: str) -> Change | None:
    """A restart, reload, start or stop that is asked for; not one that is only spoken of."""
    for verb, words in _CHANGES:
        for match in words.finditer(question):
            unit = match[1].rstrip(".")
            if not _NO_UNIT.fullmatch(unit):
                return Change(verb, unit)
    return None


def wants_to_continue(question: str) -> bool:
    return _CONTINUE.match(question) is not None


def is_greeting(question: str) -> bool:
    return _GREETING.match(question) is not None and len(question) <= 60


def named_hosts(question: str, hosts: Sequence[Host]) -> tuple[str, ...]:
    """Hosts the question names, by name, label or "all"; in the inventory's order."""
    if _ALL.search(question):
        return tuple(host.name for host in hosts)
    labels = set(re.findall(r"[\w.-]+=[\w.-]+", question))
    return tuple(
        host.name
        for host in hosts
        if labels.intersection(host.labels)
        or re.search(
            rf"(?<![A-Za-z0-9_.-]){re.escape(host.name)}(?![A-Za-z0-9_-]|\.[A-Za-z0-9])", question, re.I
        )
    )


def unknown_host(question: str, hosts: Sequence[Host]) -> str | None:
    """A host's name in the question that is none we know."""
    known = {host.name.lower() for host in hosts}
    for match in _UNKNOWN_HOST.finditer(question):
        name = (match[1] or match[2]).rstrip(".")
        if name.lower() not in known:
            return name
    return None
