"""The records of what a secret looks like."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.redact.values import Kind


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that is tried where one of its keywords stands.

    keywords: in small letters. pattern: matched at the keyword, or searched around it when `near`. Its group
    `secret` is what goes, or all of it without such a group.
    """

    name: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    kind: Kind
    near: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """A provider's token: one of its prefixes, spelled exactly, and the pattern of the whole."""

    name: str
    prefixes: tuple[str, ...]
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Rules:
    """tokens: told by their own shape. rules: told by what stands around the secret."""

    tokens: tuple[Token, ...]
    rules: tuple[Rule, ...]
