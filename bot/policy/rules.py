"""Reads the table of rules: the packaged one, and an operator's file that adds to it and tightens it.

Every entry carries examples (`match`, `not_match`) that are judged while the file loads, so a table that
does not do what it says is not loaded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import yaml

from bot.errors import SettingsError
from bot.policy.checks import AFTER, WHOLE
from bot.policy.judge import judge
from bot.policy.kinds import known_kind
from bot.policy.lexer import listed
from bot.policy.spec import Arg, Options, Rules, Spec
from storage.records import Decision

__all__ = ["Rules", "load_rules"]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEYS = listed("opts args sub require add add_last sudo check whole ask hint bare match not_match")
_ARG = re.compile(r"(\{[^}]*\}|[a-z_]+)([?*+]|#(\d+))?")
_EXTRA_KEYS = frozenset({"commands", "ask", "deny", "secrets"})
_MANY = 200
# A shell or a wrapper in the table would let everything through that it is given.
_NEVER = listed(
    "sh bash dash ash zsh ksh csh tcsh fish busybox sudo su doas env nohup nice ionice setsid stdbuf xargs parallel "
    "eval exec command builtin source . python python3 perl ruby node php lua ssh script watch time chroot "
    "unshare nsenter strace gdb expect vi vim nano emacs less more man rm dd"
)


def load_rules(extra: str | None = None) -> Rules:
    """The table, with an operator's rules over it when given.

    extra: the text of a YAML file. `commands` adds programs that the table lacks, `ask` names programs that
    always ask, `deny` maps patterns to reasons, `secrets` lists patterns of paths that hold secrets. Nothing
    in it can loosen what is refused. Raises SettingsError that names the entry and the mend.
    """
    return _with_extra(_packaged(), extra) if extra and extra.strip() else _packaged()


@cache
def _packaged() -> Rules:
    folder = resources.files("bot.policy") / "rules"
    texts = {f.name: f.read_text("utf-8") for f in folder.iterdir() if f.name.endswith(".yml")}
    code = [f.read_text("utf-8") for f in _sorted_sources()]
    digest = hashlib.sha256("\0".join([*(texts[n] for n in sorted(texts)), *code]).encode()).hexdigest()
    base = _yaml(texts.pop("paths.yml"), "paths.yml")
    entries: dict[str, Any] = {}
    for name in sorted(texts):
        for key, entry in _yaml(texts[name], name).items():
            if key in entries:
                raise SettingsError(f"{name}: {key} is there twice; merge the entries")
            entries[key] = entry
    commands = _commands(entries, "the packaged rules")
    rules = Rules(
        commands=MappingProxyType(commands),
        secrets=re.compile("|".join(base["secrets"])),
        roots=re.compile("|".join(base["roots"])),
        globs=re.compile("|".join(base["globs"])),
        names=tuple(base["names"]),
        cores=tuple(base["cores"]),
        excluded=tuple(base["excluded"]),
        deny=_deny(base["deny"], "paths.yml"),
        digest=digest,
    )
    _check_examples(entries, rules, "the packaged rules")
    return rules


def _sorted_sources() -> Iterator[Any]:
    files = [f for f in resources.files("bot.policy").iterdir() if f.name.endswith(".py")]
    return iter(sorted(files, key=lambda f: f.name))


def _with_extra(rules: Rules, extra: str) -> Rules:
    where = "OPSTHREAD_POLICY"
    data = _yaml(extra, where)
    if wrong := sorted(set(data) - _EXTRA_KEYS):
        raise SettingsError(f"{where}: {wrong[0]} is not a key; use {', '.join(sorted(_EXTRA_KEYS))}")
    entries = data.get("commands") or {}
    for key in entries:
        for name in str(key).split():
            if name in _NEVER:
                raise SettingsError(f"{where}: {name} runs other programs and cannot be added; remove it")
            if name in rules.commands:
                raise SettingsError(f"{where}: {name} has rules already; list it under ask to tighten it")
    commands = dict(rules.commands) | _commands(entries, where)
    for name in data.get("ask") or []:
        commands[str(name)] = Spec(
            str(name), ask=f"{name} always asks here (the operator's rules)", whole="none"
        )
    secrets = [rules.secrets.pattern, *(_pattern(p, where).pattern for p in data.get("secrets") or [])]
    new = Rules(
        commands=MappingProxyType(commands),
        secrets=re.compile("|".join(secrets)),
        roots=rules.roots,
        # A glob cannot be held against an operator's own patterns, so none runs by itself then.
        globs=re.compile(r"(?!)") if data.get("secrets") else rules.globs,
        names=rules.names,
        cores=rules.cores,
        excluded=rules.excluded,
        deny=rules.deny + _deny(data.get("deny") or {}, where),
        digest=hashlib.sha256(f"{rules.digest}\0{extra}".encode()).hexdigest(),
    )
    _check_examples(entries, new, where)
    return new


def _yaml(text: str, where: str) -> dict[str, Any]:
    try:
        data = yaml.load(text, Loader=_LOADER)  # noqa: S506  (a safe loader, in C where there is one)
    except yaml.YAMLError as error:
        raise SettingsError(f"{where}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise SettingsError(f"{where}: must be a mapping of names to rules")
    return data


def _deny(data: Any, where: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    if not isinstance(data, dict):
        raise SettingsError(f"{where}: deny must map patterns to reasons")
    return tuple((_pattern(pattern, where), str(reason)) for pattern, reason in data.items())


def _pattern(text: Any, where: str) -> re.Pattern[str]:
    try:
        return re.compile(str(text))
    except re.error as error:
        raise SettingsError(f"{where}: {text} is not a regular expression: {error}") from None


def _commands(entries: Mapping[str, Any], where: str) -> dict[str, Spec]:
    out: dict[str, Spec] = {}
    for key, entry in entries.items():
        for name in str(key).split():
            if name in out:
                raise SettingsError(f"{where}: {name} is there twice; merge the entries")
            out[name] = _spec(name, entry, f"{where}: {name}", Options())
    return out


def _spec(name: str, entry: Any, where: str, above: Options) -> Spec:
    if isinstance(entry, str):
        entry = {"ask": entry}
    entry = entry or {}
    if not isinstance(entry, dict):
        raise SettingsError(f"{where}: must be a mapping, or a reason to ask")
    if wrong := sorted(set(entry) - _KEYS):
        raise SettingsError(f"{where}: {wrong[0]} is not a key; use {', '.join(sorted(_KEYS))}")
    for key, known in (("check", AFTER), ("whole", WHOLE)):
        if entry.get(key) and entry[key] not in known:
            raise SettingsError(f"{where}: {entry[key]} is not a checker; use {', '.join(sorted(known))}")
    options = _options(str(entry.get("opts", "")), where, above)
    sub = {
        word: _spec(f"{name} {word}", below, f"{where} {word}", options)
        for words, below in (entry.get("sub") or {}).items()
        for word in str(words).split()
    }
    return Spec(
        name=name,
        options=options,
        args=_args(str(entry.get("args", "")), where),
        sub=MappingProxyType(sub),
        require=tuple(str(entry.get("require", "")).split()),
        add=tuple(str(entry.get("add", "")).split()),
        add_last=tuple(str(entry.get("add_last", "")).split()),
        sudo=bool(entry.get("sudo", False)),
        check=str(entry.get("check", "")),
        whole=str(entry.get("whole", "")),
        ask=str(entry.get("ask", "")),
        hint=str(entry.get("hint", "")),
        bare=str(entry.get("bare", "")),
    )


def _options(text: str, where: str, above: Options) -> Options:
    """`-abc` flags, `-n:kind` and `--name=kind` with a value, `-x?kind` and `--x[=kind]` with one glued on."""
    flags, values, optional = set(above.flags), dict(above.values), dict(above.optional)
    digits = above.digits
    for item in text.split():
        if item == "-NUM":
            digits = True
        elif found := re.fullmatch(r"=(-[A-Za-z0-9-]+):(.+)", item):
            values[found[1]] = _kind(found[2], where)
        elif item.startswith("="):
            flags.add(item[1:])  # one exact word, such as `-version`
        elif (found := re.fullmatch(r"(--?[A-Za-z0-9][A-Za-z0-9_-]*)\[=(.+)\]", item)) or (
            found := re.fullmatch(r"(-[A-Za-z0-9])\?(.+)", item)
        ):
            optional[found[1]] = _kind(found[2], where)
        elif found := re.fullmatch(r"(-[A-Za-z0-9]):(.+)|(--[A-Za-z0-9][A-Za-z0-9_-]*)=(.+)", item):
            values[found[1] or found[3]] = _kind(found[2] or found[4], where)
        elif re.fullmatch(r"--[A-Za-z0-9][A-Za-z0-9_-]*", item):
            flags.add(item)
        elif re.fullmatch(r"-[A-Za-z0-9@?]+", item):
            flags |= {"-" + char for char in item[1:]}
        else:
            raise SettingsError(f"{where}: cannot read the option {item}")
    return Options(frozenset(flags), MappingProxyType(values), MappingProxyType(optional), digits)


def _kind(kind: str, where: str) -> str:
    if not known_kind(kind):
        raise SettingsError(f"{where}: {kind} is not a kind of word")
    return kind


def _args(text: str, where: str) -> tuple[Arg, ...]:
    out = []
    for item in text.split():
        found = _ARG.fullmatch(item)
        if not found:
            raise SettingsError(f"{where}: cannot read the argument {item}")
        match found[2]:
            case None:
                least, most = 1, 1
            case "?":
                least, most = 0, 1
            case "*":
                least, most = 0, _MANY
            case "+":
                least, most = 1, _MANY
            case _:
                least, most = 0, int(found[3])
        out.append(Arg(_kind(found[1], where), least, most))
    return tuple(out)


def _check_examples(entries: Mapping[str, Any], rules: Rules, where: str) -> None:
    for key, entry in entries.items():
        for wanted, example in _examples(entry):
            verdict = judge(
                example, rules, host_name="example", sudo_allowed=True, targets=("*.example.com",)
            )
            if (verdict.decision is Decision.ALLOW) != wanted:
                said = "should run by itself" if wanted else "should not run by itself"
                raise SettingsError(f"{where}: {key}: `{example}` {said}, but: {verdict.reason}")


def _examples(entry: Any) -> Iterator[tuple[bool, str]]:
    if not isinstance(entry, dict):
        return
    for key in ("match", "not_match"):
        lines = entry.get(key) or ""
        if not isinstance(lines, str):
            raise SettingsError(f"{key} must be text with one example a line, not a list")
        yield from ((key == "match", line) for line in lines.splitlines() if line)
    for below in (entry.get("sub") or {}).values():
        yield from _examples(below)
