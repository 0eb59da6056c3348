"""The ReAct loop on one page: settle the open calls, ask the model, until it answers.

History is the only state. A turn resumed after a crash, an approval or a restart is the same call again on
the stored history.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bot.agent.budget import StickyCut
from bot.agent.history import open_calls, unique_ids
from bot.agent.milestones import from_reply
from bot.agent.request import Prompt
from bot.errors import ContextTooLong
from bot.events import StepStarted
from bot.journal import Journal
from bot.model import ChatMessage, Model, Reply
from bot.tools.toolbox import Outcome, Pending, Result, Toolbox, call_key
from storage.records import Message, MilestoneSource, Role, ToolCall
from storage.storable import storable

REPEATS = 2  # so often the same call may run in a turn
ANSWER_NOW = (
    "opsthread: {limit} reached. Do not call tools any more. Answer now with what you know, say what you would do "
    'next, and that "continue" goes on.'
)


class WaitForApproval(Exception):
    """The turn cannot go on until people have answered; nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one turn. steps: replies of the model. seconds: since this process took the turn up."""

    steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's last words. limit: which limit ended the turn, or ""."""

    message: Message
    limit: str


@dataclass(slots=True)
class Loop:
    """One turn's loop over its history."""

    messages: list[Message]
    turn_id: int
    model: Model
    toolbox: Toolbox
    prompt: Prompt
    journal: Journal
    limits: Limits
    live: Callable[[], Callable[[str], None]]  # a new view of a reply while it is being written
    steps: int = 0
    _cut: StickyCut = field(default_factory=StickyCut)
    _began: float = field(default_factory=time.monotonic)

    async def run(self) -> Answer:
        """Until the model answers. Raises WaitForApproval, ModelError, LeaseLost."""
        while True:
            await self.settle()
            limit = self._limit()
            self.steps += 1
            await self.journal.show(
                StepStarted(step=min(self.steps, self.limits.steps), max_steps=self.limits.steps)
            )
            reply = await self._ask(limit)
            message = self._message(reply)
            if limit or not message.tool_calls:
                return Answer(_ended(message, reply, limit), limit)
            await self.add(message)
            for kind, text in from_reply(reply.text):
                await self.journal.milestone(kind, text, MilestoneSource.RULE)

    async def settle(self) -> None:
        """Give every call of this turn that has no result one. Raises WaitForApproval when people must decide."""
        calls = [each.call for each in open_calls(self.messages) if each.turn_id == self.turn_id]
        waiting: list[Pending] = []

        async def done(call: ToolCall, outcome: Outcome) -> None:
            match outcome:
                case Pending():
                    waiting.append(outcome)
                case Result(text=text):
                    await self.add(Message(role=Role.TOOL, text=text, tool_call_id=call.id))

        repeated = [call for call in calls if self._runs_before(call) >= REPEATS]
        for call in repeated:
            text = f"you made this very call {REPEATS} times in this turn; use its results, or try something else"
            await done(call, Result(text))
        await self.toolbox.run_all([call for call in calls if call not in repeated], done)
        if waiting:
            raise WaitForApproval

    async def add(self, message: Message) -> None:
        """Append to the history, and go on with what the journal keeps: it takes the secrets out."""
        self.messages.append(await self.journal.message(message))

    async def _ask(self, limit: str) -> Reply:
        request = self._request(limit)
        while True:
            try:
                return await self.model.reply(request, self.toolbox.schemas, on_text=self.live())
            except ContextTooLong:
                shorter = self._shorter(request, limit)
                if shorter is None:
                    raise
                request = shorter

    def _request(self, limit: str) -> list[ChatMessage]:
        last_words = ANSWER_NOW.format(limit=limit) if limit else ""
        return self.prompt.request(self.messages, self._cut, last_words=last_words)

    def _shorter(self, request: list[ChatMessage], limit: str) -> list[ChatMessage] | None:
        """The next shorter request; the turn's later ones are as short. None: there is none."""
        while self._cut.tighten():
            if (shorter := self._request(limit)) != request:
                return shorter
        return None

    def _message(self, reply: Reply) -> Message:
        taken = {call.id for m in self.messages for call in m.tool_calls}
        sent = [replace(call, id=storable(call.id)) for call in reply.tool_calls]  # before they are compared
        calls = unique_ids(sent, taken=taken, seed=f"{self.turn_id}:{len(self.messages)}")
        return Message(role=Role.ASSISTANT, text=reply.text, tool_calls=calls)

    def _limit(self) -> str:
        if self.steps >= self.limits.steps:
            return f"the limit of {self.limits.steps} steps is"
        if time.monotonic() - self._began > self.limits.seconds:
            return f"the limit of {self.limits.seconds:.0f} seconds is"
        return ""

    def _runs_before(self, call: ToolCall) -> int:
        """How often this turn has had a result for the same call before."""
        answered = {m.tool_call_id for m in self.messages if m.role is Role.TOOL}
        earlier = Counter(
            call_key(c)
            for m in self.messages
            if m.turn_id == self.turn_id
            for c in m.tool_calls
            if c.id in answered
        )
        return earlier[call_key(call)]


def _ended(message: Message, reply: Reply, limit: str) -> Message:
    """The answer to keep: never empty, without calls that will not run, honest about being cut."""
    text = message.text.strip()
    if not text:
        text = (
            f'I stopped because {limit} reached, and have no summary. Say "continue" and I go on from here.'
            if limit
            else 'The model gave an empty answer. Say "continue" to try again.'
        )
    elif reply.finish == "length":
        text += '\n\n(The answer was cut at the model\'s own length limit; say "continue" for the rest.)'
    if limit and limit.split(" is", maxsplit=1)[0] not in text:
        text += f'\n\n(Stopped because {limit} reached. Say "continue" to go on.)'
    return Message(role=Role.ASSISTANT, text=text)
