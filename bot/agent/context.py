"""Ordered providers -> the prompt of a turn: what stays the same first, what changes per turn last.

A provider gives one block of text. Blocks of the PREFIX stand in the system message; blocks of the TURN
stand after the history, in front of the words that opened the turn, so that the prompt's beginning stays
the same from turn to turn. A provider that fails is left out with a warning; the turn goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from importlib.resources import files
from zoneinfo import ZoneInfo

from bot import log
from bot.agent.request import Prompt
from bot.errors import OpsthreadError
from bot.outside import line, name
from bot.ssh.inventory import Host
from bot.tools.list_hosts import host_line
from storage.errors import StorageError
from storage.records import Milestone, ThreadLine
from storage.tasks import Plan

LISTED_HOSTS = 20  # above this the prompt holds counts by label, and list_hosts gives the rest

GOES_ON = "They ask you to go on: take the plan up at its first open step, without doing again what is done."

logger = log.get(__name__)


class Place(StrEnum):
    PREFIX = "prefix"
    TURN = "turn"


@dataclass(frozen=True, slots=True)
class Provider:
    """One block of the prompt. An empty text leaves the block out."""

    order: int
    name: str
    place: Place
    read: Callable[[], Awaitable[str]]


async def build(providers: Sequence[Provider], *, turn_id: int, max_tokens: int) -> Prompt:
    """Read every provider once, in order."""
    texts: dict[Place, list[str]] = {Place.PREFIX: [], Place.TURN: []}
    for provider in sorted(providers, key=lambda p: p.order):
        try:
            block = await provider.read()
        except (StorageError, OpsthreadError) as error:
            logger.warning("context provider left out", provider=provider.name, error=str(error))
            continue
        if block:
            texts[provider.place].append(block)
    return Prompt(
        system="\n\n".join(texts[Place.PREFIX]),
        preface="\n\n".join(texts[Place.TURN]),
        turn_id=turn_id,
        max_tokens=max_tokens,
    )


def system_text() -> str:
    """Who the bot is and how it works; the first block."""
    return files("bot.agent").joinpath("prompts/system.md").read_text(encoding="utf-8").strip()


def hosts_text(hosts: Sequence[Host]) -> str:
    """The hosts this person may use here."""
    if not hosts:
        return "Hosts: this person may use no host in this place. Say so; nothing can be run for them."
    if len(hosts) <= LISTED_HOSTS:
        return "Hosts you may use for this person:\n" + "\n".join(host_line(host) for host in hosts)
    counts: dict[str, int] = {}
    for host in hosts:
        for key, value in host.labels:
            counts[f"{key}={value}"] = counts.get(f"{key}={value}", 0) + 1
    by_label = ", ".join(
        f"{label} ({n})" for label, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))[:40]
    )
    return f"Hosts: this person may use {len(hosts)}; list_hosts(filter) names them. By label: {by_label}"


def task_text(plan: Plan, next_step: str, milestones: Sequence[Milestone]) -> str:
    """The open task and what was reached so far."""
    parts = []
    if plan:
        parts.append("Plan so far:\n" + "\n".join(f"- [{state}] {line(step)}" for step, state in plan))
    if next_step:
        parts.append(f"Next step noted: {line(next_step)}")
    if milestones:
        parts.append(
            "Milestones so far:\n"
            + "\n".join(f"- {m.kind.replace('_', ' ')}: {line(m.text)}" for m in milestones[-10:])
        )
    return "\n\n".join(parts)


def idle_text(lines: Sequence[ThreadLine]) -> str:
    """What people said in the thread while the bot was not spoken to, quoted with authors."""
    if not lines:
        return ""
    quoted = "\n".join(
        f"> {name(said.author_name, said.author)}: {line(said.text, 1_000)}" for said in lines[-30:]
    )
    return f"Said in the thread meanwhile, not to you (quoted, for information only):\n{quoted}"


def now_text(now: datetime, zone: str, *, speaker: str) -> str:
    """Date, time, zone and who speaks."""
    local = now.astimezone(ZoneInfo(zone))
    return f"Now: {local:%A %Y-%m-%d %H:%M} {zone}. The message below is from {speaker}."
