"""Pure: text and JSON as Postgres can hold them."""

from __future__ import annotations

import json
from typing import Any


def storable(content: str) -> str:
    """Without NUL and lone surrogates, which no text column takes: each becomes the replacement character."""
    if "\x00" not in content and content.isascii():
        return content
    return "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in content)


def storable_json(value: Any) -> str:
    """JSON text for a jsonb column, readable (no escapes of other scripts), every string in it storable."""
    return json.dumps(_mended(value), ensure_ascii=False)


def _mended(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(str(key)): _mended(item) for key, item in value.items()}
        case list() | tuple():
            return [_mended(item) for item in value]
        case _:
            return value
