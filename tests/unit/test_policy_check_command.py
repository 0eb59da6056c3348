"""`policy check`: JSON lines in, JSON lines out, in the same order and without a database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from bot.cli import policy
from bot.errors import SettingsError, UsageError

HOSTS = """
defaults: {user: opsbot, known_hosts: /etc/opsthread/known_hosts, identity: [/etc/opsthread/id_ed25519]}
hosts:
  - {name: web-1, address: 10.0.0.11, sudo: true}
  - {name: web-2, address: 10.0.0.12}
targets: ["*.example.com"]
access:
  - {users: [U01ALICE], hosts: [web-1, web-2]}
"""


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPSTHREAD_HOSTS", "OPSTHREAD_POLICY"):
        monkeypatch.delenv(name, raising=False)


def check(*commands: str, args: tuple[str, ...] = ()) -> list[dict[str, object]]:
    app = typer.Typer()
    policy.register(app)
    app.command("other")(lambda: None)
    text = "".join(json.dumps({"command": c, "why": "passed over"}) + "\n" for c in commands)
    done = CliRunner().invoke(app, ["policy", "check", *args], input=text, catch_exceptions=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_line_is_answered_in_order_with_the_text_that_would_run() -> None:
    found = check("df -h", "echo $PATH", "ls\nrm x", "systemctl restart nginx", "grep '连接' /var/log/a.log")
    assert [f["verdict"] for f in found] == ["allow", "ask", "deny", "ask", "allow"]
    assert [f["parsed"] for f in found] == [True, False, False, True, True]
    assert [f["run"] for f in found] == [
        "'df' -h",
        "echo $PATH",
        None,
        "'systemctl' restart nginx",
        "'grep' '连接' /var/log/a.log",
    ]
    assert all(set(f) == {"command", "verdict", "reason", "run", "parsed"} for f in found)
    assert found[2]["command"] == "ls\nrm x"


def test_only_what_two_people_must_approve_has_a_danger() -> None:
    calm, grave = check("systemctl restart nginx", "rm -rf /srv/old")
    assert set(calm) == {"command", "verdict", "reason", "run", "parsed"}
    assert set(grave) == {"command", "verdict", "reason", "run", "parsed", "danger"}
    assert grave["danger"] == "rm: removes folders with all that is in them"


def test_a_lone_surrogate_is_answered_too() -> None:
    assert check("ls \ud800")[0]["verdict"] == "deny"


def test_the_host_decides_about_sudo_and_its_file_about_targets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "hosts.yml").write_text(HOSTS, "utf-8")
    monkeypatch.setenv("OPSTHREAD_HOSTS", str(tmp_path / "hosts.yml"))
    for host, wanted in (("web-1", "allow"), ("web-2", "ask")):
        found = check("sudo dmesg -T", "dig db1.example.com", args=("--host", host))
        assert [f["verdict"] for f in found] == [wanted, "allow"]
    with pytest.raises(UsageError, match="web-1, web-2"):
        check("df", args=("--host", "web1"))


def test_an_operators_rules_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text("ask: [df]\n", "utf-8")
    monkeypatch.setenv("OPSTHREAD_POLICY", str(tmp_path / "rules.yml"))
    assert check("df -h")[0]["verdict"] == "ask"


def test_a_file_of_rules_that_cannot_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPSTHREAD_POLICY", str(tmp_path / "absent.yml"))
    with pytest.raises(SettingsError, match=r"OPSTHREAD_POLICY: cannot read .*absent\.yml: No such file"):
        check("df -h")


def test_a_line_that_is_not_a_command_is_named() -> None:
    app = typer.Typer()
    policy.register(app)
    app.command("other")(lambda: None)
    for text in ("no json\n", '{"x": 1}\n', "[1]\n", '{"command": 1}\n'):
        with pytest.raises(UsageError, match="line 1"):
            CliRunner().invoke(app, ["policy", "check"], input=text, catch_exceptions=False)
