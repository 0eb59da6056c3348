"""Finds the simple commands that a line would run: its stages, and what wrappers, shells and `find -exec` in them run.

For warnings and refusals only. It may miss what is hidden well; nothing runs by itself because of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from bot.policy.lexer import Line, Op, Unread, lex, listed

Found = tuple[str, list[str]]  # a program's plain name, and its words

SHELLS = listed("sh bash dash ash zsh ksh csh tcsh fish python python3 perl ruby node php")
CLIENTS = listed("psql mysql mariadb sqlite3 mongo mongosh redis-cli clickhouse-client influx cqlsh sqlcmd")
_READ_ON = CLIENTS | listed("python python2 python3 perl ruby node php")
# Programs that run the rest of their words: their options with a value of its own, and the words before the command.
_WRAPPERS: dict[str, tuple[str, int]] = {
    "sudo": ("-u -g -h -p -C -R -T -D -U -r -t", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C", 0),
    "nice": ("-n", 0),
    "ionice": ("-c -n", 0),
    "timeout": ("-s -k", 1),
    "stdbuf": ("-i -o -e", 0),
    "xargs": ("-I -n -P -L -d -a -E -s", 0),
    "parallel": ("-j", 0),
    "watch": ("-n", 0),
    "flock": ("-w -E", 1),
    "chroot": ("", 1),
    "runuser": ("-u -g", 0),
    "setpriv": ("", 0),
    "systemd-run": ("-p -u", 0),
    "nsenter": ("-t", 0),
    "unshare": ("", 0),
    "strace": ("-e -o -p -s", 0),
    "chrt": ("", 1),
    "taskset": ("", 1),
    **dict.fromkeys(("nohup", "setsid", "time", "command", "exec", "builtin", "busybox", "script", "catchsegv"), ("", 0)),
}  # fmt: skip
_VALUED = {name: listed(options) for name, (options, _) in _WRAPPERS.items()}
_TAKES_TEXT = SHELLS | listed("eval ssh su runuser script watch")
_CONTAINERS = listed("docker podman nerdctl kubectl crictl lxc oc")
_LEADING = re.compile(r"[A-Za-z_]\w*\+?=.*|!|then|do|else|elif|if|while|until|time")
_DEEPEST = 5


def commands(line: Line) -> list[Found]:
    """Every command of a line that was read."""
    found: list[Found] = []
    before: list[str] = []
    for number, stage in enumerate(line.stages):
        argv = [word.text for word in stage.words]
        here = list(inside(argv))
        if before and line.ops[number - 1] is Op.PIPE:
            here += _fed(before, here)
        before = argv
        found += here
    return found


def rough_commands(text: str) -> list[Found]:
    """For a text that was not read: whatever may be a command in it."""
    return list(_rough(text, 0))


def plain_text(text: str) -> str:
    """A text without its quotes, backslashes, braces and IFS tricks, as a rough reader sees it."""
    plain = text.replace("\\", "").replace("'", "").replace('"', "")
    return re.sub(r"\$\{?IFS\}?|[{}]", " ", plain)


def _rough(text: str, depth: int) -> Iterator[Found]:
    plain = plain_text(text)
    for piece in re.split(r"[;&|()`<>]+|\$\(", plain):
        argv = piece.split()
        while argv and _LEADING.fullmatch(argv[0]):
            argv = argv[1:]
        for name, rest in inside(argv, depth):
            # What a client or a language reads from a here-document or a pipe stands elsewhere in the text.
            yield name, plain.split() if name in _READ_ON else rest


def inside(argv: list[str], depth: int = 0) -> Iterator[Found]:
    """The command itself, and what it runs in turn."""
    while argv and depth <= _DEEPEST:
        name, rest = argv[0].rpartition("/")[2], argv[1:]
        yield name, rest
        if name in _TAKES_TEXT:
            for word in rest:
                if " " in word:
                    yield from _text(word, depth + 1)
            rest = (
                rest[rest.index("-c") + 1 :]
                if "-c" in rest
                else _behind(rest, "-p -l -o -i -u -n", name == "ssh")
            )
        elif name in _WRAPPERS:
            rest = _unwrapped(name, rest)
        elif name == "find":
            yield from _find_runs(rest, depth + 1)
            return
        elif name in _CONTAINERS and "exec" in rest:
            rest = rest[rest.index("exec") + 1 :]
            rest = rest[rest.index("--") + 1 :] if "--" in rest else _behind(rest, "-u -w -e -n -c", True)
        elif name == "ip" and rest[:2] == ["netns", "exec"]:
            rest = rest[3:]
        else:
            return
        argv, depth = rest, depth + 1


def _text(text: str, depth: int) -> Iterator[Found]:
    """Commands in a word that a shell will read."""
    if depth > _DEEPEST:
        return
    try:
        line = lex(text)
    except Unread:
        yield from _rough(text, depth)
        return
    for stage in line.stages:
        yield from inside([word.text for word in stage.words], depth)


def _find_runs(rest: list[str], depth: int) -> Iterator[Found]:
    """Each up to the next one: looking through all that follows, again and again, would take for ever."""
    starts = [at for at, word in enumerate(rest) if word in ("-exec", "-execdir", "-ok", "-okdir")]
    for at, end in pairwise([*starts, len(rest)]):
        yield from inside(rest[at + 1 : end], depth)


def _fed(before: list[str], here: list[Found]) -> list[Found]:
    """What `echo` or `printf` hands to a shell or a client through a pipe."""
    if before[0].rpartition("/")[2] not in ("echo", "printf"):
        return []
    said, out = " ".join(before[1:]), list[Found]()
    for name, rest in here:
        if name in SHELLS:
            out += _text(said, 1)
        elif name in CLIENTS:
            out.append((name, [*rest, said]))
        elif name == "xargs":
            out += inside([*_unwrapped(name, rest), *before[1:]], 1)
    return out


def _unwrapped(name: str, rest: list[str]) -> list[str]:
    valued, skip = _VALUED[name], _WRAPPERS[name][1]
    at = 0
    while at < len(rest) and (rest[at][:1] == "-" or "=" in rest[at]):
        at += 2 if rest[at] in valued else 1
    return rest[at + skip :]


def _behind(rest: list[str], valued: str, skip_one: bool) -> list[str]:
    """The words behind the options, and behind the host or container that stands there."""
    at, names = 0, valued.split()
    while at < len(rest) and rest[at][:1] == "-":
        at += 2 if rest[at] in names else 1
    return rest[at + skip_one :]
