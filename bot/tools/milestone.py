"""The tool milestone: the model tells the people something worth a notification."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from bot.journal import Journal
from bot.tools.toolbox import Outcome, Result
from storage.records import MilestoneKind, MilestoneSource, ToolCall


class MilestoneArguments(BaseModel):
    kind: Literal["finding", "root_cause", "change", "recovered", "blocked"]
    text: str = Field(min_length=1, max_length=500, description="one sentence, with the figures that show it")


class MilestoneTool:
    """See the module's docstring."""

    name = "milestone"
    description = (
        "Post a milestone to the thread: a first finding, the root cause, a change, recovery, or blocked."
    )
    Arguments = MilestoneArguments

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def hosts(self, _arguments: MilestoneArguments) -> tuple[str, ...]:
        return ()

    async def run(self, _call: ToolCall, arguments: MilestoneArguments) -> Outcome:
        posted = await self._journal.milestone(
            MilestoneKind(arguments.kind), arguments.text.strip(), MilestoneSource.TOOL
        )
        return Result("posted" if posted else "not posted: a milestone of this kind came just before")
