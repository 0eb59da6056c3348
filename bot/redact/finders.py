"""Secrets that no single pattern can tell: keys in PEM blocks, Secrets of Kubernetes, and values known in advance."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

SHORTEST = 8  # characters; a shorter value would be found in innocent words
_KEY = 16_384  # characters; the longest private key in use takes 13,000
_DOCUMENT = 65_536  # characters around `kind: Secret` that are looked at

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(
    r"[A-Za-z0-9+/=]{16,}[\s\"',]*\Z|(?:\A|[\s:|+>])[A-Za-z0-9+/]{1,76}={0,2}[\s\"',]*\Z|\A\s*\Z"
)
_KIND = re.compile(r"\\?[\"']?:\s{0,4}\\?[\"']?Secret(?:List)?\\?[\"']?(?=[\s,}]|\Z)")
_DATA = re.compile(r"^([ \t-]*)(?:string)?data:[ \t]*$", re.MULTILINE | re.IGNORECASE)
_ENTRY = re.compile(r"([ \t]*)(?:[\"']?[\w./-]{1,253}[\"']?:[ \t]*(?![|>][+-]?[ \t]*$))?(.*?)[ \t\r]*$")
_JSON_DATA = re.compile(r"\\?\"(?:string)?data\\?\"\s{0,8}:\s{0,8}\{([^{}]*)\}", re.IGNORECASE)
_JSON_VALUE = re.compile(r":\s{0,8}\\?\"([^\"\\]+)")


class Span(NamedTuple):
    """A secret's place in the text, `end` exclusive. Of spans that overlap the lowest rank names the rule."""

    start: int
    end: int
    rank: int
    rule: str


def private_keys(text: str, lowered: str) -> Iterator[Span]:
    """PEM blocks with their frame, also where the text was cut before the end or after the beginning.

    A block without an end goes on for as long as a key can be; one without a beginning goes back over lines
    that look like a part of one.
    """
    at, done = lowered.find("private key"), 0
    while at >= 0:
        window = max(at - 52, done)
        if begin := _BEGIN.search(text, window, at + 30):
            limit = min(begin.end() + _KEY, len(text))
            ending = _END.search(text, begin.end(), limit)
            done = ending.end() if ending else limit
            yield Span(begin.start(), done, 0, "private-key")
        elif ending := _END.search(text, window, at + 30):
            yield Span(_body_before(text, ending.start(), done), ending.end(), 0, "private-key")
            done = ending.end()
        at = lowered.find("private key", max(at + 1, done))


def _body_before(text: str, end: int, least: int) -> int:
    least = max(least, end - _KEY)
    start = end
    while start > least:
        line = max(text.rfind("\n", least, start - 1) + 1, least)
        if not _BODY.search(text[max(line, start - 400) : start]):
            break
        start = line
    return start


def kubernetes(text: str, lowered: str) -> Iterator[Span]:
    """Values under data and stringData in a document of kind Secret, YAML or JSON, whatever stands first."""
    at, done = lowered.find("kind"), 0
    while at >= 0:
        if _KIND.match(text, at + 4):
            start = max(text.rfind("\n---", done, at) + 1, at - _DOCUMENT, done)
            end = text.find("\n---", at, at + _DOCUMENT)
            done = end if end >= 0 else min(at + _DOCUMENT, len(text))
            yield from _yaml_values(text, start, done)
            for block in _JSON_DATA.finditer(text, start, done):
                for value in _JSON_VALUE.finditer(text, block.start(1), block.end(1)):
                    yield Span(value.start(1), value.end(1), 3, "kubernetes-secret")
        at = lowered.find("kind", max(at + 4, done))


def _yaml_values(text: str, start: int, end: int) -> Iterator[Span]:
    for data in _DATA.finditer(text, start, end):
        line = data.end() + 1
        while line < end:
            stop = text.find("\n", line, end)
            stop = end if stop < 0 else stop
            entry = _ENTRY.match(text, line, stop)
            if entry is None or (entry[2] and len(entry[1]) <= len(data[1])):
                break
            if entry[2]:
                yield Span(entry.start(2), entry.end(2), 3, "kubernetes-secret")
            line = stop + 1


def spellings(values: Iterable[str]) -> tuple[str, ...]:
    """Every way in which one of our own values may stand in a text; values under 8 characters are left out."""
    found: dict[str, None] = {}
    for value in values:
        if len(value) < SHORTEST:
            continue
        escaped = json.dumps(value, ensure_ascii=False)[1:-1]
        raw = value.encode("utf-8", "surrogatepass")
        urls = {quote(raw, safe=""), quote(raw, safe="/"), quote_plus(raw)}
        found |= dict.fromkeys([value, escaped, json.dumps(value)[1:-1], *sorted(urls)])
        found |= dict.fromkeys(re.sub("%..", lambda m: m[0].lower(), url) for url in sorted(urls))
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found |= dict.fromkeys(_inside(encode(b"\0" * shift + raw), shift) for shift in range(3))
    return tuple(found)


def _inside(encoded: bytes, shift: int) -> str:
    """The letters of base64 that depend on the value alone, when `shift` bytes stand before it."""
    text = encoded.decode("ascii")
    end = len(text.rstrip("="))
    return text[(0, 2, 3)[shift] : end - (1 if text.endswith("=") else 0)]


def own_values(text: str, known: Iterable[str]) -> Iterator[Span]:
    """Our own values, in each of their spellings."""
    for value in known:
        at = text.find(value)
        while at >= 0:
            yield Span(at, at + len(value), 1, "own-value")
            at = text.find(value, at + len(value))
