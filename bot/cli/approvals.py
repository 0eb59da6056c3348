"""`approvals list`, `approve` and `deny`: answer from the terminal, with the OS account's rights."""

from __future__ import annotations

import asyncio
import sys

import typer

from bot import log, settings
from bot.cli import printing
from bot.cli.database import with_store
from bot.cli.loading import loading
from bot.errors import OpsthreadError
from bot.terminal.conversation import Conversation
from bot.terminal.safe_text import exact, one_line
from bot.terminal.screen import TerminalScreen, make_console
from storage import approvals as store_approvals
from storage import turns
from storage.records import LOCAL_TEAM, Approval, Front, Session, Turn, TurnState
from storage.store import Store

approvals_app = typer.Typer(help="Approvals that wait for an answer.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(approvals_app, name="approvals")

    @app.command()
    def approve(approval_id: int = typer.Argument(help="number of the approval")) -> None:
        """Approve a command; a terminal's turn goes on here."""
        raise typer.Exit(asyncio.run(_decide(approval_id, approve=True)))

    @app.command()
    def deny(approval_id: int = typer.Argument(help="number of the approval")) -> None:
        """Deny a command; a terminal's turn goes on here."""
        raise typer.Exit(asyncio.run(_decide(approval_id, approve=False)))


@approvals_app.command("list")
def list_(as_json: bool = typer.Option(False, "--json", help="one JSON object a line")) -> None:
    """Show open approvals."""
    _list(as_json=as_json)


def _list(*, as_json: bool) -> None:
    async def read(store: Store) -> list[Approval]:
        async with store.begin() as db:
            return await store_approvals.list_open(db)

    found = with_store(read)
    if as_json:
        printing.json_lines(_record(approval) for approval in found)
    for approval in () if as_json else found:
        printing.say(_line(approval))
    if not found and not as_json:
        print("no approval is open")


def _record(approval: Approval) -> dict[str, object]:
    return {
        "id": approval.id,
        "session": approval.session_id,
        "hosts": [host.name for host in approval.hosts],
        "run": approval.run,
        "reason": approval.reason,
        "requester": approval.requester,
        "expires_at": approval.expires_at.isoformat(),
    }


def _line(approval: Approval) -> str:
    hosts = ", ".join(f"{host.name} as {host.user}" for host in approval.hosts)
    return (
        f"{approval.id} · session {approval.session_id} · on {hosts}: "
        f"{exact(approval.run)} · {one_line(approval.reason)} · "
        f"asked by {approval.requester} · expires {approval.expires_at:%H:%M} UTC"
    )


async def _decide(approval_id: int, *, approve: bool) -> int:
    with loading():
        from bot import app as root  # heavy; the list needs none of it

    values = settings.load()
    log.configure(
        values.log_format, "error" if values.log_level == "info" else values.log_level, values.redactor()
    )
    console = make_console(sys.stdout)

    def screen(session: Session, turn: Turn) -> TerminalScreen:
        return TerminalScreen(console, mirror=root.mirror(values, session, turn))

    async with root.terminal(values, screen=screen) as app:
        conversation = Conversation(
            store=app.store,
            desk=app.desk,
            approvals=app.approvals,
            memories=app.memories,
            team=LOCAL_TEAM,
            account=root.account(),
            owner="local",
        )
        approval = await app.approvals.by_id(approval_id)
        if approval is None:
            raise OpsthreadError(f"there is no approval {approval_id}; `opsthread approvals list` shows them")
        counted, said = await conversation.decide(approval, approve=approve)
        if not counted:
            raise OpsthreadError(said)
        printing.say(f"approval {approval_id}: {said}")
        async with app.store.begin() as db:
            turn = await turns.get(db, approval.turn_id)
        if turn.front is Front.SLACK:
            print("the bot in Slack goes on with it")
            return 0
        state = await conversation.follow(turn.session_id, turn.id)
        return 1 if state is TurnState.FAILED else 0
