"""What a turn was given of its person's memories, so that it is not quoted to everybody in the thread."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.outside import line

INSTEAD = "(a private note)"
SHORTEST = 8  # characters; what is shorter says nothing of a person
QUOTED = 8  # words of a sentence, from its beginning, that are a quotation of it; of a shorter one, half
_UNITS = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_BETWEEN = re.compile(r"(?:\s|\\[nrt])*")  # in JSON a line end is written out


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that is its person's alone; a fact with the host it is about and its value."""

    text: str
    host: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """units: its words, Chinese character by character, each in every way that it may be written."""

    note: Note
    units: tuple[re.Pattern[str], ...]

    def end(self, text: str, start: int) -> int | None:
        """Where a quotation that begins at `start` ends; None: there is none."""
        found, end = 0, start
        for unit in self.units:
            gap = _BETWEEN.match(text, end)
            hit = unit.match(text, gap.end() if gap and found else end)
            if hit is None:
                break
            found, end = found + 1, hit.end()
        return end if found and found >= min(QUOTED, len(self.units) / 2) else None


class Notes:
    """One a turn. A model is told to use memories without quoting them; this holds it to that, word by word.

    A fact that a command has shown in the session too is no secret in it, and may be said.
    """

    def __init__(self) -> None:
        self._private: list[_Sentence] = []

    def hold(self, notes: Iterable[Note]) -> None:
        """These were put before the model."""
        self._private += [_Sentence(note, _units(note.text)) for note in notes if len(note.text) >= SHORTEST]

    def shown(self, result: str) -> None:
        """A result of a call, as everybody in the session may read it."""
        self._private = [each for each in self._private if not _shows(result, each.note)]

    def unquoted(self, text: str) -> str:
        """The text, or the JSON of a call's arguments, without the sentences of private memories."""
        for sentence in self._private:
            text = _without(text, sentence)
        return text


def _without(text: str, sentence: _Sentence) -> str:
    parts, done = [], 0
    for hit in sentence.units[0].finditer(text):
        if hit.start() >= done and (end := sentence.end(text, hit.start())) is not None:
            parts += [text[done : hit.start()], INSTEAD]
            done = end
    return "".join([*parts, text[done:]])


def _units(text: str) -> tuple[re.Pattern[str], ...]:
    return tuple(_written(unit) for unit in _UNITS.findall(line(text).rstrip(".。… ")))


def _written(unit: str) -> re.Pattern[str]:
    forms = dict.fromkeys((unit, json.dumps(unit, ensure_ascii=False)[1:-1], json.dumps(unit)[1:-1]))
    return re.compile("|".join(map(re.escape, forms)), re.IGNORECASE)


def _shows(result: str, note: Note) -> bool:
    return bool(note.host and note.value) and note.host in result and note.value in result
