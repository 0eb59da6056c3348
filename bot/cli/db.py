"""`db upgrade` and `db current`: the schema of the database."""

from __future__ import annotations

import asyncio

import typer

from bot import settings
from bot.database import server
from storage import migrate

db_app = typer.Typer(help="The schema of the database.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(db_app, name="db")


@db_app.command()
def upgrade() -> None:
    """Bring the schema to what this version needs; does nothing when it is there already."""

    async def run() -> str:
        async with server(settings.load()) as url:
            return await migrate.upgrade(url)

    print(f"the schema is at revision {asyncio.run(run())}")


@db_app.command()
def current() -> None:
    """Say which revision the schema has, and which one this version needs."""

    async def run() -> str | None:
        async with server(settings.load()) as url:
            return await migrate.current(url)

    found, wanted = asyncio.run(run()), migrate.head()
    mend = "" if found == wanted else f" (this version needs {wanted}: run `opsthread db upgrade`)"
    print(f"{found or 'no schema yet'}{mend}")
