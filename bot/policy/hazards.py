"""What is refused whatever the table says: text that cannot be shown honestly, and a short list of disasters."""

from __future__ import annotations

import posixpath
import re
import unicodedata

from bot.policy.lexer import Line, Op, Unread, lex, listed
from bot.policy.spec import Rules

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Bidirectional marks, zero-width and other invisible characters, no-break and odd spaces, fillers.
_INVISIBLE = re.compile(
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f"
    "\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Compatibility twins of ASCII: NFKC turns these into ASCII letters, digits or shell punctuation.
_TWINS = re.compile(
    "[\uff02-\uff07\uff0a\uff0b\uff0d-\uff19\uff1c-\uff1e\uff20-\uff5e\u2100-\u214f\u2024\u2044\u2215\u2216\u2223\u2236\u223c\u2474-\u24ff\ufe4d-\ufe6f\U0001d400-\U0001d7ff]"
)
# Dashes, quotes and bars of print: fine in the midst of a quoted text, a trap where shell words are.
_PRINT = re.compile(
    "[\u2010-\u201f\u2032-\u2037\u2039\u203a\u2212\u02b9-\u02df\u00b4\u00a6\u01c0\u05c0\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff5f-\uff65]"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
# Letters of Greek, Cyrillic and Armenian that look like ASCII ones.
_ALIKE = frozenset("АВЕЅІЈКМНОРСТХҮаеѕіјорсухһԁԛԝɡɑıΑΒΕΖΗΙΚΜΝΟΡΤΥΧοναρυՕօՏսոհց")
_SHELLS = listed("sh bash dash ash zsh ksh csh tcsh fish python python3 perl ruby node php")
_WRAPPERS = listed(
    "sudo doas env nohup nice ionice setsid stdbuf time timeout command exec builtin xargs busybox watch"
)
_WRITERS = listed("tee cp mv install ln sed dd rm truncate rsync scp")
_LOADERS = (["curl"], ["wget"], ["fetch"])
_SYSTEM = listed(
    "/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib /var /var/lib"
)
_DISK = r"/dev/(?:sd|nvme|vd|xvd|hd|mmcblk|mapper/|dm-|md|disk/)"
_DEEPEST = 4
_PIPED = "runs what it downloads without anybody having read it; download it first, read it, then run it"
_KEYS = "changes who may log in (authorized_keys); do that by your own configuration management"
_ROOTS = "removes a root of the system"
_OVER = "writes over a disk"


def unshowable(text: str, longest: int) -> str | None:
    """Why a text cannot be run at all, as nobody could judge it by looking at it; None if it can."""
    if not text.strip(" "):
        return "an empty command"
    if len(text) > longest:
        return f"longer than {longest} characters; split it, or put it into a script on the host"
    if text.isascii() and text.isprintable():
        return None
    if found := _CONTROL.search(text):
        if found[0] in "\n\r":
            return "more than one line; send one line, its commands joined with && or ;"
        return f"holds the control character U+{ord(found[0]):04X}; write it without"
    if found := _INVISIBLE.search(text):
        return f"holds the invisible or odd space character U+{ord(found[0]):04X}; write it without"
    if found := _TWINS.search(text):
        return _alike(found[0])
    outside = _QUOTED.sub(lambda m: " " if not _PRINT.match(m[0][1:]) else m[0], text)
    if found := _PRINT.search(outside):
        return _alike(found[0])
    for run in _LETTERS.findall(text):
        mixed = any(c in _ALIKE for c in run) and (
            any(c < "\x7f" for c in run) or all(c in _ALIKE for c in run)
        )
        if mixed and (bad := next(c for c in run if c in _ALIKE)):
            return _alike(bad)
    return None


def _alike(char: str) -> str:
    name = unicodedata.name(char, "a character")
    return f"holds U+{ord(char):04X} ({name.lower()}), which looks like plain ASCII; write the plain one"


def refused(text: str, line: Line | None, rules: Rules) -> str | None:
    """Why a command is refused whatever a person would say; None for most.

    Looks at the text, at every command of the line, and at what shells and wrappers in it would run. A
    courtesy: what slips through still has to be approved by a person.
    """
    for pattern, said in rules.deny:
        if pattern.search(text):
            return said
    if line is None:
        return _refused_rough(text)
    stages = [[word.text for word in stage.words] for stage in line.stages]
    for number, op in enumerate(line.ops):
        if op is Op.PIPE and _unwrapped(stages[number])[:1] in _LOADERS and _is_shell(stages[number + 1]):
            return _PIPED
    return next((reason for argv in stages if (reason := _disaster(argv, 0))), None)


def _refused_rough(text: str) -> str | None:
    """For a text that was not read: look at whatever may be a command in it."""
    plain = text.replace("\\", "").replace("'", "").replace('"', "")
    plain = re.sub(r"\$\{?IFS\}?|[{}]", " ", plain)
    if re.search(r"\b(?:curl|wget)\b[^;&]*\|&? *(?:sudo +(?:-\w+ +)*)?(?:ba|da|z|k|a)?sh\b", plain):
        return _PIPED
    if re.search(r">[>|&]? *[^ ;|&]*authorized_keys", plain):
        return _KEYS
    if re.search(rf">[>|&]? *{_DISK}", plain):
        return _OVER
    for piece in re.split(r"[;&|()`<>]+|\$\(|\b(?:then|do|else|if|while|until)\b", plain):
        if reason := _disaster(piece.split(), 0):
            return reason
    return None


def _disaster(argv: list[str], depth: int) -> str | None:
    argv = _unwrapped(argv)
    if not argv or depth > _DEEPEST:
        return None
    name, rest = argv[0].rpartition("/")[2], argv[1:]
    if name in _SHELLS or name in ("eval", "ssh", "su"):
        return next((r for word in rest if " " in word and (r := _refused_nested(word, depth))), None) or (
            _disaster(rest, depth + 1) if name == "eval" else None
        )
    if name == "find":
        at = next((n for n, w in enumerate(rest) if w in ("-exec", "-execdir", "-ok")), None)
        if "-delete" in rest and any(map(_system_root, rest)):
            return _ROOTS
        return _disaster(rest[at + 1 :], depth + 1) if at is not None else None
    if name == "rm" and any(re.fullmatch(r"-\w*[rR]\w*|--recursive", w) for w in rest):
        return _ROOTS if any(map(_system_root, rest)) else None
    if name.startswith("mkfs") or name in ("mke2fs", "wipefs", "blkdiscard"):
        return "makes or wipes a file system"
    written = (
        rest[-1:] if name == "cp" else [w.removeprefix("of=") for w in rest if name != "dd" or w[:3] == "of="]
    )
    if name in ("dd", "tee", "cp", "shred") and any(re.match(_DISK, word) for word in written):
        return _OVER
    if name in _WRITERS and any("authorized_keys" in word for word in rest):
        return _KEYS
    return None


def _refused_nested(text: str, depth: int) -> str | None:
    try:
        line = lex(text)
    except Unread:
        return _refused_rough(text) if depth < _DEEPEST else None
    return next((r for s in line.stages if (r := _disaster([w.text for w in s.words], depth + 1))), None)


def _unwrapped(argv: list[str]) -> list[str]:
    """Without sudo, env, nohup and the like in front, their options and assignments."""
    at = 0
    while at < len(argv) and argv[at].rpartition("/")[2] in _WRAPPERS:
        at += 1
        while at < len(argv) and (
            argv[at].startswith("-") or "=" in argv[at] or argv[at].rstrip("smh").isdigit()
        ):
            at += 1
    return argv[at:]


def _is_shell(argv: list[str]) -> bool:
    bare = _unwrapped(argv)
    return bool(bare) and bare[0].rpartition("/")[2] in _SHELLS


def _system_root(word: str) -> bool:
    path = posixpath.normpath(word.removesuffix("*") or "x")
    return word in ("~", "~/", "$HOME", "~/*", "/*") or (
        word.startswith("/") and path.replace("//", "/") in _SYSTEM
    )
