"""What the lexer accepts, rendered and handed to real shells, gives exactly our argv."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.policy.lexer import Line, Part, Stage, Unread, Word, lex, literal, quote, render

SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]
MISSING = [name for name in ("dash", "bash") if not shutil.which(name)]
# Characters that have meant something to some shell, in the shares in which trouble lies.
TROUBLE = st.text(st.sampled_from(list("ab-='\"\\ $`|&;<>()[]{}*?~#!%^@+:,./\t0_é连")), max_size=24)
WORDS = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
    min_size=1,
    max_size=5,
)


def argv(shell: str, words: str) -> list[str]:
    """The words as a real shell reads them."""
    done = subprocess.run(
        [shell, "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True, cwd="/", timeout=20
    )
    return done.stdout.decode().split("\0")[:-1]


@pytest.fixture(params=SHELLS or [None])
def shell(request: pytest.FixtureRequest) -> str:
    if request.param is None or MISSING:
        pytest.skip(
            f"SKIPPED: no {' and no '.join(MISSING)} on this machine; the lexer was not held against it"
        )
    return str(request.param)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=WORDS)
def test_any_words_rendered_come_back_from_a_shell_unchanged(shell: str, words: list[str]) -> None:
    line = Line((Stage(tuple(literal(word) for word in words)),))
    assert argv(shell, render(line)) == words


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TROUBLE)
def test_what_is_read_means_the_same_to_a_shell_as_to_us(shell: str, text: str) -> None:
    try:
        line = lex("x " + text)
    except Unread:
        return
    for stage in line.stages:
        words = stage.words[1:] if stage is line.stages[0] else stage.words
        if not words or any(word.glob for word in words):
            continue
        rendered = render(Line((Stage((literal("x"), *words)),))).removeprefix("'x' ")
        assert argv(shell, rendered) == [word.text for word in words]
    if (
        len(line.stages) == 1
        and not any(word.glob for word in line.stages[0].words)
        and not line.stages[0].redirects
    ):
        # The text itself, read by the shell, gives the words that we read.
        assert argv(shell, text or "''") == ([w.text for w in line.stages[0].words[1:]] or [""])


@settings(max_examples=400, deadline=None)
@given(text=TROUBLE)
def test_nothing_rendered_holds_an_operator_that_we_did_not_put_there(text: str) -> None:
    try:
        line = lex("x " + text)
    except Unread:
        return
    bare = re.sub(r"'[^']*'|\\'", "", render(line))
    for redirect in (r for stage in line.stages for r in stage.redirects):
        bare = bare.replace(redirect, "", 1)
    assert sorted(re.findall(r"\|\||&&|[|&;<>()$`]", bare)) == sorted(op.value for op in line.ops)


@given(text=st.text(max_size=60))
def test_any_text_is_read_or_rejected_and_nothing_else(text: str) -> None:
    try:
        said = str(lex(text))
    except Unread as unread:
        said = str(unread)
    assert said


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("df -h", "'df' -h"),
        ("dd if=a 'b~' 'c=~' -x=1", "'dd' if=a 'b~' 'c=~' -x=1"),
        (r"\time ls", "'time' ls"),
        ("'if' x", "'if' x"),
        ("ls &>/dev/null", "'ls' >/dev/null 2>&1"),
        ("ls > /dev/null 2>&1", "'ls' >/dev/null 2>&1"),
        ("ls 2>&1 >/dev/null|wc", "'ls' 2>&1 >/dev/null | 'wc'"),
        ("ls 2>/dev/null -l </dev/null", "'ls' -l 2>/dev/null </dev/null"),
        ('echo "a b"c\\ d', "'echo' 'a bc d'"),
        ("echo it\\'s", "'echo' 'it'\\''s'"),
        ("ls /var/log/*.log /tmp/[a-c]?", "'ls' '/var/log/'*'.log' '/tmp/'[a-c]?"),
        ("find . -exec ls {} \\;", "'find' . -exec ls '{}' ';'"),
        ("echo ''", "'echo' ''"),
        ("a&&b||c;d|e", "'a' && 'b' || 'c' ; 'd' | 'e'"),
    ],
)
def test_a_line_is_rendered_from_our_own_words(text: str, rendered: str) -> None:
    assert render(lex(text)) == rendered


def test_quoting_survives_a_single_quote() -> None:
    assert quote("a'b") == "'a'\\''b'"
    assert Word((Part("a*"), Part("*", True)), "a**", True).render() == "'a*'*"
