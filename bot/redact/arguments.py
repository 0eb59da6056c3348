"""Takes secrets out of a JSON text without breaking it: decoded texts and keys, and what a key says of its value."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Look = Callable[[str], tuple[str, tuple[str, ...]]]
_NAMES = ("name", "key")  # {"name": "DB_PASSWORD", "value": "…"}
_LONGEST_NAME = 200


class Arguments:
    """One JSON text; `found` grows while it is read. look: redacts one text and names the rules that hit."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.found: list[str] = []

    def redacted(self, text: str) -> str:
        """The text itself when nothing was found. Raises ValueError or RecursionError when it is not JSON."""
        value = self._value(json.loads(text, object_pairs_hook=self._object), key="")
        return json.dumps(value, ensure_ascii=text.isascii()) if self.found else text

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Called for inner objects first. A key that is there twice is looked at twice; the last one stays."""
        named = next((v for k, v in pairs if k.lower() in _NAMES and isinstance(v, str)), "")
        out = {}
        for key, value in pairs:
            says = named if key.lower() == "value" and named else key
            out[self._text(key)] = self._value(value, key=says)
        return out

    def _value(self, value: Any, *, key: str) -> Any:
        if isinstance(value, list):
            return self._list(value, key=key)
        if isinstance(value, str):
            return self._mark(key, value) or self._text(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._mark(key, str(value)) or value
        return value

    def _list(self, values: list[Any], *, key: str) -> list[Any]:
        """A list may be the words of a command: `["--password", "…"]`."""
        out, option = [], ""
        for value in values:
            new = self._value(value, key=key)
            if option and isinstance(value, str) and new == value:
                new = self._mark(option, value, between=" ") or new
            out.append(new)
            option = value if isinstance(value, str) and value.startswith("-") else ""
        return out

    def _mark(self, key: str, value: str, *, between: str = ": ") -> str:
        """The mark in place of the whole value when its key says that it is a secret."""
        if not key or len(key) > _LONGEST_NAME or not value.strip():
            return ""
        # Only whether it is one is asked; quotes and line ends would end the value early.
        plain = "".join(" " if char in "\"'`\r\n\\" else char for char in value[:300])
        shown, found = self._look(f'{key}{between}"{plain}"')
        if not found or plain in shown or f"{key}{between}" not in shown:
            return ""
        whole = shown.removeprefix(f"{key}{between}")
        if whole.count("[redacted:") != 1 or not whole.startswith('"[redacted:'):
            return ""
        self.found += found
        return whole.strip('"')

    def _text(self, text: str) -> str:
        shown, found = self._look(text)
        self.found += found
        return shown
