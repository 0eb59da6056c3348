"""Cutting a channel's stream at our markers, in pieces of any size, and keeping head and tail."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.ssh.detached import Report
from bot.ssh.output import Kept, Marked, joined

NONCE = "00ff"


def fed(stream: bytes, sizes: list[int]) -> tuple[Marked, Kept]:
    kept = Kept(1_000)
    marked = Marked(NONCE, kept)
    at = 0
    for size in [*sizes, len(stream)]:
        marked.feed(stream[at : at + size])
        at += size
    marked.finish()
    return marked, kept


@given(st.binary(max_size=60), st.binary(max_size=200), st.lists(st.integers(1, 9), max_size=60))
def test_the_body_is_exact_however_the_stream_is_cut(noise: bytes, body: bytes, sizes: list[int]) -> None:
    stream = noise + b"\n@@00ff@@\n" + body + b"\n@@00ff 17@@\nafter"
    marked, kept = fed(stream, sizes)
    assert (marked.begun, marked.status, kept.text()) == (True, 17, joined(body, b"", len(body)))


@given(st.binary(max_size=200), st.lists(st.integers(1, 9), max_size=60))
def test_a_stream_that_breaks_gives_all_it_had(body: bytes, sizes: list[int]) -> None:
    marked, kept = fed(b"\n@@00ff@@\n" + body, sizes)
    assert (marked.status, kept.total) == (None, len(body))


def test_without_a_begin_marker_everything_is_noise() -> None:
    marked, kept = fed(b"tcsh: no such thing\n", [3])
    assert (marked.begun, kept.total, marked.noise) == (False, 0, "tcsh: no such thing\n")


def test_the_wrappers_own_text_in_a_listing_of_processes_is_not_a_marker() -> None:
    listing = b'1 sh -c printf "\\n@@00ff %s@@\\n" $r; exit $r\n'
    marked, kept = fed(b"\n@@00ff@@\n" + listing + b"\n@@00ff 0@@\n", [])
    assert (marked.status, kept.total) == (0, len(listing))


@given(st.lists(st.binary(max_size=90), max_size=30))
def test_kept_is_head_and_tail_of_whatever_came(pieces: list[bytes]) -> None:
    kept, whole = Kept(100), b"".join(pieces)
    for piece in pieces:
        kept.add(piece)
    assert kept.total == len(whole)
    assert kept.truncated == (len(whole) > 100)
    expected = whole if len(whole) <= 100 else None
    if expected is not None:
        assert kept.text() == joined(expected, b"", len(expected))
    else:
        assert kept.text() == joined(whole[:50], whole[-50:], len(whole))


def test_what_was_left_out_is_counted() -> None:
    assert joined(b"ab", b"yz", 1_004) == "ab\n[… 1,000 bytes left out …]\nyz"


def test_nul_and_broken_utf8_become_the_replacement_character() -> None:
    assert joined(b"a\0\xff", b"", 3) == "a\ufffd\ufffd"


@given(st.lists(st.integers(1, 7), max_size=40))
def test_a_changes_report_is_read_in_pieces_of_any_size(sizes: list[int]) -> None:
    stream = b"run 0\nrun 5\nend done 3 12 30 5 0 0 2 0 0\nhelloer"
    report, at = Report(), 0
    for size in [*sizes, len(stream)]:
        report.add(stream[at : at + size])
        at += size
    out, err = report.streams()
    assert (report.state, report.status, report.seconds, report.whole) == ("done", 3, 12.0, True)
    assert (out.text, err.text, report.bytes_so_far) == ("hello", "er", 5)


def test_a_report_cut_in_the_middle_is_not_whole() -> None:
    report = Report()
    report.add(b"end done 0 1 30 500 0 0 0 0 0\nhalf")
    assert not report.whole
