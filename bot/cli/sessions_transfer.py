"""`sessions export` and `sessions import`: JSON lines, or the post-mortem as Markdown."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import typer

from bot import settings
from bot.cli import post_mortem, printing, rights
from bot.cli.auditing import record
from bot.cli.database import with_store
from bot.cli.lines import text_of
from bot.redact import Redactor
from bot.terminal.safe_text import one_line
from storage import approvals, commands, milestones, sessions, transfer
from storage.audit import AuditEvent
from storage.errors import NotFound
from storage.history import rows_of
from storage.records import LOCAL_TEAM
from storage.store import Store


def register(app: typer.Typer) -> None:
    """Add the commands to `sessions`."""
    app.command("export")(export)
    app.command("import")(import_)


def export(
    session_id: int = typer.Argument(help="number of the session"),
    markdown: bool = typer.Option(False, "--markdown", help="the post-mortem instead of JSON lines"),
    user: str = typer.Option("", "--user", help="only if it is this person's"),
) -> None:
    """Print a session: JSON lines that `sessions import` reads, or a post-mortem."""

    async def read(store: Store) -> tuple[list[dict[str, Any]], str]:
        async with store.begin() as db:
            session = await sessions.get(db, session_id)
            if user and session.owner != user:
                raise NotFound(
                    f"{user} has no session {session_id}; see `opsthread sessions list --user {user}`"
                )
            await record(
                db,
                AuditEvent.SESSION_EXPORTED,
                team=session.team,
                session_id=session.id,
                detail={"form": "post-mortem" if markdown else "lines"},
            )
            if not markdown:
                rows = await rows_of(db, session_id, all_branches=True)
                texts = rights.texts(rows, session, user)
                exported = await transfer.export(db, session_id)
                return [line | {"text": texts[line["seq"]]} for line in exported], ""
            report = post_mortem.render(
                session,
                messages=await sessions.messages(db, session_id),
                milestones=await milestones.of_session(db, session_id, limit=1000),
                commands=await commands.of_session(db, session_id),
                approvals=await approvals.of_session(db, session_id),
            )
            return [], report

    lines, report = with_store(read)
    if markdown:
        printing.raw(sys.stdout, report)
    else:
        printing.json_lines(lines)


def _clean(line: transfer.Line, redactor: Redactor) -> transfer.Line:
    """Without secrets, like all that is kept."""
    calls = json.loads(redactor.json_text(json.dumps(line.tool_calls, ensure_ascii=False)).text)
    return replace(
        line,
        text=redactor.text(line.text).text,
        author=redactor.text(line.author).text,
        tool_calls=tuple(calls),
    )


def import_(
    file: str = typer.Argument(help="JSON lines; - reads stdin"),
    user: str = typer.Option("local", "--user", help="whose sessions they become"),
    as_json: bool = typer.Option(False, "--json", help="one JSON object a session"),
) -> None:
    """Read sessions in; the same keys again add only what is new. One faulty line: nothing is imported."""
    redactor = settings.load().redactor()
    lines = [_clean(line, redactor) for line in transfer.parse(text_of(file).split("\n"))]

    async def work(store: Store) -> list[transfer.Imported]:
        done = await transfer.import_(store, lines, team=LOCAL_TEAM, owner=user)
        async with store.begin() as db:
            for one in done:
                detail = {"owner": user, "key": one.key, "added": one.added}
                await record(db, AuditEvent.SESSION_IMPORTED, session_id=one.session_id, detail=detail)
        return done

    done = with_store(work)
    if as_json:
        printing.json_lines(
            {
                "session": one.session_id,
                "key": one.key,
                "added": one.added,
                "skipped": one.skipped,
                "different": list(one.different),
            }
            for one in done
        )
        return
    added, skipped = sum(one.added for one in done), sum(one.skipped for one in done)
    printing.say(f"{len(done)} sessions of {user}: {added} messages added, {skipped} were there already")
    for one in done:
        if one.different:
            print(
                f"session {one.session_id} ({one_line(one.key)}): kept as they were although the file differs:"
                f" seq {', '.join(map(str, one.different))}",
                file=sys.stderr,
            )
