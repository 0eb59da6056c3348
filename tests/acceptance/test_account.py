"""Who a terminal's person is: the account of the process, whatever its environment says."""

from __future__ import annotations

from pathlib import Path

from bot.demo.host import DemoHost, write_hosts_yml
from tests.acceptance.processes import run as opsthread
from tests.fakes.model import FakeModel, say
from tests.turns.rig import HOST, allow, run

ONLY_BOB = f'  - {{users: ["local:*"], channels: [terminal], hosts: [{HOST}], approvers: ["local:bob"]}}'


async def test_the_environment_does_not_make_somebody_else_of_who_approves(
    database_url: str, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    host = DemoHost(tmp_path / "host")
    port = await host.start()
    try:
        hosts = write_hosts_yml(tmp_path / "host", port)
        allow(hosts, ONLY_BOB)
        async with FakeModel() as model:
            model.push(run(f"touch {made}"), say("made"))
            env = {
                "DATABASE_URL": database_url,
                "OPENAI_BASE_URL": model.base_url,
                "OPSTHREAD_HOSTS": str(hosts),
                "OPSTHREAD_DATA_DIR": str(tmp_path / "data"),
            }
            await opsthread("ask", "make it", env=env)
            _, said = await opsthread("approve", "1", env={**env, "LOGNAME": "bob", "USER": "bob"})
            assert "you are not an approver" in said.text(), said.text()
            assert not made.exists()
    finally:
        await host.stop()
