"""The requests of one turn: what stays the same first, then the history as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.agent.budget import StickyCut, speaks, summary_room, tokens
from bot.agent.history import repair, to_wire, window
from bot.agent.summary import summary
from bot.model import ChatMessage
from bot.outside import quiet
from storage.records import Message

WINDOW = 50  # messages of history in a turn's first request, unless the turn before is longer
LEAST_ROOM = 500  # tokens for the history, whatever else is in the prompt

GO_ON = "[opsthread] That was the answer to a later message. Go on with the one before it."


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of a turn's requests that do not change from step to step."""

    system: str
    preface: str
    turn_id: int
    max_tokens: int

    def request(
        self, messages: Sequence[Message], cut: StickyCut, *, last_words: str = ""
    ) -> list[ChatMessage]:
        """The messages of one request. last_words: our instruction to end, put behind the newest message.

        cut: the turn's own, the same for all of its requests. The history is only ever added to, so places in
        it, repaired or not, stay what they were.
        """
        whole = repair(messages)
        opening = self._opening(whole)
        begins = opening + 1 - len(window(whole[: opening + 1], WINDOW))
        room = max(self._room(cut.shrink), LEAST_ROOM)
        decided = cut.over(whole, begins=begins, opening=opening, room=room)
        history = to_wire(decided.shown(whole), turn_id=self.turn_id, preface=self.preface)
        wire = [
            {"role": "system", "content": self.system},
            *_after(summary(whole[: decided.begins], summary_room(room)), history),
        ]
        if wire[-1]["role"] == "assistant":  # another turn was answered while this one lay still
            wire.append({"role": "user", "content": GO_ON})
        if last_words:
            _append(wire, last_words)
        return wire

    def _room(self, shrink: int) -> int:
        return self.max_tokens // shrink - tokens(self.system) - tokens(self.preface)

    def _opening(self, messages: Sequence[Message]) -> int:
        """Where the question of the turn stands; what a person said last when it is not there."""
        spoken = [i for i, m in enumerate(messages) if speaks(m)]
        mine = [i for i in spoken if messages[i].turn_id == self.turn_id]
        return (mine or spoken[-1:] or [0])[0]


def _after(earlier: str, history: list[ChatMessage]) -> list[ChatMessage]:
    """The history behind its summary, in the message it begins with, which is a person's.

    The summary changes only with the cut, and so does the message it stands in: in front of it the prompt stays
    the same, behind it too while the cut holds. With the blocks of the turn it would stand behind what it tells
    of; in the system message a new cut would change that too. A message of its own would put two of a user in a
    row, which templates of some models refuse.
    """
    if not earlier:
        return history
    first, *others = history
    return [{**first, "content": f"{quiet(earlier)}\n\n{first['content']}"}, *others]


def _append(wire: list[ChatMessage], words: str) -> None:
    """Put words of ours behind the newest result, or in front of the newest question."""
    newest = wire[-1]
    if newest["role"] == "tool":
        wire[-1] = {**newest, "content": f"{newest['content']}\n\n({words})"}
    else:
        wire[-1] = {**newest, "content": f"({words})\n\n{newest['content']}"}
