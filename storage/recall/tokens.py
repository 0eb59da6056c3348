"""Pure: the words of a text by which it is found again, English, Chinese and the names that operators type.

The same function reads what is stored and what is asked for, so that both meet. NFKC, lower case; then
- a run of letters, digits and `_ . / : @ + -` is kept whole and in its parts: `nginx-1.24.0` gives itself,
  `nginx`, `1.24.0` and `1.24`; a path its names, an address its port;
- a plain English word becomes its stem (Snowball); the most common ones are left out;
- text without spaces (Han, kana, hangul) becomes its pairs of characters, a single one only when it stands
  alone; pairs that say nothing (两个 function characters) are left out.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]

from storage.recall.stopwords import HAN, NAMES, WORDS

LONGEST = 64  # characters of one token; what is longer is known by its beginning
MOST = 20_000  # tokens of one text
READ = 200_000  # characters of a text that are read

_RUN = re.compile(r"[\w./:@+-]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_SHORT_FORM = re.compile(r"(?<=[a-z])['’](?:s|t|re|ve|ll|d|m)\b")
_EDGE = "._/:@+-"
_OUTER = re.compile(r"[/:@+]+")
_INNER = re.compile(r"[_-]+")
_VERSION = re.compile(r"v?([0-9]+\.[0-9]+)(?:\.[0-9]+)*")

_english = snowballstemmer.stemmer("english")


def tokens(text: str) -> tuple[str, ...]:
    """The distinct tokens of a text in the order in which they come. Takes time in proportion to the text."""
    plain = unicodedata.normalize("NFKC", text[:READ]).lower()[: 2 * READ]
    found: dict[str, None] = {}
    for run in _UNSPACED.findall(plain):
        for token in _pairs(run):
            found[token] = None
    for run in _RUN.findall(_SHORT_FORM.sub("", _UNSPACED.sub(" ", plain))):
        for token in _of_run(run):
            found[token] = None
    return tuple(found)[:MOST]


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [] if run in HAN else [run]
    pairs = (run[i : i + 2] for i in range(len(run) - 1))
    return [pair for pair in pairs if pair[0] not in HAN or pair[1] not in HAN]


def _of_run(run: str) -> list[str]:
    run = run.strip(_EDGE)
    if not run:
        return []
    if run.isalnum():
        return _word(run)
    found = [run] if len(run) <= LONGEST else []
    for outer in _OUTER.split(run):
        for inner in _INNER.split(outer):
            found += _dotted(inner.strip("."))
        if outer != run and not outer.isalnum() and len(outer) <= LONGEST:
            found.append(outer.strip(_EDGE))
    return [token for token in found if token]


def _dotted(part: str) -> list[str]:
    """A version with its first two numbers; a name with dots whole and in parts of two characters or more."""
    if version := _VERSION.fullmatch(part):
        return [part[:LONGEST].removeprefix("v"), version[1][:LONGEST]]
    if "." not in part:
        return _word(part) if len(part) > 1 else []
    whole = [part] if len(part) <= LONGEST else []
    return whole + [token for piece in part.split(".") if len(piece) > 1 for token in _word(piece)]


def _word(word: str) -> list[str]:
    word = word[:LONGEST]
    if word in WORDS:
        return []
    return [_stem(word)] if word.isascii() and word.isalpha() and word not in NAMES else [word]


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    return str(_english.stemWord(word))
