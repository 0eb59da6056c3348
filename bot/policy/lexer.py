"""Reads a small, strict part of the shell's language and writes it anew, so that no shell ever sees the model's text.

What it does not understand it rejects; it never guesses. What it accepts is rendered from our own words
with every literal in single quotes: dash and bash then read exactly the argv that was judged.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^-]+")
# Most words: all plain, or one quoted piece, up to the next blank or operator.
_WHOLE = re.compile(
    r"(?:([A-Za-z0-9_@%+=:,./^-]+)|'([ -&(-~]*)'|\"([^\"\\\\$`\x00-\x1f\x7f-\U0010ffff]*)\")(?=[ |&;]|$)"
)
_GLOB = re.compile(r"[*?]+|\[[!^]?[A-Za-z0-9_.,-]+\]")
_OPERATOR = re.compile(r"&&|\|\||\|(?!&)|;(?!;)")
_REDIRECT = re.compile(r"(2>&1|2> *|&> *|> *|< *)(/dev/null)?(?=[ |&;]|$)")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`]|\\.)*)"')
_DOUBLE_ESCAPE = re.compile(r'\\(["\\$`])')


def listed(text: str) -> frozenset[str]:
    """The words of a text: how lists of words are written in this package."""
    return frozenset(text.split())


_FOREIGN = listed("Lu Ll Lt Lm Lo Mn Mc Nd Nl No Pc Pd Ps Pe Pi Pf Po")
KEYWORDS = listed("if then else elif fi for while until do done case esac function time select coproc in")


MOST_WORDS = 200


class Unread(Exception):
    """The text is outside the part of the shell's language that is read; the message says what was met."""


class Op(StrEnum):
    """What stands between two stages."""

    PIPE = "|"
    AND = "&&"
    OR = "||"
    THEN = ";"


_OPS = {op.value: op for op in Op}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word: text taken literally, or a glob that the shell will expand."""

    text: str
    glob: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command. `text` is the argument itself when there is no glob, else the glob as pattern."""

    parts: tuple[Part, ...]
    text: str
    glob: bool = False
    bare: bool = False  # nothing in it was quoted

    def render(self) -> str:
        """The word as shell text that gives back exactly this word."""
        return "".join(p.text if p.glob else quote(p.text) for p in self.parts) or "''"


@dataclass(frozen=True, slots=True)
class Stage:
    """One simple command: its words (at least one) and its redirects, in order."""

    words: tuple[Word, ...]
    redirects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """Stages and the operators between them; there is one operator less than there are stages."""

    stages: tuple[Stage, ...]
    ops: tuple[Op, ...] = ()


def quote(text: str) -> str:
    """In single quotes; a single quote itself becomes `'\\''`."""
    return "'" + text.replace("'", "'\\''") + "'"


def literal(text: str) -> Word:
    """A word of ours that the shell takes literally."""
    return Word((Part(text),), text)


@lru_cache(maxsize=8192)
def _plain(text: str, bare: bool) -> Word:
    return Word((Part(text),), text, False, bare)


def lex(text: str) -> Line:
    """Read one line. Raises Unread, with a reason for people, on anything that is not surely understood."""
    stages: list[Stage] = []
    ops: list[Op] = []
    words: list[Word] = []
    redirects: list[str] = []
    at, end, count = 0, len(text), 0
    while True:
        while at < end and text[at] == " ":
            at += 1
        char = text[at] if at < end else ""
        if char in "2&<>" and at < end and (found := _REDIRECT.match(text, at)):
            redirects.append(_redirect(found[1].rstrip(), found[2]))
            at = found.end()
        elif at == end or (char in "&|;" and (found := _OPERATOR.match(text, at))):
            if not words:
                raise Unread("an operator without a command" if at < end or ops else "an empty command")
            stages.append(Stage(tuple(words), tuple(redirects)))
            if at == end:
                return Line(tuple(stages), tuple(ops))
            assert found is not None
            ops.append(_OPS[found[0]])
            words, redirects, at = [], [], found.end()
        else:
            if (found := _WHOLE.match(text, at)) and (plain := found[found.lastindex or 1]):
                word, at = _plain(plain, found.lastindex == 1), found.end()
            else:
                word, at = _word(text, at)
            if not words:
                _command_word(word)
            words.append(word)
            count += 1
            if count > MOST_WORDS:
                raise Unread(f"more than {MOST_WORDS} words")


# No shell gives these characters a meaning inside an argument, so such a word is easier to read bare.
_BARE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def render(line: Line) -> str:
    """The text that runs: our words. The command word is always quoted, so that it is no keyword, alias or
    assignment; every other literal is quoted unless no shell could read it otherwise.
    """
    out = []
    for n, stage in enumerate(line.stages):
        if n:
            out.append(line.ops[n - 1].value)
        out.append(stage.words[0].render())
        out += map(_argument, stage.words[1:])
        out += stage.redirects
    return " ".join(out)


def _argument(word: Word) -> str:
    if word.bare and "^" not in word.text:
        return word.text
    return word.text if not word.glob and _BARE.fullmatch(word.text) else word.render()


def _redirect(operator: str, target: str | None) -> str:
    if (operator == "2>&1") == (target is None):
        # In dash `&>` would put the command into the background, so it is spelled out.
        return ">/dev/null 2>&1" if operator == "&>" else operator + (target or "")
    raise Unread("a redirect to something other than /dev/null; leave it out, what is printed comes back")


def _word(text: str, at: int) -> tuple[Word, int]:
    parts: list[Part] = []
    start, end = at, len(text)
    if text.startswith("{}", at) and text[at + 2 : at + 3] in ("", " "):
        return literal("{}"), at + 2  # what find and xargs put a name for; braces mean nothing else here
    while at < end and text[at] not in " |&;<>":
        char = text[at]
        if found := _PLAIN.match(text, at):
            parts.append(Part(found[0]))
        elif found := _SINGLE.match(text, at):
            parts.append(Part(found[1]))
        elif found := _DOUBLE.match(text, at):
            parts.append(Part(_DOUBLE_ESCAPE.sub(r"\1", found[1])))
        elif char == "\\" and at + 1 < end and " " <= text[at + 1] <= "~":
            parts.append(Part(text[at + 1]))
            at += 2
            continue
        elif found := _GLOB.match(text, at):
            parts.append(Part(found[0], True))
        else:
            raise Unread(_what(char))
        at = found.end()
    if at < end and text[at] in "<>":
        raise Unread(
            "a redirect that is not one of the plain forms; leave it out, what is printed comes back"
        )
    if at == start:
        raise Unread(
            "a redirect or & that is not one of the plain forms; leave it out, or quote the character"
        )
    return _made(parts, bare=bool(_PLAIN.fullmatch(text, start, at))), at


def _made(parts: list[Part], bare: bool) -> Word:
    merged: list[Part] = []
    for part in parts:
        if merged and merged[-1].glob == part.glob:
            merged[-1] = Part(merged[-1].text + part.text, part.glob)
        elif part.text:
            merged.append(part)
    value = "".join(part.text for part in merged)
    glob = any(part.glob for part in merged)
    if glob and (merged[0].glob or value.startswith("-")):
        raise Unread(
            "a glob at the start of a word or in an option, which may become an option; begin with the folder: /var/log/*.log"
        )
    if not value.isascii():
        if value.startswith("-"):
            raise Unread("letters of another script in an option")
        for char in value:
            if char > "~" and unicodedata.category(char) not in _FOREIGN:
                raise Unread(f"the character U+{ord(char):04X}")
    return Word(tuple(merged), value, glob, bare)


def _command_word(word: Word) -> None:
    if word.glob or not word.text.isascii() or not word.text:
        raise Unread("a command word that is not a plain name")
    if word.bare and word.text in KEYWORDS:
        raise Unread(f"the shell keyword {word.text}; send the commands one by one, or joined with ;")
    if word.text == "{}" or word.text.startswith("%") or "=" in word.text:
        raise Unread(
            "a brace, a job or an assignment where the command stands; for LC_ALL, LANG or TZ write env LC_ALL=C COMMAND"
        )


def _what(char: str) -> str:
    names = {
        "$": "an expansion ($); run what is inside by itself first and write its result out, or quote it",
        "`": "a command substitution (`); run what is inside by itself first and write its result out",
        "~": "a tilde (write the path out)",
        "#": "a comment or # (leave it out, or quote it)",
        "(": "a subshell or parenthesis (send its commands one by one, or quote it)",
        ")": "a parenthesis (quote it)",
        "{": "a brace (quote it)",
        "}": "a brace (quote it)",
        "!": "an exclamation mark (quote it)",
        "'": "a quote that is not closed",
        '"': "an expansion in double quotes (write the value out, or use single quotes), or a quote that is not closed",
        "\\": "a backslash at the end",
        "[": "a bracket that is not a plain glob (quote it; for a question use test -f PATH)",
        "]": "a bracket (quote it)",
    }
    return names.get(char, f"the character U+{ord(char):04X} outside quotes")
