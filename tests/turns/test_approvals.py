"""Commands that need a person's yes: asked, answered, run at most once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlalchemy import text

from bot.events import Answered, ApprovalAsked, ApprovalClosed, CommandRefused, MilestoneReached
from storage import approvals, outbox, turns
from storage.records import ApprovalState, CommandState, MilestoneKind, PostState, Role, TurnState
from tests.fakes.model import call, calls, say
from tests.turns.rig import HOST, open_rig, run, until


async def test_a_change_waits_for_a_yes_and_then_runs_once(database_url: str, tmp_path: Path) -> None:
    target = tmp_path / "made"
    async with open_rig(database_url, tmp_path / "data") as rig:
        rig.model.push(run(f"touch {target}"), say("made it"))
        talk, state = await rig.say("make the file")
        assert state is TurnState.WAITING
        assert not target.exists()
        approval = rig.approval()
        assert approval.run == f"'touch' {target}"
        assert [h.name for h in approval.hosts] == [HOST]
        assert approval.hosts[0].fingerprint.startswith("SHA256:")
        assert await rig.decide(approval, approve=True) == (True, "approved by local:tester")
        assert await talk.follow(approval.session_id, approval.turn_id) is TurnState.DONE
        assert target.exists()
        (command,) = await rig.commands(talk.session)
        assert (command.state, command.exit_status, command.approval_id) == (
            CommandState.DONE,
            0,
            approval.id,
        )
        async with rig.store.begin() as db:
            assert (await approvals.get(db, approval.id)).state is ApprovalState.USED
        assert MilestoneKind.CHANGE in [m.kind for m in rig.seen(MilestoneReached)]
        assert rig.model.violations == []


async def test_a_second_answer_does_nothing_and_says_so(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run("touch /tmp/opsthread-never"), say("ok"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        first = await asyncio.gather(*(rig.decide(approval, approve=n % 2 == 0) for n in range(6)))
        assert sum(counted for counted, _ in first) == 1
        await talk.follow(approval.session_id, approval.turn_id)
        counted, said = await rig.decide(approval, approve=True)
        assert not counted
        assert "already" in said


async def test_a_denied_command_does_not_run_and_is_not_asked_again_in_that_turn(
    database_url: str, tmp_path: Path
) -> None:
    target = tmp_path / "made"
    async with open_rig(database_url, tmp_path / "data") as rig:
        rig.model.push(run(f"touch {target}"), run(f"touch {target}", timeout_s=9), say("then not"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        await rig.decide(approval, approve=False)
        assert await talk.follow(approval.session_id, approval.turn_id) is TurnState.DONE
        assert not target.exists()
        texts = [m.text for m in await rig.messages(talk.session) if m.role is Role.TOOL]
        assert "denied by local:tester" in texts[0]
        assert "denied it in this turn; it is not asked again" in texts[1]
        assert len(rig.seen(ApprovalAsked)) == 1


async def test_somebody_who_may_not_approve_is_told_why_and_nothing_changes(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run("touch /tmp/opsthread-never"), say("ok"))
        await rig.say("go")
        counted, said = await rig.decide(rig.approval(), approve=True, by="U0STRANGER")
        assert not counted
        assert "you are not an approver for this" in said
        async with rig.store.begin() as db:
            assert (await approvals.get(db, rig.approval().id)).state is ApprovalState.OPEN


async def test_an_approval_that_nobody_answers_expires_and_the_turn_says_so(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path, approval_s=5) as rig:
        rig.model.push(run("touch /tmp/opsthread-never"), say("nobody answered"))
        talk, state = await rig.say("go")
        assert state is TurnState.WAITING
        async with asyncio.timeout(15):
            while (await rig.turn(rig.approval().turn_id)).state is TurnState.WAITING:
                await asyncio.sleep(0.1)
        assert await talk.follow(rig.approval().session_id, rig.approval().turn_id) is TurnState.DONE
        assert "nobody answered the approval in time" in rig.model.requests[-1]["messages"][-1]["content"]
        assert not (await rig.decide(rig.approval(), approve=True))[0]


async def test_a_message_while_an_approval_is_open_is_answered_and_the_approval_stays_open(
    database_url: str, tmp_path: Path
) -> None:
    target = tmp_path / "made"
    async with open_rig(database_url, tmp_path / "data") as rig:
        rig.model.push(run(f"touch {target}"), say("while you decide: all is well"), say("made it"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        assert await talk.say("is all well?") is TurnState.DONE
        assert rig.seen(Answered)[-1].text == "while you decide: all is well"
        await rig.decide(approval, approve=True)
        assert await talk.follow(approval.session_id, approval.turn_id) is TurnState.DONE
        assert target.exists()
        assert rig.seen(Answered)[-1].text == "made it"
        told = rig.model.requests[-1]["messages"][-1]
        assert told["role"] == "user"
        assert "The approval asked for earlier was answered" in told["content"]
        assert "exit 0" in told["content"]
        assert rig.model.violations == []
        assert len(await rig.commands(talk.session)) == 1


async def test_at_most_two_approvals_are_open_in_a_session(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(
            calls([call("run_command", hosts=[HOST], command=f"touch /tmp/opsthread-{n}") for n in range(4)]),
            say("ok"),
        )
        await rig.say("go")
        assert len(rig.seen(ApprovalAsked)) == 2


async def test_stopping_a_waiting_turn_withdraws_its_approval(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run("touch /tmp/opsthread-never"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        await talk.stop()
        assert await talk.follow(approval.session_id, approval.turn_id) is TurnState.STOPPED
        (closed,) = rig.seen(ApprovalClosed)
        assert (closed.approval.id, closed.approval.state, closed.by) == (
            approval.id,
            ApprovalState.REVOKED,
            "tester",
        )
        async with rig.store.begin() as db:
            assert await outbox.state(db, f"closed:{approval.id}") is PostState.NEW
        counted, said = await rig.decide(approval, approve=True)
        assert not counted
        assert "already revoked" in said
        rig.model.push(say("fine"))
        assert await talk.say("hello") is TurnState.DONE
        assert rig.model.violations == []


async def test_a_command_that_may_never_run_is_refused_without_a_card(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run("rm -rf /"), say("no"))
        await rig.say("go")
        assert rig.seen(ApprovalAsked) == []
        assert rig.seen(CommandRefused)[0].host == HOST


async def test_a_change_that_a_stop_leaves_running_is_not_killed_and_its_outcome_is_collected(
    database_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with open_rig(database_url, tmp_path / "data") as rig:
        rig.model.push(run(f"sh -c 'echo begun >> {log}; sleep 4; echo ended >> {log}'"))
        talk, _ = await rig.say("go")
        await rig.decide(rig.approval(), approve=True)
        turn = asyncio.create_task(talk.follow(rig.approval().session_id, rig.approval().turn_id))
        await until(log.exists)
        await talk.stop()
        assert await turn is TurnState.STOPPED
        assert "was approved and may still run on this-machine" in rig.seen(Answered)[0].text
        assert log.read_text() == "begun\n"

        async def collected() -> bool:
            return (await rig.commands(talk.session))[0].state is not CommandState.RUNNING

        await until(collected, timeout_s=40)
        (command,) = await rig.commands(talk.session)
        assert (command.state, command.exit_status) == (CommandState.DONE, 0)
        assert log.read_text() == "begun\nended\n"


async def test_a_yes_that_was_given_long_ago_does_not_run_anything(database_url: str, tmp_path: Path) -> None:
    target = tmp_path / "made"
    async with open_rig(database_url, tmp_path / "data") as rig:
        rig.model.push(run(f"touch {target}"), say("too late"))
        talk, _ = await rig.say("go")
        approval = rig.approval()
        await rig.decide(approval, approve=True)
        async with rig.store.begin() as db:
            await db.execute(text("UPDATE approval SET decided_at = decided_at - interval '1 day'"))
        assert await talk.follow(approval.session_id, approval.turn_id) is TurnState.DONE
        assert not target.exists()
        assert "its time is over" in rig.model.requests[-1]["messages"][-1]["content"]


async def test_a_turn_that_goes_on_leaves_the_open_call_of_another_turn_to_that_turn(
    database_url: str, tmp_path: Path
) -> None:
    target, log = tmp_path / "made", tmp_path / "log"
    async with open_rig(database_url, tmp_path / "data") as rig:
        rig.model.push(run(f"touch {target}"), run(f"sh -c 'echo ran >> {log}'"), say("first"), say("second"))
        talk, _ = await rig.say("make the file")
        first = rig.approval()
        assert await talk.say("write the log") is TurnState.WAITING
        second = rig.approval()
        await rig.decide(first, approve=True)
        assert await talk.follow(first.session_id, first.turn_id) is TurnState.DONE
        assert target.exists()
        assert not log.exists()
        assert len(rig.seen(ApprovalAsked)) == 2
        await rig.decide(second, approve=True)
        assert await talk.follow(second.session_id, second.turn_id) is TurnState.DONE
        assert log.read_text() == "ran\n"
        assert [a.text for a in rig.seen(Answered)] == ["first", "second"]
        assert rig.model.violations == []


async def test_a_stop_and_an_answer_at_the_same_moment_do_not_block_each_other(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run("touch /tmp/opsthread-never"))
        await rig.say("go")
        approval = rig.approval()
        async with rig.store.begin() as db:
            await turns.lock(db, approval.turn_id)
            answer = asyncio.create_task(rig.decide(approval, approve=True))
            await asyncio.sleep(0.3)  # until it waits for the turn; nothing tells of that
            await turns.request_stop(db, turn_id=approval.turn_id, by="bob")
        counted, said = await answer
        assert not counted
        assert "already revoked by bob" in said
