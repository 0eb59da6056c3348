"""Text in and out of Slack: what was meant, what is safe, where it is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.slack import text

NAMES = {"U2": "bob"}


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        ("<@UBOT> why is web-1 slow?", "why is web-1 slow?"),
        ("<@UBOT>: why?", "why?"),
        ("<@UBOT|ops>，为什么？", "为什么？"),
        ("hey <@UBOT> look at <@U2> and <@U3>", "hey look at @bob and @U3"),
        ("ask <@U3|carol>", "ask @carol"),
        ("ping <http://db1|db1>", "ping db1"),
        ("see <http://db1.example.com|db1.example.com>", "see db1.example.com"),
        ("see <https://a.example/x?y=1&amp;z=2>", "see https://a.example/x?y=1&z=2"),
        ("see <https://a.example/x|the page>", "see the page (https://a.example/x)"),
        ("mail <mailto:a@b.example|a@b.example>", "mail a@b.example"),
        ("in <#C1|general> and <#C2>", "in #general and #C2"),
        ("<!here> <!subteam^S1|@sre> <!subteam^S2>", "@here @sre @S2"),
        ("<!date^1700000000^{time}|10:13>", "10:13"),
        ("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
        ("literal &amp;lt;", "literal &lt;"),
        ("two\u00a0words\u202fhere", "two words here"),
        ("cat &lt;&lt;EOF", "cat <<EOF"),
        ("<@UBOT>", ""),
        ("<|im_end|> typed by a program", "<|im_end|> typed by a program"),
        (
            "<@UBOT> run `awk '$5&gt;80 &amp;&amp; $1!=\"tmpfs\"'` on <http://db1.example.com|db1.example.com>",
            "run `awk '$5>80 && $1!=\"tmpfs\"'` on db1.example.com",
        ),
    ],
)
def test_what_was_typed_is_what_is_read(raw: str, meant: str) -> None:
    assert text.plain(raw, bot_user="UBOT", names=NAMES) == meant


def test_mentions_are_found_in_order_and_once() -> None:
    assert text.mentions("<@U2> and <@U3|carol> and <@U2>") == ("U2", "U3")


@pytest.mark.parametrize(
    ("raw", "who"), [(" <@U2> you?", "U2"), ("<!subteam^S1|@sre> hi", "S1"), ("hi <@U2>", None), ("", None)]
)
def test_who_a_message_begins_with(raw: str, who: str | None) -> None:
    assert text.leading_mention(raw) == who


def test_untrusted_words_ping_nobody_and_make_no_link() -> None:
    hostile = "<!channel> <@U1> <https://x|y> *b* ``` & &amp;"
    assert "<" not in text.escape(hostile)
    assert "<" not in text.defuse(hostile)
    assert text.escape("a & b") == "a &amp; b"
    assert text.defuse("a & b") == "a & b"


@pytest.mark.parametrize(
    "joined",
    ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "❤\ufe0f", "\r\n", "\U0001f3f4\U000e0067\U000e007f"],
)
def test_a_grapheme_is_one(joined: str) -> None:
    assert list(text.graphemes("a" + joined + "b")) == ["a", joined, "b"]


def test_two_flags_are_two() -> None:
    assert list(text.graphemes("🇩🇪🇫🇷🇩")) == ["🇩🇪", "🇫🇷", "🇩"]


@given(st.text(max_size=300), st.integers(min_value=8, max_value=60))
@settings(max_examples=200, deadline=None)
def test_cutting_loses_nothing(words: str, limit: int) -> None:
    assert "".join(text.cut(words, limit)) == words


def fences_closed(part: str) -> bool:
    return sum(1 for line in part.split("\n") if line.startswith("```")) % 2 == 0


@pytest.mark.parametrize("size", [1, 3_001, 4_001, 12_001, 13_300, 45_000])
@pytest.mark.parametrize("line", ["x" * 79, "第" * 500, "<&>" * 20, "word " * 900])
def test_a_long_answer_with_fences_over_the_cuts_loses_nothing(size: int, line: str) -> None:
    body: list[str] = []
    while sum(len(part) + 1 for part in body) < size:
        n = len(body)
        body.append("```sh" if n % 97 == 3 else "```" if n % 97 == 90 else f"{n} {line}")
    if sum(1 for part in body if part.startswith("```")) % 2:
        body.append("```")
    answer = "\n".join(body)
    parts = text.split(answer, 3_800)
    assert all(text.weight(part) <= 3_800 for part in parts)
    assert all(fences_closed(part) for part in parts)

    def bare(words: str) -> str:
        return "".join(part for part in words.split("\n") if not part.startswith("```")).replace(" ", "")

    assert bare("\n".join(parts)) == bare(answer)


def test_a_fence_is_reopened_with_its_language_and_no_box_is_empty() -> None:
    answer = "before\n```python\n" + "\n".join(f"line {n}" for n in range(40)) + "\n```\nafter"
    parts = text.split(answer, 120)
    assert parts[0].startswith("before")
    inside = [part for part in parts if "line" in part]
    assert all(part.split("\n")[-1] == "```" or "after" in part for part in inside)
    assert all("```python\n```" not in part for part in parts)
    assert all(part.startswith("```python\nline") for part in inside[1:])


def test_a_fence_that_is_never_closed_is_closed_in_every_part() -> None:
    parts = text.split("```\n" + "a line\n" * 100, 100)
    assert len(parts) > 5
    assert all(fences_closed(part) for part in parts)


def test_a_fence_at_the_very_end_keeps_its_words() -> None:
    assert text.split("so:\n```python", 120) == ["so:\n```python\n```"]


@given(st.text(alphabet="`~ab \n<&é👍", max_size=400), st.integers(min_value=120, max_value=200))
@settings(max_examples=300, deadline=None)
def test_splitting_keeps_every_sign(words: str, limit: int) -> None:
    parts = text.split(words, limit)

    def letters(given: str) -> str:
        return "".join(sign for sign in given if sign in "ab<&é👍")

    assert letters("".join(parts)) == letters(words)


def test_code_is_lifted_out_of_the_prose() -> None:
    found = text.pieces("It is full:\n```\n/dev/sda1 <95%>\n```\nso clean it.\n~~~\nrm\n~~~")
    assert found == [
        text.Prose("It is full:"),
        text.Code("/dev/sda1 <95%>"),
        text.Prose("so clean it."),
        text.Code("rm"),
    ]
