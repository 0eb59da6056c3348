"""Which topics a question is about, and what must be looked at for each. Pure.

A need is one thing to know about a host; its commands are alternatives, tried in order until one answers.
All of them only read, so that the gate lets them run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum


class Topic(StrEnum):
    DISK = "disk"
    MEMORY = "memory"
    LOAD = "load"
    SERVICE = "service"
    VERSIONS = "versions"
    LOGS = "logs"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing to know. name: the service or program it is about. deeper: only looked at on "continue"."""

    topic: Topic
    key: str
    commands: tuple[str, ...]
    name: str = ""
    deeper: bool = False


_WORDS: tuple[tuple[Topic, re.Pattern[str]], ...] = tuple(
    (topic, re.compile(pattern, re.IGNORECASE))
    for topic, pattern in (
        (
            Topic.DISK,
            r"\bdis[ck]s?\b|\bspace\b|file ?systems?|\binodes?\b|\bstorage\b|\bdf\b|磁盘|硬盘|空间|文件系统|存储",
        ),
        (Topic.MEMORY, r"\bmem(ory)?\b|\bram\b|\bswap\b|\boom\b|内存|交换分区"),
        (
            Topic.LOAD,
            r"\bload(ed)?\b|\bcpus?\b|\bslow\b|\bbusy\b|\buptime\b|负载|处理器|很慢|变慢|卡顿|运行时间",
        ),
        (Topic.SERVICE, r"\bservices?\b|\bunits?\b|\bsystemd\b|\bdaemons?\b|服务"),
        (
            Topic.VERSIONS,
            r"\bversions?\b|\bkernel\b(?! log| error| message)|\boperating system\b|\bOS\b|\bdistro\b|版本|内核|操作系统",
        ),
        (Topic.LOGS, r"\blogs?\b|\berrors?\b|\bjournal\b|\bsyslog\b|\bdmesg\b|日志|报错|错误"),
        (
            Topic.NETWORK,
            r"\bnetwork\b|\bports?\b|\blisten(s|ing)?\b|\bsockets?\b|\bconnections?\b|网络|端口|监听|连接",
        ),
    )
)
_OVERVIEW = re.compile(
    r"\bhealth(y)?\b|\boverview\b|\bcheck ?up\b|everything (ok|fine|all ?right)|\bhow (is|are) (the )?(server|host|machine|box)"
    r"|健康|巡检|整体|概况|总体|正常吗|怎么样",
    re.IGNORECASE,
)

# program: the words for it, then the commands that print its version
PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Python": (r"python[\d.]*", ("python3 --version", "python --version")),
    "OpenSSH": (r"open ?ssh|sshd?", ("ssh -V",)),
    "PostgreSQL": (r"postgres(ql)?|psql|pg", ("psql --version", "postgres --version")),
    "nginx": (r"nginx", ("nginx -v",)),
    "kernel": (r"kernel|linux|uname|内核", ("uname -a",)),
    "OS": (
        r"os|operating system|distro(?:bution)?|debian|ubuntu|操作系统|系统版本|发行版",
        ("cat /etc/os-release",),
    ),
    "Redis": (r"redis", ("redis-server --version", "redis-cli --version")),
    "MySQL": (r"mysql|mariadb", ("mysql --version",)),
    "Docker": (r"docker", ("docker --version",)),
    "Node.js": (r"node(?:\.?js)?", ("node --version",)),
    "Java": (r"java|jdk|jre", ("java -version",)),
    "Git": (r"git", ("git --version",)),
    "OpenSSL": (r"openssl", ("openssl version",)),
    "Apache": (r"apache2?|httpd", ("apache2 -v", "httpd -v")),
    "Bash": (r"bash", ("bash --version",)),
}
_BY_DEFAULT = ("OS", "kernel", "Python", "OpenSSH")

_SERVICES = {  # the words for it -> unit and what its process is called
    r"nginx": "nginx",
    r"postgres(?:ql)?": "postgresql",
    r"sshd?|open ?ssh": "ssh",
    r"redis": "redis-server",
    r"mysql|mariadb": "mysql",
    r"docker": "docker",
    r"cron": "cron",
    r"apache2?|httpd": "apache2",
    r"haproxy": "haproxy",
    r"rsyslog": "rsyslog",
}
_NAMED_SERVICE = re.compile(
    r"(?<![\w.-])([A-Za-z][\w@.-]{1,60}?)(?:\.service\b|\s+(?:service|daemon)\b|\s*服务)"
    r"|\bservice\s+([A-Za-z][\w@.-]{1,60})|服务\s*([A-Za-z][\w@.-]{1,60})",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"\b(running|run|up|down|alive|dead|active|status|stopped|failed|crash\w*|work\w*)\b|运行|状态|挂了|启动了|停了|正常|活着",
    re.IGNORECASE,
)
_NO_SERVICE = re.compile(
    r"the|an?|any|all|which|what|every|each|failed|some|this|that|is|are|of|and|or|system|no|my|our|on|in|for|status",
    re.IGNORECASE,
)
_RUNNING_TOO = re.compile(r"\b(running|down|alive|status)\b|\bis \S+ up\b|状态|挂了|在运行吗", re.IGNORECASE)


def topics_of(question: str) -> tuple[Topic, ...]:
    """The topics a question names, in the order of its words."""
    found: dict[Topic, int] = {}
    for topic, words in _WORDS:
        if match := words.search(question):
            found[topic] = match.start()
    state = _RUNNING_TOO if Topic.VERSIONS in found else _STATE
    if services_of(question) and state.search(question):
        found.setdefault(Topic.SERVICE, len(question))
    if not found and _OVERVIEW.search(question):
        return (Topic.DISK, Topic.MEMORY, Topic.LOAD, Topic.SERVICE)
    return tuple(sorted(found, key=lambda topic: found[topic]))


def programs_of(question: str) -> tuple[str, ...]:
    """The programs named, in the order of the words; a usual few when none is."""
    found: dict[str, int] = {}
    for program, (words, _) in PROGRAMS.items():
        if match := _word(words).search(question):
            found[program] = match.start()
    return tuple(sorted(found, key=lambda p: found[p])) or _BY_DEFAULT


def services_of(question: str) -> tuple[str, ...]:
    """The units named, known or said to be a service."""
    found = {unit: m.start() for words, unit in _SERVICES.items() if (m := _word(words).search(question))}
    known = "|".join(_SERVICES)
    for match in _NAMED_SERVICE.finditer(question):
        name = next(group for group in match.groups() if group)
        if not _NO_SERVICE.fullmatch(name) and not re.fullmatch(known, name, re.IGNORECASE):
            found[name] = match.start()
    return tuple(sorted(found, key=lambda unit: found[unit]))


def _word(words: str) -> re.Pattern[str]:
    """As a word of its own; Chinese characters may stand right beside it."""
    return re.compile(rf"(?<![A-Za-z0-9_/-])(?:{words})(?![A-Za-z0-9_/-])", re.IGNORECASE)


_PS_MEMORY = ("ps aux --sort=-%mem", "ps -eo pid,comm,%cpu,%mem --sort=-%mem", "ps aux")
_PS_CPU = ("ps -eo pid,comm,%cpu,%mem --sort=-%cpu", "ps aux")

_NEEDS: dict[Topic, tuple[Need, ...]] = {
    Topic.DISK: (
        Need(Topic.DISK, "disk.space", ("df -h",)),
        Need(Topic.DISK, "disk.inodes", ("df -i",)),
        Need(Topic.DISK, "disk.logs", ("ls -lhS /var/log",), deeper=True),
    ),
    Topic.MEMORY: (
        Need(Topic.MEMORY, "memory.use", ("free -m", "cat /proc/meminfo")),
        Need(Topic.MEMORY, "memory.top", _PS_MEMORY),
        Need(Topic.MEMORY, "load.vmstat", ("vmstat 1 2",), deeper=True),
    ),
    Topic.LOAD: (
        Need(Topic.LOAD, "load.average", ("uptime", "cat /proc/loadavg")),
        Need(Topic.LOAD, "load.cores", ("nproc", "lscpu")),
        Need(Topic.LOAD, "load.top", _PS_CPU),
        Need(Topic.LOAD, "load.vmstat", ("vmstat 1 2",), deeper=True),
    ),
    Topic.SERVICE: (
        Need(Topic.SERVICE, "service.failed", ("systemctl --failed --no-pager", "ps aux")),
        Need(Topic.SERVICE, "service.errors", ("journalctl -p err -n 50 --no-pager",), deeper=True),
    ),
    Topic.LOGS: (
        Need(
            Topic.LOGS,
            "logs.errors",
            (
                "journalctl -p err -n 50 --no-pager",
                "tail -n 100 /var/log/syslog",
                "tail -n 100 /var/log/messages",
                "dmesg",
            ),
        ),
        Need(Topic.LOGS, "logs.kernel", ("dmesg",), deeper=True),
    ),
    Topic.NETWORK: (
        Need(Topic.NETWORK, "network.ports", ("ss -tln", "netstat -tln", "cat /proc/net/tcp")),
        Need(Topic.NETWORK, "network.summary", ("ss -s",), deeper=True),
    ),
}


def needs_of(topics: tuple[Topic, ...], question: str) -> tuple[Need, ...]:
    """All that must be known for these topics, the deeper needs at the end."""
    out: dict[tuple[str, str], Need] = {}
    for topic in topics:
        for need in _needs_of(topic, question):
            out.setdefault((need.key, need.name), need)
    return tuple(sorted(out.values(), key=lambda need: need.deeper))


def _needs_of(topic: Topic, question: str) -> list[Need]:
    if topic is Topic.VERSIONS:
        named = programs_of(question)
        rest = [program for program in _BY_DEFAULT if program not in named]
        return [Need(topic, "version", PROGRAMS[p][1], name=p, deeper=p in rest) for p in (*named, *rest)]
    if topic is Topic.SERVICE and (units := services_of(question)):
        return [*(service(unit) for unit in units), *(replace(need, deeper=True) for need in _NEEDS[topic])]
    return list(_NEEDS[topic])


def service(unit: str) -> Need:
    """How one unit is; where systemd does not answer, the processes tell."""
    return Need(Topic.SERVICE, "service.unit", (f"systemctl status {unit} --no-pager", "ps aux"), name=unit)
