"""Who may do what, and how much: rights at every command, approvals that bind, the switch, the limits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.access import Actor
from bot.errors import Refused
from bot.events import ApprovalAsked, CommandRefused, Noted
from bot.turns.modes import Modes, set_mode
from storage import approvals, control
from storage.control import EVERY_TEAM, Mode
from storage.records import LOCAL_TEAM, Approval, ApprovalState, CommandState, Role, TurnState
from tests.fakes.model import call, calls, say
from tests.turns.rig import HOST, Rig, allow, open_rig, run, until

TWO = (
    f'  - {{users: ["local:tester", "local:ann"], channels: [terminal], hosts: [{HOST}],'
    ' approvers: ["local:bob", "local:cid", "local:tester"]}'
)


async def state(rig: Rig, approval: Approval) -> ApprovalState:
    async with rig.store.begin() as db:
        return (await approvals.get(db, approval.id)).state


async def edit(rig: Rig, change: str, approval: Approval) -> None:
    """Somebody with the database in hand."""
    async with rig.store.begin() as db:
        await db.execute(text(f"UPDATE approval SET {change} WHERE id = :id"), {"id": approval.id})


async def reload(rig: Rig, access: str) -> None:
    assert rig.settings.hosts is not None
    before = rig.app.inventory.current
    allow(rig.settings.hosts, access)
    await until(lambda: rig.app.inventory.current is not before, what="the new rules")


async def test_a_command_marked_dangerous_needs_two_people_and_neither_the_one_who_asked(
    database_url: str, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    async with open_rig(database_url, tmp_path / "data", access=TWO) as rig:
        rig.model.push(run(f"rm -r {gone}"), say("removed"))
        talk, _ = await rig.say("remove it")
        approval = rig.approval()
        assert approval.needs == 2
        assert approval.danger
        counted, said = await rig.decide(approval, approve=True)
        assert not counted
        assert "somebody else must approve it" in said
        first = await rig.decide(approval, approve=True, by="local:bob")
        assert first == (True, "approved by local:bob; another person must approve it too")
        again = await rig.decide(approval, approve=True, by="local:bob")
        assert again == (False, "you have approved it already; another person must approve it too")
        assert await state(rig, approval) is ApprovalState.OPEN
        assert (await rig.turn(approval.turn_id)).state is TurnState.WAITING
        second = await rig.decide(approval, approve=True, by="local:cid")
        assert second == (True, "approved by local:bob, local:cid")
        assert await talk.follow(approval.session_id, approval.turn_id) is TurnState.DONE
        assert not gone.exists()


async def test_of_two_yes_at_the_same_moment_both_count_and_it_runs_once(
    database_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with open_rig(database_url, tmp_path / "data", access=TWO) as rig:
        rig.model.push(run(f"sh -c 'echo ran >> {log}; rm -r {tmp_path}/none'"), say("ok"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        assert approval.needs == 2
        await asyncio.gather(
            *(rig.decide(approval, approve=True, by=who) for who in ("local:bob", "local:cid") for _ in "xxx")
        )
        assert await state(rig, approval) is ApprovalState.APPROVED
        await talk.follow(approval.session_id, approval.turn_id)
        assert log.read_text() == "ran\n"


async def test_one_no_is_enough_also_after_a_yes(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path, access=TWO) as rig:
        rig.model.push(run("rm -r /tmp/opsthread-never"), say("then not"))
        await rig.say("go")
        await rig.decide(rig.approval(), approve=True, by="local:bob")
        assert await rig.decide(rig.approval(), approve=False, by="local:bob") == (
            True,
            "denied by local:bob",
        )
        assert await state(rig, rig.approval()) is ApprovalState.DENIED


async def test_two_approvers_that_a_rule_cannot_have_are_said_and_not_asked_for(
    database_url: str, tmp_path: Path
) -> None:
    one = f'  - {{users: ["local:tester"], hosts: [{HOST}], approvers: ["local:bob"]}}'
    async with open_rig(database_url, tmp_path, access=one) as rig:
        rig.model.push(run("rm -r /tmp/opsthread-never"), say("no"))
        await rig.say("go")
        assert rig.seen(ApprovalAsked) == []
        assert "add an approver, or set danger_approvals: 1" in rig.last_result()


async def test_an_approval_whose_row_was_altered_runs_nothing(database_url: str, tmp_path: Path) -> None:
    target = tmp_path / "made"
    async with open_rig(database_url, tmp_path / "data", access=TWO) as rig:
        for change in (
            f"run = 'touch {target}.other'",
            "limit_s = limit_s + 1",
            "requester = 'local:bob'",
            "policy = 'another'",
            "needs = 0",
            "hosts = jsonb_set(hosts, '{0,address}', '\"10.9.9.9\"')",
            "hosts = jsonb_set(hosts, '{0,fingerprint}', '\"SHA256:other\"')",
            "digest = 'another'",
        ):
            rig.model.push(run(f"touch {target}"), say("no"))
            talk, _ = await rig.say("go")
            approval = rig.approval()
            await rig.decide(approval, approve=True, by="local:bob")
            await edit(rig, change, approval)
            await talk.follow(approval.session_id, approval.turn_id)
            assert "refused" in rig.last_result(), change
            assert await rig.commands(talk.session) == [], change
        assert not target.exists()
        assert not Path(f"{target}.other").exists()


async def test_a_used_approval_never_runs_again_whatever_is_set_back(
    database_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with open_rig(database_url, tmp_path / "data", access=TWO) as rig:
        rig.model.push(run(f"sh -c 'echo ran >> {log}'"), say("ok"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        await rig.decide(approval, approve=True, by="local:bob")
        await talk.follow(approval.session_id, approval.turn_id)
        await edit(rig, "state = 'approved'", approval)
        async with rig.store.begin() as db:
            await db.execute(text("UPDATE turn SET state = 'ready'"))
            call_of = "SELECT id FROM chat_message WHERE tool_calls IS NOT NULL"
            await db.execute(text(f"UPDATE chat_session SET head_id = ({call_of})"))
        rig.model.push(say("ok again"))
        await talk.follow(approval.session_id, approval.turn_id)
        assert log.read_text() == "ran\n"
        assert "exit 0" in rig.last_result()


async def test_rights_lost_after_the_yes_refuse_and_withhold(database_url: str, tmp_path: Path) -> None:
    target = tmp_path / "made"
    async with open_rig(database_url, tmp_path / "data", access=TWO) as rig:
        rig.model.push(run(f"touch {target}"), say("no"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        await rig.decide(approval, approve=True, by="local:bob")
        await reload(rig, TWO.replace('"local:tester", "local:ann"', '"local:ann"'))
        await talk.follow(approval.session_id, approval.turn_id)
        assert not target.exists()
        assert "may not be used any more" in rig.last_result()


async def test_an_approver_struck_from_the_rules_cannot_answer(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path, access=TWO) as rig:
        rig.model.push(run("touch /tmp/opsthread-never"), say("no"))
        await rig.say("go")
        await reload(rig, TWO.replace('"local:bob", ', ""))
        counted, said = await rig.decide(rig.approval(), approve=True, by="local:bob")
        assert not counted
        assert "you are not an approver" in said
        assert await state(rig, rig.approval()) is ApprovalState.OPEN


async def test_what_was_seen_on_a_host_is_withheld_from_the_turn_of_somebody_who_may_not_use_it(
    database_url: str, tmp_path: Path
) -> None:
    rules = TWO.replace(', "local:ann"', "")
    async with open_rig(database_url, tmp_path, access=rules) as rig:
        rig.model.push(run("echo the-inside-of-it"), say("looked"), say("I cannot know"))
        talk, _ = await rig.say("look")
        other = rig.conversation(account="local:ann", session=talk.session)
        await other.say("what did it print?")
        seen = str(rig.model.requests[-1])
        assert "the-inside-of-it" not in seen.replace("echo the-inside-of-it", "").replace(
            "'echo' the-inside-of-it", ""
        )
        assert f"(withheld: this is from {HOST}, which ann may not use here)" in seen
        rig.model.push(say("here"))
        await talk.say("and what did it print?")
        assert "\n| the-inside-of-it" in str(rig.model.requests[-1]["messages"][3]["content"])
        assert rig.model.violations == []


async def test_a_teammate_acts_with_their_own_rights(database_url: str, tmp_path: Path) -> None:
    rules = TWO.replace(', "local:ann"', "")
    async with open_rig(database_url, tmp_path, access=rules) as rig:
        rig.model.push(say("yes?"), run("uptime"), say("no"))
        talk, _ = await rig.say("hello")
        await rig.conversation(account="local:ann", session=talk.session).say("run uptime")
        assert "you have no access to any host from here" in rig.last_result()
        assert await rig.commands(talk.session) == []


async def test_read_only_mode_runs_reads_and_changes_nothing(database_url: str, tmp_path: Path) -> None:
    target = tmp_path / "made"
    async with open_rig(database_url, tmp_path / "data", access=TWO) as rig:
        rig.model.push(run(f"touch {target}"), say("waits"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        await rig.decide(approval, approve=True, by="local:bob")
        await set_mode(rig.store, EVERY_TEAM, Mode.READ_ONLY, by="root", person="local:root")
        await talk.follow(approval.session_id, approval.turn_id)
        assert not target.exists()
        assert "root has set read-only mode; nothing is changed" in rig.last_result()
        rig.model.push(run("uptime"), run(f"touch {target}"), say("ok"))
        await talk.say("again")
        assert [c.state for c in await rig.commands(talk.session)] == [CommandState.DONE]
        assert len(rig.seen(ApprovalAsked)) == 1
        await set_mode(rig.store, EVERY_TEAM, Mode.NORMAL, by="root", person="local:root")
        rig.model.push(run(f"touch {target}"))
        assert await talk.say("and now") is TurnState.WAITING


async def test_stopped_ends_the_turns_takes_back_their_cards_and_runs_nothing(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path, access=TWO) as rig:
        rig.model.push(run("touch /tmp/opsthread-never"))
        waiting, _ = await rig.say("go")
        assert await set_mode(rig.store, EVERY_TEAM, Mode.STOPPED, by="root", person="local:root") == 1
        assert await waiting.follow(rig.approval().session_id, rig.approval().turn_id) is TurnState.STOPPED
        assert await state(rig, rig.approval()) is ApprovalState.REVOKED
        rig.model.push(run("uptime"), say("nothing runs"))
        await waiting.say("look")
        assert "root has stopped everything; nothing is run" in rig.last_result()
        assert await rig.commands(waiting.session) == []


async def test_only_an_approver_may_set_the_mode_back(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path, access=TWO) as rig:
        live = rig.app.inventory
        modes = Modes(rig.store, lambda team: live.current.for_team(team))

        async def ask(who: str, mode: Mode) -> str:
            actor = Actor(team=LOCAL_TEAM, id=who, name=who)
            return await modes.ask(actor, mode, channel="terminal", shared=False, why="freeze")

        assert "only somebody who may use a host" in await ask("local:eve", Mode.STOPPED)
        assert (await ask("local:ann", Mode.READ_ONLY)).startswith("mode read-only since ")
        assert "names as approver" in await ask("local:ann", Mode.NORMAL)
        assert (await ask("local:bob", Mode.NORMAL)).startswith("mode normal")
        await set_mode(rig.store, EVERY_TEAM, Mode.STOPPED, by="root", person="local:root")
        assert "lifted there" in await ask("local:bob", Mode.NORMAL)
        async with rig.store.begin() as db:
            now = await control.switch(db, LOCAL_TEAM)
        assert now is not None
        assert now.mode is Mode.STOPPED


async def test_more_commands_than_a_minute_may_see_are_not_run_and_said(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path, commands_per_minute=3) as rig:
        five = [call("run_command", hosts=[HOST], command=f"echo {n}") for n in range(5)]
        rig.model.push(calls(five), say("ok"))
        talk, _ = await rig.say("go")
        assert len(await rig.commands(talk.session)) == 3
        assert "3 commands a minute in this session is the limit" in rig.seen(CommandRefused)[0].reason


async def test_a_person_has_only_so_many_unfinished_requests(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path, turns_per_person=2) as rig:
        rig.model.push(run("touch /tmp/opsthread-a"), run("touch /tmp/opsthread-b"))
        await rig.say("one")
        await rig.say("two")
        with pytest.raises(Refused, match="2 requests of yours are not finished"):
            await rig.say("three")


async def test_somebody_who_takes_up_anothers_plan_is_shown_it(database_url: str, tmp_path: Path) -> None:
    steps = [{"step": "look at the disk", "state": "done"}, {"step": "restart nginx", "state": "todo"}]
    async with open_rig(database_url, tmp_path, access=TWO) as rig:
        rig.model.push(calls([call("plan", steps=steps)]), say("planned"), say("going on"), say("and on"))
        talk, _ = await rig.say("plan it")
        other = rig.conversation(account="local:ann", session=talk.session)
        await other.say("continue")
        await other.say("continue")
        notes = [event.text for event in rig.seen(Noted)]
        assert notes == ["ann takes up the plan of tester. Still to do: 1. restart nginx"]
        assert [m.role for m in await rig.messages(talk.session)].count(Role.USER) == 3
