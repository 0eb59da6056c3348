"""Many lines at once through real shells: the words that a shell hands on are the words that were judged."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.policy.lexer import Line, Stage, Unread, Word, lex, literal, render
from tests.policy.cases import all_cases

SHELLS = {"dash": ["dash"], "bash": ["bash", "--norc"], "busybox": ["busybox", "sh"]}
# A function is called by its quoted name too, so each line needs no process of its own.
_SHOW = "show() { printf '%s\\0' \"$@\"; printf '\\001END\\0'; }\n"
_TROUBLE = st.text(st.sampled_from(list("ab-='\"\\ $`|&;<>()[]{}*?~#!%^@+:,./0_é连")), max_size=24)


@pytest.fixture(params=sorted(SHELLS))
def shell(request: pytest.FixtureRequest) -> list[str]:
    name = str(request.param)
    if not shutil.which(name):
        if os.environ.get("TEST_FULL") == "1":
            pytest.fail(f"TEST_FULL=1, but {name} is not installed")
        pytest.skip(f"SKIPPED: no {name} on this machine; the gate's text was not held against it")
    return SHELLS[name]


def argvs(shell: list[str], texts: list[str], folder: str) -> list[list[str]]:
    """What the shell hands to `show` in each text, which calls it once."""
    script = Path(folder) / "script"
    script.write_text(_SHOW + "\n".join(texts) + "\n", "utf-8")
    done = subprocess.run(
        [*shell, str(script)],
        capture_output=True,
        cwd=folder,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    assert done.stderr == b"", done.stderr[:500]
    found: list[list[str]] = [[]]
    for word in done.stdout.decode().split("\0")[:-1]:
        if word == "\1END":
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


def shown(words: tuple[Word, ...]) -> str:
    """A stage's words as arguments of `show`, rendered by us."""
    return render(Line((Stage((literal("show"), *words)),)))


def plain_stages(text: str) -> list[tuple[Word, ...]]:
    """The stages of a text that hold no glob: a glob means what lies in the folder."""
    try:
        line = lex(text)
    except Unread:
        return []
    return [stage.words for stage in line.stages if not any(word.glob for word in stage.words)]


def test_every_case_is_handed_on_word_by_word(shell: list[str], tmp_path: Path) -> None:
    stages = [words for case in all_cases() for words in plain_stages(case.command)]
    assert len(stages) > 1500
    found = argvs(shell, [shown(words) for words in stages], str(tmp_path))
    assert found == [[word.text for word in words] for words in stages]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(_TROUBLE, min_size=150, max_size=150))
def test_any_text_that_is_read_is_handed_on_word_by_word(
    shell: list[str], tmp_path: Path, texts: list[str]
) -> None:
    stages = [words for text in texts for words in plain_stages("x " + text)]
    if stages:
        found = argvs(shell, [shown(words) for words in stages], str(tmp_path))
        assert found == [[word.text for word in words] for words in stages]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(_TROUBLE, min_size=150, max_size=150))
def test_a_text_of_one_stage_means_to_a_shell_what_it_means_to_us(
    shell: list[str], tmp_path: Path, texts: list[str]
) -> None:
    kept, wanted = [], []
    for text in texts:
        try:
            line = lex("show " + text)
        except Unread:
            continue
        if len(line.stages) == 1 and not line.stages[0].redirects and plain_stages("show " + text):
            kept.append("show " + text)
            wanted.append([word.text for word in line.stages[0].words[1:]] or [""])
    if kept:
        assert argvs(shell, kept, str(tmp_path)) == wanted
