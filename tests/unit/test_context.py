"""What a turn's requests hold: the beginning stays the same from step to step."""

from __future__ import annotations

from bot.agent.context import GO_ON, WINDOW, Prompt
from storage.records import Message
from tests import make


def test_the_beginning_of_a_turns_requests_stays_the_same_from_step_to_step() -> None:
    prompt = Prompt(system="s", preface="p", turn_id=99, max_tokens=60_000)
    messages: list[Message] = []
    for number in range(40):
        messages += [
            make.user(f"question {number}", turn_id=number),
            make.assistant(f"answer {number}", turn_id=number),
        ]
    messages.append(make.user("and now?", turn_id=99))
    first = prompt.request(messages)
    assert len(first) == WINDOW  # of 51 one is left out, so that it begins where a person speaks; one is ours
    assert first[-1]["content"] == "p\n\nand now?"
    for step in range(5):
        call = make.call(f"call_{step}")
        messages += [make.assistant("", call, turn_id=99), make.result("ok", call.id, turn_id=99)]
        assert prompt.request(messages)[: len(first)] == first


def test_a_request_never_ends_with_an_answer_of_another_turn() -> None:
    call = make.call("call_1")
    messages = [
        make.user("from Slack", turn_id=1),
        make.assistant("", call, turn_id=1),
        make.result("interrupted", call.id, turn_id=2),
        make.user("from a terminal", turn_id=2),
        make.assistant("answered there", turn_id=2),
    ]
    prompt = Prompt(system="s", preface="p", turn_id=1, max_tokens=60_000)
    assert prompt.request(messages)[-1] == {"role": "user", "content": GO_ON}
    assert prompt.request(messages[:-1])[-1]["content"].endswith("from a terminal")
