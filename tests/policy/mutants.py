"""Takes single checks out of the gate, one at a time, so that the cases can show that they miss each of them.

Three kinds: a check in the code is never true; an entry of the table loses a word; a pattern of paths.yml or
dangerous.yml loses an alternative. Everything is put back afterwards.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FunctionType, MappingProxyType
from typing import Any

from bot.policy import checks, kinds, lexer, paths
from bot.policy.lexer import listed
from bot.policy.rules import commands, load_rules, packaged_entries
from bot.policy.spec import Rules

MODULES = listed(
    "awk_growth checks danger hazards judge kinds languages lexer match nested network paths showing sql wrappers"
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One check taken out. `programs`: the only ones whose verdicts can change; None means all."""

    name: str
    apply: Callable[[], Any]  # a context manager that yields the rules to judge with
    programs: frozenset[str] | None = None


def all_mutants() -> Iterator[Mutant]:
    """Every mutant there is."""
    yield from _of_the_code()
    yield from _of_the_table()
    yield from _of_the_patterns()


# --- the code: `if …: raise NotProved` and `if …: return reason` are never true --------------------------------


def _of_the_code() -> Iterator[Mutant]:
    for name in sorted(MODULES):
        module = importlib.import_module(f"bot.policy.{name}")
        source = inspect.getsource(module)
        tree = ast.parse(source)
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            live = getattr(module, function.name)
            live = getattr(live, "__wrapped__", live)
            for number, branch in enumerate(n for n in ast.walk(function) if isinstance(n, ast.If)):
                last = branch.body[-1]
                if isinstance(last, ast.Raise) or (
                    name in ("hazards", "showing", "danger") and isinstance(last, ast.Return)
                ):
                    where = f"{name}.{function.name}: if {ast.unparse(branch.test)}"
                    yield Mutant(where, _without(live, module, tree, function.name, number))


def _without(live: FunctionType, module: Any, tree: ast.Module, name: str, number: int) -> Callable[[], Any]:
    def code() -> Any:
        mutated = copy.deepcopy(tree)
        function = next(n for n in mutated.body if isinstance(n, ast.FunctionDef) and n.name == name)
        function.decorator_list = []
        branch = [n for n in ast.walk(function) if isinstance(n, ast.If)][number]
        # The test is still worked out: names that it binds are used further down.
        branch.test = ast.BoolOp(ast.And(), [branch.test, ast.Constant(False)])
        space = dict(vars(module))
        exec(compile(ast.fix_missing_locations(mutated), module.__file__, "exec"), space)
        return space[name].__code__

    @contextmanager
    def apply() -> Iterator[Rules]:
        old = live.__code__
        live.__code__ = code()
        _forget()
        try:
            yield load_rules()
        finally:
            live.__code__ = old
            _forget()

    return apply


def _forget() -> None:
    lexer._plain.cache_clear()
    paths.meets.cache_clear()


# --- the table ---------------------------------------------------------------------------------------------------


def _of_the_table() -> Iterator[Mutant]:
    for key, entry in packaged_entries().items():
        for said, changed in _changes(entry):
            yield Mutant(f"{key}: {said}", _with_entry(key, changed), frozenset(key.split()))


def _changes(entry: Any, top: bool = True) -> Iterator[tuple[str, Any]]:
    """An entry without one of its checks, for each of them."""
    if isinstance(entry, str):
        yield "always asks", {"whole": "anything"} if top else {"args": "anything*"}
        return
    entry = entry or {}
    for number, item in enumerate(words := str(entry.get("opts", "")).split()):
        loose = re.sub(r"(?<=:).+$|(?<=\?).+$|(?<=\[=).+(?=\])", "anything", item)
        if item.startswith("--"):
            loose = re.sub(r"(?<=[a-z]=).+(?<!\])$", "anything", loose)
        if loose != item and not item.endswith((":text", "=text")):
            yield f"opts {item}", entry | {"opts": " ".join([*words[:number], loose, *words[number + 1 :]])}
    for choice in (required := str(entry.get("require", "")).split()):
        yield f"require {choice}", entry | {"require": " ".join(c for c in required if c != choice)}
    for name in ("check", "bare"):
        if entry.get(name):
            yield name, {k: v for k, v in entry.items() if k != name}
    if entry.get("whole"):
        yield "whole", entry | {"whole": "anything"}
    args = str(entry.get("args", "")).split()
    for number, arg in enumerate(args):
        kind = re.match(r"\{[^}]*\}|[a-z_]+", arg)
        assert kind
        if kind[0] != "text":
            yield (
                f"args {arg}",
                entry
                | {"args": " ".join([*args[:number], "anything" + arg[kind.end() :], *args[number + 1 :]])},
            )
    if not entry.get("sub") and not entry.get("whole") and not any(arg.endswith(("*", "+")) for arg in args):
        yield "no more words", entry | {"args": " ".join([*args, "anything*"])}
    for words_, below in (entry.get("sub") or {}).items():
        for said, changed in _changes(below, False):
            yield f"{words_}: {said}", entry | {"sub": entry["sub"] | {words_: changed}}
    if entry.get("sub") and top:
        yield "unknown sub-command", entry | {"sub": _AnySub(entry["sub"])}


class _AnySub(dict[str, Any]):
    """Sub-commands among which every word is one."""


def _with_entry(key: str, entry: Any) -> Callable[[], Any]:
    @contextmanager
    def apply() -> Iterator[Rules]:
        with _anything_goes():
            rules = load_rules()
            specs = commands({key: entry}, "mutant")
            if isinstance((entry or {}).get("sub") if isinstance(entry, dict) else None, _AnySub):
                specs = {n: replace(s, sub=_Every(s.sub)) for n, s in specs.items()}
            yield replace(rules, commands=MappingProxyType(dict(rules.commands) | specs))

    return apply


class _Every(dict[str, Any]):
    """A table of sub-commands that knows every word, as one that takes anything."""

    def get(self, word: str, default: Any = None) -> Any:
        from bot.policy.spec import Arg, Spec

        return dict.get(self, word) or Spec(word, args=(Arg("anything", 0, 200),))


@contextmanager
def _anything_goes() -> Iterator[None]:
    kinds._SPECIAL["anything"] = lambda word, scene: None
    checks.WHOLE["anything"] = lambda words, scene: words
    try:
        yield
    finally:
        del kinds._SPECIAL["anything"], checks.WHOLE["anything"]


# --- kinds, and the patterns of paths.yml and dangerous.yml ------------------------------------------------------


def _of_the_patterns() -> Iterator[Mutant]:
    rules = load_rules()
    for kind in kinds._COMPILED:
        yield Mutant(f"kind {kind}", _swapped(kinds._COMPILED, kind, (re.compile(r"(?s).*"), "anything")))
    for kind in kinds._SPECIAL:
        if kind != "text":
            yield Mutant(f"kind {kind}", _swapped(kinds._SPECIAL, kind, lambda word, scene: None))
    for gone, pattern in _less(rules.secrets.pattern):
        yield Mutant(f"secrets {gone}", _with_rules(secrets=re.compile(pattern)))
    for field in ("roots", "globs"):
        yield Mutant(f"{field} loose", _with_rules(**{field: re.compile(r"(?s).*")}))
        for gone, pattern in _less(getattr(rules, field).pattern, deep=False):
            yield Mutant(f"{field} {gone}", _with_rules(**{field: re.compile(pattern)}))
    for number, name in enumerate(rules.excluded):
        yield Mutant(
            f"excluded {name}", _with_rules(excluded=rules.excluded[:number] + rules.excluded[number + 1 :])
        )
    for field in ("names", "cores"):
        for number, name in enumerate(found := getattr(rules, field)):
            yield Mutant(f"{field} {name}", _with_rules(**{field: found[:number] + found[number + 1 :]}))
    for number, (pattern, said) in enumerate(rules.deny):
        for gone, less in _less(pattern.pattern):
            yield Mutant(
                f"deny {gone}",
                _with_rules(deny=(*rules.deny[:number], (re.compile(less), said), *rules.deny[number + 1 :])),
            )
    for number, (pattern, _) in enumerate(rules.dangerous_text):
        yield Mutant(
            f"dangerous text {pattern.pattern}",
            _with_rules(dangerous_text=rules.dangerous_text[:number] + rules.dangerous_text[number + 1 :]),
        )
    seen = set()
    for program, patterns in rules.dangerous.items():
        for pattern, said in patterns:
            if (pattern.pattern, said) not in seen:
                seen.add((pattern.pattern, said))
                less = {
                    n: tuple(p for p in found if p[0].pattern != pattern.pattern or p[1] != said)
                    for n, found in rules.dangerous.items()
                }
                yield Mutant(
                    f"dangerous {program} {pattern.pattern}", _with_rules(dangerous=MappingProxyType(less))
                )


def _less(pattern: str, deep: bool = True) -> Iterator[tuple[str, str]]:
    """A pattern without one of its alternatives, for each (at any depth when deep); never without all."""
    for start, end, group_start, group_end in _alternatives(pattern):
        if not deep and group_start:
            continue
        gone = pattern[start:end]
        cut = (
            pattern[:start] + pattern[end + 1 :] if end < group_end else pattern[: start - 1] + pattern[end:]
        )
        if (start == group_start and end == group_end) or not re.search(r"\w{2}", gone):
            continue  # an anchor or a single character is a part of a check, not one
        try:
            re.compile(cut)
        except re.error:
            continue
        yield gone, cut


def _alternatives(pattern: str) -> Iterator[tuple[int, int, int, int]]:
    """(start, end) of each alternative, with those of the group that it is in."""
    stack: list[list[int]] = [[0]]
    at, bracket = 0, False
    while at <= len(pattern):
        char = pattern[at] if at < len(pattern) else ""
        if char == "\\":
            at += 1
        elif bracket:
            bracket = char != "]"
        elif char == "[":
            bracket = True
            at += 1 + (pattern[at + 1] == "^")
        elif char == "(":
            inside = re.compile(r"\((?:\?(?:[:=!]|<[=!]))?").match(pattern, at)
            assert inside
            at = inside.end() - 1
            stack.append([at + 1])
        elif char == "|":
            stack[-1].append(at + 1)
        elif char in (")", ""):
            starts = stack.pop()
            ends = [start - 1 for start in starts[1:]] + [at]
            if len(starts) > 1:
                yield from ((s, e, starts[0], at) for s, e in zip(starts, ends, strict=True))
        at += 1


def _with_rules(**changed: Any) -> Callable[[], Any]:
    @contextmanager
    def apply() -> Iterator[Rules]:
        yield replace(load_rules(), **changed)

    return apply


def _swapped(table: dict[str, Any], key: str, value: Any) -> Callable[[], Any]:
    @contextmanager
    def apply() -> Iterator[Rules]:
        old = table[key]
        table[key] = value
        try:
            yield load_rules()
        finally:
            table[key] = old

    return apply
