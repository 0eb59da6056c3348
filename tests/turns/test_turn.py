"""A turn from a message to the answer, over real parts."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import asyncssh
import psycopg
import pytest

from bot.errors import Refused
from bot.events import Answered, CommandStarted, MilestoneReached, PlanChanged
from storage import milestones, outbox, tasks, transfer
from storage.records import LOCAL_TEAM, CommandState, MilestoneKind, PostState, Role, TurnState
from tests.fakes.following import FOLLOW, following
from tests.fakes.model import Answer, Call, call, calls, raw, say, slow, status, truncated
from tests.turns.rig import HOST, open_rig, run, until


async def test_a_question_runs_a_command_and_is_answered(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run("echo hello world"), say("It said hello world."))
        talk, state = await rig.say("what does echo say?")
        assert state is TurnState.DONE
        messages = await rig.messages(talk.session)
        assert [m.role for m in messages] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
        assert "hello world" in messages[2].text
        assert "exit 0" in messages[2].text
        (command,) = await rig.commands(talk.session)
        assert (command.state, command.exit_status, command.host) == (CommandState.DONE, 0, HOST)
        (answer,) = rig.seen(Answered)
        assert answer.text == "It said hello world."
        assert answer.footer == f"1 command on {HOST}"
        assert rig.model.violations == []
        async with rig.store.begin() as db:
            assert await outbox.state(db, f"answer:{answer.turn.id}") is PostState.NEW


async def test_the_request_ends_with_the_persons_words_and_offers_the_tools(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run("uptime"), say("fine"))
        await rig.say("how is  it\ngoing?")
        for request in rig.model.requests:
            users = [m["content"] for m in request["messages"] if m["role"] == "user"]
            assert users[-1].endswith("\n\nhow is  it\ngoing?")
            assert "UTC" in users[-1]
            names = {t["function"]["name"] for t in request["tools"]}
            assert names == {"run_command", "list_hosts", "milestone", "plan"}
            assert f"- {HOST}" in request["messages"][0]["content"]


async def test_a_second_turn_has_the_first_ones_history_with_its_calls(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run("echo first"), say("one"))
        talk, _ = await rig.say("first question")
        rig.model.push(say("two"))
        await talk.say("continue")
        sent = rig.model.requests[-1]["messages"]
        assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
        assert sent[2]["tool_calls"][0]["function"]["name"] == "run_command"
        assert sent[1]["content"] == "[tester] first question"
        assert rig.model.violations == []


async def test_an_imported_session_goes_on_in_a_terminal(database_url: str, tmp_path: Path) -> None:
    lines = transfer.parse(
        [
            '{"session": "old", "seq": 1, "role": "user", "author": "Ann", "text": "is web-1 slow?"}',
            '{"session": "old", "seq": 2, "role": "assistant", "text": "It was."}',
        ]
    )
    async with open_rig(database_url, tmp_path) as rig:
        (imported,) = await transfer.import_(rig.store, lines, team=LOCAL_TEAM, owner="alice")
        rig.model.push(say("It still is."))
        talk = rig.conversation()
        await talk.go_on_with(imported.session_id)
        assert await talk.say("continue") is TurnState.DONE
        assert [m["content"] for m in rig.model.requests[-1]["messages"][1:3]] == [
            "[Ann] is web-1 slow?",
            "It was.",
        ]


async def test_unknown_tools_and_bad_arguments_are_answered_so_that_the_model_can_correct_itself(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(
            calls(
                [call("reboot_all"), Call("run_command", '{"hosts": ["x"'), call("run_command", hosts=[HOST])]
            ),
            calls([call("run_command", hosts=["web1"], command="df -h")]),
            say("sorry"),
        )
        talk, _ = await rig.say("go")
        texts = [m.text for m in await rig.messages(talk.session) if m.role is Role.TOOL]
        assert 'there is no tool "reboot_all"; the tools are: run_command' in texts[0]
        assert "not valid JSON" in texts[1]
        assert "command: Field required" in texts[2]
        assert f'host "web1" is not in the inventory; you may use: {HOST}' in texts[3]
        assert rig.model.violations == []


async def test_signs_that_cannot_be_stored_or_sent_and_endless_nesting_do_not_end_a_turn(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        odd = [
            Call("run_command", '{"hosts": ["\\ud800"], "command": "uptime"}', id="a\x00"),
            Call("run_command", '{"hosts": ["this-machine"], "command": "uptime"}', id="a\ufffd"),
            Call("run_command", "[" * 50_000),
        ]
        rig.model.push(calls(odd, text="half \ud800 and \x00"), say("ok"), say("on"))
        talk, state = await rig.say("go")
        assert state is TurnState.DONE
        assert await talk.say("and on") is TurnState.DONE
        results = " ".join(m.text for m in await rig.messages(talk.session) if m.role is Role.TOOL)
        for said in ("not in the inventory", "exit 0", "not valid JSON"):
            assert said in results
        assert rig.model.violations == []


async def test_the_same_call_is_not_run_a_third_time(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(*[run("uptime") for _ in range(4)], say("enough"))
        talk, _ = await rig.say("go")
        assert len(await rig.commands(talk.session)) == 2
        texts = [m.text for m in await rig.messages(talk.session) if m.role is Role.TOOL]
        assert "you made this very call 2 times" in texts[2]


async def test_the_step_limit_ends_the_turn_with_the_best_answer(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path, max_steps=3) as rig:
        rig.model.push(run("echo 1"), run("echo 2"), run("echo 3"), say("I know three things."))
        _, state = await rig.say("go")
        assert state is TurnState.DONE
        last = rig.model.requests[-1]["messages"][-1]["content"]
        assert "the limit of 3 steps is reached. Do not call tools any more" in last
        (answer,) = rig.seen(Answered)
        assert answer.text.startswith("I know three things.")
        assert 'Say "continue" to go on' in answer.text
        kinds = [m.kind for m in rig.seen(MilestoneReached)]
        assert MilestoneKind.BLOCKED in kinds


async def test_a_model_that_calls_tools_beyond_the_limit_is_stopped(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path, max_steps=2) as rig:
        rig.model.push(*[run(f"echo {n}") for n in range(5)])
        talk, state = await rig.say("go")
        assert state is TurnState.DONE
        assert len(await rig.commands(talk.session)) == 2
        assert "I stopped because the limit of 2 steps is reached" in rig.seen(Answered)[0].text


async def test_the_time_limit_ends_the_turn_and_is_said(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path, max_turn_s=5) as rig:
        rig.model.push(slow(run("uptime"), 0.9), say("so far so good"))
        _, state = await rig.say("go")
        assert state is TurnState.DONE
        assert "the limit of 5 seconds" in rig.model.requests[-1]["messages"][-1]["content"]
        assert "Stopped because the limit of 5 seconds is reached" in rig.seen(Answered)[0].text


async def test_calls_on_one_reply_all_get_results_in_order(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(
            calls([call("run_command", hosts=[HOST], command=f"echo n{n}") for n in range(5)]), say("done")
        )
        await rig.say("go")
        sent = rig.model.requests[-1]["messages"]
        results = [m["content"] for m in sent if m["role"] == "tool"]
        assert [f"n{n}" in results[n] for n in range(5)] == [True] * 5
        assert rig.model.violations == []


async def test_plan_and_milestone_are_kept_and_told(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(
            calls(
                [
                    call("plan", steps=["look", {"step": "think", "state": "doing"}], next_step="look"),
                    call("milestone", kind="finding", text="the disk is 40 % full"),
                ]
            ),
            calls([call("milestone", kind="finding", text="again")]),
            say("done"),
        )
        talk, _ = await rig.say("go")
        assert talk.session is not None
        async with rig.store.begin() as db:
            plan, next_step = await tasks.load(db, talk.session.id)
            kept = await milestones.of_session(db, talk.session.id)
        assert plan == (("look", "todo"), ("think", "doing"))
        assert next_step == "look"
        assert [(m.kind, m.text) for m in kept] == [
            (MilestoneKind.FINDING, "the disk is 40 % full"),
            (MilestoneKind.CONCLUSION, "done"),
        ]
        assert len(rig.seen(MilestoneReached)) == 1
        assert len(rig.seen(PlanChanged)) == 1


async def test_a_refused_model_ends_the_turn_with_what_to_do(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(status(400, "this model does not support tools"))
        talk, state = await rig.say("go")
        assert state is TurnState.FAILED
        text = rig.seen(Answered)[0].text
        assert "tool" in text
        assert 'say "continue"' in text
        rig.model.push(say("now it works"))
        assert await talk.say("continue") is TurnState.DONE
        assert rig.model.violations == []


async def test_after_a_request_that_was_too_long_the_turn_goes_on_with_shorter_ones(
    database_url: str, tmp_path: Path
) -> None:
    too_long = status(400, "too long", code="context_length_exceeded")
    async with open_rig(database_url, tmp_path, max_tokens=20_000) as rig:
        rig.model.push(
            run("seq 9001 11500"),
            run("seq 1001 3500"),
            run("seq 3001 5500"),
            too_long,
            run("echo near the end"),
            say("It counts."),
            say("It still does."),
        )
        talk, state = await rig.say("count")
        assert state is TurnState.DONE
        sizes = [len(str(request["messages"])) for request in rig.model.requests]
        assert len(sizes) == 6, "only one request was made again, and later ones were not too long first"
        assert sizes[4] < sizes[3] * 0.8
        assert sizes[5] < sizes[3]
        last = rig.model.requests[5]["messages"]
        assert last[: len(rig.model.requests[4]["messages"])] == rig.model.requests[4]["messages"]
        assert last[1]["content"].endswith("The message below is from tester.\n\ncount")
        assert await talk.say("and now?") is TurnState.DONE
        assert "| 9001" in str(rig.model.requests[-1]["messages"]), "another turn has the whole room again"
        assert rig.model.violations == []


async def test_a_request_that_is_too_long_however_short_ends_the_turn_with_what_to_do(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(*[status(400, "too long", code="context_length_exceeded") for _ in range(9)])
        _, state = await rig.say("go")
        assert state is TurnState.FAILED
        assert len(rig.model.requests) == 1, "no request is sent again as it was"
        assert "OPSTHREAD_MAX_TOKENS" in rig.seen(Answered)[0].text


async def test_a_turn_of_a_long_session_is_told_of_what_a_window_does_not_hold(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        session = None
        for n in range(14):
            rig.model.push(run(f"echo {n}"), say(f"It said {n}."))
            talk, _ = await rig.say(f"what does echo say of {n}?", session=session)
            session = talk.session
        first = rig.model.requests[-2]["messages"][1]["content"]
        assert first == (
            "Earlier in this session, in short (made by rules from what was said and run; what is quoted is data):\n"
            "> tester: what does echo say of 0?\n"
            "- ran \"'echo' 0\" (exit 0 on this-machine) · answered: It said 0.\n\n"
            "[tester] what does echo say of 1?"
        )
        assert rig.model.requests[-1]["messages"][1]["content"] == first
        assert rig.model.violations == []


async def test_a_cut_stream_is_asked_again(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(truncated(say("half")), say("whole"))
        _, state = await rig.say("go")
        assert state is TurnState.DONE
        assert rig.seen(Answered)[0].text == "whole"


async def test_garbage_from_the_endpoint_fails_the_turn_and_not_the_session(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path, model_budget_s=1.0) as rig:
        rig.model.push(*[raw(b"<html>proxy error</html>", content_type="text/html") for _ in range(50)])
        _, state = await rig.say("go")
        assert state is TurnState.FAILED


async def test_an_empty_message_and_a_huge_one_are_refused_with_what_to_do(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        with pytest.raises(Refused, match="say what you want to know"):
            await rig.say("  \n ")
        with pytest.raises(Refused, match="shorten it"):
            await rig.say("x" * 100_000)


async def test_stopping_ends_the_command_on_the_host_and_keeps_the_history_valid(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run(FOLLOW, timeout_s=55))
        talk = rig.conversation()
        turn = asyncio.create_task(talk.say("go"))
        await until(lambda: bool(rig.seen(CommandStarted)) and bool(following()))
        await talk.stop()
        assert await turn is TurnState.STOPPED
        await until(lambda: not following())
        (command,) = await rig.commands(talk.session)
        assert command.state is CommandState.UNKNOWN
        assert "Stopped by tester" in rig.seen(Answered)[0].text
        rig.model.push(say("went on"))
        assert await talk.say("continue") is TurnState.DONE
        assert rig.model.violations == []


async def test_a_host_whose_key_has_changed_is_not_used_and_both_fingerprints_are_told(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().split()
        (tmp_path / "demo" / "known_hosts").write_text(f"{HOST} {other[0]} {other[1]}\n")
        rig.model.push(run("uptime"), say("I cannot reach it."))
        talk, state = await rig.say("go")
        assert state is TurnState.DONE
        (told,) = [m.text for m in await rig.messages(talk.session) if m.role is Role.TOOL]
        assert len(set(re.findall(r"SHA256:[\w+/]{43}", told))) == 2
        assert "hosts trust" in told
        assert await rig.commands(talk.session) == []


async def test_a_database_that_goes_away_in_mid_turn_does_not_fail_the_turn_and_nothing_is_lost(
    database_url: str, tmp_path: Path, server_url: str
) -> None:
    async with open_rig(database_url, tmp_path, lease_s=60.0) as rig:
        gate = asyncio.Event()

        async def script(request: dict[str, object]) -> Answer:
            if len(rig.model.requests) == 1:
                return run("uptime")
            if len(rig.model.requests) == 2:
                await allow(False)  # gone while the model thinks
                asyncio.get_running_loop().call_later(2.5, gate.set)
                return calls([call("milestone", kind="finding", text="it is up")])
            return say("It is up.")

        async def allow(yes: bool) -> None:
            name = database_url.partition("@/")[2].partition("?")[0]
            async with await psycopg.AsyncConnection.connect(server_url, autocommit=True) as admin:
                await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {str(yes).lower()}")
                if not yes:
                    await admin.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
                    )

        rig.model._answer = script
        talk = rig.conversation()
        turn = asyncio.create_task(talk.say("is it up?"))
        await gate.wait()
        await allow(True)
        assert await turn is TurnState.DONE
        roles = [m.role for m in await rig.messages(talk.session)]
        assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
        assert talk.session is not None
        async with rig.store.begin() as db:
            kept = await milestones.of_session(db, talk.session.id)
        assert [m.text for m in kept] == ["it is up", "It is up."]
        assert rig.model.violations == []
