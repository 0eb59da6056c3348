"""What a rule is once it is read: frozen records that the judge looks up, and nothing that acts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from bot.policy.lexer import Word


def _no_kinds() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_specs() -> Mapping[str, Spec]:
    return MappingProxyType({})


Said = tuple[tuple[re.Pattern[str], str], ...]  # patterns, each with what is said of a match


class NotProved(Exception):
    """A command is not proved to be a read; the message is the reason that people see."""


@dataclass(frozen=True, slots=True)
class Arg:
    """A positional word: its kind, and how often it may stand."""

    kind: str
    least: int = 1
    most: int = 1


@dataclass(frozen=True, slots=True)
class Options:
    """The words beginning with `-` that a program may get. Names carry their dashes."""

    flags: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=_no_kinds)  # name -> kind; the value is required
    optional: Mapping[str, str] = field(
        default_factory=_no_kinds
    )  # name -> kind; the value only glued on (`-x5`, `--x=5`)
    digits: bool = False  # `-50`


@dataclass(frozen=True, slots=True)
class Spec:
    """One program, or one of its sub-commands, in the uses that are proved to only read."""

    name: str
    options: Options = field(default_factory=Options)
    args: tuple[Arg, ...] = ()
    sub: Mapping[str, Spec] = field(default_factory=_no_specs)
    require: tuple[str, ...] = ()  # options of which each must be given; `-a|-b` means either
    add: tuple[str, ...] = ()  # words that the renderer puts after the command word
    add_last: tuple[str, ...] = ()  # words that the renderer puts at the end
    sudo: bool = False
    check: str = ""  # a checker that sees the words after the options were read
    whole: str = ""  # a checker that reads all words itself
    ask: str = ""  # never allowed; the reason, and what would work
    hint: str = ""  # what would work, added to every refusal of this program
    bare: str = ""  # why the program without any word asks


@dataclass(frozen=True, slots=True)
class Rules:
    """The whole table. `digest` names this policy: it changes with the table and with the code that reads it."""

    commands: Mapping[str, Spec]
    secrets: re.Pattern[str]  # a content path that matches is a secret
    roots: re.Pattern[str]  # a content path must match
    globs: re.Pattern[str]  # a content path with a glob must match
    names: tuple[str, ...]  # names of secrets as patterns, for meeting globs
    cores: tuple[str, ...]  # what makes a name a secret's, for globs that hold a part of it
    excluded: tuple[str, ...]  # names that a recursive search passes over
    deny: Said
    dangerous_text: Said  # over the whole command: why two people must approve it
    dangerous: Mapping[
        str, Said
    ]  # program -> over its words, with a space before the first and after the last
    digest: str


@dataclass(frozen=True, slots=True)
class Scene:
    """What a word is judged against, beside itself."""

    rules: Rules
    targets: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()  # the wrappers around it, outermost first
    sudo: bool = False

    @property
    def bounded(self) -> bool:
        """Inside `timeout N`, so that it ends by itself."""
        return "timeout" in self.inside


@dataclass(frozen=True, slots=True)
class Given:
    """The words of a command after its options were read."""

    options: tuple[tuple[str, Word | None], ...]
    words: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        """Whether one of these options was given."""
        return any(name in names for name, _ in self.options)

    def value(self, *names: str) -> str | None:
        """The last value of these options."""
        found = [word.text for name, word in self.options if name in names and word]
        return found[-1] if found else None
