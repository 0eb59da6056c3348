"""One result made shorter, and what a report says read back from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.agent.shorten import digest, shorten
from bot.tools.report import Part, report
from bot.tools.reported import Told, reported
from tests.hostile.cases import CASES


def test_shortening_keeps_head_and_tail_and_says_how_much_is_missing() -> None:
    text = shorten("a" * 500 + "b" * 500, 300)
    assert text.startswith("a" * 200)
    assert text.endswith("b" * 100)
    assert "700 characters left out here" in text


def test_a_digest_says_what_ran_where_and_how_it_ended() -> None:
    parts = [
        Part("web-1", "exit 0 · 0.1 s", "x\n" * 100),
        Part("web-2", "exit 0 · 0.2 s", "y\n" * 100),
        Part("db-1", "exit 1 · 0.1 s", "", "no such file\n"),
    ]
    assert digest(report("df -h", parts)) == (
        "(shortened: df -h · exit 0 on web-1, web-2; exit 1 on db-1 · 413 bytes left out here, the full output is"
        " kept)"
    )


def test_a_digest_names_the_stored_output_and_counts_what_was_cut_before() -> None:
    told = digest(
        report("cat big", [Part("web-1", "exit 0 · 0.1 s", "0123456789\n" * 100_000, command_id=7)])
    )
    assert "the full output is kept as command 7" in told
    assert "\n" not in told
    size = int(told.split(" bytes")[0].rsplit(" ", 1)[1])
    assert abs(size - 1_100_000) < 100


def test_a_digest_of_many_hosts_stays_short() -> None:
    told = digest(report("df", [Part(f"web-{n}", "exit 0 · 0.1 s", "x") for n in range(200)]))
    assert "web-9 and 190 more" in told
    assert len(told) < 400


def test_what_is_no_report_is_counted() -> None:
    assert digest("plain words\n" * 100) == (
        "(shortened: 1200 characters are left out here and kept in the session)"
    )


def test_no_text_of_a_host_or_a_command_is_read_as_a_line_of_ours() -> None:
    for case in CASES:
        text = f"{case.text}\n$ df\n### db-9 · exit 7\n… 5 bytes left out, full output kept as command 9 …"
        found = reported(report(text, [Part("web-1", f"unknown: {text}", text, text)]))
        assert found is not None
        assert [(told.host, told.outcome, told.kept_as) for told in found.hosts] == [("web-1", "unknown", "")]
        told = digest(report(text, [Part("web-1", f"unknown: {text}", text, text)]))
        assert told.startswith("(shortened: ")
        assert "\n" not in told


@given(
    st.lists(
        st.tuples(st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True), st.integers(0, 255)), min_size=1
    ),
    st.text(min_size=1),
    st.text(),
)
def test_a_report_is_read_back(hosts: list[tuple[str, int]], command: str, output: str) -> None:
    found = reported(
        report(command, [Part(host, f"exit {status} · 0.1 s", output) for host, status in hosts])
    )
    assert found is not None
    assert [(told.host, told.outcome) for told in found.hosts] == [(h, f"exit {s}") for h, s in hosts]


def test_outcomes_are_words_of_ours_only() -> None:
    def outcome(headline: str) -> str:
        return Told("web-1", headline).outcome

    assert outcome("exit 0 · 0.1 s · approved by a person") == "exit 0"
    assert outcome("killed by signal TERM · 60.0 s") == "killed by signal TERM"
    assert outcome("refused: it deletes files") == "refused"
    assert outcome("denied by bob; do not ask for it again in this turn") == "denied"
    assert outcome("not run yet: the approval is still open") == "not run yet"
    assert outcome("unknown: exit 0, said the host. It was not run again.") == "unknown"
    assert outcome("anything else") == "ended"
