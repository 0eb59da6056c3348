"""What is refused whatever the table says: a short list of disasters. A courtesy, not the boundary."""

from __future__ import annotations

import posixpath
import re

from bot.policy.lexer import Line, Op, listed
from bot.policy.nested import SHELLS, Found, inside, plain_text
from bot.policy.spec import Rules

_WRITERS = listed("tee cp mv install ln sed dd rm truncate rsync scp")
_LOADERS = listed("curl wget fetch")
_SYSTEM = listed(
    "/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib /var /var/lib"
)
_DISK = r"/dev/(?:sd|nvme|vd|xvd|hd|mmcblk|mapper/|dm-|md|disk/)"
_PIPED = "runs what it downloads without anybody having read it; download it first, read it, then run it"
_KEYS = "changes who may log in (authorized_keys); do that by your own configuration management"
_ROOTS = "removes a root of the system"
_OVER = "writes over a disk"
_JUDGED = listed("find rm mke2fs wipefs blkdiscard dd tee cp shred") | _WRITERS


def refused(text: str, line: Line | None, found: list[Found], rules: Rules) -> str | None:
    """Why a command is refused whatever a person would say; None for most.

    found: every command in the text, those that shells and wrappers in it would run among them. What slips
    through still has to be approved by a person.
    """
    for pattern, reason in rules.deny:
        if pattern.search(text):
            return reason
    piped = _rough_pipes(text) if line is None else _piped(line)
    return piped or next((said for name, rest in found if (said := _disaster(name, rest))), None)


def _piped(line: Line) -> str | None:
    for number, op in enumerate(line.ops):
        if op is Op.PIPE and _runs(line, number) & _LOADERS and _runs(line, number + 1) & SHELLS:
            return _PIPED
    return None


def _runs(line: Line, number: int) -> set[str]:
    """The names of what a stage runs, wrappers and what is in them."""
    return {name for name, _ in inside([word.text for word in line.stages[number].words])}


def _rough_pipes(text: str) -> str | None:
    plain = plain_text(text)
    if re.search(r"\b(?:curl|wget)\b[^;&]{0,400}\|&? {0,9}(?:sudo +(?:-\w+ +)*)?(?:ba|da|z|k|a)?sh\b", plain):
        return _PIPED
    if "authorized_keys" in plain and re.search(r">[>|&]? {0,9}[^ ;|&]{0,200}authorized_keys", plain):
        return _KEYS
    if re.search(rf">[>|&]? {{0,9}}{_DISK}", plain):
        return _OVER
    return None


def _disaster(name: str, rest: list[str]) -> str | None:
    if name not in _JUDGED:
        return "makes or wipes a file system" if name.startswith("mkfs") else None
    if name == "find":
        return _ROOTS if "-delete" in rest and any(map(_system_root, rest)) else None
    if name == "rm" and any(re.fullmatch(r"-\w*[rR]\w*|--recursive", w) for w in rest):
        return _ROOTS if any(map(_system_root, rest)) else None
    if name in ("mke2fs", "wipefs", "blkdiscard"):
        return "makes or wipes a file system"
    written = (
        rest[-1:] if name == "cp" else [w.removeprefix("of=") for w in rest if name != "dd" or w[:3] == "of="]
    )
    if name in ("dd", "tee", "cp", "shred") and any(re.match(_DISK, word) for word in written):
        return _OVER
    if name in _WRITERS and any("authorized_keys" in word for word in rest):
        return _KEYS
    return None


def _system_root(word: str) -> bool:
    path = posixpath.normpath(word.removesuffix("*") or "x")
    return word in ("~", "~/", "$HOME", "~/*", "/*") or (
        word.startswith("/") and path.replace("//", "/") in _SYSTEM
    )
