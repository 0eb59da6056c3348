"""`audit list`, `audit export`, `audit verify`: what was done, everything to prove it, and the proof."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from bot import settings
from bot.audit import transfer
from bot.audit.export import export as exported
from bot.audit.sealer import Sealer
from bot.cli import audit_verify, printing
from bot.cli.auditing import record
from bot.cli.database import with_store
from bot.errors import UsageError
from bot.terminal.streams import utf8
from storage import audit
from storage.audit import AuditEvent, AuditRow
from storage.store import Store

audit_app = typer.Typer(help="The audit log: who did what, when, and on whose word.", no_args_is_help=True)
audit_verify.register(audit_app)

SEAL_TRIES = 100  # a tenth of a second apart, while another process seals


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(audit_app, name="audit")


@audit_app.command("list")
def list_(  # noqa: PLR0917 - typer's options
    session_id: int = typer.Option(None, "--session", help="only of this session"),
    person: str = typer.Option("", "--person", help="only of this person: U… or local:<OS account>"),
    host: str = typer.Option("", "--host", help="only on this host"),
    event: str = typer.Option("", "--event", help="only this event, or approval. for all that begin so"),
    since: str = typer.Option("", "--since", help="a time such as 2026-05-01T12:00 (UTC), or 30m, 24h, 7d"),
    limit: int = typer.Option(50, "--limit", min=1, help="how many at most"),
    as_json: bool = typer.Option(False, "--json", help="one JSON object a line"),
) -> None:
    """Show the audit log, the newest first."""
    begin = moment(since, now=datetime.now(UTC)) if since else None

    async def read(store: Store) -> list[AuditRow]:
        async with store.begin() as db:
            return await audit.list_(
                db,
                session_id=session_id,
                person=person,
                host=host,
                event=event,
                since=begin,
                limit=limit,
            )

    found = with_store(read)
    if as_json:
        printing.json_lines(transfer.as_json(row) for row in found)
        return
    rows = [
        (
            row.id,
            (row.at or "")[:19].replace("T", " "),
            row.event,
            row.person,
            row.session_id or "",
            row.host,
            _short(row.detail),
        )
        for row in found
    ]
    printing.table(("row", "at (UTC)", "event", "who", "session", "host", "what"), rows, empty="no events")


@audit_app.command()
def export() -> None:
    """Print the whole log as JSON lines that `audit verify --file` checks without a database."""
    values = settings.load()

    async def work(store: Store) -> None:
        async with store.begin() as db:
            await record(db, AuditEvent.AUDIT_EXPORTED)
        secret = values.secret_key.get_secret_value() if values.secret_key else None
        await _sealed(Sealer.made(store, secret=secret, sink=values.audit_sink))
        utf8(sys.stdout)
        last = 0
        async for line in exported(store):
            last = line.get("link") or last
            printing.json_line(line)
        async with store.begin() as db:
            pending = await audit.pending(db, last)
        if pending.rows:
            print(f"left out: {pending.rows} rows that are not sealed yet", file=sys.stderr)

    with_store(work)


async def _sealed(sealer: Sealer) -> None:
    """Seal up to now and vouch for it, unless another process is at it all the while."""
    for _ in range(SEAL_TRIES):
        if await sealer.seal() is not None:
            break
        await asyncio.sleep(0.1)
    await sealer.publish()


def moment(words: str, *, now: datetime) -> datetime:
    """`30m`, `24h`, `7d` before now, or an ISO time, UTC unless it says otherwise. Raises UsageError."""
    ago = re.fullmatch(r"(\d{1,6})([mhd])", words)
    try:
        if ago:
            unit = {"m": "minutes", "h": "hours", "d": "days"}[ago[2]]
            return now - timedelta(**{unit: int(ago[1])})
        time = datetime.fromisoformat(words)
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {words}: it is a time such as 2026-05-01T12:00 (UTC), or 30m, 24h, 7d"
        ) from None


def _short(detail: Any) -> str:
    """The words of a detail that a person looks for: the text, then the rest."""
    if not isinstance(detail, dict):
        return json.dumps(detail, ensure_ascii=False)
    told = [str(detail[name]) for name in ("run", "reason", "said", "note") if detail.get(name)]
    rest = {name: value for name, value in detail.items() if name not in {"run", "reason", "said", "note"}}
    told += [
        f"{name} {_word(value)}" for name, value in rest.items() if value not in (None, "", [], {}, False)
    ]
    return " · ".join(told)[:300]


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
