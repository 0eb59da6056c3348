"""Plays turns with the practice model over HTTP: our client asks, scripted hosts answer, every request is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bot.model import Model
from storage.records import ToolCall
from tests.fakes.model import violations_of

Shell = Callable[[str, str], tuple[int, str, str] | str]
"""host, command -> exit, stdout, stderr; or the headline of a command that was not run; or, behind a `!`,
the whole result of the call."""

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("run_command", "list_hosts", "milestone", "plan")
]


@dataclass
class Play:
    """One session. listed: the system text names the hosts; else the model has to ask for them."""

    model: Model
    shell: Shell
    hosts: tuple[str, ...] = ("demo",)
    listed: bool = True
    history: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # of the last turn
    violations: list[str] = field(default_factory=list)
    steps: int = 0

    @property
    def commands(self) -> list[str]:
        return [arguments["command"] for name, arguments in self.calls if name == "run_command"]

    def named(self, tool: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.calls if name == tool]

    async def ask(self, question: str, *, preface: str = "", stop_after: int = 12) -> str:
        """One turn, to its answer. stop_after: the step at which the loop says that a limit is reached."""
        self.calls, self.steps = [], 0
        if self.history:  # older words carry their author, as the bot sends them
            last = next(m for m in reversed(self.history) if m["role"] == "user")
            last["content"] = f"[alice] {last['content'].rsplit(chr(10) * 2, 1)[-1]}"
        self.history.append({"role": "user", "content": f"{preface}\n\n{question}" if preface else question})
        while True:
            self.steps += 1
            assert self.steps <= 20, "the practice model does not come to an end"
            request = [{"role": "system", "content": self._system()}, *self.history]
            if self.steps >= stop_after:
                request[-1] = {
                    **request[-1],
                    "content": request[-1]["content"]
                    + "\n\n(opsthread: the limit of steps is reached. Do not call tools any more.)",
                }
            self.violations += violations_of({"model": "practice", "messages": request, "tools": TOOLS})
            reply = await self.model.reply(request, TOOLS)
            assert reply.finish == ("tool_calls" if reply.tool_calls else "stop")
            if not reply.tool_calls:
                self.history.append({"role": "assistant", "content": reply.text})
                return reply.text
            self.history.append(_asked(reply.text, reply.tool_calls))
            for call in reply.tool_calls:
                self.history.append({"role": "tool", "tool_call_id": call.id, "content": self._run(call)})

    def _system(self) -> str:
        if not self.listed:
            return "You are opsthread.\n\nHow you work\n- Think first."
        lines = "\n".join(f"- {name} role=demo" for name in self.hosts)
        return f"You are opsthread.\n\nHow you work\n- Think first.\n\nHosts you may use for this person:\n{lines}"

    def _run(self, call: ToolCall) -> str:
        arguments = json.loads(call.arguments)
        self.calls.append((call.name, arguments))
        if call.name == "list_hosts":
            return (
                "\n".join(f"- {name}" for name in self.hosts)
                or "this person may use no host from this channel"
            )
        if call.name != "run_command":
            return "noted"
        unknown = [host for host in arguments["hosts"] if host not in self.hosts]
        if unknown:
            return (
                f"not run: host `{unknown[0]}` is not in the inventory; you may use: {', '.join(self.hosts)}"
            )
        whole = self.shell(arguments["hosts"][0], arguments["command"])
        if isinstance(whole, str) and whole.startswith("!"):
            return whole[1:]
        blocks = [self._block(host, arguments["command"]) for host in arguments["hosts"]]
        return f"$ {arguments['command']}\n" + "\n\n".join(blocks)

    def _block(self, host: str, command: str) -> str:
        got = self.shell(host, command)
        if isinstance(got, str):
            return f"### {host} · {got}"
        status, stdout, stderr = got
        lines = [f"### {host} · exit {status} · 0.2 s"]
        lines += [stdout.rstrip("\n")] if stdout.strip() else []
        lines += ["--- stderr", stderr.rstrip("\n")] if stderr.strip() else []
        return "\n".join(lines if len(lines) > 1 else [*lines, "(no output)"])


def _asked(text: str, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in calls
        ],
    }


Start = Callable[..., Play]
"""Begins a play: with which hosts' answers, which hosts, listed or not."""
