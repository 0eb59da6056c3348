"""What the patterns of dangerous.yml write in short: names for patterns that many share, and abbreviated options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"<([a-z]+)>")
_OPTION = re.compile(r"<(--[a-z][a-z-]*)~([a-z-]+)>")


def written_out(data: Any, names: Mapping[str, str]) -> Any:
    """The same mappings with every pattern in full.

    `<logins>` is the pattern of that name. `<--re~cursive>` is the option --recursive and all that GNU programs take
    for it, from --re on. Raises KeyError for a name that is not there.
    """
    return {
        _full(str(key), names): written_out(value, names) if isinstance(value, dict) else value
        for key, value in data.items()
    }


def _full(pattern: str, names: Mapping[str, str]) -> str:
    pattern = _NAME.sub(lambda found: f"(?:{names[found[1]]})", pattern)
    return _OPTION.sub(lambda found: found[1] + _any_beginning(found[2]), pattern)


def _any_beginning(text: str) -> str:
    """`abc` as (?:a(?:b(?:c)?)?)?: it meets the empty text, a, ab and abc, each in one way."""
    return "".join(f"(?:{re.escape(char)}" for char in text) + ")?" * len(text)
