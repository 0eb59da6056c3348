"""The console script: gathers the groups of commands and turns errors into one line and an exit status.

Exit status: 0 done, 1 failed, 2 wrong usage or settings.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

import typer

from bot import __version__
from bot.cli.loading import loading
from bot.errors import OpsthreadError, UsageError
from bot.redact import load_redactor
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


# Which file under bot/cli holds a command. Only what is called for is imported: all of it takes seconds.
COMMANDS = {
    "demo": "talk",
    "chat": "talk",
    "ask": "talk",
    "serve": "serve",
    "approvals": "approvals",
    "approve": "approvals",
    "deny": "approvals",
    "sessions": "sessions",
    "memory": "memory",
    "hosts": "hosts",
    "policy": "policy",
    "mode": "mode",
    "audit": "audit",
    "db": "db",
    "init": "init",
}


def load(word: str | None = None) -> None:
    """Register the command `word`, or every command when there is none of that name."""
    for name in [COMMANDS[word]] if word in COMMANDS else dict.fromkeys(COMMANDS.values()):
        with loading():
            module = import_module(f"bot.cli.{name}")
        module.register(app)


def main() -> NoReturn:
    """Run one command; never show a traceback for an error that a person can mend."""
    if any("\ud800" <= sign <= "\udfff" for word in sys.argv for sign in word):
        _fail(UsageError("a word of this command is not UTF-8 text"), 2)
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    if words or "--version" not in sys.argv:
        load(words[0] if words else None)
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
    from bot.terminal.safe_text import harmless

    print(f"opsthread: {harmless(load_redactor().text(str(error)).text)}", file=sys.stderr)
    sys.exit(status)
