"""What a turn was given of its person's memories, so that it is not quoted to everybody in the thread."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from bot.outside import line
from storage.records import Memory

INSTEAD = "(a private note)"
SHORTEST = 8  # characters; what is shorter says nothing of a person
_BETWEEN = r"(?:\s|\\[nrt])+"  # in JSON a line end is written out


class Notes:
    """One a turn. A model is told to use memories without quoting them; this holds it to that, word by word.

    A fact about a host on which the session has worked is no secret in it, and stays.
    """

    def __init__(self, known_hosts: Collection[str]) -> None:
        self._hosts = set(known_hosts)
        self._private: list[Memory] = []
        self._pattern: re.Pattern[str] | None = None

    def hold(self, memories: Sequence[Memory]) -> None:
        """These were put before the model. What was shared with the team may be quoted."""
        self._private += [memory for memory in memories if not memory.shared]
        self._compile()

    def seen(self, host: str) -> None:
        """The session works on this host."""
        if host not in self._hosts:
            self._hosts.add(host)
            self._compile()

    def unquoted(self, text: str) -> str:
        """The text, or the JSON of a call's arguments, without the sentences of private memories."""
        return text if self._pattern is None else self._pattern.sub(INSTEAD, text)

    def _compile(self) -> None:
        texts = [memory.text for memory in self._private if memory.host not in self._hosts]
        sentences = {each for text in texts if len(each := line(text).rstrip(".。 ")) >= SHORTEST}
        forms = {form for each in sentences for form in (each, _escaped(each), _escaped(each, ascii_=True))}
        longest_first = sorted(forms, key=len, reverse=True)
        words = "|".join(_BETWEEN.join(map(re.escape, form.split())) for form in longest_first)
        self._pattern = re.compile(f"(?:{words})[.。]?", re.IGNORECASE) if words else None


def _escaped(text: str, *, ascii_: bool = False) -> str:
    return json.dumps(text, ensure_ascii=ascii_)[1:-1]
