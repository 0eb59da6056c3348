"""Two people must say yes: both must be approvers when the second one counts."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import say
from tests.turns.rig import HOST, allow, open_rig, run, until


def rule(approvers: str) -> str:
    return f'  - {{users: ["local:tester"], channels: [terminal], hosts: [{HOST}], approvers: [{approvers}]}}'


async def test_a_yes_of_somebody_who_is_no_approver_any_more_does_not_count(
    database_url: str, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    async with open_rig(
        database_url, tmp_path / "data", access=rule('"local:bob", "local:cid", "local:dan"')
    ) as rig:
        rig.model.push(run(f"rm -r {gone}"), say("removed"))
        talk, _ = await rig.say("remove it")
        approval = rig.approval()
        assert (await rig.decide(approval, approve=True, by="local:bob"))[0]
        before = rig.app.inventory.current
        assert rig.settings.hosts is not None
        allow(rig.settings.hosts, rule('"local:cid", "local:dan"'))
        await until(lambda: rig.app.inventory.current is not before, what="the new rules")
        counted, said = await rig.decide(approval, approve=True, by="local:cid")
        await talk.follow(approval.session_id, approval.turn_id)
        assert gone.exists(), said
        assert counted
        assert "another person must approve it too" in said
        assert await rig.decide(approval, approve=True, by="local:dan") == (
            True,
            "approved by local:cid, local:dan",
        )
        await talk.follow(approval.session_id, approval.turn_id)
        assert not gone.exists()
