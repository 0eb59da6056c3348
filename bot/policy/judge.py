"""The gate: says of one command whether it runs by itself, is asked of a person, or is refused. Pure.

A command runs by itself only if every stage is proved to only read by our table. Everything else asks.
"""

from __future__ import annotations

from dataclasses import replace

from bot.policy.checks import AFTER, WHOLE
from bot.policy.danger import danger
from bot.policy.hazards import refused
from bot.policy.lexer import Line, Stage, Unread, Word, lex, literal, render
from bot.policy.match import check_args, walk
from bot.policy.nested import commands, rough_commands
from bot.policy.showing import unshowable
from bot.policy.spec import NotProved, Rules, Scene, Spec
from bot.policy.wrappers import wrapped
from storage.records import Decision, Verdict

LONGEST = 2000
MOST_STAGES = 12
MOST_WILD = 30  # names of paths with a * or the like: each is held against every secret name
_BIN = ("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/")


def judge(
    command: str, rules: Rules, *, host_name: str, sudo_allowed: bool, targets: tuple[str, ...] = ()
) -> Verdict:
    """Judge one command for one host.

    host_name: for the reasons people read. sudo_allowed: the host's `sudo` flag. targets: names, globs and
    networks that may be asked of the network (hosts.yml `targets`). No I/O, no clock; about 50 µs a command.
    """
    if reason := unshowable(command, LONGEST):
        return Verdict(Decision.DENY, reason, None, False)
    line: Line | None = None
    try:
        line = lex(command)
        found = commands(line)
    except Unread as unread:
        doubt, found = f"not read by the gate: {unread}", rough_commands(command)
    if reason := refused(command, line, found, rules):
        return Verdict(Decision.DENY, reason, None, line is not None)
    if line is None:
        return Verdict(Decision.ASK, doubt, command, False, danger(command, found, rules))
    verdict = _judge_line(line, Scene(rules, targets), host_name=host_name, sudo_allowed=sudo_allowed)
    if verdict.decision is Decision.ASK and (why := danger(command, found, rules)):
        return replace(verdict, danger=why)
    return verdict


def _judge_line(line: Line, scene: Scene, *, host_name: str, sudo_allowed: bool) -> Verdict:
    stages: list[Stage] = []
    reasons: list[str] = []
    names: list[str] = []
    wild = sum(
        part.count("*") + part.count("?") + part.count("[") > 0
        for stage in line.stages
        for word in stage.words
        if word.glob
        for part in word.text.split("/")
    )
    if wild > MOST_WILD:
        reasons.append(f"more than {MOST_WILD} globs in one line; send fewer at once")
    for stage in line.stages:
        words = _plain_sudo(stage.words)
        if wild > MOST_WILD:
            stages.append(Stage(words, stage.redirects))
            continue
        try:
            words = _prove(words, scene, host_name=host_name, sudo_allowed=sudo_allowed)
            names.append(words[0].text)
        except NotProved as doubt:
            reasons.append(str(doubt))
        stages.append(Stage(words, stage.redirects))
    if len(line.stages) > MOST_STAGES:
        reasons.append(f"more than {MOST_STAGES} commands in one line; split it")
    run = render(Line(tuple(stages), line.ops))
    if reasons:
        return Verdict(Decision.ASK, "; ".join(dict.fromkeys(reasons)), run, True)
    return Verdict(Decision.ALLOW, "only reads: " + ", ".join(dict.fromkeys(names)), run, True)


def _plain_sudo(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """`sudo` without `-n` would wait for a password that nobody can type."""
    if words[0].text == "sudo" and len(words) > 1 and words[1].text != "-n":
        return (words[0], literal("-n"), *words[1:])
    return words


def _prove(words: tuple[Word, ...], scene: Scene, *, host_name: str, sudo_allowed: bool) -> tuple[Word, ...]:
    """The words to run, with what the renderer adds. Raises NotProved."""
    head = words[0].text
    if head == "sudo":
        if scene.bounded:
            raise NotProved("timeout cannot end what sudo started")
        if not sudo_allowed:
            raise NotProved(
                f"sudo is not allowed on {host_name} without asking; what needs no root runs by itself without sudo"
            )
        if len(words) < 3 or words[1].text != "-n" or words[2].text.startswith("-"):
            raise NotProved("sudo with options, or with nothing to run")
        inner = Scene(scene.rules, scene.targets, sudo=True)
        return (*words[:2], *_prove_one(words[2:], inner))
    taken = wrapped(words)
    if taken is None:
        return _prove_one(words, scene)
    if head in scene.inside:
        raise NotProved(f"{head} inside {head}")
    inner = replace(scene, inside=(*scene.inside, head))
    return (*words[:taken], *_prove(words[taken:], inner, host_name=host_name, sudo_allowed=sudo_allowed))


def _prove_one(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    spec = scene.rules.commands.get(_base(words[0].text))
    if spec is None:
        alone = words[0].text.rpartition("/")[2]
        named = f"; name the program alone: {alone}" if alone in scene.rules.commands else ""
        raise NotProved(f"{words[0].text} is not in the table of commands that only read{named}")
    if scene.sudo and not spec.sudo:
        raise NotProved(f"{spec.name} is not in the table for sudo; without sudo it may run by itself")
    try:
        return _with_added(words, spec, scene)
    except NotProved as doubt:
        said = str(doubt).replace("COMMAND", spec.name)
        raise NotProved(f"{said}; {spec.hint}" if spec.hint else said) from None


def _with_added(words: tuple[Word, ...], spec: Spec, scene: Scene) -> tuple[Word, ...]:
    command, rest = words[0], words[1:]
    if not rest and spec.bare:
        raise NotProved(spec.bare)
    if spec.whole:
        return (command, *WHOLE[spec.whole](rest, scene))
    found, given = walk(rest, spec, scene)
    check_args(given.words, found.args, scene)
    more = (AFTER[found.check](given, scene) or ()) if found.check else ()
    present = {word.text for word in rest}
    first = (literal(a) for a in found.add if a not in present)
    last = [literal(a) for a in (*found.add_last, *more) if a not in present]
    if last and "--" in present:
        raise NotProved("behind -- the options that must be added would be none; leave it out")
    return (command, *first, *rest, *last)


def _base(name: str) -> str:
    """A program named by one of the four system folders is the program of that name; any other path is not."""
    for folder in _BIN:
        if name.startswith(folder):
            return name[len(folder) :]
    return name
