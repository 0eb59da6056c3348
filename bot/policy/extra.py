"""An operator's file of rules: adds programs and tightens ours; nothing in it can loosen what is refused or asked."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from bot.errors import SettingsError
from bot.policy.lexer import listed
from bot.policy.patterns import quick_pattern
from bot.policy.rules import check_examples, commands, read_yaml
from bot.policy.spec import Rules, Said, Spec

_WHERE = "OPSTHREAD_POLICY"
_KEYS = listed("commands ask deny dangerous secrets")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")
# A shell, an interpreter or a wrapper in the table would let everything through that it is given; a writer is no read.
_NEVER = listed(
    "sh bash rbash dash ash zsh ksh mksh pdksh posh yash csh tcsh fish elvish nu osh xonsh pwsh busybox toybox "
    "sudo su doas pkexec run0 sudoedit runuser setpriv env nohup nice ionice chrt taskset setsid stdbuf flock xargs parallel "
    "eval exec command builtin source . time timeout watch script scriptreplay systemd-run at batch chroot unshare nsenter "
    "bwrap firejail proot fakeroot strace ltrace gdb lldb expect tclsh wish python pypy perl ruby node nodejs deno bun php lua "
    "luajit guile awk nawk original-awk ed ex vi vim view nvim nano emacs less more most man ssh mosh dbclient plink rsh slogin "
    "rm dd tee cp mv ln install shred truncate mkfs wipefs"
)
_VERSION = re.compile(r"(?:[-.]?[0-9][0-9.]*|[-.](?:static|real|rs|full|minimal))+$")


def with_extra(rules: Rules, extra: str) -> Rules:
    """Our table with an operator's rules over it.

    extra: YAML. `commands` adds programs that the table lacks; `ask` lists programs that always ask; `deny` maps
    patterns to reasons; `dangerous` names what two people must approve, in the form of dangerous.yml; `secrets`
    lists patterns of paths that hold secrets. Raises SettingsError that names the entry and the mend.
    """
    data = read_yaml(extra, _WHERE)
    if wrong := sorted(str(key) for key in set(data) - _KEYS):
        raise SettingsError(f"{_WHERE}: {wrong[0]} is not a key; use {', '.join(sorted(_KEYS))}")
    entries = _mapping(data.get("commands"), "commands")
    for key in entries:
        for name in _names(key):
            _may_be_added(name, rules)
    table = dict(rules.commands) | commands(entries, _WHERE)
    for key in _list(data.get("ask"), "ask"):
        for name in _names(key):
            table[name] = Spec(name, ask=f"{name} always asks here (the operator's rules)")
    secrets = [quick_pattern(p, f"{_WHERE}: secrets") for p in _list(data.get("secrets"), "secrets")]
    grave = _mapping(data.get("dangerous"), "dangerous")
    if wrong := sorted(str(key) for key in set(grave) - {"text", "programs"}):
        raise SettingsError(f"{_WHERE}: dangerous: {wrong[0]} is not a key; use programs, text")
    dangerous = dict(rules.dangerous)
    for key, patterns in _mapping(grave.get("programs"), "dangerous: programs").items():
        for name in _names(key):
            dangerous[name] = dangerous.get(name, ()) + _said(patterns, f"dangerous: {name}")
    new = replace(
        rules,
        commands=MappingProxyType(table),
        secrets=_joined(rules.secrets, secrets),
        # A glob cannot be held against an operator's own patterns, so none runs by itself then.
        globs=re.compile(r"(?!)") if secrets else rules.globs,
        deny=rules.deny + _said(data.get("deny"), "deny"),
        dangerous_text=rules.dangerous_text + _said(grave.get("text"), "dangerous: text"),
        dangerous=MappingProxyType(dangerous),
        digest=hashlib.sha256(f"{rules.digest}\0{extra}".encode()).hexdigest(),
    )
    check_examples(entries, new, _WHERE)
    return new


def _joined(ours: re.Pattern[str], theirs: list[re.Pattern[str]]) -> re.Pattern[str]:
    try:
        return re.compile("|".join([ours.pattern, *(found.pattern for found in theirs)]))
    except re.error as error:
        raise SettingsError(
            f"{_WHERE}: secrets: write patterns without flags and group names: {error}"
        ) from None


def _names(key: Any) -> list[str]:
    names = key.split() if isinstance(key, str) else []
    for name in names or [str(key)]:
        if not names or not _NAME.fullmatch(name):
            raise SettingsError(
                f"{_WHERE}: {name!r} is not a program's plain name; write the name alone, in quotes"
            )
    return names


def _may_be_added(name: str, rules: Rules) -> None:
    if name in rules.commands:
        raise SettingsError(f"{_WHERE}: {name} has rules already; list it under ask to tighten it")
    plain = _VERSION.sub("", name)
    if plain in _NEVER or plain.startswith("mkfs"):
        raise SettingsError(f"{_WHERE}: {name} runs other programs or writes, and cannot be added; remove it")
    if plain != name and plain in rules.commands:
        raise SettingsError(
            f"{_WHERE}: {name} is {plain} by another name, which has rules already; remove it"
        )


def _mapping(data: Any, key: str) -> dict[Any, Any]:
    if data is not None and not isinstance(data, dict):
        raise SettingsError(f"{_WHERE}: {key} must be a mapping")
    return data or {}


def _list(data: Any, key: str) -> list[Any]:
    if data is not None and not isinstance(data, list):
        raise SettingsError(f"{_WHERE}: {key} must be a list, such as [{data}]")
    return data or []


def _said(data: Any, key: str) -> Said:
    if data is not None and not isinstance(data, dict):
        raise SettingsError(f"{_WHERE}: {key} must map patterns to reasons")
    if missing := next((text for text, why in (data or {}).items() if not isinstance(why, str)), None):
        raise SettingsError(f"{_WHERE}: {key}: {missing} has no reason; write it behind the colon")
    return tuple((quick_pattern(text, f"{_WHERE}: {key}"), why) for text, why in (data or {}).items())
