"""`mode`: the switch that holds everything, from the command line; shell access to the database is trusted."""

from __future__ import annotations

import typer

from bot import settings
from bot.access import LOCAL
from bot.account import os_account
from bot.cli import printing
from bot.cli.database import with_store
from bot.turns.modes import described, set_mode
from storage import control
from storage.control import EVERY_TEAM, Mode
from storage.store import Store


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def mode(
        wanted: Mode | None = typer.Argument(  # noqa: B008
            None, help="what to set; without it the mode is only said"
        ),
        team: str = typer.Option(EVERY_TEAM, "--team", help="only this team (T…)"),
        why: str = typer.Option("", "--why", help="what people are told"),
    ) -> None:
        """Hold the bot everywhere: read-only (nothing is changed), stopped (nothing is run), or normal again."""
        account = os_account()
        why = settings.load().redactor().text(why).text  # it is kept, and told to everybody

        async def run(store: Store) -> str:
            stopped = 0
            if wanted is not None:
                stopped = await set_mode(
                    store, team, wanted, by=account, person=LOCAL + account, why=why, os_account=account
                )
            async with store.begin() as db:
                said = described(await control.switch(db, team))
            return said + (f"; {stopped} turns were stopped" if stopped else "")

        printing.say(with_store(run))
