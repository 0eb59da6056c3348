"""The practice model over HTTP: going on, changes and approvals, commands as written, small talk, nonsense."""

from __future__ import annotations

import aiohttp
import pytest

from bot.demo.practice import PracticeModel
from tests.model.play import Start
from tests.model.shells import hosts_that, missing


async def test_continue_tells_what_was_found_and_looks_further(play: Start) -> None:
    session = play()
    first = await session.ask("is the disk full?")
    assert "`ls -lhS /var/log`" in first
    second = await session.ask("continue")
    assert session.commands == ["ls -lhS /var/log"]
    assert "Found earlier in this thread:\n- disk: nothing is filling up" in second
    assert "the biggest file in /var/log is auth.log (1.9M)" in second
    third = await session.ask("继续")
    assert session.commands == []
    assert "此前在本会话中查到" in third
    assert "没有再运行新的命令" in third


async def test_continue_runs_what_a_limit_had_kept_from_running(play: Start) -> None:
    session = play(hosts_that(journalctl=missing("journalctl"), tail=(0, "a\nb error\n", "")))
    stopped = await session.ask("errors in the logs?", stop_after=2)
    assert session.commands == ["journalctl -p err -n 50 --no-pager"]
    assert 'Next I would look at `tail -n 100 /var/log/syslog`: say "continue"' in stopped
    answer = await session.ask("continue")
    assert "tail -n 100 /var/log/syslog" in session.commands
    assert "journalctl -p err -n 50 --no-pager" not in session.commands
    assert "1 error lines in /var/log/syslog" in answer


async def test_continue_with_another_topic_looks_at_that(play: Start) -> None:
    session = play()
    await session.ask("is the disk full?")
    answer = await session.ask("please continue with memory")
    assert "free -m" in session.commands
    assert "Found earlier in this thread:\n- disk: nothing" in answer


async def test_continue_with_nothing_before_says_so(play: Start) -> None:
    assert "nothing here to go on from" in await play().ask("continue")


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ("restart nginx", "systemctl restart nginx"),
        ("请重启 nginx", "systemctl restart nginx"),
        ("could you please reload the nginx service", "systemctl reload nginx"),
        ("停止nginx服务", "systemctl stop nginx"),
    ],
)
async def test_a_change_is_asked_for_and_then_looked_at(play: Start, question: str, command: str) -> None:
    session = play(hosts_that(**{command.replace(" ", "_"): (0, "", "")}))
    answer = await session.ask(question)
    assert session.commands == [command, "systemctl status nginx --no-pager"]
    assert session.named("milestone")[0]["kind"] == "change"
    assert command in answer
    assert "active (running)" in answer


@pytest.mark.parametrize(
    "headline",
    [
        "denied by U01BOB; do not ask for it again in this turn",
        "not run: nobody answered the approval in time",
        "refused: it needs an approval, and no access rule names approvers for demo",
        "unknown: the connection broke. It was not run again.",
    ],
)
async def test_a_change_that_was_not_made_is_told_and_not_asked_twice(play: Start, headline: str) -> None:
    session = play(hosts_that(systemctl_restart=headline))
    answer = await session.ask("restart nginx")
    assert session.commands == ["systemctl restart nginx"]
    assert headline in answer
    assert session.named("milestone") == []


async def test_continue_never_repeats_a_change_that_was_sent_or_denied(play: Start) -> None:
    for headline in ((0, "", ""), "denied by U01BOB", "unknown: the connection broke. It was not run again."):
        session = play(hosts_that(systemctl_restart=headline))
        await session.ask("restart nginx")
        answer = await session.ask("continue")
        assert session.commands == []
        assert "I do not do it again by myself" in answer
    session = play(hosts_that(systemctl_restart="not run: nobody answered the approval in time"))
    await session.ask("restart nginx")
    await session.ask("继续")
    assert session.commands == ["systemctl restart nginx"]


@pytest.mark.parametrize(
    "question",
    [
        "why did nginx restart?",
        "did you stop it?",
        "is nginx restarting?",
        "when was the last restart of nginx?",
        "start looking at the disk",
    ],
)
async def test_a_change_that_is_only_spoken_of_is_not_asked_for(play: Start, question: str) -> None:
    session = play()
    await session.ask(question)
    assert not any(
        c.startswith(("systemctl restart", "systemctl stop", "systemctl start ")) for c in session.commands
    )


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ("run `ls -l /srv | wc -l`", "ls -l /srv | wc -l"),
        ("运行 `echo 你好`", "echo 你好"),
        ("please run df -h on demo", "df -h"),
        ("echo hello   world", "echo hello   world"),
        ("run ```sh\nrm -rf /tmp/x\n```", "rm -rf /tmp/x"),
    ],
)
async def test_a_command_that_is_written_out_is_run_as_it_is(
    play: Start, question: str, command: str
) -> None:
    session = play(lambda _host, _command: (3, "line one\nline two\n", "oh dear\n"))
    answer = await session.ask(question)
    assert session.commands == [command]
    assert f"`{command}`" in answer
    assert "exit 3" in answer or "退出码是 3" in answer
    assert "```\nline one\nline two\noh dear\n```" in answer


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("hello", "Hello."),
        ("你好", "你好。"),
        ("what is the meaning of life?", "I do not understand"),
        ("生命的意义是什么", "没有理解"),
    ],
)
async def test_small_talk_runs_nothing_and_says_what_it_can_do(
    play: Start, question: str, words: str
) -> None:
    session = play()
    answer = await session.ask(question)
    assert words in answer
    assert "`uptime`" in answer
    assert session.calls == []


async def test_blocks_of_the_bot_before_the_words_are_not_the_question(play: Start) -> None:
    session = play()
    preface = (
        "Earlier in this session, in short (made by rules):\n> bob: check the load\n- answered: It is low.\n\n"
        "Plan so far:\n- [todo] check memory\n\nMilestones so far:\n- finding: the network is slow\n\n"
        "Said in the thread meanwhile, not to you (quoted, for information only):\n> bob: restart nginx\n\n"
        "Now: Tuesday 2026-12-01 00:00 UTC. The message below is from alice."
    )
    await session.ask("disk?\n\nI mean the space.", preface=preface)
    assert session.commands == ["df -h", "df -i"]


async def test_the_outcome_of_an_approval_answered_late_comes_in_a_note(play: Start) -> None:
    later = "not run yet: people were asked for an approval and have not answered. The outcome follows later."
    session = play(hosts_that(systemctl_restart=f"!{later}"))
    speaker = "Now: Tuesday 2026-12-01 00:00 UTC. The message below is from alice."
    await session.ask("restart nginx", preface=speaker)
    question = session.history[0]["content"]
    await session.ask("disk?")
    session.history[0]["content"] = question  # the first turn goes on: its words carry the preface again
    outcome = "$ 'systemctl' 'restart' 'nginx'\n### demo · exit 0 · 0.3 s\n(no output)"
    note = f"[opsthread] The approval asked for earlier was answered. Outcome:\n{outcome}"
    answer = await session.ask(note)
    assert session.commands == ["systemctl status nginx --no-pager"]
    assert "`systemctl restart nginx` ran, exit 0" in answer


@pytest.mark.parametrize(
    "output",
    [
        "",
        "garbage\n\x00\n",
        "### demo · exit 0 · 0.1 s\nnested",
        "--- stderr\nx",
        "Filesystem Size\n/dev/sda1 - - - - /x\n",
    ],
)
@pytest.mark.parametrize("question", ["disk, memory, load?", "services, errors, ports and versions?"])
async def test_output_that_makes_no_sense_ends_in_an_honest_answer(
    play: Start, question: str, output: str
) -> None:
    session = play(lambda _host, _command: (0, output, ""))
    answer = await session.ask(question)
    assert "What I ran:" in answer
    assert "unknown" in answer or "cannot read" in answer


WITHOUT_BLOCKS = (
    "!not run: the audit log is unavailable, and nothing is run without it. Try again later.",
    "!interrupted: the outcome is unknown. It was not run again; check the state before you repeat it.",
    "!you made this very call 2 times in this turn; use its results, or try something else",
)


async def test_every_command_refused_or_lost_ends_in_an_honest_answer(play: Start) -> None:
    for headline in (
        "refused: not a diagnostic command",
        "unknown: the connection broke",
        "not run: host is down",
    ):
        answer = await play(lambda _host, _command, said=headline: said).ask("磁盘和内存")
        assert headline.removeprefix("!") in answer
        assert "未知" in answer


async def test_it_reads_plain_requests_and_refuses_nonsense() -> None:
    practice = PracticeModel()
    url = f"{await practice.start()}/chat/completions"
    async with aiohttp.ClientSession() as http:
        async with http.post(url, json={"messages": [{"role": "user", "content": "hi"}]}) as answer:
            whole = await answer.json()
            assert whole["choices"][0]["finish_reason"] == "stop"
            assert "No tools were offered" in whole["choices"][0]["message"]["content"]
            assert whole["usage"]["prompt_tokens"] > 0
        for nonsense in (b"{oops", b"[]", b"{}"):
            async with http.post(url, data=nonsense) as answer:
                assert answer.status == 400
                assert "no chat completion request" in (await answer.json())["error"]["message"]
    await practice.stop()
    await practice.stop()
