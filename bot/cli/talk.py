"""`demo`, `chat` and `ask`: their words are read here, and wrong ones refused before anything heavy is loaded."""

from __future__ import annotations

import asyncio

import typer

from bot import settings
from bot.cli.loading import loading
from bot.errors import UsageError

SESSION = typer.Option(None, "--session", help="go on with this session")
USER = typer.Option("local", "--user", help="whose session and memories")


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @app.command()
    def demo(
        ask: str = typer.Option(
            "", "--ask", help="one question; without it a chat, or the question from a pipe"
        ),
    ) -> None:
        """Talk about this very machine: nothing else is needed."""
        values = settings.load()
        with loading():
            from bot.cli import talking

        raise typer.Exit(asyncio.run(talking.demo(values, ask)))

    @app.command()
    def chat(session: int | None = SESSION, user: str = USER) -> None:
        """Talk to the bot in this terminal."""
        values = settings.load()
        with loading():
            from bot.cli import talking

        raise typer.Exit(asyncio.run(talking.chat(values, session, user)))

    @app.command()
    def ask(
        text: str = typer.Argument(help="the question"),
        session: int | None = SESSION,
        user: str = USER,
        as_json: bool = typer.Option(False, "--json", help="one JSON object a line for each event"),
    ) -> None:
        """Ask one question and print what happens."""
        values = settings.load()
        if not text.strip():
            raise UsageError('the question is empty; for example: opsthread ask "is the disk of web-1 full?"')
        with loading():
            from bot.cli import talking

        raise typer.Exit(asyncio.run(talking.ask(values, text, session, user=user, as_json=as_json)))
