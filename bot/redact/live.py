"""Redacts a text that is still being written: gives out only what no later piece can make a part of a secret."""

from __future__ import annotations

import re

from bot.redact.redactor import Redactor

_CONTEXT = 2_000  # characters before the current line that may still say what a word in it is
_FRAME = re.compile(r"-----(?:BEGIN|END)?[A-Z ]{0,60}-{0,5}\Z")  # a PEM line, as far as it has come


class LiveText:
    """Fed with the pieces of one text; gives out redacted pieces of it in order.

    What was fed is redacted anew with every piece that ends a word, and given out up to the last whitespace
    that the text before the last whitespace confirms. When what was given out is no longer the beginning of
    the redacted text, because a later line said that it was a secret, nothing more is given out and `broken`
    is set: the finished text has to replace what is shown.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.broken = False
        self._redactor = redactor
        self._spaced = [value for value in redactor.known if any(char.isspace() for char in value)]
        self._open = ""  # what was fed, without the settled lines
        self._shown = ""  # what was given out of it
        self._settle_at = 2 * _CONTEXT

    def feed(self, piece: str) -> str:
        """What may be shown now; often nothing."""
        self._open += piece
        if self.broken or not any(char.isspace() for char in piece):
            return ""
        redacted = self._text(self._open)
        sure = self._text(self._open[: self._sure()])
        out = self._give(redacted, _last_space(redacted[: _alike(redacted, sure)]))
        if len(self._open) > self._settle_at:
            self._settle()
        return out

    def close(self) -> str:
        """The rest, when nothing more comes; nothing when `broken`."""
        redacted = self._text(self._open)
        return "" if self.broken else self._give(redacted, len(redacted))

    def _text(self, text: str) -> str:
        return self._redactor.text(text).text

    def _sure(self) -> int:
        """How much of the open text ends in whitespace and is not the beginning of something longer."""
        end = _last_space(self._open)
        if frame := _FRAME.search(self._open, max(len(self._open) - 80, 0)):
            end = min(end, frame.start())
        for value in self._spaced:
            starts = (n for n in range(len(value) - 1, 0, -1) if self._open.endswith(value[:n]))
            end = min(end, len(self._open) - next(starts, 0))
        return end

    def _give(self, redacted: str, end: int) -> str:
        if not redacted.startswith(self._shown):
            self.broken = True
            return ""
        out = redacted[len(self._shown) : end]
        self._shown += out
        return out

    def _settle(self) -> None:
        """Forget lines that are far enough back, if the rest reads the same without them."""
        cut = self._open.rfind("\n", 0, len(self._open) - _CONTEXT) + 1
        head, rest = self._text(self._open[:cut]), self._text(self._open[cut:])
        if cut and self._text(self._open) == head + rest and self._shown.startswith(head):
            self._open, self._shown = self._open[cut:], self._shown[len(head) :]
            self._settle_at = 2 * _CONTEXT
        else:
            self._settle_at = len(self._open) + _CONTEXT


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _last_space(text: str) -> int:
    """Just behind the last whitespace; 0 without any."""
    return next((at + 1 for at in range(len(text) - 1, -1, -1) if text[at].isspace()), 0)
