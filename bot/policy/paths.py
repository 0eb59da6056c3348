"""Decides whether the content of a path may be read without asking, globs included."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from bot.policy.lexer import Word
from bot.policy.spec import NotProved, Rules, Scene

# Looking at these can make the kernel mount something over the network, by a name that the model chose.
_LONGEST_GLOB = 64
_AUTOMOUNT = ("net", "misc", "afs")


def check_names(word: Word, scene: Scene) -> None:
    """A path of which only names and sizes are shown."""
    # However it is written: //net/x, /./net/x, ../../net/x from the account's folder, /n?t/x.
    parts = posixpath.normpath("/" + word.text.lstrip("/")).split("/")[1:]
    if len(parts) > 1 and any(
        parts[0] == name or (word.glob and meets(parts[0], name)) for name in _AUTOMOUNT
    ):
        raise NotProved(f"{word.text} may mount something over the network")
    if not word.text:
        raise NotProved("an empty path")


def check_content(word: Word, scene: Scene) -> None:
    """A path whose content is shown: absolute, normalised, under an allowed root and not a secret."""
    path, rules = word.text, scene.rules
    lowered = path.lower()
    if rules.secrets.search(lowered):
        raise NotProved(f"WARNING: {path} is or may hold a secret")
    if not path.startswith("/"):
        raise NotProved(f"{path} is not an absolute path")
    if "//" in path or "/./" in path or "/../" in path or path.endswith(("/..", "/.")):
        raise NotProved(f"{path} is not written out plainly (no //, . or ..)")
    if word.glob:
        _check_glob(path, lowered, rules)
    elif not rules.roots.fullmatch(path):
        raise NotProved(f"{path} is not among the files that may be read without asking")


def _check_glob(path: str, lowered: str, rules: Rules) -> None:
    if not rules.globs.fullmatch(path):
        raise NotProved(f"{path} may name files that should not be read without asking")
    for part in lowered.split("/"):
        wild = any(c in part for c in "*?[") and any(c.isalpha() for c in part)
        if wild and (
            len(part) > _LONGEST_GLOB or any(meets(part, name) for name in rules.names) or _hints(part, rules)
        ):
            raise NotProved(f"WARNING: {path} can meet the name of a secret")


def _hints(part: str, rules: Rules) -> bool:
    """Whether a secret's core fits where at least two letters of the glob's own are part of it (`sec*`, `k?y`).

    A `*` alone could hold any name; that much is settled by the few shapes that `globs` lets through.
    """
    text = "".join(_pieces(part))
    return any(
        pattern.search(text.replace("*", "?" * width))
        for width, pattern in enumerate(_core_patterns(rules.cores))
    )


@lru_cache(maxsize=8)
def _core_patterns(cores: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """For each width that a `*` may have: where a core fits that is longer than the width by two."""
    longest = max(map(len, cores), default=0)
    fitting = ([core for core in cores if len(core) - 1 > width] for width in range(longest - 1))
    return tuple(
        re.compile("|".join("".join(f"[{re.escape(c)}?]" for c in core) for core in found))
        for found in fitting
    )


@lru_cache(maxsize=4096)
def meets(one: str, other: str) -> bool:
    """Whether some name fits both patterns (`*`, `?`, `[..]`; a bracket counts as any one character)."""
    a, b = _pieces(one), _pieces(other)
    # reach[j]: the patterns up to here can both have consumed the same name. Walk over a, row by row.
    row = [True] + [False] * len(b)
    for j, piece in enumerate(b):
        row[j + 1] = row[j] and piece == "*"
    for piece in a:
        new = [row[0] and piece == "*"]
        for j, against in enumerate(b):
            if "*" in (piece, against):
                new.append(row[j + 1] or new[j])
            else:
                new.append(row[j] and (piece == against or "?" in (piece, against)))
        row = new
    return row[-1]


def _pieces(pattern: str) -> list[str]:
    out, at = [], 0
    while at < len(pattern):
        end = pattern.find("]", at + 2) if pattern[at] == "[" else -1
        out.append("?" if end > 0 else pattern[at])
        at = end + 1 if end > 0 else at + 1
    return out
