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
from bot.policy.shorthand import written_out
from bot.policy.spec import Arg, Options, Rules, Said, Spec
from storage.records import Decision

__all__ = ["Rules", "load_rules"]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEYS = listed("opts args sub require add add_last sudo check whole ask hint bare match not_match")
_ARG = re.compile(r"(\{[^}]*\}|[a-z_]+)([?*+]|#(\d+))?")
_MANY = 200
_ANY_WORD = listed("name names word unit label interface text package user columns format filter kubename")


def load_rules(extra: str | None = None) -> Rules:
    """The table, with an operator's rules over it when given.

    extra: the text of a YAML file, see bot/policy/extra.py; nothing in it can loosen what is refused.
    Raises SettingsError that names the entry and the mend.
    """
    if not extra or not extra.strip():
        return _packaged()
    from bot.policy.extra import with_extra

    return with_extra(_packaged(), extra)


@cache
def _packaged() -> Rules:
    texts = _texts()
    code = [f.read_text("utf-8") for f in _sorted_sources()]
    digest = hashlib.sha256("\0".join([*(texts[n] for n in sorted(texts)), *code]).encode()).hexdigest()
    base = read_yaml(texts["paths.yml"], "paths.yml")
    grave = read_yaml(texts["dangerous.yml"], "dangerous.yml")
    grave = written_out(grave, grave["names"])
    entries = packaged_entries()
    table = commands(entries, "the packaged rules")
    rules = Rules(
        commands=MappingProxyType(table),
        secrets=re.compile("|".join(base["secrets"])),
        roots=re.compile("|".join(base["roots"])),
        globs=re.compile("|".join(base["globs"])),
        names=tuple(base["names"]),
        cores=tuple(base["cores"]),
        excluded=tuple(base["excluded"]),
        deny=said(base["deny"], "paths.yml: deny"),
        dangerous_text=said(grave["text"], "dangerous.yml: text"),
        dangerous=MappingProxyType(said_of_programs(grave["programs"], "dangerous.yml")),
        digest=digest,
    )
    _check_that_there_are_examples(entries)
    check_examples(entries, rules, "the packaged rules")
    return rules


def _texts() -> dict[str, str]:
    folder = resources.files("bot.policy") / "rules"
    return {f.name: f.read_text("utf-8") for f in folder.iterdir() if f.name.endswith(".yml")}


def packaged_entries() -> dict[str, Any]:
    """The entries of all tables as they are written."""
    entries: dict[str, Any] = {}
    for name, text in sorted(_texts().items()):
        if name in ("paths.yml", "dangerous.yml"):
            continue
        for key, entry in read_yaml(text, name).items():
            if key in entries:
                raise SettingsError(f"{name}: {key} is there twice; merge the entries")
            entries[key] = entry
    return entries


def _sorted_sources() -> Iterator[Any]:
    files = [f for f in resources.files("bot.policy").iterdir() if f.name.endswith(".py")]
    return iter(sorted(files, key=lambda f: f.name))


class _Strict(_LOADER):  # type: ignore[misc, valid-type]
    """A safe loader that does not let a key hide an earlier one of the same name."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in found:
                raise yaml.YAMLError(
                    f"{key} is there twice (line {key_node.start_mark.line + 1}); merge the entries"
                )
            found[key] = self.construct_object(value_node, deep=True)
        return found


def read_yaml(text: str, where: str) -> dict[str, Any]:
    """A mapping from a text. Raises SettingsError, also for a key that is there twice."""
    try:
        data = yaml.load(text, Loader=_Strict)  # noqa: S506  (a safe loader, in C where there is one)
    except (yaml.YAMLError, TypeError) as error:
        raise SettingsError(f"{where}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise SettingsError(f"{where}: must be a mapping of names to rules")
    return data


def said(data: Any, where: str) -> Said:
    """Patterns, each with what is said of a match."""
    if not isinstance(data, dict):
        raise SettingsError(f"{where} must map patterns to reasons")
    if missing := next((text for text, reason in data.items() if not isinstance(reason, str)), None):
        raise SettingsError(f"{where}: {missing} has no reason; write it behind the colon")
    return tuple((pattern(text, where), reason) for text, reason in data.items())


def said_of_programs(data: Any, where: str) -> dict[str, Said]:
    """For each program its patterns over its words. A key may name several programs."""
    if not isinstance(data, dict):
        raise SettingsError(f"{where}: programs must map names to patterns with reasons")
    out: dict[str, Said] = {}
    for names, patterns in data.items():
        for name in str(names).split():
            if name in out:
                raise SettingsError(f"{where}: {name} is there twice; merge the entries")
            out[name] = said(patterns, f"{where}: {name}")
    return out


def pattern(text: Any, where: str) -> re.Pattern[str]:
    """Raises SettingsError for what is no regular expression."""
    try:
        return re.compile(str(text))
    except re.error as error:
        raise SettingsError(f"{where}: {text} is not a regular expression: {error}") from None


def commands(entries: Mapping[str, Any], where: str) -> dict[str, Spec]:
    out: dict[str, Spec] = {}
    for key, entry in entries.items():
        for name in str(key).split():
            if name in out:
                raise SettingsError(f"{where}: {name} is there twice; merge the entries")
            out[name] = _spec(name, entry, f"{where}: {name}", Options(), ())
    return out


def _spec(name: str, entry: Any, where: str, above: Options, added: tuple[str, ...]) -> Spec:
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
    add = tuple(dict.fromkeys((*added, *str(entry.get("add", "")).split())))
    sub = {
        word: _spec(f"{name} {word}", below, f"{where} {word}", options, add)
        for words, below in (entry.get("sub") or {}).items()
        for word in str(words).split()
    }
    return Spec(
        name=name,
        options=options,
        args=_args(str(entry.get("args", "")), where),
        sub=MappingProxyType(sub),
        require=tuple(str(entry.get("require", "")).split()),
        add=add,
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
    out: list[Arg] = []
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
        if out and out[-1].kind[0] == "{" and not out[-1].least and found[1] in _ANY_WORD:
            # Left out, its place would be taken by the next word: `nmcli con reload` for `nmcli con [show] [NAME]`.
            raise SettingsError(
                f"{where}: an optional word of a list before {found[1]} proves nothing; use sub"
            )
        out.append(Arg(_kind(found[1], where), least, most))
    return tuple(out)


def check_examples(entries: Mapping[str, Any], rules: Rules, where: str) -> None:
    for key, entry in entries.items():
        for wanted, example in _examples(entry):
            verdict = judge(
                example, rules, host_name="example", sudo_allowed=True, targets=("*.example.com",)
            )
            if (verdict.decision is Decision.ALLOW) != wanted:
                said = "should run by itself" if wanted else "should not run by itself"
                raise SettingsError(f"{where}: {key}: `{example}` {said}, but: {verdict.reason}")


def _check_that_there_are_examples(entries: Mapping[str, Any]) -> None:
    for key, entry in entries.items():
        if isinstance(entry, str):
            continue  # never allowed
        kinds = {wanted for wanted, _ in _examples(entry or {})}
        for wanted, name in ((True, "match"), (False, "not_match")):
            if wanted not in kinds:
                raise SettingsError(f"the packaged rules: {key}: lacks {name}; write an example of it")


def packaged_examples() -> Iterator[tuple[str, bool, str]]:
    """The examples of the packaged table: the entry's key, whether it runs by itself, and the command."""
    for key, entry in packaged_entries().items():
        for wanted, example in _examples(entry):
            yield key, wanted, example


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
