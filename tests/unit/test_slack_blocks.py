"""Records -> messages: within Slack's limits, exact where it matters, harmless where the words are not ours."""

from dataclasses import replace
from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.slack import blocks, cards
from bot.slack.blocks import Line, Message, Progress
from storage.records import ApprovalHost, ApprovalState, MilestoneKind
from tests.fakes import turn_events as made
from tests.fakes.slack import buttons, rules

SHARED = rules.SHARED if rules.SHARED.is_dir() else None
BERLIN = ZoneInfo("Europe/Berlin")


def check(message: Message, *, method: str = "chat.postMessage") -> dict[str, Any]:
    """Slack would take it."""
    payload = message.payload(method, channel="C1", **({"ts": "1.0"} if method == "chat.update" else {}))
    payload.pop("method")
    assert rules.faults(method, payload, SHARED) == []
    return payload


def shown(message: Message) -> str:
    return "\n".join(rules.texts(list(message.blocks)))


@pytest.mark.parametrize("size", [1, 3_001, 4_001, 12_001, 13_300, 45_000])
def test_an_answer_of_any_length_is_whole_in_its_text_and_in_its_blocks(size: int) -> None:
    lines = [f"{n} first <&> second {'x' * (n % 50)}" for n in range(size // 20 + 1)]
    for at in range(5, len(lines), 90):
        lines[at] = "```" if (at // 90) % 2 else "```python"
    answer = "\n".join(lines)[:size].rstrip()
    messages = blocks.prose(answer, footer="3 commands on web-1")
    for message in messages:
        check(message)
        assert len(message.text) <= 4_000

    def bare(text: str) -> str:
        for escaped, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
            text = text.replace(escaped, sign)
        return "".join(line for line in text.split("\n") if not line.startswith("```"))

    footer = "3 commands on web-1"
    assert bare("\n".join(m.text for m in messages)) == bare(answer) + footer
    assert bare("\n".join(shown(m) for m in messages)) == bare(answer) + footer
    assert footer in shown(messages[-1])
    assert all(footer not in shown(m) for m in messages[:-1])


def test_code_keeps_its_signs_and_prose_loses_its_power() -> None:
    hostile = "Log says <!channel> *x* & <@U1> <https://evil.example|safe>\n```\n<!channel> `*x*` ``\n```"
    (message,) = blocks.prose(hostile)
    payload = check(message)
    assert "<!channel>" not in message.text
    prose, code = payload["blocks"]
    assert "<" not in prose["text"]
    assert "& " in prose["text"]
    assert code["elements"][0]["elements"][0]["text"] == "<!channel> `*x*` ``"


def test_many_small_fences_stay_within_the_number_of_blocks() -> None:
    (message,) = blocks.prose("a\n```\nb\n```\n" * 60)
    check(message)


def test_nothing_to_say_is_said() -> None:
    (message,) = blocks.prose("  \n")
    check(message)


def test_a_milestone_names_its_kind_and_time() -> None:
    (message,) = blocks.milestone(MilestoneKind.ROOT_CAUSE, "redis-1 has 10000 of 10000 clients", "10:03")
    check(message)
    assert message.text == "Root cause · 10:03 · redis-1 has 10000 of 10000 clients"
    assert "**Root cause · 10:03** · redis-1" in shown(message)


def test_a_milestone_that_begins_with_code_keeps_its_title() -> None:
    (message,) = blocks.milestone(MilestoneKind.FINDING, "```\ndf\n```", "10:03")
    check(message)
    assert "Finding" in shown(message)


def test_the_card_shows_the_exact_text_and_never_the_models_words() -> None:
    run = "sudo -n sh -c 'rm -rf /var/tmp/x && echo \"<done>\" ``` *b*'"
    (card,) = cards.approval_card(made.approval(run), ("U01ALICE", "S01SRE", "local:root"), zone=BERLIN)
    payload = check(card)
    exact = [t for b in payload["blocks"] if b["type"] == "rich_text" for t in rules.texts(b)]
    assert exact == [run]
    text = shown(card)
    assert "On *app-2* as opsbot" in text
    assert "changes state (systemctl restart)" in text
    assert "<@U01ALICE>, <!subteam^S01SRE>, local:root" in text
    assert "11:14 CET" in text
    assert "totally harmless" not in text + card.text
    approve, deny = buttons(payload)
    assert (approve["action_id"], approve["value"]) == ("approve", "t")
    assert (deny["action_id"], deny["value"]) == ("deny", "t")
    assert "Approval needed" in card.text


@pytest.mark.parametrize("size", [2_801, 9_000, 30_000])
@pytest.mark.parametrize("hosts", [1, 300])
def test_a_long_command_on_many_hosts_is_shown_whole(size: int, hosts: int) -> None:
    run = "".join(f"<{n}>" for n in range(size))[:size]
    one = made.approval().hosts[0]
    many = tuple(
        replace(one, name=f"app-{n}", route=("bastion ops@10.0.0.1:22 SHA256:b",)) for n in range(hosts)
    )
    messages = cards.approval_card(replace(made.approval(run), hosts=many), (), zone=UTC)
    text = ""
    for message in messages:
        payload = check(message)
        text += "".join(t for b in payload["blocks"] if b["type"] == "rich_text" for t in rules.texts(b))
    assert text == run
    everything = "\n".join(shown(m) for m in messages)
    assert all(f"On *app-{n}* as opsbot" in everything for n in range(hosts))
    assert [bool(buttons({"blocks": list(m.blocks)})) for m in messages] == [False] * (len(messages) - 1) + [
        True
    ]


def test_signs_that_cannot_be_seen_are_named() -> None:
    (card,) = cards.approval_card(made.approval("echo a\u202eb\u200b"), (), zone=UTC)
    check(card)
    assert "U+202E RIGHT-TO-LEFT OVERRIDE" in shown(card)
    assert "U+200B ZERO WIDTH SPACE" in shown(card)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (ApprovalState.APPROVED, "Approved by <@U01ALICE> at 11:04"),
        (ApprovalState.DENIED, "Denied by <@U01ALICE> at 11:04; nothing ran"),
        (ApprovalState.EXPIRED, "Expired at 11:04 without an answer; nothing ran"),
        (ApprovalState.REVOKED, "Taken back; nothing ran"),
    ],
)
def test_a_closed_card_says_who_and_when_and_has_no_buttons(state: ApprovalState, line: str) -> None:
    message = cards.approval_closed(made.approval(state=state), "U01ALICE", zone=BERLIN)
    payload = check(message, method="chat.update")
    assert message.text.startswith(line)
    assert buttons(payload) == []
    assert "sudo -n systemctl restart app-workers" in shown(message)


def test_a_name_that_looks_like_an_id_is_no_mention() -> None:
    assert blocks.who("UMA") == "UMA"
    assert blocks.who("U01ALICE") == "<@U01ALICE>"
    assert blocks.who("<!here>") == "&lt;!here&gt;"
    assert blocks.who("") == "somebody"


def test_progress_shows_commands_letter_by_letter_and_a_stop_button() -> None:
    view = Progress(
        "Looking into it · step 3 of at most 25 · web-1",
        (
            Line("✓", "web-1", "awk '$5>80'\nx", "exit 0 · 0.2 s"),
            Line("…", "redis-1", "redis-cli " + "x" * 900),
        ),
        earlier=4,
        plan=(("look at <nginx>", "done"), ("look at redis", "doing")),
        stop="7",
    )
    message = blocks.progress(view)
    payload = check(message, method="chat.update")
    (stop,) = buttons(payload)
    assert (stop["action_id"], stop["value"]) == ("stop", "7")
    assert "✓ web-1  awk '$5>80' ⏎ x   exit 0 · 0.2 s" in shown(message)
    assert "… 4 earlier" in shown(message)
    assert buttons(check(blocks.progress(Progress("Done · 3 steps · 12 s")))) == []


def test_the_longest_progress_fits() -> None:
    lines = tuple(Line("✓", "h" * 60, "c" * 5_000, "refused: " + "r" * 400) for _ in range(8))
    check(
        blocks.progress(Progress("x" * 5_000, lines, 9, (("p" * 900, "todo"),) * 30, "1")),
        method="chat.update",
    )


def test_a_long_list_is_cut_where_slack_would_refuse_it() -> None:
    check(blocks.listing("Sessions", [f"{n} · " + "x" * 200 for n in range(400)], hint="more"))


def test_hosts_behind_a_jump_say_so() -> None:
    through = ApprovalHost("db-1", "10.0.0.9", 2222, "ops", "SHA256:y", ("bastion ops@10.0.0.1:22 SHA256:b",))
    (card,) = cards.approval_card(replace(made.approval(), hosts=(through,)), (), zone=UTC)
    assert "On *db-1* as ops: (10.0.0.9:2222, through bastion ops@10.0.0.1:22)" in shown(card)
