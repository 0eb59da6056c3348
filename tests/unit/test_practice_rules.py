"""The practice model's rules without HTTP: what questions mean, what output says, and that it always ends."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from bot.demo.practice import output
from bot.demo.practice.intents import change_of, literal_command, named_hosts, unknown_host, wants_to_continue
from bot.demo.practice.reading import LONG, Host, read
from bot.demo.practice.thinking import next_reply
from bot.demo.practice.topics import PROGRAMS, Topic, needs_of, programs_of, service, services_of, topics_of
from bot.policy.judge import judge
from bot.policy.rules import load_rules
from storage.records import Decision
from tests.fakes.model import violations_of

HOSTS = (Host("web-1", ("role=web", "env=prod")), Host("web-10", ("role=web",)), Host("db-1", ("env=prod",)))


@pytest.mark.parametrize(
    ("question", "topics"),
    [
        ("is the disk filling up, and which versions of python run here?", (Topic.DISK, Topic.VERSIONS)),
        ("内存够吗？磁盘呢？", (Topic.MEMORY, Topic.DISK)),
        ("why is it so slow", (Topic.LOAD,)),
        ("is postgres down?", (Topic.SERVICE,)),
        ("nginx 挂了吗", (Topic.SERVICE,)),
        ("any disk errors in the journal", (Topic.DISK, Topic.LOGS)),
        ("errors in the kernel log", (Topic.LOGS,)),
        ("is everything ok?", (Topic.DISK, Topic.MEMORY, Topic.LOAD, Topic.SERVICE)),
        ("which version of nginx is there, and is nginx running", (Topic.VERSIONS, Topic.SERVICE)),
        ("tell me a joke", ()),
    ],
)
def test_topics_are_found_in_the_order_of_the_words(question: str, topics: tuple[Topic, ...]) -> None:
    assert topics_of(question) == topics


def test_every_command_it_chooses_by_itself_is_one_the_gate_allows() -> None:
    every = needs_of(tuple(Topic), " ".join(PROGRAMS)) + needs_of(tuple(Topic), "") + (service("nginx"),)
    commands = {command for need in every for command in need.commands}
    rules = load_rules()
    assert len(commands) > 40
    for command in sorted(commands):
        verdict = judge(command, rules, host_name="demo", sudo_allowed=False, targets=())
        assert verdict.decision is Decision.ALLOW, f"{command}: {verdict.reason}"


def test_programs_and_services_are_read_from_the_question() -> None:
    assert programs_of("python3和openssh的版本") == ("Python", "OpenSSH")
    assert programs_of("what versions run here") == ("OS", "kernel", "Python", "OpenSSH")
    assert services_of("is the app-workers service up, and redis?") == ("app-workers", "redis-server")
    assert services_of("服务 grafana-server 的状态") == ("grafana-server",)
    assert services_of("is the service up") == ()


def test_hosts_are_named_by_name_label_or_all() -> None:
    assert named_hosts("disk on WEB-1.", HOSTS) == ("web-1",)
    assert named_hosts("看看web-10的磁盘", HOSTS) == ("web-10",)
    assert named_hosts("disk where env=prod", HOSTS) == ("web-1", "db-1")
    assert named_hosts("disk on all hosts", HOSTS) == ("web-1", "web-10", "db-1")
    assert named_hosts("disk on web-1.example.com", HOSTS) == ()
    assert unknown_host("disk on web-2?", HOSTS) == "web-2"
    assert unknown_host("在 db-9 上看磁盘", HOSTS) == "db-9"
    assert unknown_host("disk on web-1?", HOSTS) is None


@pytest.mark.parametrize("question", ["continue", "Please continue.", "go on", "继续", "请继续", "接着查"])
def test_going_on_is_understood(question: str) -> None:
    assert wants_to_continue(question)


@pytest.mark.parametrize("question", ["discontinued?", "should I continue?", "the continuous disk load"])
def test_other_words_are_not_taken_for_going_on(question: str) -> None:
    assert not wants_to_continue(question)


def test_half_a_command_is_never_run() -> None:
    assert literal_command("run `rm -rf /tmp/x`") == "rm -rf /tmp/x"
    assert literal_command("run the usual checks") is None
    assert literal_command("what is in `the box`?") is None
    assert literal_command(("run echo " + "x" * LONG)[:LONG]) is None
    request = {
        "messages": [{"role": "user", "content": "run `echo " + "x" * LONG + "`"}],
        "tools": [_tool("run_command")],
    }
    assert next_reply(read(request)).calls == ()


def test_a_change_needs_an_order_and_a_unit() -> None:
    change = change_of("the site is down; restart php8.2-fpm")
    assert change is not None
    assert change.command == "systemctl restart php8.2-fpm"
    assert change_of("restart it") is None
    assert change_of("nginx was restarted by the stop script") is None


def test_figures_are_read_from_the_usual_programs() -> None:
    assert output.load(" 10:00 up 1 day, load averages: 1.50 2.25 3.00") == (1.5, 2.25, 3.0)
    assert output.load("10:00:01 up 2 min, 0 users, load average: 0,15, 0,10, 0,09") == (0.15, 0.10, 0.09)
    assert output.cores("Architecture: x86_64\nCPU(s):                  8\n") == 8
    assert output.failed_units("0 loaded units listed.") == []
    assert output.failed_units("Failed to connect to bus") is None
    assert output.ports("State Local Address:Port\n") == []
    assert output.ports("nothing of the kind") is None
    old_free = output.memory(
        "             total       used       free\nMem:          1000        800        200\n"
    )
    assert old_free is not None
    assert (old_free.total, old_free.available, old_free.swap_total) == (1000, 200, 0)


@pytest.mark.parametrize(
    ("program", "text", "said"),
    [
        ("OpenSSH", "OpenSSH_9.2p1 Debian-2+deb12u3, OpenSSL 3.0.14", "OpenSSH 9.2p1"),
        ("nginx", "nginx version: nginx/1.22.1", "nginx 1.22.1"),
        ("PostgreSQL", "postgres (PostgreSQL) 16.1", "PostgreSQL 16.1"),
        ("Java", 'openjdk version "17.0.9" 2023-10-17', "Java 17.0.9"),
        ("Node.js", "v20.1.0", "Node.js v20.1.0"),
        ("MySQL", "mysql  Ver 8.0.35 for Linux", "MySQL 8.0.35"),
        ("Redis", "Redis server v=7.0.15 sha=00000000:0", "Redis 7.0.15"),
        ("Python", "something odd 9.9", "Python: something odd 9.9"),
        ("Python", "no figures at all", ""),
    ],
)
def test_versions_are_read_as_programs_print_them(program: str, text: str, said: str) -> None:
    assert output.version(program, text) == said


WORDS = [
    "disk",
    "memory",
    "load",
    "restart",
    "stop",
    "nginx",
    "the",
    "service",
    "on",
    "web-1",
    "and",
    "run",
    "`df",
    "-h`",
    "`x",
    "errors",
    "log",
    "磁盘",
    "继续",
    "重启",
    "运行",
    "continue",
    "version",
    "python",
    "(",
    ")",
    ",",
    ".",
    "\n",
    "\n\n",
    "web-2",
    "all",
    "env=prod",
    "in",
    "status",
    "echo",
    "```",
    "在",
    "上",
    "服务",
    "is",
    "up",
]
OUTPUTS = (
    "",
    "1 1 " * 900,
    " " * 5_000,
    "LISTEN " * 500,
    "Active: x",
    "### web-1 · exit 0 · 0 s\n" * 50,
    "Mem: 1 2",
)
HEADS = ("exit 0 · 0.1 s", "exit 127 · 0 s", "refused: x", "unknown: y", "exit", "", "exit -1")
WHOLE = ("not run: x", "interrupted: y", "", "you made this very call 2 times")
SYSTEMS = (
    "x",
    "Hosts you may use for this person:\n- web-1 env=prod\n- web-2",
    "Hosts you may use:\n- web-1\n",
)


def _tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


TOOLS = [_tool(name) for name in ("run_command", "list_hosts", "milestone", "plan")]


@pytest.mark.parametrize("seed", range(60))
def test_any_conversation_comes_to_an_end_with_sound_requests(seed: int) -> None:
    dice = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "system", "content": dice.choice(SYSTEMS)}]
    for turn in range(3):
        question = " ".join(dice.choice(WORDS) for _ in range(dice.choice((1, 3, 8))))
        messages.append({"role": "user", "content": question.strip() or "?"})
        for step in range(15):
            assert violations_of({"model": "m", "messages": messages, "tools": TOOLS}) == []
            said = next_reply(read({"messages": messages, "tools": TOOLS}))
            messages.append({"role": "assistant", "content": said.text})
            if not said.calls:
                assert said.text
                break
            named = [
                (f"{turn}-{step}-{at}", name, arguments) for at, (name, arguments) in enumerate(said.calls)
            ]
            messages[-1]["tool_calls"] = [
                {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for i, name, arguments in named
            ]
            messages += [
                {"role": "tool", "tool_call_id": i, "content": _result(dice, arguments)}
                for i, _, arguments in named
            ]
        else:
            pytest.fail(f"no end: {question!r}")


def _result(dice: random.Random, arguments: dict[str, Any]) -> str:
    if "hosts" not in arguments:
        return "- web-1\n- web-2"
    if dice.random() < 0.1:
        return dice.choice(WHOLE)
    return "\n\n".join(
        f"### {host} · {dice.choice(HEADS)}\n{dice.choice(OUTPUTS)}" for host in arguments["hosts"]
    )
