"""What the practice model understands of a request: the question, the hosts, and what was run. Pure.

It knows only what a real model would know: the request's messages and tools.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

LONG = 4_000  # characters of a person's words that are looked at

Lang = Literal["en", "zh"]

_CJK = re.compile(r"[\u3400-\u9fff]")
_SPEAKER = re.compile(r"The message below is from [^\n]*\n\n")
_AUTHOR = re.compile(r"^\[[^\]\n]{1,80}\] ")
_OUR_BLOCK = re.compile(
    r"^(Earlier in this session|Plan so far:|Next step noted:|Milestones so far:|Said in the thread|Now: |\(opsthread)"
)
_HOST_LINE = re.compile(r"^[ \t]*[-*][ \t]+([A-Za-z0-9][\w.-]*)((?:[ \t]+[\w.-]+=\S*)*)[ \t]*$", re.MULTILINE)
_HOST_LIST = re.compile(r"^Hosts\b[^\n]*:\s*\n((?:\s*[-*] [^\n]*\n?)+)", re.MULTILINE)
_NOTE = re.compile(r"^\[opsthread\] ")  # the bot itself speaks
_LATER = "not run yet: people were asked"  # an approval was open; a note brings the outcome
_BLOCK = re.compile(r"^### (\S+) · (.*)$", re.MULTILINE)
_FRAME = re.compile(r"^\| ", re.MULTILINE)  # before each line that a host printed
_EXIT = re.compile(r"^exit (-?\d+)\b")


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    labels: tuple[str, ...] = ()  # `role=web`


@dataclass(frozen=True, slots=True)
class Ran:
    """One command on one host. exit None: it did not run or its end is unknown; problem says why."""

    host: str
    command: str
    exit: int | None
    stdout: str = ""
    stderr: str = ""
    problem: str = ""

    @property
    def output(self) -> str:
        """Both streams; some programs print their version on stderr."""
        return f"{self.stdout}\n{self.stderr}".strip()


@dataclass(frozen=True, slots=True)
class Talk:
    """A request, understood. now: runs of this turn. before: runs of earlier turns, oldest first."""

    question: str
    lang: Lang
    earlier: tuple[str, ...]  # earlier questions, oldest first
    hosts: tuple[Host, ...]
    now: tuple[Ran, ...]
    before: tuple[Ran, ...]
    called: frozenset[str]  # names of the tools this turn has called
    tools: frozenset[str]
    answer_now: bool  # a limit was reached: no more calls


def read(request: dict[str, Any]) -> Talk:
    """Understand a request; what it cannot read it passes over."""
    messages = [m for m in request.get("messages") or () if isinstance(m, dict)]
    asked = [i for i, m in enumerate(messages) if m.get("role") == "user" and not _NOTE.match(_content(m))]
    opened = [i for i in asked if _SPEAKER.search(_content(messages[i]))]  # the turn that is worked on
    at = (opened or asked or [len(messages)])[-1]
    question = _own_words(_content(messages[at]))[:LONG] if asked else ""
    turn = messages[at + 1 :]
    last = _content(messages[-1]) if messages else ""
    return Talk(
        question=question,
        lang="zh" if _CJK.search(question) else "en",
        earlier=tuple(_own_words(_content(messages[i]))[:LONG] for i in asked if i < at),
        hosts=_hosts(messages),
        now=_runs(turn),
        before=_runs(messages[:at]),
        called=frozenset(_function(call)[0] for m in turn for call in _calls(m)),
        tools=frozenset(_function(tool)[0] for tool in request.get("tools") or () if isinstance(tool, dict)),
        answer_now="Do not call tools any more" in last,
    )


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def _own_words(said: str) -> str:
    """The person's words: they stand at the end, after blocks of the bot's own."""
    marks = list(_SPEAKER.finditer(said))
    if marks:
        said = said[marks[0].end() :]
    paragraphs = said.strip().split("\n\n")
    while len(paragraphs) > 1 and _OUR_BLOCK.match(paragraphs[0]):
        paragraphs.pop(0)
    return _AUTHOR.sub("", "\n\n".join(paragraphs)).strip()


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [c for c in message.get("tool_calls") or () if isinstance(c, dict)]


def _function(holder: dict[str, Any]) -> tuple[str, str]:
    """Name and arguments of a call or a tool."""
    function = holder.get("function")
    if not isinstance(function, dict):
        return "", ""
    return str(function.get("name") or ""), str(function.get("arguments") or "")


def _hosts(messages: Sequence[dict[str, Any]]) -> tuple[Host, ...]:
    """From the newest result of list_hosts, else from the list in the system text."""
    names = {c.get("id"): _function(c)[0] for m in messages for c in _calls(m)}
    for message in reversed(messages):
        if message.get("role") == "tool" and names.get(message.get("tool_call_id")) == "list_hosts":
            found = _host_lines(_content(message))
            if found:
                return found
    system = "\n".join(_content(m) for m in messages if m.get("role") == "system")
    return tuple(host for block in _HOST_LIST.findall(system) for host in _host_lines(block))


def _host_lines(text: str) -> tuple[Host, ...]:
    return tuple(Host(name, tuple(labels.split())) for name, labels in _HOST_LINE.findall(text))


def _runs(messages: Sequence[dict[str, Any]]) -> tuple[Ran, ...]:
    """Every run_command of these messages with its result, in the order of the calls."""
    results = {m.get("tool_call_id"): _content(m) for m in messages if m.get("role") == "tool"}
    notes = [_content(m).partition("Outcome:\n")[2] for m in messages if _NOTE.match(_content(m))]
    out: list[Ran] = []
    for message in messages:
        for call in _calls(message):
            name, arguments = _function(call)
            if name != "run_command" or call.get("id") not in results:
                continue
            result = results[call["id"]]
            if result.startswith(_LATER):
                result = _outcome(arguments, notes) or result
            out += _of_call(arguments, result)
    return tuple(out)


def _outcome(arguments: str, notes: Sequence[str]) -> str:
    """The note that tells what became of a call after its approval; it shows the command in other quoting."""
    try:
        wanted = shlex.split(json.loads(arguments)["command"])
        return next(
            (n for n in notes if n.startswith("$ ") and shlex.split(n[2:].splitlines()[0]) == wanted), ""
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""


def _of_call(arguments: str, result: str) -> list[Ran]:
    try:
        parsed = json.loads(arguments)
        command, hosts = str(parsed["command"]), [str(h) for h in parsed["hosts"]]
    except (ValueError, TypeError, KeyError):
        return []
    blocks = _blocks(result, frozenset(hosts))
    missing = " ".join(result.split())[:300] or "no result"
    return [
        _block(host, command, *blocks[host])
        if host in blocks
        else Ran(host, command, None, problem=missing if not blocks else "no result for this host")
        for host in hosts
    ]


def _blocks(result: str, hosts: frozenset[str]) -> dict[str, tuple[str, str]]:
    """Headline and body by host. No line of an output looks like a headline: each is framed."""
    marks = [mark for mark in _BLOCK.finditer(result) if mark[1] in hosts]
    ends = [*(mark.start() for mark in marks[1:]), len(result)]
    return {
        mark[1]: (mark[2].strip(), result[mark.end() : ends[at]].strip("\n")) for at, mark in enumerate(marks)
    }


def _block(host: str, command: str, headline: str, body: str) -> Ran:
    ended = _EXIT.match(headline)
    body = "" if body.strip() == "(no output)" else body
    stdout, stderr = (_FRAME.sub("", each) for each in f"\n{body}".partition("\n--- stderr")[::2])
    if ended is None:
        return Ran(host, command, None, stdout.strip("\n"), stderr.strip("\n"), problem=headline)
    return Ran(host, command, int(ended[1]), stdout.strip("\n"), stderr.strip("\n"))
