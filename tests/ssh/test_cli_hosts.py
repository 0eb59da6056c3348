"""`hosts` and `init` as a person runs them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import structlog

from bot.cli import main
from bot.ssh.inventory import Host, load
from storage import audit
from storage.store import Store
from tests.fakes.ssh import free_port

Run = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """The console script in a thread of this process: status, stdout, stderr."""
    for name in list(os.environ):
        if name.startswith(("OPSTHREAD_", "SLACK_", "OPENAI_", "DATABASE_")):
            monkeypatch.delenv(name)

    async def call(
        *words: str, cwd: Path = tmp_path, hosts: Path | None = None, database: str = ""
    ) -> tuple[int, str, str]:
        monkeypatch.setenv("DATABASE_URL", database)
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["opsthread", *words])
        monkeypatch.setenv("OPSTHREAD_DATA_DIR", str(tmp_path / "data"))
        if hosts:
            monkeypatch.setenv("OPSTHREAD_HOSTS", str(hosts))
        capsys.readouterr()
        status = await asyncio.to_thread(_status)
        out, err = capsys.readouterr()
        return status, out, err

    handlers = logging.getLogger().handlers[:]
    yield call
    structlog.reset_defaults()  # the commands set up logging to the captured stderr, which is closed now
    logging.getLogger().handlers[:] = handlers


def _status() -> int:
    try:
        main.main()
    except SystemExit as end:
        return int(end.code or 0)


def hosts_yml(folder: Path, demo: Host, known: Path) -> Path:
    path = folder / "hosts.yml"
    path.write_text(
        f"defaults: {{user: {demo.user}, known_hosts: {known}, identity: [{demo.identity[0]}]}}\n"
        f"hosts:\n- {{name: good, address: 127.0.0.1, port: {demo.port}, labels: {{env: prod}}}}\n"
        f"- {{name: gone, address: 127.0.0.1, port: {free_port()}}}\n"
        "access:\n- {users: [U1], channels: [C1], hosts: [env=prod]}\n- {users: ['local:bob'], hosts: ['*']}\n"
    )
    return path


async def test_trust_then_check_then_list(
    run: Run, demo: Host, tmp_path: Path, store: Store, database_url: str
) -> None:
    path = hosts_yml(tmp_path, demo, tmp_path / "known")
    code, out, err = await run("hosts", "check", hosts=path)
    assert code == 1
    assert "hosts trust good --fingerprint SHA256:" in out
    assert "✗ gone" in out
    fingerprint = out.partition("--fingerprint ")[2].partition("`")[0]

    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    trust = ("hosts", "trust", "good", "--fingerprint")
    code, out, err = await run(*trust, fingerprint, hosts=path, database=nowhere)
    assert (code, out) == (1, ""), "what cannot be put into the audit log is not done"
    assert "the database cannot be reached" in err

    code, out, err = await run(*trust, "SHA256:x", hosts=path, database=database_url)
    assert (code, out) == (1, "")
    assert "nothing was written" in err
    assert not (tmp_path / "known").exists()

    code, out, err = await run(*trust, fingerprint, hosts=path, database=database_url)
    assert (code, err) == (0, "")
    async with store.begin() as db:
        row, asked = await audit.list_(db, event="hosts.trusted")
        (not_done,) = await audit.list_(db, event="hosts.not_trusted")
    assert (row.host, row.detail["host_key"]) == ("good", fingerprint)
    assert asked.detail["host_key"] == not_done.detail["host_key"] == "SHA256:x"
    assert (tmp_path / "known").read_text().startswith("good ssh-ed25519 ")

    code, out, err = await run("hosts", "check", "good", "--json", hosts=path)
    assert (code, err) == (0, "")
    assert json.loads(out)["ok"] is True
    assert json.loads(out)["fingerprint"] == fingerprint

    code, out, err = await run("hosts", "check", "goood", hosts=path)
    assert code == 2
    assert err == 'opsthread: host "goood" is not in the inventory; you may use: good, gone\n'


async def test_list_shows_what_a_person_may_use_and_from_where(run: Run, demo: Host, tmp_path: Path) -> None:
    path = hosts_yml(tmp_path, demo, tmp_path / "known")
    _, out, _ = await run("hosts", "list", "--json", hosts=path)
    assert [json.loads(line)["name"] for line in out.splitlines()] == ["good", "gone"]
    _, out, _ = await run("hosts", "list", "--json", "--user", "U1", hosts=path)
    assert [(json.loads(line)["name"], json.loads(line)["channels"]) for line in out.splitlines()] == [
        ("good", ["C1"])
    ]
    _, out, _ = await run("hosts", "list", "--user", "bob", hosts=path)
    assert "gone" in out
    assert "terminal" in out
    assert "reads only: nobody may approve a change" in out
    path.write_text(path.read_text().replace("hosts: [env=prod]", "hosts: [env=prod], approvers: [U2, S3]"))
    _, out, _ = await run("hosts", "list", "--user", "U1", hosts=path)
    assert out.rstrip().endswith("from C1, changes by U2 or S3")
    _, out, _ = await run("hosts", "list", "--json", "--user", "U1", hosts=path)
    right = {"channels": ["C1"], "approvers": ["U2", "S3"], "self_approval": False, "danger_approvals": 2}
    assert json.loads(out)["rights"] == [right]
    _, out, _ = await run("hosts", "list", "--user", "U2", hosts=path)
    assert out == "U2 may use no host\n"


async def test_a_faulty_inventory_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("hosts: 5\n")
    code, out, err = await run("hosts", "list", hosts=tmp_path / "hosts.yml")
    assert (code, out) == (2, "")
    assert "hosts.yml:1: hosts:" in err


async def test_without_hosts_the_practice_host_is_checked(run: Run, tmp_path: Path) -> None:
    code, out, err = await run("hosts", "check")
    assert (code, err) == (0, "")
    assert out.startswith("✓ this-machine")


async def test_init_writes_what_is_missing_and_never_over_anything(run: Run, tmp_path: Path) -> None:
    code, out, err = await run("init", "here")
    assert (code, err) == (0, "")
    folder = tmp_path / "here"
    assert {path.name for path in folder.iterdir()} == {
        "hosts.yml", "id_ed25519", "id_ed25519.pub", "known_hosts", ".env",
    }  # fmt: skip
    for name in (".env", "id_ed25519"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert load(folder / "hosts.yml").for_team("").hosts[0].name == "web-1"
    assert (folder / "id_ed25519.pub").read_text().strip() in out
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "known_hosts").unlink()
    code, out, err = await run("init", "here")
    assert (code, err) == (0, "")
    assert "kept     here/.env" in out
    assert "written  here/known_hosts" in out
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    code, out, err = await run("hosts", "list", cwd=folder)
    assert (code, err) == (0, "")
    assert out.startswith("web-1")
