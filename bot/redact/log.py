"""Takes secrets out of log lines, just before they are rendered: values, nested ones, and texts of exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import structlog

from bot.redact.redactor import Redactor
from bot.redact.rules import load_redactor

_DEEP = 6
_PLAIN = (bool, int, float, type(None))


class RedactEvent:
    """A structlog processor, by default with the packaged rules.

    It stands behind what makes texts of exceptions and before the renderer.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._given = redactor

    @cached_property
    def _redactor(self) -> Redactor:
        # Made at the first line: most commands of the console script write none.
        return self._given or load_redactor()

    def __call__(
        self, _logger: Any, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        """Every value as it may be shown; what is neither text, number nor container is shown as its repr."""
        return {key: self._value(str(key), value, 0) for key, value in event.items()}

    def _value(self, key: str, value: Any, deep: int) -> Any:
        if isinstance(value, str):
            return self._text(key, str(value))
        if isinstance(value, _PLAIN):
            return value
        if deep < _DEEP and isinstance(value, Mapping):
            return {self._text("", str(k)): self._value(str(k), v, deep + 1) for k, v in value.items()}
        if deep < _DEEP and isinstance(value, list | tuple | set | frozenset):
            return [self._value(key, item, deep + 1) for item in value]
        return self._text(key, value.decode("utf-8", "replace") if isinstance(value, bytes) else repr(value))

    def _text(self, key: str, text: str) -> str:
        # A value is no secret by itself in `token="…"`: its key says so.
        named = f"{key}: "
        shown = self._redactor.text(named + text)
        if shown.text.startswith(named):
            return shown.text.removeprefix(named)
        return self._redactor.text(text).text
