"""200 kB of hostile lines, commands and words are read in a time that a pattern going back and forth would not keep.

Processor time, with a bound far above what is used (under 1 s on a slow machine), so that load does not fail it.
"""

from __future__ import annotations

import time

import pytest

from bot.memory import Heard, extract
from storage.records import Role

MOST_SECONDS = 10.0
SIZE = 200_000
COMMANDS = [
    "dpkg -l", "rpm -qa", "apk info -v", "yum list nginx", "apt list", "apt-cache policy nginx", "pip3 list",
    "npm ls -g", "snap list", "ss -ltnp", "netstat -ltnp", "ip addr", "ip route", "nginx -T",
    "redis-cli CONFIG GET a", "redis-cli INFO", "sysctl -a", "ulimit -a",
    "psql -c 'select name, setting from pg_settings'", "mysql -e 'show variables'", "ps aux", "df -hT", "free -m",
    "lscpu", "lsblk", "mount", "hostnamectl", "docker ps", "docker version",
    "docker ps --format 'table {{.ID}}\\t{{.Ports}}\\t{{.Names}}\\t{{.Image}}'", "kubectl get nodes",
    "kubectl version", "kubectl version -o json", "kubectl version -o yaml", "helm list", "uname -a", "php -v",
    "frobnicate --version", "gcc --version", "java -version", "mongod --version", "cat /etc/os-release",
    "grep max /etc/redis/redis.conf",
]  # fmt: skip
LINES = [
    "a", " ", "1.", "1 ", "- ", "x: ", "| 1 ", "[::]:1 ", "tcp LISTEN 0 0 *:1 ", "java -Xmx1 ", "ii  a-1", "a-1-",
    "/a ", "a   ", '"a": "', "0-0-", "\t", "=", 'users:(("', "Client Version: version.Info{", "gcc (a) ",
    "inet 1.1.1.1/1 ", "max_connections | ", "{{.Names}}", "PHP 1 (",
]  # fmt: skip
WORDS = [
    "always ", "from now on ", "please and ", "you can ", "no more ", "when x, ", "unless I ", "so, ",
    "not so short ", "use a not ", "as a rule, ", "before you restart any ", "can you ", "forget that, ",
    "no longer ", "default ", "a, ", "alwyas ", "they said ", "because ", "might be ", "以后", "别再", "我说的",
    "记得，", "没我同意", "统一用", "被", "可能是", "没特别说", "一般都用", "，", "查时", "用 a 不用 b", "问题在",
    "從現在起", "“",
]  # fmt: skip
TYPED = [
    "psql -c ", "redis-cli info ", "grep a ", "-c show ", "kubectl -n a ", "systemctl a ", "mysql -e ", "a=b ",
    "sudo ", "docker ps --format {{.Names}}\\t ", "cat -a ", "; ", "| head ", "' ", '" ', "echo a; ", "env A=1 ",
    "> /dev/null ", "2>&1 ", "timeout 1 ", "/a/", "journalctl --",
]  # fmt: skip


def filled(piece: str, width: int) -> str:
    line = (piece * width)[:width]
    return "\n".join([line] * (SIZE // width))


def spent(messages: list[Heard]) -> float:
    began = time.process_time()
    extract(messages)
    return time.process_time() - began


@pytest.mark.parametrize("command", COMMANDS)
def test_of_lines_that_a_command_printed(command: str) -> None:
    for width in (499, SIZE):
        printed = [filled(piece, width) for piece in LINES]
        heard = [Heard(Role.TOOL, text, host="h", command=command, exit_status=0) for text in printed]
        assert spent(heard) < MOST_SECONDS


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
@pytest.mark.parametrize("piece", WORDS, ids=str.strip)
def test_of_what_is_said(role: Role, piece: str) -> None:
    ran = Heard(Role.TOOL, "x", host="h", command="df -h", exit_status=0)
    for width in (399, SIZE):
        heard = [Heard(Role.USER, "why is web-1 slow?"), ran, Heard(role, filled(piece, width), "U1")]
        assert spent(heard) < MOST_SECONDS


@pytest.mark.parametrize("piece", TYPED)
def test_of_commands(piece: str) -> None:
    for command in (piece * 90, (piece * 2_000)[:1_999], piece * 20_000, f"{piece * 200}x"):
        ran = Heard(Role.TOOL, "x 1.2.3", host="h", command=command, exit_status=0)
        concluded = Heard(Role.ASSISTANT, "The cause is the disk. I restarted it.")
        assert spent([Heard(Role.USER, "why is web-1 slow?"), ran, concluded]) < MOST_SECONDS
