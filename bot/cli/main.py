"""The console script: gathers the groups of commands and turns errors into one line and an exit status.

Exit status: 0 done, 1 failed, 2 wrong usage or settings.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from bot import __version__
from bot.cli import approvals, db, hosts, init, serve, sessions, talk
from bot.errors import OpsthreadError, UsageError
from storage.errors import StorageError

app = typer.Typer(
    name="opsthread",
    help="A chat-ops bot: a Slack thread is a session, commands run over SSH behind a gate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"opsthread {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="print the version"
    ),
) -> None:
    """Nothing to do before a command."""


for group in (talk, serve, approvals, hosts, sessions, db, init):
    group.register(app)


def main() -> NoReturn:
    """Run one command; never show a traceback for an error that a person can mend."""
    try:
        app()
    except UsageError as error:
        _fail(error, 2)
    except (OpsthreadError, StorageError) as error:
        _fail(error, 1)
    except KeyboardInterrupt:
        print("opsthread: stopped", file=sys.stderr)
        sys.exit(130)
    sys.exit(0)


def _fail(error: Exception, status: int) -> NoReturn:
    print(f"opsthread: {error}", file=sys.stderr)
    sys.exit(status)
