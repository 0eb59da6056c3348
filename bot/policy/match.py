"""Holds the words of one command against its entry in the table."""

from __future__ import annotations

from bot.policy.kinds import check_kind
from bot.policy.lexer import Part, Word
from bot.policy.spec import Arg, Given, NotProved, Options, Scene, Spec


def read_options(words: tuple[Word, ...], options: Options, scene: Scene) -> Given:
    """Split words into options and positionals. Raises NotProved for an option that is not in the table.

    Exact spelling only: a GNU abbreviation, a glued unknown flag or a dashed word after `--` is unknown.
    """
    given: list[tuple[str, Word | None]] = []
    rest: list[Word] = []
    at, ended = 0, False
    while at < len(words):
        word = words[at]
        at += 1
        if not word.text.startswith("-") or word.text == "-":
            rest.append(word)
        elif ended:
            raise NotProved(f"{word.text} after -- is not proved to be harmless")
        elif word.text == "--":
            ended = True
        else:
            following = words[at] if at < len(words) else None
            found, took = _option(word.text, following, options)
            for name, value in found:
                kind = options.values.get(name) or options.optional.get(name)
                if value is not None and kind:
                    check_kind(kind, value, scene)
            given += found
            at += took
    return Given(tuple(given), tuple(rest))


def _option(text: str, following: Word | None, options: Options) -> tuple[list[tuple[str, Word | None]], int]:
    """The options that one dashed word stands for, and how many words after it were taken as a value."""
    name, equals, value = text.partition("=")
    if text in options.flags or text in options.optional:
        return [(text, None)], 0
    if text in options.values:
        return [(text, _value(text, following, options))], 1
    if text.startswith("--"):
        if equals and (name in options.values or name in options.optional):
            return [(name, Word((Part(value),), value))], 0
        raise NotProved(f"the option {name} is not known to be harmless")
    if options.digits and text[1:].isdigit() and len(text) < 9:
        return [("-NUM", None)], 0
    return _bundle(text, following, options)


def _value(name: str, following: Word | None, options: Options) -> Word:
    """The word behind an option. One with a dash would, to programs that read their words in their own way, be
    the next option (`sar -s -o 1 1`), so only numbers, times and columns may begin with one.
    """
    if following is None:
        raise NotProved(f"{name} lacks its value")
    text = following.text
    if text[:1] == "-" and len(text) > 1 and not text[1].isdigit() and options.values[name] != "columns":
        raise NotProved(
            f"{text} behind {name} may be read as an option; write {name} and its value differently"
        )
    return following


def _bundle(text: str, following: Word | None, options: Options) -> tuple[list[tuple[str, Word | None]], int]:
    found: list[tuple[str, Word | None]] = []
    for place, char in enumerate(text[1:], 1):
        name, glued = "-" + char, text[place + 1 :]
        if name in options.flags:
            found.append((name, None))
        elif name in options.optional:
            found.append((name, Word((Part(glued),), glued) if glued else None))
            return found, 0
        elif name in options.values:
            if glued:
                return [*found, (name, Word((Part(glued),), glued))], 0
            return [*found, (name, _value(name, following, options))], 1
        else:
            raise NotProved(f"the option {name if place == 1 else text} is not known to be harmless")
    return found, 0


def check_args(words: tuple[Word, ...], args: tuple[Arg, ...], scene: Scene) -> None:
    """Hold positionals against their kinds, in order. Raises NotProved when one does not fit or is too many."""
    left = list(words)
    for number, arg in enumerate(args):
        reserved = sum(a.least for a in args[number + 1 :])
        take = min(arg.most, max(len(left) - reserved, 0))
        if not arg.least and arg.kind[0] == "{" and left and left[0].text not in arg.kind[1:-1].split("|"):
            take = 0  # an optional word of a list that is not there
        if take < arg.least:
            raise NotProved(f"a {arg.kind} is missing")
        for word in left[:take]:
            if word.glob and arg.most == 1:
                raise NotProved("a glob may become more words than this command should get")
            check_kind(arg.kind, word, scene)
        left = left[take:]
    if left:
        raise NotProved(f"the word {left[0].text} is not known to be harmless here")


def walk(words: tuple[Word, ...], spec: Spec, scene: Scene) -> tuple[Spec, Given]:
    """Go down the sub-commands. Returns the entry that decides and what it was given."""
    while spec.sub:
        split = _first_positional(words, spec.options)
        if split is None:
            break
        head, word, tail = words[:split], words[split], words[split + 1 :]
        found = None if word.glob else spec.sub.get(word.text)
        if found is None:
            raise NotProved(f"{spec.name} {word.text} is not known to only read")
        words, spec = (*head, *tail), found
    if spec.ask:
        raise NotProved(spec.ask)
    given = read_options(words, spec.options, scene)
    for choice in spec.require:
        if not given.has(*choice.split("|")):
            raise NotProved(f"{spec.name} needs {choice.replace('|', ' or ')} to be a read that ends")
    return spec, given


def _first_positional(words: tuple[Word, ...], options: Options) -> int | None:
    at = 0
    while at < len(words):
        text = words[at].text
        if not text.startswith("-"):
            return at
        if text == "--":
            raise NotProved("-- before a sub-command")
        at += 1 + _option(text, words[at + 1] if at + 1 < len(words) else None, options)[1]
    return None
