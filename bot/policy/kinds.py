"""The kinds of words that may stand as a value or a positional: what each looks like, and why others do not pass."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from bot.policy.lexer import Word
from bot.policy.paths import check_content, check_names
from bot.policy.spec import NotProved, Scene

# Every pattern is a plain run of characters: none can backtrack without bound.
_SHAPES: dict[str, tuple[str, str]] = {
    "number": (r"[0-9]{1,9}", "a whole number"),
    "small": (r"[0-9]{1,3}", "a number below 1000"),
    "snumber": (r"[+-]?[0-9]{1,9}", "a number"),
    "decimal": (r"[0-9]{1,4}(?:\.[0-9]{1,3})?", "a number"),
    "size": (r"[+-]?[0-9]{1,12}[bcwkKmMgGtTPE]?i?B?", "a size such as 100M"),
    "numbers": (r"[0-9]{1,9}(?:,[0-9]{1,9}){0,60}", "numbers with commas"),
    "name": (r"[A-Za-z0-9_][A-Za-z0-9_.@%+:-]{0,127}", "a plain name"),
    "label": (r"[A-Za-z_][A-Za-z0-9_.@%+:/-]{0,127}", "a name that is no number"),
    "clock": (r"[0-9]{2}:[0-9]{2}(?::[0-9]{2})?", "a time such as 10:00:00"),
    "tabs": (r"[0-9]{1,2}(?:,[0-9]{1,3}){0,9}", "tab stops"),
    "names": (r"[A-Za-z0-9_%+-][A-Za-z0-9_.%+:,-]{0,255}", "plain names with commas"),
    "columns": (r"[A-Za-z0-9_%+-][A-Za-z0-9_%.:,=+-]{0,255}", "columns with commas"),
    "package": (
        r"[A-Za-z0-9_*?](?:[A-Za-z0-9_.+*?-]|:(?!/)){0,127}|/[A-Za-z0-9_./+-]{1,200}",
        "a package or a path",
    ),
    "word": (r"[a-z0-9][a-z0-9-]{0,40}", "a plain word"),
    "user": (r"[A-Za-z_][A-Za-z0-9_.-]{0,63}|[0-9]{1,9}", "a user's name or number"),
    "unit": (r"[A-Za-z0-9_@*?][A-Za-z0-9_@.:*?\\-]{0,199}", "a unit's name"),
    "device": (r"/dev/[A-Za-z0-9_][A-Za-z0-9_/-]{0,63}", "a device under /dev"),
    "interface": (r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,31}", "an interface"),
    "sysctl": (r"[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+){1,10}", "a kernel setting such as vm.swappiness"),
    "journal": (
        r"_{0,2}[A-Z][A-Z_]{0,40}=[A-Za-z0-9_.@:/+-]{1,200}|/usr/s?bin/[A-Za-z0-9_.-]{1,60}",
        "a journal match such as _PID=1",
    ),
    "time": (r"[A-Za-z0-9+@-][A-Za-z0-9 :.,+-]{0,40}", "a time such as '1 hour ago'"),
    "date": (r"\+[A-Za-z0-9 %:.,/_+-]{0,80}", "a format such as +%F"),
    "format": (r"[A-Za-z0-9 %.,:/_=+'\"\\(){}$\[\]|#-]{0,200}", "a plain format"),
    "keys": (r"[+-]?[0-9]{1,4}[A-Za-z0-9.,]{0,20}", "a sort key such as 2,2nr"),
    "ranges": (r"[0-9,-]{1,60}", "ranges such as 1,3-5"),
    "lsof": (
        r"\+[Ldf][0-9]?|\+D|[46]?(?:tcp|udp|TCP|UDP)?(?:@[0-9.]{7,15})?(?::[0-9a-z,-]{1,60})?|(?:TCP|UDP|tcp|udp):[\^A-Za-z0-9,_-]{1,60}"
        r"|/[A-Za-z0-9_./@:-]{0,250}",
        "a port, an address in numbers or a path",
    ),
    "ssfilter": (
        r"(?:(?:state|exclude|established|syn-sent|syn-recv|fin-wait-1|fin-wait-2|time-wait|closed|close-wait|last-ack"
        r"|listening|listen|closing|all|connected|synchronized|bucket|big|sport|dport|src|dst|and|or|not|eq|neq|ne|ge|gt|le|lt"
        r"|\(|\)|==|=|!=|>=|>|<=|<|!|[0-9./*]+(?::[0-9*]{1,5})?|:[a-z0-9*]{1,15})(?: +|$)){1,30}",
        "a filter of states, ports and addresses in numbers",
    ),
    "kubeout": (
        r"wide|name|yaml|json|(?:jsonpath|custom-columns)=[A-Za-z0-9_.:,{}\[\]*@?()='\"/ \\-]{1,300}",
        "one of wide, name, yaml, json, jsonpath=…",
    ),
    "jsonpath": (r"[A-Za-z0-9_.{}\[\]'/-]{1,120}", "a path such as .lastTimestamp"),
    "kubename": (r"[a-z0-9][a-z0-9./,-]{0,200}", "an object such as deployment/web"),
    "filter": (r"[A-Za-z0-9_.:=/!<>() ,*-]{1,100}", "a filter"),
    "template": (
        r"(?:\{\{(?:json )?\.(?:State|RestartCount|Name|Image|Created|Id|Names|Status|Ports|HostConfig\.RestartPolicy"
        r"|HostConfig\.Memory|HostConfig\.NanoCpus|NetworkSettings|Mounts|Platform|SizeRootFs|Container|CPUPerc"
        r"|MemUsage|MemPerc|NetIO|BlockIO|PIDs|Repository|Tag|Size|RunningFor|CreatedSince|Server\.Version"
        r"|Client\.Version)(?:\.[A-Za-z]{1,40}){0,4}\}\}|[A-Za-z0-9 :,=_/\\-]){1,40}|json|table",
        "a template over state, not over settings",
    ),
}
_COMPILED = {kind: (re.compile(shape), said) for kind, (shape, said) in _SHAPES.items()}
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|[0-9A-Fa-f:]{2,45}|\[[0-9A-Fa-f:]{2,45}\]")
_LOOPBACK = frozenset({"localhost", "ip6-localhost", "localhost.localdomain"})
LONGEST_PATTERN = 500
_BACK = re.compile(r"\\[1-9]")
_NESTED = re.compile(r"[*+}]\\?\)(?:\\?[*+]|\\?\{[0-9]*,\\?\})")
_TIMES = re.compile(r"\{(?:[0-9]*,)?([0-9]{1,9})\\?\}")
_MOST_TIMES = 1000


def check_kind(kind: str, word: Word, scene: Scene) -> None:
    """Raises NotProved when the word is not of this kind. A kind in braces, `{a|b}`, is one of these words."""
    if word.glob and kind not in ("path", "file", "text"):
        raise NotProved(f"a glob where {_said(kind)} is expected; quote it")
    if kind[0] == "{":
        if word.text not in kind[1:-1].split("|"):
            raise NotProved(f"{word.text} is not one of {kind[1:-1].replace('|', ', ')}")
        return
    special = _SPECIAL.get(kind)
    if special:
        special(word, scene)
        return
    shape, said = _COMPILED[kind]
    if not shape.fullmatch(word.text):
        raise NotProved(f"{word.text or 'an empty word'} is not {said}")
    if word.text[:1] == "/":
        check_names(word, scene)


def known_kind(kind: str) -> bool:
    """Whether a rule may name this kind."""
    return kind in _SPECIAL or kind in _COMPILED or (kind[:1] == "{" and kind[-1:] == "}")


def check_host(word: Word, scene: Scene) -> None:
    """A name that will be asked of the network: loopback or among the inventory's targets."""
    if not reachable(word.text, scene.targets):
        raise NotProved(
            f"{word.text} is not among the targets of hosts.yml "
            " (only they and localhost are asked of the network); a name may leak"
        )


def check_endpoint(word: Word, scene: Scene) -> None:
    """HOST:PORT of a target."""
    host, _, port = word.text.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or not reachable(host, scene.targets):
        raise NotProved(f"{word.text} is not HOST:PORT with a host among the targets of hosts.yml")


def reachable(host: str, targets: tuple[str, ...]) -> bool:
    """Whether a host is this machine or one that the inventory lets dig, ping and curl reach."""
    if not _HOST.fullmatch(host):
        return False
    name = host.strip("[]").lower().rstrip(".")
    if name in _LOOPBACK:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return any(_names(target) and fnmatchcase(name, target.lower()) for target in targets)
    if address.is_loopback:
        return True
    return any(_contains(target, address) for target in targets)


def _names(target: str) -> bool:
    return any(char.isalpha() for char in target)


def _contains(target: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(target, strict=False)
    except ValueError:
        return False


def _pattern(word: Word, scene: Scene) -> None:
    if len(word.text) > LONGEST_PATTERN:
        raise NotProved("a pattern longer than 500 characters")
    check_pattern(word.text)


def check_pattern(text: str) -> None:
    """A regular expression that somebody else's engine reads. Raises NotProved for one that may eat time or memory."""
    if _BACK.search(text):
        raise NotProved("a back reference, which may take for ever to match")
    if _NESTED.search(text):
        raise NotProved("a repeat of a group that ends in a repeat, which may take for ever to match")
    times = 1
    for most in _TIMES.findall(text):
        times *= max(int(most), 1)
    if times > _MOST_TIMES:
        raise NotProved(f"repeats of more than {_MOST_TIMES} in a pattern, which may take all memory")


def _text(word: Word, scene: Scene) -> None:
    if len(word.text) > 1000:
        raise NotProved("a very long word")


def _file_or_stdin(word: Word, scene: Scene) -> None:
    if word.text != "-":
        check_content(word, scene)


def _name_of_program(word: Word, scene: Scene) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}", word.text):
        raise NotProved(f"{word.text} is not a program's plain name")


_SPECIAL: dict[str, Callable[[Word, Scene], None]] = {
    "path": check_names,
    "file": _file_or_stdin,
    "host": check_host,
    "endpoint": check_endpoint,
    "pattern": _pattern,
    "text": _text,
    "program": _name_of_program,
}


def _said(kind: str) -> str:
    return _COMPILED[kind][1] if kind in _COMPILED else f"a {kind.strip('{}')}"
