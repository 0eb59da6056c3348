"""The model's tools: names to code, arguments checked, errors that teach, calls side by side.

A tool is an object with `name`, `description`, `Arguments` (pydantic), `hosts(arguments)` and `run(call, arguments)`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from bot import log
from bot.errors import OpsthreadError
from bot.model import ToolSchema
from bot.outside import line
from storage.errors import DatabaseUnavailable, LeaseLost, StorageError
from storage.records import ToolCall

NOT_RECORDED = "not run: the audit log is unavailable, and nothing is run without it. Try again later."

logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Result:
    """What the model gets to read for a call."""

    text: str


@dataclass(frozen=True, slots=True)
class Pending:
    """The call has no result yet: a person has to answer these approvals first."""

    approvals: tuple[int, ...]


Outcome = Result | Pending


A = TypeVar("A", bound=BaseModel)


class Tool(Protocol[A]):
    """One tool. run must be safe to call again for the same call id: a resumed turn does so."""

    name: str
    description: str
    Arguments: type[A]

    def hosts(self, arguments: A) -> tuple[str, ...]: ...

    async def run(self, call: ToolCall, arguments: A) -> Outcome: ...


class Toolbox:
    """All tools of one turn."""

    def __init__(self, tools: Sequence[Tool[Any]]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.schemas: tuple[ToolSchema, ...] = tuple(_schema(tool) for tool in tools)

    async def run_all(
        self, calls: Sequence[ToolCall], done: Callable[[ToolCall, Outcome], Awaitable[None]]
    ) -> None:
        """Run calls side by side; calls that share a host run one after the other, in order.

        `done` is awaited for each as it ends. Raises LeaseLost.
        """
        running: list[tuple[frozenset[str], asyncio.Task[None]]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    hosts = self._hosts(call)
                    before = [task for used, task in running if used & hosts]
                    running.append((hosts, group.create_task(self._one(call, before, done))))
        except* LeaseLost as lost:
            raise LeaseLost(str(lost.exceptions[0])) from None

    async def _one(
        self,
        call: ToolCall,
        before: Sequence[asyncio.Task[None]],
        done: Callable[[ToolCall, Outcome], Awaitable[None]],
    ) -> None:
        if before:
            await asyncio.wait(before)
        await done(call, await self.run(call))

    async def run(self, call: ToolCall) -> Outcome:
        """One call. Whatever goes wrong in a tool becomes a result that the model can act on."""
        tool = self._tools.get(call.name)
        if tool is None:
            return Result(
                f'there is no tool "{line(call.name, 80)}"; the tools are: {", ".join(self._tools)}'
            )
        arguments = _arguments(tool, call)
        if isinstance(arguments, Result):
            return arguments
        try:
            return await tool.run(call, arguments)
        except LeaseLost:
            raise
        except DatabaseUnavailable:
            return Result(NOT_RECORDED)
        except (OpsthreadError, StorageError) as error:
            return Result(line(f"not run: {error}"))
        except Exception:
            logger.exception("tool failed", tool=call.name)
            return Result(
                f"the tool {call.name} failed inside; this is a fault of opsthread, not of the call"
            )

    def _hosts(self, call: ToolCall) -> frozenset[str]:
        tool = self._tools.get(call.name)
        if tool is None:
            return frozenset()
        arguments = _arguments(tool, call)
        return frozenset() if isinstance(arguments, Result) else frozenset(tool.hosts(arguments))


def _arguments(tool: Tool[Any], call: ToolCall) -> BaseModel | Result:
    try:
        parsed = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        return Result(
            f"the arguments of {call.name} are not valid JSON ({error}); send one JSON object: {_shape(tool)}"
        )
    if not isinstance(parsed, dict):
        return Result(f"the arguments of {call.name} must be one JSON object: {_shape(tool)}")
    try:
        return tool.Arguments.model_validate(parsed)  # type: ignore[no-any-return]
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()
        )
        return Result(f"wrong arguments for {call.name}: {faults}. It takes: {_shape(tool)}")


def _shape(tool: Tool[Any]) -> str:
    """`{"hosts": […], "command": "…"}` in a few words."""
    fields = tool.Arguments.model_json_schema().get("properties", {})
    return "{" + ", ".join(f'"{name}"' for name in fields) + "}"


def _schema(tool: Tool[Any]) -> ToolSchema:
    parameters = tool.Arguments.model_json_schema()
    parameters.pop("title", None)
    parameters.pop("description", None)
    for field in parameters.get("properties", {}).values():
        field.pop("title", None)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def call_key(call: ToolCall) -> tuple[str, str]:
    """The same call has the same key, however its JSON is written."""
    try:
        return call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return call.name, call.arguments
