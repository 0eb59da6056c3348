"""`memory …`: what is kept of a person beyond a session: list, add, forget, recall, export, import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import typer

from bot import settings
from bot.access import LOCAL
from bot.account import os_account
from bot.cli import printing
from bot.cli.database import with_store
from bot.cli.lines import queries_of, text_of
from bot.cli.memory_extract import extract
from bot.errors import UsageError
from bot.meaning import load_meaning
from bot.turns import memory_acts as acts
from bot.turns.memories import Memories, Told
from bot.turns.memory_acts import Who
from storage import core_memory
from storage.audit import AuditEvent
from storage.errors import NotFound
from storage.memories import finding, rows, transfer
from storage.records import LOCAL_TEAM, Memory, MemoryKind, NewMemory, Recalled
from storage.store import Store

memory_app = typer.Typer(help="What is kept of a person beyond a session.", no_args_is_help=True)
memory_app.command()(extract)

JSON = typer.Option(False, "--json", help="one JSON object a line")
USER = typer.Option("local", "--user", help="whose memories")
TEAM = typer.Option(LOCAL_TEAM, "--team", help="the person's Slack workspace")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(memory_app, name="memory")


@memory_app.command("list")
def list_(
    user: str = USER,
    team: str = TEAM,
    history: bool = typer.Option(False, "--history", help="those that no longer hold as well"),
    as_json: bool = JSON,
) -> None:
    """Show a person's memories, the oldest first."""
    found = with_store(lambda store: _read(store, team=team, user=user, history=history))
    if as_json:
        printing.json_lines(map(transfer.record, found))
        return
    cells = [
        (m.id, m.kind, f"{m.confirmed_at:%Y-%m-%d}", "shared" if m.shared else "", m.host or "", m.text)
        for m in found
    ]
    printing.table(("id", "kind", "seen", "", "host", "text"), cells, empty="no memories")


async def _read(store: Store, *, team: str, user: str, history: bool) -> list[Memory]:
    async with store.begin() as db:
        return await rows.list_(db, team=team, owner=user, history=history)


@memory_app.command()
def add(  # noqa: PLR0917 - typer's options
    text: str = typer.Argument(help="one sentence that can be understood alone"),
    kind: str = typer.Option(MemoryKind.USER_PREFERENCE.value, "--kind", help=", ".join(MemoryKind)),
    subject: str = typer.Option(
        "", "--subject", help="what it is about; with --attribute, a new value replaces"
    ),
    attribute: str = typer.Option("", "--attribute", help="which of its properties"),
    value: str = typer.Option("", "--value", help="and its value"),
    host: str = typer.Option("", "--host", help="the host it is about"),
    ref: str = typer.Option("", "--ref", help="a name of yours for it"),
    user: str = USER,
    team: str = TEAM,
    as_json: bool = JSON,
) -> None:
    """Keep a memory."""
    if kind not in list(MemoryKind):
        raise UsageError(f"--kind {kind}: it is one of {', '.join(MemoryKind)}")
    new = acts.clean(
        NewMemory(
            kind=MemoryKind(kind), text=text, subject=subject or None, attribute=attribute or None,
            value=value or None, host=host or None, ref=ref or None,
        ),
        settings.load().redactor(),
    )  # fmt: skip

    async def work(store: Store) -> tuple[Memory, str]:
        async with store.begin() as db:
            return await acts.add(db, _who(user, team), new)

    memory, outcome = with_store(work)
    if as_json:
        printing.json_lines([transfer.record(memory)])
    else:
        printing.say(f"memory {memory.id} of {user} ({outcome}): {memory.text}")


def _who(user: str, team: str) -> Who:
    return Who(team, owner=user, person=f"{LOCAL}{os_account()}", os_account=os_account())


@memory_app.command()
def forget(
    memory_id: int = typer.Argument(metavar="ID", help="number of the memory"),
    user: str = USER,
    team: str = TEAM,
) -> None:
    """Erase a memory and the earlier values it replaced."""

    async def work(store: Store) -> None:
        async with store.begin() as db:
            await acts.forget(db, _who(user, team), [memory_id])

    with_store(work)
    print(f"memory {memory_id} of {user} forgotten")


@memory_app.command()
def share(
    memory_id: int = typer.Argument(metavar="ID", help="number of the memory"),
    yes: bool = typer.Option(False, "--yes", help="share the text that this command shows without it"),
    user: str = USER,
    team: str = TEAM,
) -> None:
    """Show a memory to the team; about a host, to those who may use it."""

    async def work(store: Store) -> str:
        async with store.begin() as db:
            memory = await rows.get(db, memory_id, team=team, owner=user)
            if yes:
                await acts.share(db, _who(user, team), memory_id, wording=memory.text)
            return memory.text

    text = with_store(work)
    printing.say(f"shared with the team: {text}" if yes else f"would be shared (--yes does it): {text}")


@memory_app.command()
def unshare(
    memory_id: int = typer.Argument(metavar="ID", help="number of the memory"),
    user: str = USER,
    team: str = TEAM,
) -> None:
    """Make a shared memory the person's own again."""

    async def work(store: Store) -> None:
        async with store.begin() as db:
            await acts.unshare(db, _who(user, team), memory_id)

    with_store(work)
    print(f"memory {memory_id} is {user}'s alone again")


@memory_app.command()
def used(
    turn: int = typer.Argument(metavar="TURN", help="number of the turn"),
    user: str = USER,
    team: str = TEAM,
    as_json: bool = JSON,
) -> None:
    """Show which memories a turn was given, and why they are known."""
    values = settings.load()

    async def work(store: Store) -> Told:
        return await Memories(store, values.redactor(), values.timezone).used_in(turn, _who(user, team))

    told = with_store(work)
    if not told.lines:
        raise NotFound(f"turn {turn} was given no memories of {user}")
    if as_json:
        printing.json_lines({"id": m.id, "text": m.text, "why": m.why} for m in told.lines)
        return
    cells = [(line.id, line.text, line.why) for line in told.lines]
    printing.table(("id", "text", "why"), cells, empty="")


@memory_app.command()
def core(
    text: str = typer.Argument(
        "", help="what shall be pinned from now on; without it, what is pinned is shown"
    ),
    clear: bool = typer.Option(False, "--clear", help="pin nothing"),
    for_team: bool = typer.Option(
        False, "--for-team", help="the team's block, which stands in everybody's prompt"
    ),
    user: str = USER,
    team: str = TEAM,
) -> None:
    """Show or replace what is pinned: it stands in every prompt of the person, or of the team."""
    if text and clear:
        raise UsageError("give either a text to pin or --clear")
    redactor = settings.load().redactor()

    async def work(store: Store) -> str:
        async with store.begin() as db:
            if text or clear:
                await acts.put_core(db, _who(user, team), text, redactor, for_team=for_team)
            pinned = await core_memory.blocks(db, team=team, owner=user)
            return pinned.team if for_team else pinned.person

    printing.say(with_store(work) or "nothing is pinned")


@memory_app.command("opt-out")
def opt_out(
    user: str = USER,
    team: str = TEAM,
    undo: bool = typer.Option(False, "--undo", help="keep and recall again"),
) -> None:
    """Keep and recall nothing more for a person; what is kept stays until it is forgotten."""

    async def work(store: Store) -> None:
        async with store.begin() as db:
            await acts.switch(db, _who(user, team), on=undo)

    with_store(work)
    print(f"memory is {'on' if undo else 'off'} for {user}")


@memory_app.command()
def export(user: str = USER, team: str = TEAM) -> None:
    """Print a person's memories, those that no longer hold too, as lines that `memory import` reads."""

    async def work(store: Store) -> list[Memory]:
        async with store.begin() as db:
            await acts.note(db, _who(user, team), AuditEvent.MEMORY_EXPORTED)
        return await _read(store, team=team, user=user, history=True)

    printing.json_lines(map(transfer.record, with_store(work)))


@memory_app.command("import")
def import_(
    file: str = typer.Argument(help="JSON lines; - reads stdin"),
    user: str = USER,
    team: str = TEAM,
    as_json: bool = typer.Option(False, "--json", help="one JSON object"),
) -> None:
    """Read memories in, each line under its ref. One faulty line: nothing is imported."""
    redactor = settings.load().redactor()
    lines = [
        replace(line, memory=acts.clean(line.memory, redactor))
        for line in transfer.parse(text_of(file).split("\n"))
    ]

    async def work(store: Store) -> transfer.Imported:
        async with store.begin(limit_s=transfer.IMPORT_S) as db:
            done = await transfer.import_(db, lines, team=team, owner=user)
            await acts.note(db, _who(user, team), AuditEvent.MEMORY_IMPORTED, added=done.added)
            return done

    done = with_store(work)
    if as_json:
        printing.json_lines([{"added": done.added, "refreshed": done.refreshed, "skipped": done.skipped}])
        return
    print(
        f"{user}: {done.added} memories added, {done.refreshed} seen again, {done.skipped} were there already"
    )


@memory_app.command()
def recall(  # noqa: PLR0917 - typer's options
    text: str = typer.Argument("", help="what to look for; without it, the newest and most used"),
    queries: str = typer.Option("", "--queries", help="a file with one query a line; - reads stdin"),
    limit: int = typer.Option(10, "--limit", min=1, help="memories of a query at most"),
    user: str = USER,
    team: str = TEAM,
    as_json: bool = JSON,
) -> None:
    """Find a person's memories by their words."""
    if text and queries:
        raise UsageError("give either the TEXT to look for or --queries FILE")
    wanted = queries_of(queries) if queries else [text]
    meaning = load_meaning(settings.load().embeddings)

    async def work(store: Store) -> list[list[Recalled]]:
        found = []
        for query in wanted:
            async with store.begin() as db:
                empty = bool(queries) and not query.strip()  # an empty line of a file asks nothing
                found.append(
                    []
                    if empty
                    else await finding.recall(db, query, team=team, owner=user, limit=limit, meaning=meaning)
                )
        return found

    results = with_store(work)
    if as_json or queries:
        printing.json_lines(_found(query, found) for query, found in zip(wanted, results, strict=True))
        return
    cells = [(one.memory.id, one.memory.kind, f"{one.score:.2f}", one.memory.text) for one in results[0]]
    printing.table(("id", "kind", "score", "text"), cells, empty="nothing was found")


def _found(query: str, found: Sequence[Recalled]) -> dict[str, Any]:
    memories = [
        {"id": m.id, "kind": m.kind, "text": m.text, "ref": m.ref, "score": one.score}
        for one in found
        for m in [one.memory]
    ]
    return {"query": query, "memories": memories}
