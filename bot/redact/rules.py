"""Reads the rules: the packaged ones and an operator's own patterns, which can only add to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from bot.errors import SettingsError
from bot.redact.finders import spellings
from bot.redact.redactor import Redactor
from bot.redact.rule import Rule, Rules, Token
from bot.redact.values import Kind
from bot.redact.ways import MOST, portable, ways

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHERE = "OPSTHREAD_REDACT"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_PART = re.compile(r"<<([a-z]+)>>")
_LEAST_KEYWORD = 3  # bytes: one letter of Chinese is enough
_MOST_KEYWORDS = 20


def load_redactor(values: Iterable[str] = (), extra: str | None = None) -> Redactor:
    """A redactor with the packaged rules.

    values: secrets of our own, found wherever they stand, also base64- or URL-encoded; shorter than 8
    characters are left out. extra: the text of an operator's YAML file, name -> {keywords, pattern}. Raises
    SettingsError that names the entry and the mend.
    """
    given = tuple(values)
    rules = packaged()
    own = tuple(_own(extra)) if extra and extra.strip() else ()
    return Redactor(
        rules=Rules(rules.tokens, rules.rules + own), known=spellings(given), recipe=(given, extra or "")
    )


@cache
def packaged() -> Rules:
    """The rules of rules.yml. They are ours: a fault in them is a bug and raises what it raises."""
    text = (resources.files("bot.redact") / "rules.yml").read_text("utf-8")
    data: dict[str, Any] = yaml.load(text, Loader=_LOADER)  # noqa: S506  (a safe loader, in C where there is one)
    parts: dict[str, str] = {}
    for name, part in data["parts"].items():
        parts[name] = _filled(part, parts)
    tokens = tuple(_token(name, entry) for name, entry in data["tokens"].items())
    rules = tuple(
        Rule(
            name=name,
            keywords=tuple(entry["keywords"]),
            pattern=re.compile(_filled(entry["pattern"], parts), re.IGNORECASE),
            kind=Kind(entry["value"]),
        )
        for name, entry in data["rules"].items()
    )
    return Rules(tokens, rules)


def _filled(pattern: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda found: parts[found[1]], pattern)


def _token(name: str, entry: Mapping[str, Any]) -> Token:
    """A prefix of letters must not go on to the left: `task-` is no `sk-`."""
    prefixes = tuple(entry["prefix"])
    starts = "|".join(("(?<![A-Za-z0-9])" if p[0].isalnum() else "") + re.escape(p) for p in prefixes)
    return Token(name, prefixes, re.compile(f"(?:{starts}){entry['body']}"))


def _own(extra: str) -> Iterator[Rule]:
    try:
        data = yaml.load(extra, Loader=_LOADER)  # noqa: S506  (a safe loader, in C where there is one)
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingsError(f"{_WHERE}: not YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(data, dict):
        raise SettingsError(f"{_WHERE}: must be a mapping of names to {{keywords, pattern}}")
    taken = {token.name for token in packaged().tokens} | {rule.name for rule in packaged().rules}
    for name, entry in data.items():
        yield _own_rule(str(name), entry, taken)


def _own_rule(name: str, entry: Any, taken: set[str]) -> Rule:
    where = f"{_WHERE}: {name}"
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{where}: a name has up to 40 of a-z, 0-9 and -, and begins with a letter")
    if name in taken:
        raise SettingsError(f"{where}: a packaged rule has this name; choose another")
    if not isinstance(entry, dict) or set(entry) != {"keywords", "pattern"}:
        raise SettingsError(f"{where}: must have the keys keywords and pattern, and no others")
    return Rule(
        name=name,
        keywords=_keywords(entry["keywords"], where),
        pattern=_pattern(entry["pattern"], where),
        kind=Kind.ANY,
        near=True,
    )


def _keywords(given: Any, where: str) -> tuple[str, ...]:
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, list) or not 1 <= len(words) <= _MOST_KEYWORDS:
        raise SettingsError(f"{where}: keywords must be a list of 1 to {_MOST_KEYWORDS} texts")
    for word in words:
        if not isinstance(word, str) or len(word.encode()) < _LEAST_KEYWORD or word != word.strip():
            raise SettingsError(
                f"{where}: the keyword {word!r} must be text of at least {_LEAST_KEYWORD} characters"
                " that every such secret or its line contains"
            )
    return tuple(word.lower() for word in words)


def _pattern(given: Any, where: str) -> re.Pattern[str]:
    if not isinstance(given, str):
        raise SettingsError(f"{where}: pattern must be text; quote it")
    try:
        found = re.compile(given)
        count = ways(given)
    except (re.error, RecursionError, OverflowError) as error:
        raise SettingsError(f"{where}: not a regular expression: {error}") from None
    if found.search("") or any(found.fullmatch(text) for text in ("a", " ", "0")):
        raise SettingsError(
            f"{where}: the pattern matches nothing or one letter; say more of what it must hold"
        )
    if not portable(given):
        raise SettingsError(
            f"{where}: a possessive repeat of a group is not matched alike by every Python;"
            " write (?>(?:…)*) instead of (?:…)*+"
        )
    if count > MOST:
        raise SettingsError(
            f"{where}: the pattern can take for ever on hostile text; give repeats an upper end such as {{8,64}},"
            " use no repeat in a repeat, or put them in an atomic group (?>…)"
        )
    return found
