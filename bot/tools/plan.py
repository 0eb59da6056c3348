"""The tool plan: the open task's steps and the next one, kept so that "continue" knows where it stopped."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, field_validator

from bot.journal import Journal
from bot.tools.toolbox import Outcome, Result
from storage.records import ToolCall


class PlanStep(BaseModel):
    step: str = Field(min_length=1, max_length=300)
    state: Literal["todo", "doing", "done", "dropped"] = "todo"


class PlanArguments(BaseModel):
    steps: list[PlanStep] = Field(max_length=20)
    next_step: str = Field("", max_length=300)

    @field_validator("steps", mode="before")
    @classmethod
    def _words_are_steps(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        return [{"step": item} if isinstance(item, str) else item for item in value]


class PlanTool:
    """See the module's docstring."""

    name = "plan"
    description = "Write down or update the plan of a task that takes several steps."
    Arguments = PlanArguments

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def hosts(self, _arguments: PlanArguments) -> tuple[str, ...]:
        return ()

    async def run(self, _call: ToolCall, arguments: PlanArguments) -> Outcome:
        await self._journal.plan(
            tuple((step.step, step.state) for step in arguments.steps), arguments.next_step
        )
        return Result("noted")
