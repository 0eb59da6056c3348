"""`sessions …`: list, show, search, put away, go back, change branches, read a command's output."""

from __future__ import annotations

import sys
from typing import Any

import typer

from bot.cli import printing, rights, sessions_transfer
from bot.cli.auditing import record as record_event
from bot.cli.database import with_store
from bot.cli.lines import queries_of
from bot.errors import UsageError
from storage import branches as tree
from storage import commands, search, sessions
from storage.audit import AuditEvent
from storage.errors import NotFound
from storage.history import rows_of
from storage.recall import messages
from storage.records import Command, Origin, Output, SearchHit, Session
from storage.store import Db, Store

sessions_app = typer.Typer(help="Conversations: Slack threads, terminals, imports.", no_args_is_help=True)
sessions_transfer.register(sessions_app)

JSON = typer.Option(False, "--json", help="one JSON object a line")
USER = typer.Option("", "--user", help="only this person's sessions")
ID = typer.Argument(help="number of the session")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(sessions_app, name="sessions")


def link(session: Session) -> str | None:
    """Where Slack's own client shows the thread."""
    if session.origin is not Origin.SLACK or not session.thread_ts:
        return None
    place = f"{session.team}/{session.channel}/thread/{session.channel}-{session.thread_ts}"
    return f"https://app.slack.com/client/{place}"


def record(session: Session) -> dict[str, Any]:
    """A session as `--json` prints it."""
    return {
        "id": session.id,
        "key": session.key,
        "origin": session.origin,
        "team": session.team,
        "channel": session.channel,
        "title": session.title,
        "state": session.state,
        "people": list(session.people),
        "hosts": list(session.hosts),
        "created_at": session.created_at.isoformat(),
        "updated_at": session.updated_at.isoformat(),
        "link": link(session),
    }


@sessions_app.command("list")
def list_(
    user: str = USER,
    archived: bool = typer.Option(False, "--archived", help="those that were put away as well"),
    limit: int = typer.Option(50, "--limit", min=1, help="how many at most"),
    as_json: bool = JSON,
) -> None:
    """Show sessions, the last used first."""

    async def read(store: Store) -> list[Session]:
        async with store.begin() as db:
            return await sessions.list_(db, owner=user or None, archived=archived, limit=limit)

    found = with_store(read)
    if as_json:
        printing.json_lines(record(session) for session in found)
        return
    rows = [
        (s.id, s.state, f"{s.updated_at:%Y-%m-%d %H:%M}", s.origin, ", ".join(s.people), s.title)
        for s in found
    ]
    printing.table(("id", "state", "used (UTC)", "from", "people", "title"), rows, empty="no sessions")


@sessions_app.command()
def show(
    session_id: int = ID,
    every: bool = typer.Option(False, "--all", help="every branch, not only the active one"),
    user: str = USER,
    as_json: bool = JSON,
) -> None:
    """Show a session's messages."""

    async def read(store: Store) -> tuple[Session, list[Any]]:
        async with store.begin() as db:
            session = await owned(db, session_id, user=user)
            await record_event(
                db,
                AuditEvent.SESSION_VIEWED,
                team=session.team,
                session_id=session.id,
                detail={"branches": "all" if every else "active"},
            )
            return session, list(await rows_of(db, session_id, all_branches=every))

    session, rows = with_store(read)
    texts = rights.texts(rows, session, user)
    if as_json:
        printing.json_lines(_message(row, texts[row.seq]) for row in rows)
        return
    printing.say(f"session {session.id} · {session.state} · {session.title}")
    for row in rows:
        printing.say(
            f"\n[{row.seq}] {row.author or row.role} · {row.created_at:%Y-%m-%d %H:%M} UTC\n{texts[row.seq]}"
        )
        for call in row.tool_calls or ():
            inner = call.get("function") or call
            printing.say(f"  → {inner.get('name')} {inner.get('arguments')}")


def _message(row: Any, text: str) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "id": row.id,
        "parent_id": row.parent_id,
        "role": row.role,
        "author": row.author,
        "text": text,
        "tool_calls": row.tool_calls,
        "tool_call_id": row.tool_call_id,
        "created_at": row.created_at.isoformat(),
    }


async def owned(db: Db, session_id: int, *, user: str) -> Session:
    """A session, if it is this person's (or no person was named). Raises NotFound."""
    session = await sessions.get(db, session_id)
    if user and session.owner != user:
        raise NotFound(f"{user} has no session {session_id}; see `opsthread sessions list --user {user}`")
    return session


@sessions_app.command("search")
def search_(  # noqa: PLR0917 - typer's options
    text: str = typer.Argument("", help="what to look for"),
    queries: str = typer.Option("", "--queries", help="a file with one query a line; - reads stdin"),
    by: str = typer.Option("message", "--by", help="message or session (the best message of each)"),
    user: str = typer.Option("local", "--user", help="whose sessions"),
    limit: int = typer.Option(10, "--limit", min=1, help="hits of a query at most"),
    as_json: bool = JSON,
) -> None:
    """Find messages by their words, in every branch."""
    if bool(text) == bool(queries):
        raise UsageError("give either the TEXT to look for or --queries FILE")
    if by not in ("message", "session"):
        raise UsageError(f"--by {by}: it is message or session")
    wanted = [text] if text else queries_of(queries)

    async def read(store: Store) -> list[list[SearchHit]]:
        await messages.catch_up(store)
        found = []
        for query in wanted:
            async with store.begin() as db:
                found.append(
                    await search.search(
                        db, query, by="session" if by == "session" else "message", owner=user, limit=limit
                    )
                )
        return found

    if as_json or queries:
        results = zip(wanted, with_store(read), strict=True)
        printing.json_lines({"query": q, "hits": [_hit(hit) for hit in hits]} for q, hits in results)
        return

    async def read_texts(store: Store) -> list[tuple[object, ...]]:
        (hits,) = await read(store)
        async with store.begin() as db:
            return [await _excerpt(db, hit, user=user) for hit in hits]

    printing.table(("session", "seq", "who", "text"), with_store(read_texts), empty="nothing was found")


def _hit(hit: SearchHit) -> dict[str, Any]:
    return {
        "session": hit.session_id,
        "key": hit.session_key,
        "message": hit.message_id,
        "seq": hit.seq,
        "score": hit.score,
    }


async def _excerpt(db: Db, hit: SearchHit, *, user: str) -> tuple[object, ...]:
    """What is shown of a hit: a view of its session, and as `show` would show it."""
    session = await sessions.get(db, hit.session_id)
    await record_event(
        db,
        AuditEvent.SESSION_VIEWED,
        team=session.team,
        session_id=session.id,
        detail={"found": hit.seq},
    )
    message = await sessions.message(db, hit.message_id)
    texts = rights.texts(await rows_of(db, session.id, all_branches=True), session, user)
    said = texts.get(hit.seq, "")
    return hit.session_id, hit.seq, message.author or message.role, " ".join(said.split())[:160]


async def _changed(db: Db, session_id: int, how: str, seq: int | None = None) -> None:
    session = await sessions.get(db, session_id)
    await record_event(
        db,
        AuditEvent.SESSION_CHANGED,
        team=session.team,
        session_id=session_id,
        detail={"how": how, "seq": seq},
    )


@sessions_app.command()
def rewind(session_id: int = ID, seq: int = typer.Argument(help="the message to take back")) -> None:
    """Go back to before a message; the branch that began with it is kept."""

    async def work(store: Store) -> None:
        async with store.begin() as db:
            await tree.rewind(db, session_id, seq)
            await _changed(db, session_id, "rewound before", seq)

    with_store(work)
    print(
        f"session {session_id} goes on before message {seq}; `opsthread sessions branches {session_id}` shows the old branch"
    )


@sessions_app.command()
def branches(session_id: int = ID, as_json: bool = JSON) -> None:
    """Show a session's branches, the newest first; a branch is named by the seq of its last message."""

    async def read(store: Store) -> list[tree.Branch]:
        async with store.begin() as db:
            return await tree.branches(db, session_id)

    found = with_store(read)
    if as_json:
        printing.json_lines(
            {
                "branch": b.seq,
                "message": b.message_id,
                "current": b.current,
                "first_seq": b.first.seq,
                "first": b.first.text,
                "messages": b.messages,
                "last_at": b.last_at.isoformat(),
            }
            for b in found
        )
        return
    rows = [
        ("*" if b.current else "", b.seq, b.messages, f"{b.last_at:%Y-%m-%d %H:%M}", b.first.text[:100])
        for b in found
    ]
    printing.table(("", "branch", "messages", "last (UTC)", "begins with"), rows, empty="no messages yet")


@sessions_app.command()
def switch(
    session_id: int = ID, branch: int = typer.Argument(help="the branch: seq of its last message")
) -> None:
    """Make another branch the active one."""

    async def work(store: Store) -> None:
        async with store.begin() as db:
            await tree.switch(db, session_id, branch)
            await _changed(db, session_id, "switched to", branch)

    with_store(work)
    print(f"session {session_id} goes on with branch {branch}")


@sessions_app.command()
def archive(session_id: int = ID, undo: bool = typer.Option(False, "--undo", help="fetch it back")) -> None:
    """Put a session away: lists leave it out, nothing is deleted."""

    async def work(store: Store) -> None:
        async with store.begin() as db:
            await sessions.archive(db, session_id, archived=not undo)
            await _changed(db, session_id, "taken back" if undo else "put away")

    with_store(work)
    print(f"session {session_id} is {'back' if undo else 'put away; --undo fetches it back'}")


@sessions_app.command()
def output(command_id: int = typer.Argument(help="number of the command"), as_json: bool = JSON) -> None:
    """Print all that was kept of what a command printed, its stderr on stderr."""

    async def read(store: Store) -> tuple[Command, Output]:
        async with store.begin() as db:
            command = await commands.get(db, command_id)
            session = await sessions.get(db, command.session_id)
            await record_event(
                db,
                AuditEvent.OUTPUT_VIEWED,
                team=session.team,
                session_id=session.id,
                host=command.host,
                detail={"command": command.id},
            )
            return command, await commands.output(db, command_id)

    command, kept = with_store(read)
    if as_json:
        about = {
            "command": command.id,
            "session": command.session_id,
            "host": command.host,
            "run": command.run,
        }
        told = {"state": command.state, "exit_status": command.exit_status, "truncated": command.truncated}
        printing.json_lines([{**about, **told, "stdout": kept.stdout, "stderr": kept.stderr}])
        return
    printing.raw(sys.stdout, kept.stdout)
    printing.raw(sys.stderr, kept.stderr)
