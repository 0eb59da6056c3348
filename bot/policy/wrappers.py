"""Programs that only change how another one runs, in the shapes that are sure to end with it: timeout, nice, ionice, env, stdbuf.

`nohup`, `setsid`, `watch`, `xargs`, `time` and the like are not here: they outlive, repeat or feed what they run.
"""

from __future__ import annotations

import re

from bot.policy.lexer import Word
from bot.policy.spec import NotProved

LONGEST_TIMEOUT = 60
# A wrapper's own words, joined by spaces. Negative niceness and real-time classes would push others aside.
_SHAPES = {
    "nice": (re.compile(r"(?:-n ?1?[0-9]|-1?[0-9]|--adjustment=1?[0-9])?"), "nice [-n 0 to 19] COMMAND"),
    "ionice": (re.compile(r"-c ?(?:3|2(?: -n ?[0-7])?)|-t -c ?3"), "ionice -c 2 or 3 COMMAND"),
    "stdbuf": (re.compile(r"-[ioe](?:L|0)(?: -[ioe](?:L|0)){0,2}"), "stdbuf -oL COMMAND"),
    # Only how text and times are shown. Paths are no values: a locale or a zone is read as a file.
    "env": (
        re.compile(
            r"(?:(?:(?:LANG|LANGUAGE|LC_[A-Z]{3,14})=[A-Za-z0-9_.@-]{0,30}|TZ=(?:[A-Z][A-Za-z0-9_+-]{1,20}(?:/[A-Z][A-Za-z_-]{1,30})?)?"
            r"|(?:COLUMNS|LINES)=[0-9]{1,4}|NO_COLOR=1|TERM=(?:dumb|xterm|linux)) ?){1,6}"
        ),
        "env LC_ALL=C COMMAND (also LANG, TZ, COLUMNS)",
    ),
}
_VALUED = {"nice": ("-n",), "ionice": ("-c", "-n"), "stdbuf": (), "env": ()}


def wrapped(words: tuple[Word, ...]) -> int | None:
    """How many words of a wrapper stand before the command that it runs; None when the command is none.

    Raises NotProved for a wrapper in a shape that is not known to only run its command.
    """
    name = words[0].text
    if name == "timeout":
        return _timeout(words)
    if name not in _SHAPES:
        return None
    at = 1
    while at < len(words) and (words[at].text[:1] == "-" or (name == "env" and "=" in words[at].text)):
        at += 2 if words[at].text in _VALUED[name] else 1
    shape, said = _SHAPES[name]
    own = words[1:at]
    if any(w.glob for w in own) or not shape.fullmatch(" ".join(w.text for w in own)):
        raise NotProved(_bare(name) if at >= len(words) else f"{name} is known only as: {said}")
    if at >= len(words):
        raise NotProved(_bare(name))
    return at


def _bare(name: str) -> str:
    return (
        "env shows the environment, in which secrets may stand; it runs by itself as: env LC_ALL=C ls"
        if name == "env"
        else f"{name} lacks a command"
    )


def _timeout(words: tuple[Word, ...]) -> int:
    limit = words[1].text.removesuffix("s") if len(words) > 2 else ""
    if not (limit.isascii() and limit.isdigit() and 0 < int(limit[:9]) <= LONGEST_TIMEOUT):
        raise NotProved(
            f"timeout is known only as: timeout SECONDS COMMAND, with at most {LONGEST_TIMEOUT} seconds"
        )
    return 2
