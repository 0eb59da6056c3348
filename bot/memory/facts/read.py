"""From a tool result to facts: the command must be known, have ended well, and its output must not contradict itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.facts.cluster_versions import CLUSTER_VERSIONS
from bot.memory.facts.config import CONFIG
from bot.memory.facts.containers import CONTAINERS
from bot.memory.facts.machine import MACHINE
from bot.memory.facts.network import NETWORK
from bot.memory.facts.packages import PACKAGES
from bot.memory.facts.reading import Reading, Source, lines_of
from bot.memory.facts.versions import GENERIC, GENERIC_BARE, VERSIONS
from bot.memory.records import Found, Heard
from bot.memory.shell import Pipeline, pipelines

SOURCES = (*VERSIONS, *CLUSTER_VERSIONS, *MACHINE, *NETWORK, *CONFIG, *CONTAINERS, *PACKAGES)
MOST = 60  # facts of one result
# What may stand beside a known command in one line: it prints nothing that looks like a field of ours.
_BESIDE = re.compile(
    r"echo(?: (?!-)[\w .,:=#*/>|\[\]-]{0,80})?|uptime|whoami|id|pwd|true|hostname(?: -[sIi])?|date|w|who|cd \S{1,80}"
    r"|systemctl (?:start|stop|restart|reload|enable|disable|daemon-reload)(?: [\w@.-]{1,60}){0,3}"
)
_FAILED = re.compile(r".{0,60}(?:command not found|: not found|未找到命令|No such file or directory)")


def facts(heard: Heard, number: int) -> Iterator[Found]:
    """The facts of one tool result; none without a host, a command and exit status 0."""
    if not heard.host or not heard.command or heard.exit_status != 0 or not heard.text.strip():
        return
    chain = pipelines(heard.command)
    if chain is None or not chain:
        return
    known = [_sources(each) for each in chain]
    if any(
        not sources and not _BESIDE.fullmatch(each.line) for each, sources in zip(chain, known, strict=True)
    ):
        return
    lines = lines_of(heard.text)
    echoed = {each.line[5:] for each in chain if each.words[0] == "echo"}
    printed = [line for line in lines if line not in echoed]
    told: dict[str, Reading] = {}
    unsure: set[str] = set()
    for at, sources in enumerate(known):
        for one, command in sources:
            part = _part(lines, at, len(chain)) if one.bare else printed
            for reading in one.read(part, command):
                if told.setdefault(reading.attribute, reading).value != reading.value:
                    unsure.add(reading.attribute)
    for reading in list(told.values())[:MOST]:
        if reading.attribute not in unsure:
            says = f"On {heard.host}, {reading.says}."
            yield Found(reading.kind, heard.host, reading.attribute, reading.value, says, heard.host, number)


def _sources(pipeline: Pipeline) -> list[tuple[Source, re.Match[str]]]:
    found = [
        (one, hit)
        for one in SOURCES
        if (hit := one.command.fullmatch(pipeline.line)) and (pipeline.whole or not one.bare)
    ]
    if not found and (hit := GENERIC.command.fullmatch(pipeline.line)):
        found.append((GENERIC, hit))
        if pipeline.whole and (alone := GENERIC_BARE.command.fullmatch(pipeline.line)):
            found.append((GENERIC_BARE, alone))
    return found


def _part(lines: list[str], at: int, commands: int) -> list[str]:
    """The lines of one of several commands that print a line each; nothing when they do not."""
    filled = [line for line in lines if line.strip() and not _FAILED.match(line)]
    if commands == 1:
        return filled
    return [filled[at]] if len(filled) == commands else []
