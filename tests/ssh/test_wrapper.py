"""The wrapper's text through real shells: whatever a command is made of, exactly that is run, and only once."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.ssh import detached, wrapper
from bot.ssh.output import Kept, Marked
from tests.fakes.ssh import gone
from tests.ssh.conftest import need

NONCE = "0123abcd"
SHELLS = {"dash": "dash", "bash": "bash", "busybox": "busybox sh"}
NASTY = [
    "'", "''", "\\", "\\'", '"', "$(touch TRAP)", "`touch TRAP`", "${IFS}", "!!", "a\nb", "\r", "\t", "*", "~", "-n",
    "%s%n", "\x01\x7f", "连接超时", "🙂", "'\"'\"'", "$'\\n'", "; touch TRAP", "\n@@ffffffff 0@@\n", "#", "x" * 100_000,
    "';touch TRAP;'", "\\\\'$(touch TRAP)'\\", "'" * 500,
]  # fmt: skip


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    words = SHELLS[request.param].split()
    need(shutil.which(words[0]), words[0])
    return SHELLS[request.param]


def through(shell: str, run: str, *, limit_s: int = 10, sure: bool = True) -> tuple[Marked, Kept, Kept]:
    """As sshd does it: `shell -c text` with an open stdin; the inner parts in the same kind of shell."""
    out, err = Kept(1_000_000), Kept(1_000_000)
    marked, marked_err = Marked(NONCE, out), Marked(NONCE, err)
    inner = shell.replace(shell.split(maxsplit=1)[0], str(shutil.which(shell.split(maxsplit=1)[0])))
    text = wrapper.read_command(run, NONCE, limit_s=limit_s, home="/nonexistent", shell=inner)
    read, write = os.pipe()
    try:
        done = subprocess.run(
            [*inner.split(), "-c", text], stdin=read, capture_output=True, timeout=20, check=False
        )
    finally:
        os.close(read)
        os.close(write)
    marked.feed(done.stdout)
    marked_err.feed(done.stderr)
    assert marked.status is not None or not sure, (done.stdout[-300:], done.stderr[-300:])
    return marked, out, err


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text)[:20])
def test_nasty_words_arrive_as_they_are(shell: str, text: str, tmp_path: Path) -> None:
    text = text.replace("TRAP", str(tmp_path / "trap"))
    marked, out, err = through(shell, f"printf %s {wrapper.quote(text)}")
    assert (marked.status, out.text(), err.text()) == (0, text, "")
    assert not (tmp_path / "trap").exists()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_any_word_arrives_as_it_is(shell: str, text: str) -> None:
    marked, out, err = through(shell, f"printf %s {wrapper.quote(text)}")
    assert (marked.status, out.text(), err.text()) == (0, text, "")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("'\"\\$`()!&|;<>*?~# \n\tab", max_size=40))
def test_a_changes_script_keeps_any_word_whole(shell: str, text: str) -> None:
    """The runner is quoted once more than a read; its text is given back by the shell unharmed."""
    script = detached.launch(f"printf %s {wrapper.quote(text)}", key="k", limit_s=5)
    _, out, _ = through(shell, f"printf %s {wrapper.quote(script)}")
    assert out.text() == script


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_no_shell_can_be_given_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a command cannot hold"):
        wrapper.quote(text)


def test_quoted_only_once_the_trap_would_have_run(shell: str, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    marked, out, _ = through(shell, f"'echo' '$(touch {trap})'")
    assert (marked.status, out.text()) == (0, f"$(touch {trap})\n")
    assert not trap.exists()


def test_the_limit_kills_the_group_and_the_shells_keep_quiet(mark: str) -> None:
    """All shells side by side, as each takes the three seconds from TERM to KILL."""
    run = f"trap '' TERM; echo a; sleep {mark} | sleep {mark}"
    for words in SHELLS.values():
        need(shutil.which(words.split()[0]), words.split()[0])
    with ThreadPoolExecutor() as threads:
        ends = list(threads.map(lambda shell: through(shell, run, limit_s=1), SHELLS.values()))
    for marked, out, err in ends:
        assert marked.status in {124, 137}
        assert (out.text(), err.text()) == ("a\n", "")
    assert gone(mark)


@pytest.mark.parametrize("run", ["exit 0", "exit 7", "kill -TERM $$", "nosuchcommand", "if then"])
def test_the_status_is_the_shells_own(shell: str, run: str) -> None:
    marked, _, _ = through(shell, run)
    bare = subprocess.run([*shell.split(), "-c", run], capture_output=True, check=False).returncode
    assert marked.status == (bare if bare >= 0 else 128 - bare)


def test_eof_on_stdin_is_the_death_signal(shell: str, mark: str) -> None:
    inner = shell.replace(shell.split(maxsplit=1)[0], str(shutil.which(shell.split(maxsplit=1)[0])))
    text = wrapper.read_command(f"sleep {mark}", NONCE, limit_s=60, home="/", shell=inner)
    began = time.monotonic()
    done = subprocess.run(
        [*inner.split(), "-c", text], input=b"", capture_output=True, timeout=20, check=False
    )
    assert time.monotonic() - began < 5
    assert b" 143@@" in done.stdout or b" 124@@" in done.stdout
    assert gone(mark)
