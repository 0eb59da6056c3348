"""`init`: the files to begin with, made once and never written over, and what to fill in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import typer

from bot.demo import keys
from bot.errors import Refused

HOSTS = """\
# Who may reach which machine. `opsthread hosts check` tries it out; docs/configuration.md explains each key.
# Relative paths are meant from this file.
defaults: {user: opsbot, port: 22, known_hosts: known_hosts, identity: [id_ed25519], timeout_s: 30, max_timeout_s: 900}
hosts:
  # The account should be an ordinary one: what it cannot read or do, nobody can be talked into.
  - {name: web-1, address: 192.0.2.11, labels: {role: web, env: prod}, sudo: false, home: /nonexistent}
targets: []        # names, globs and networks that dig, ping and curl may reach without asking, such as *.example.com
access:
  # First match decides; no match, no access. users and approvers: Slack ids (U…, groups S…) or local:<OS account>.
  - {users: ["local:*"], channels: [terminal], hosts: [web-1], approvers: ["local:*"], self_approval: true}
  # - {users: [U01ALICE], usergroups: [S01SRE], channels: [C01OPS, dm], hosts: ["web-*"], approvers: [S01SRE]}
"""

ENVIRONMENT = """\
# Read when opsthread is started in this folder. Keep it to yourself (mode 0600).
OPSTHREAD_HOSTS={hosts}
# From the Slack app's pages: Socket Mode needs both.
SLACK_BOT_TOKEN=
SLACK_APP_TOKEN=
# Any OpenAI-compatible endpoint.
OPENAI_API_KEY=
OPENAI_BASE_URL=
OPSTHREAD_MODEL=gpt-5-mini
# postgresql://…; empty: the embedded Postgres under the data folder.
DATABASE_URL=
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def init(folder: Path = typer.Argument(Path(), help="where to; this folder when left out")) -> None:  # noqa: B008
        """Write a sample hosts.yml, a key pair, known_hosts and .env; what exists is kept."""
        for line in make(folder):
            print(line)


def make(folder: Path) -> list[str]:
    """Write what is missing and say, line by line, what was done and what to do. Raises Refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        said = [_file(folder / name, write) for name, write in _files(folder).items()]
        public = (folder / "id_ed25519.pub").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Refused(f"{folder} cannot be filled: {error.strerror}; name another folder") from None
    here = "" if folder.resolve() == Path.cwd() else f"cd {folder} and "
    return [
        *said,
        "",
        "To do:",
        "  1. hosts.yml: your machines, and who may use and approve what.",
        "  2. On each machine, in the account's ~/.ssh/authorized_keys:",
        f"     {public}",
        f"  3. {here}run `opsthread hosts check`: it names each machine's key. Compare it on the machine, then",
        "     run `opsthread hosts trust NAME --fingerprint SHA256:…`.",
        "  4. .env: the tokens of Slack and of the model. Then `opsthread chat`, or `opsthread serve`.",
    ]


def _files(folder: Path) -> dict[str, Callable[[Path], None]]:
    hosts = (folder / "hosts.yml").absolute()
    return {
        "hosts.yml": lambda path: _text(path, HOSTS, 0o644),
        "id_ed25519": lambda path: keys.new_key(path, comment="opsthread"),
        "known_hosts": lambda path: _text(path, "", 0o644),
        ".env": lambda path: _text(path, ENVIRONMENT.format(hosts=hosts), 0o600),
    }


def _file(path: Path, write: Callable[[Path], None]) -> str:
    if os.path.lexists(path):
        return f"kept     {path}"
    write(path)
    return f"written  {path}"


def _text(path: Path, text: str, mode: int) -> None:
    """With its final mode from the first moment, and never over a file that came in between."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
