"""How many tokens a text is likely to take, and what is cut when a history does not fit. Pure but for one class.

Older output shrinks to a line first, then older turns go to the summary, then output of the turn itself shrinks;
its question never does. A cut holds for the rest of the turn: providers keep what they have read of a prompt as
far as the next one begins the same, so a request may not be cut a little differently from the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.agent.shorten import digest, shorten
from storage.history import OURS
from storage.records import Message, Role

AIM = 0.75  # of the room, when it was exceeded
AHEAD = 12  # steps like those before for which a cut makes room, when they are large
LEAST = 0.3  # of the room stays used, however large the steps are
STEP = 20  # once results of the turn itself had to shrink, the next ones get this part of the room
SEEN = 2_000  # characters of a result that the model has not read yet, if it fits at all
SUMMARY = 1_500  # estimated tokens of the summary of what is left out, at most
TIGHTEST = 8  # the room is divided by this at most


def tokens(text: str) -> int:
    """A cautious estimate: three ASCII characters a token, one Chinese character a token."""
    wide = 0 if text.isascii() else sum(1 for char in text if ord(char) > 0x2E7F)
    return (len(text) - wide) // 3 + wide + 4


def cost(messages: Iterable[Message]) -> int:
    """Estimated tokens of all messages, their calls included."""
    return sum(_cost(message) for message in messages)


def _cost(message: Message) -> int:
    """What was imported is framed or set in on the wire, line by line."""
    frames = message.text.count("\n") if message.turn_id is None else 0
    return tokens(message.text) + frames + sum(tokens(call.arguments) for call in message.tool_calls)


def summary_room(room: int) -> int:
    """Of the room for a history, what its summary may take."""
    return min(SUMMARY, room // 5)


def speaks(message: Message) -> bool:
    """A person's words: a history may begin with them."""
    return message.role is Role.USER and message.author != OURS


@dataclass(frozen=True, slots=True)
class Cut:
    """What requests show of a history. begins: older messages are summarised. texts: shown instead, by place."""

    begins: int = 0
    texts: Mapping[int, str] = field(default_factory=dict)

    def shown(self, messages: Sequence[Message]) -> list[Message]:
        """The messages that a request holds."""
        return [
            replace(m, text=self.texts[i]) if i in self.texts else m
            for i, m in enumerate(messages)
            if i >= self.begins
        ]

    def size(self, messages: Sequence[Message], room: int) -> int:
        """Estimated tokens, with all that a summary may take when there is one."""
        return cost(self.shown(messages)) + (summary_room(room) if self.begins else 0)


class StickyCut:
    """The cut of one turn from request to request: made when the room is exceeded, kept until it is again."""

    def __init__(self) -> None:
        self.shrink = 1  # divides the tokens of a request since the endpoint said that one was too long
        self._cut = Cut()

    def tighten(self) -> bool:
        """Half the tokens from now on; False: it is the least already."""
        if self.shrink >= TIGHTEST:
            return False
        self.shrink *= 2
        return True

    def over(self, messages: Sequence[Message], *, begins: int, opening: int, room: int) -> Cut:
        """The cut for these messages, repaired; they are those of the time before and what was added.

        begins: where the window does. opening: the question of the turn; it and what follows it stay.
        """
        cut = replace(self._cut, begins=max(self._cut.begins, begins))
        if any(place > opening for place in cut.texts):
            cut = _smaller_step(messages, cut, opening=opening, room=room)
        if cut.size(messages, room) > room:
            cut = fit(messages, cut, opening=opening, room=room)
        self._cut = cut
        return cut


def _smaller_step(messages: Sequence[Message], cut: Cut, *, opening: int, room: int) -> Cut:
    """With the newest results, not shown before, shortened so far that steps of their size can follow."""
    newest = [i for i in range(_newest_step(messages, opening), len(messages)) if _is_output(messages[i])]
    most = max(room * 3 // STEP // max(len(newest), 1), SEEN)  # three characters a token
    texts = {
        i: shorten(messages[i].text, most)
        for i in newest
        if i not in cut.texts and len(messages[i].text) > most + 100
    }
    return replace(cut, texts={**cut.texts, **texts})


def fit(messages: Sequence[Message], cut: Cut, *, opening: int, room: int) -> Cut:
    """A cut that leaves room for further steps, so that the next one is some steps away.

    The results that the model reads next are touched only when they would not fit at all.
    """
    work = _Fitting(messages, cut, room)
    aim = _aim(messages, opening, room)
    newest = _newest_step(messages, opening)
    work.shorten(range(work.begins, opening), digest, aim)
    work.leave_out_turns(opening, int(room * AIM))
    work.shorten(range(opening, newest), lambda text: shorten(text, 600), aim)
    work.shorten(range(opening, newest), digest, aim)
    work.shorten(range(newest, len(messages)), lambda text: shorten(text, max(SEEN, room // 2)), room)
    work.shorten(range(newest, len(messages)), lambda text: shorten(text, 600), room)
    return Cut(work.begins, work.texts)


def _aim(messages: Sequence[Message], opening: int, room: int) -> int:
    """Tokens to cut down to."""
    steps = sum(1 for m in messages[opening:] if m.tool_calls)
    step = cost(messages[opening + 1 :]) // steps if steps else 0
    return max(min(int(room * AIM), room - AHEAD * step), int(room * LEAST))


def _newest_step(messages: Sequence[Message], opening: int) -> int:
    """Where the last reply with calls stands: its results are what the model reads next."""
    return max((i for i, m in enumerate(messages) if m.tool_calls and i > opening), default=len(messages))


class _Fitting:
    """A cut in the making, and the tokens it leaves."""

    def __init__(self, messages: Sequence[Message], cut: Cut, room: int) -> None:
        self.begins = cut.begins
        self.texts = dict(cut.texts)
        self._messages = messages
        self._summary = summary_room(room)
        self._size = cut.size(messages, room)

    def shorten(self, places: Iterable[int], how: Callable[[str], str], aim: int) -> None:
        """Outputs at these places, oldest first, until `aim` is met. A text is made from what was stored."""
        for i in places:
            if self._size <= aim:
                return
            message = self._messages[i]
            if not _is_output(message):
                continue
            now, shorter = self.texts.get(i, message.text), how(message.text)
            if len(shorter) + 100 < len(now):
                self.texts[i] = shorter
                self._size -= _cost(replace(message, text=now)) - _cost(replace(message, text=shorter))

    def leave_out_turns(self, opening: int, aim: int) -> None:
        """Whole turns, oldest first, until `aim` is met; never that of `opening`."""
        starts = [i for i in range(self.begins + 1, opening + 1) if speaks(self._messages[i])]
        for start in starts:
            if self._size <= aim:
                return
            if not self.begins:
                self._size += self._summary
            shown = Cut(self.begins, self.texts).shown(self._messages[:start])
            self._size -= cost(shown)
            self.begins = start


def _is_output(message: Message) -> bool:
    """A result, or a note of ours that tells one which came late."""
    late = message.author == OURS and message.turn_id is not None and message.tool_call_id is not None
    return message.role is Role.TOOL or (message.role is Role.USER and late)
