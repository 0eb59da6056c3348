"""The terminal's view of a turn: what a person reads, on a terminal of any width and in a pipe."""

from __future__ import annotations

import io
import os
import re
from datetime import UTC

import pytest
from rich.cells import cell_len

from bot.events import (
    ApprovalAsked,
    CommandProgress,
    CommandRefused,
    CommandStarted,
    Event,
    Noted,
    PlanChanged,
    StepStarted,
    TextStreamed,
)
from bot.terminal import plain
from bot.terminal.screen import TerminalScreen, make_console
from storage.records import ApprovalState, NewPost, TurnState
from tests.fakes import turn_events as make

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def whole_turn() -> list[Event]:
    return [
        make.started(),
        StepStarted(step=1, max_steps=25),
        TextStreamed(piece="I look at the unit first"),
        CommandStarted(command_id=41, host="web-1", run="systemctl status nginx", purpose="state"),
        make.finished(),
        CommandProgress(command_id=42, host="web-2", run="du -x /", seconds=30, bytes_so_far=18_000),
        CommandRefused(
            host="web-1", run="tail -f /x", reason="does not end; I can run timeout 10 tail -f /x"
        ),
        PlanChanged(steps=(("look", "done"), ("mend", "doing"))),
        make.milestone(),
        make.asked(),
        make.closed(ApprovalState.APPROVED),
        Noted(key="k", text="went on after a restart"),
        make.answered("**It is** redis-1.\n\n- evidence"),
    ]


async def shown(
    *events: Event, width: int = 80, tty: bool = True, hint: bool = True, monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Tty() if tty else io.StringIO()
    screen = TerminalScreen(make_console(stream, width=width), hint=hint)
    for event in events:
        await screen.show(event)
    await screen.close()
    return stream.getvalue()


def text_of(output: str) -> str:
    return ESCAPES.sub("", output)


async def test_a_pipe_gets_text_without_colour_boxes_or_cursor_movement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    output = await shown(*whole_turn(), tty=False, monkeypatch=monkeypatch)
    assert "\x1b" not in output
    assert not set(output) & set("╭│╰─")
    assert "✓ web-1  systemctl status nginx --no-pager  exit 0 · 0.2 s · 7 B\n    active\n" in output
    assert "… web-2  du -x /  still running · 30 s · 18 kB so far" in output
    assert "✗ web-1  tail -f /x  refused, nothing ran\n    does not end" in output
    assert "Root cause · 10:03 · nginx cannot reach redis-1" in output
    assert "Approval 5 approved by alice at 10:04 UTC" in output


async def test_the_last_line_says_how_to_go_on_with_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    for tty in (True, False):
        output = text_of(await shown(*whole_turn(), tty=tty, monkeypatch=monkeypatch))
        last = output.rstrip().splitlines()[-1]
        assert last == 'session 12 · go on with: opsthread ask --session 12 "…"'


async def test_a_chat_does_not_repeat_the_hint_after_every_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    output = await shown(make.started(), make.answered(), hint=False, monkeypatch=monkeypatch)
    assert "go on with" not in output


@pytest.mark.parametrize("width", [40, 80, 200])
async def test_a_turn_fits_any_terminal_and_shows_everything(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = text_of(await shown(*whole_turn(), width=width, monkeypatch=monkeypatch))
    rows = [row for piece in output.splitlines() for row in piece.split("\r") if "opsthread ask" not in row]
    assert max(cell_len(row.rstrip()) for row in rows) <= min(width, 110)
    flat = re.sub(r"[\s│]+", " ", output)
    for part in (
        "active",
        "exit 0",
        "Root cause · 10:03",
        "Approval 5 needed",
        "opsthread deny 5",
        "evidence",
    ):
        assert part in flat, part


@pytest.mark.parametrize("width", [40, 200])
async def test_chinese_takes_two_columns_and_stays_inside_the_panel(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = make.milestone("连接数已达到上限，应用无法连接到缓存服务器，因此网关返回错误")
    output = text_of(await shown(event, width=width, monkeypatch=monkeypatch))
    assert {cell_len(row) for row in output.splitlines()} == {min(width, 110)}


async def test_long_output_is_cut_and_says_where_the_rest_is(monkeypatch: pytest.MonkeyPatch) -> None:
    event = make.finished("".join(f"line {n}\n" for n in range(1, 31)))
    for tty in (True, False):
        output = text_of(await shown(event, tty=tty, monkeypatch=monkeypatch))
        assert "line 8" in output
        assert "line 9" not in output
        assert "… 22 more lines; opsthread sessions output 41" in output


async def test_output_that_speaks_to_the_terminal_is_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    event = make.finished("x\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b5n[bold]y[/bold]\rgone\n")
    output = await shown(event, monkeypatch=monkeypatch)
    assert set(ESCAPES.findall(output)) <= {m for m in ESCAPES.findall(output) if m.endswith("m")}
    assert "\x07" not in output
    assert "\x9b" not in output
    assert "[bold]y[/bold]" in text_of(output)
    assert text_of(output).count("gone") == 1


async def test_a_failed_command_shows_its_status_and_an_unknown_outcome_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = make.finished("", exit_status=3)
    lost = make.finished("", exit_status=None, note="the connection broke; I did not run it again")
    output = await shown(failed, lost, tty=False, monkeypatch=monkeypatch)
    assert "✗ web-1  systemctl status nginx --no-pager  exit 3" in output
    assert "? web-1  systemctl status nginx --no-pager  outcome unknown" in output
    assert "    the connection broke; I did not run it again" in output


def test_an_approval_holds_our_words_and_the_exact_text_only() -> None:
    lines = plain.lines(make.asked("sudo -n rm\u00a0-r /x\nApproval 6 approved"), UTC)
    assert lines == (
        "Approval 5 needed · session 12",
        "  On app-2 (10.0.0.3:22) as opsbot:",
        "      sudo -n rm\\xa0-r /x",
        "      Approval 6 approved",
        "  Why it asks: changes state (systemctl restart) · asked by bob",
        "  Expires 10:14 UTC · stops after 30 s",
        "  Approvers: alice, carol",
        "  To answer: opsthread approve 5   or: opsthread deny 5",
    )


def test_a_turn_that_was_taken_up_again_says_that_it_goes_on() -> None:
    (line,) = plain.lines(make.started(resumed=True), UTC)
    assert line == "Going on · session 12 · at most 25 steps"


def test_runs_of_spaces_in_an_approval_are_seen() -> None:
    lines = plain.lines(make.asked("rm -f 'a  b' "), UTC)
    assert lines[2] == "      rm -f 'a␠␠b'␠"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ApprovalState.APPROVED, "approved by alice at 10:04 UTC"),
        (ApprovalState.DENIED, "denied by alice at 10:04 UTC; nothing ran"),
        (ApprovalState.EXPIRED, "expired without an answer; nothing ran"),
        (ApprovalState.REVOKED, "taken back by alice at 10:04 UTC; nothing ran"),
    ],
)
def test_a_closed_approval_is_one_line(state: ApprovalState, words: str) -> None:
    assert plain.lines(make.closed(state), UTC) == (f"Approval 5 {words}",)


async def test_an_answer_loses_nothing_that_looks_like_html_and_keeps_its_line_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = make.answered("kill <pid> first\nthen wait\n\n<script>x</script>\n\n[click](http://evil.test/)")
    output = text_of(await shown(answer, monkeypatch=monkeypatch))
    for part in ("kill <pid> first", "<script>x</script>", "click (http://evil.test/)"):
        assert part in output
    assert "first then" not in " ".join(line.rstrip() for line in output.splitlines() if "first" in line)


async def test_a_failed_turn_says_so_under_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = make.answered("The model cannot be reached.", state=TurnState.FAILED)
    output = await shown(answer, tty=False, monkeypatch=monkeypatch)
    assert "The model cannot be reached." in output
    assert "not answered · 3 commands on web-1 · 4.1 s" in output


async def test_the_cursor_is_given_back_whatever_was_shown_last(monkeypatch: pytest.MonkeyPatch) -> None:
    for last in ([], [make.asked()], [make.answered()]):
        output = await shown(StepStarted(step=1, max_steps=25), *last, monkeypatch=monkeypatch)
        assert output.rfind("\x1b[?25h") > output.rfind("\x1b[?25l") >= 0


async def test_the_live_line_rests_while_a_person_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Tty()
    screen = TerminalScreen(make_console(stream, width=80))
    await screen.show(make.asked())
    await screen.show(StepStarted(step=2, max_steps=25))
    assert "\x1b[?25l" not in stream.getvalue()
    await screen.show(make.closed(ApprovalState.APPROVED))
    await screen.show(StepStarted(step=3, max_steps=25))
    assert "\x1b[?25l" in stream.getvalue()
    await screen.close()


async def test_a_reader_that_went_away_does_not_end_the_turn() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        screen = TerminalScreen(make_console(stream))
        for event in whole_turn():
            await screen.show(event)
        await screen.close()


async def test_a_stream_that_cannot_hold_a_character_still_gets_the_line() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    screen = TerminalScreen(make_console(stream))
    await screen.show(make.milestone("磁盘满了"))
    stream.flush()
    assert raw.getvalue() == b"Root cause \\xb7 10:03 \\xb7 \\u78c1\\u76d8\\u6ee1\\u4e86\n"


async def test_only_a_mirror_has_posts_and_it_is_closed_with_the_screen() -> None:
    class Mirror:
        closed = False

        def posts(self, event: Event) -> tuple[NewPost, ...]:
            return (NewPost(key=type(event).__name__, channel="C1", thread_ts="1.2", payload={}),)

        async def show(self, event: Event) -> None:
            raise AssertionError("a mirror only gets posts")

        async def close(self) -> None:
            self.closed = True

    mirror = Mirror()
    console = make_console(io.StringIO())
    screen = TerminalScreen(console, mirror=mirror)
    await screen.show(make.milestone())
    assert [post.key for post in screen.posts(make.milestone())] == ["MilestoneReached"]
    assert TerminalScreen(console).posts(make.milestone()) == ()
    await screen.close()
    assert mirror.closed


async def test_whoever_asks_at_the_terminal_is_told_of_an_open_approval() -> None:
    heard: list[ApprovalAsked] = []
    screen = TerminalScreen(make_console(io.StringIO()), on_approval=heard.append)
    await screen.show(make.asked())
    assert [event.approval.id for event in heard] == [5]
