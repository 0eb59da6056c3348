"""Finds the secrets of a text and replaces them; pure, and linear in the text's length whatever it holds.

One quick pass a keyword says where to look, and patterns are tried there only. Tokens that are told by their
own shape are looked for where a long unbroken word stands.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.redact.arguments import Arguments
from bot.redact.finders import Span, kubernetes, own_values, private_keys
from bot.redact.rule import Rule, Rules
from bot.redact.values import is_secret

MARK = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")
_SHORT = 65_536  # characters that are looked at until nothing is found
_ROUNDS = 5
_WORD = 20  # characters without a break: every token has so long a part
_BEFORE = 6  # characters before that part in which a token may begin (`SG.`, `hvs.`)
_NEAR = 500  # characters around a keyword in which an operator's pattern is searched
_LONGEST = 10_000  # characters of a secret that such a pattern finds
_AS_X = bytes(ord("x") if chr(n).isalnum() or chr(n) in "_-" else 32 for n in range(128)) + b" " * 128
_LONG_WORD = re.compile("x" * _WORD + "x*+")


@dataclass(frozen=True, slots=True)
class Redacted:
    """The text with every secret replaced by `[redacted:RULE]`; the names of the rules that hit, with repeats."""

    text: str
    found: tuple[str, ...]


class Redactor:
    """Takes secrets out of texts. Holds no state, so threads may share one.

    known: our own values in every spelling. recipe: the values and the operator's patterns that it was made
    from, to make it again in another process.
    """

    __slots__ = ("_by_keyword", "_prefix", "_tokens", "known", "recipe")

    def __init__(self, *, rules: Rules, known: tuple[str, ...], recipe: tuple[tuple[str, ...], str]) -> None:
        self.recipe = recipe
        self.known = known
        self._tokens = {prefix: token for token in rules.tokens for prefix in token.prefixes}
        self._prefix = re.compile(_one_of(self._tokens))
        self._by_keyword: dict[str, list[tuple[int, Rule]]] = {}
        for number, rule in enumerate(rules.rules):
            for keyword in rule.keywords:
                self._by_keyword.setdefault(keyword, []).append((number + 10, rule))

    def text(self, text: str) -> Redacted:
        """Any text, also with NUL and lone surrogates. What is redacted already stays as it is.

        What comes to stand together when a secret goes may look like another one: up to 65,536 characters are
        looked at until nothing is found.
        """
        found: list[str] = []
        for _ in range(_ROUNDS if len(text) <= _SHORT else 1):
            spans = self._spans(text)
            if not spans:
                break
            text = _replaced(text, spans)
            found += [span.rule for span in spans]
        return Redacted(text, tuple(found))

    def json_text(self, arguments: str) -> Redacted:
        """A JSON text, such as a call's arguments, that stays JSON. What is not JSON is taken as plain text."""
        reader = Arguments(self._look)
        try:
            text = reader.redacted(arguments)
        except (ValueError, RecursionError):
            return self.text(arguments)
        return Redacted(text, tuple(reader.found))

    def _look(self, text: str) -> tuple[str, tuple[str, ...]]:
        done = self.text(text)
        return done.text, done.found

    def _spans(self, text: str) -> list[Span]:
        lowered = lower(text)
        marks = Marks(text)
        found = [
            *own_values(text, self.known),
            *private_keys(text, lowered),
            *kubernetes(text, lowered),
            *self._of_tokens(text),
        ]
        for keyword, rules in self._by_keyword.items():
            places = list(_places(lowered, keyword))
            for rank, rule in rules if places else ():
                found += (_near if rule.near else _at)(text, places, rule, rank, marks)
        return _merged(span for span in found if not marks.touch(span.start, span.end))

    def _of_tokens(self, text: str) -> Iterator[Span]:
        words = text.encode("ascii", "replace").translate(_AS_X).decode("ascii")
        done = 0
        for word in _LONG_WORD.finditer(words):
            start, end = max(word.start() - _BEFORE, done), word.end()
            for prefix in self._prefix.finditer(text, start, end):
                token = self._tokens[prefix[0]]
                if prefix.start() >= done and (hit := token.pattern.match(text, prefix.start())):
                    yield Span(hit.start(), hit.end(), 2, token.name)
                    done = hit.end()
            done = max(done, end)


class Marks:
    """Where a text holds marks of an earlier redaction."""

    def __init__(self, text: str) -> None:
        spans = [mark.span() for mark in MARK.finditer(text)] if "[redacted:" in text else []
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def hold(self, at: int) -> bool:
        """Whether this place lies within a mark."""
        before = bisect_left(self._starts, at) - 1
        return before >= 0 and at < self._ends[before]

    def touch(self, start: int, end: int) -> bool:
        """Whether a mark overlaps this span or stands right beside it."""
        before = bisect_right(self._starts, end) - 1
        return before >= 0 and self._ends[before] >= start


def _replaced(text: str, spans: Iterable[Span]) -> str:
    out, at = [], 0
    for span in spans:
        out += [text[at : span.start], "[redacted:", span.rule, "]"]
        at = span.end
    return "".join([*out, text[at:]])


def lower(text: str) -> str:
    """Small letters, each at its place: the one letter that grows in lower() is replaced first."""
    return text.replace("İ", "i").lower()


def _one_of(prefixes: Iterable[str]) -> str:
    """A pattern of any of these, told apart by their first letter first, which is twice as quick."""
    rests: dict[str, list[str]] = {}
    for prefix in sorted(prefixes, key=len, reverse=True):
        rests.setdefault(re.escape(prefix[0]), []).append(re.escape(prefix[1:]))
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in rests.items())


def _places(lowered: str, keyword: str) -> Iterator[int]:
    at = lowered.find(keyword)
    while at >= 0:
        yield at
        at = lowered.find(keyword, at + len(keyword))


def _at(text: str, places: list[int], rule: Rule, rank: int, marks: Marks) -> Iterator[Span]:
    done = 0
    match = rule.pattern.match
    for at in places:
        # What lies in a secret that was found is not looked at again, which keeps the whole linear.
        if at < done or not (hit := match(text, at)):
            continue
        if is_secret(hit["secret"], rule.kind) and not marks.hold(at):
            start, end = hit.span("secret")
            yield Span(start, end, rank, rule.name)
            done = end


def _near(text: str, places: list[int], rule: Rule, rank: int, _marks: Marks) -> Iterator[Span]:
    covered = 0
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    for at in places:
        if at + _NEAR // 2 <= covered:
            continue
        start, covered = max(at - _NEAR, covered - _NEAR, 0), at + _NEAR
        for hit in rule.pattern.finditer(text, start, covered):
            if hit.end() == covered:  # perhaps cut by the window's end
                hit = rule.pattern.match(text, hit.start(), covered + _LONGEST) or hit  # noqa: PLW2901
            if is_secret(hit[group] or "", rule.kind):
                yield Span(*hit.span(group), rank, rule.name)


def _merged(spans: Iterable[Span]) -> list[Span]:
    out: list[Span] = []
    for span in sorted(spans):
        if out and span.start < out[-1].end:
            last = out[-1]
            rank, rule = min((last.rank, last.rule), (span.rank, span.rule))
            out[-1] = Span(last.start, max(last.end, span.end), rank, rule)
        else:
            out.append(span)
    return out
