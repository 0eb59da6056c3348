"""What a hostile host may say while a change is followed: it neither fills our memory, nor holds us up, nor throws."""

from __future__ import annotations

import pytest

from bot.ssh.detached import HALF, Report


def fed(*pieces: bytes) -> Report:
    report = Report()
    for piece in pieces:
        report.add(piece)
    return report


def held(report: Report) -> int:
    return len(report._line) + len(report._body)


def test_a_line_without_end_is_not_kept() -> None:
    report = fed(*[b"x" * 32_768] * 2_000)
    assert held(report) < 10_000
    report.add(b"\nend done 0 1 30 2 0 -1 0 0 -1\nok")
    assert report.whole
    assert report.streams()[0].text == "ok"


def test_many_short_lines_are_passed_over() -> None:
    report = fed(*[b"\n" * 32_768] * 10)  # the suite's own limit would end what takes the square of it
    assert held(report) < 10_000


def test_no_more_is_kept_than_was_announced_and_than_a_host_keeps() -> None:
    report = fed(b"end done 0 0 1 9999999999 0 0 0 0 0\n", *[b"x" * 32_768] * 2_000)
    assert held(report) == HALF
    assert report.whole
    assert fed(b"end done 0 0 1 2 0 -1 0 0 -1\nok", b"more").streams()[0].text == "ok"


@pytest.mark.parametrize(
    "said",
    [
        b"run x",
        b"run " + b"9" * 5_000,
        b"end done x 0 0 0 0 0 0 0 0",
        b"end done 0 0 0 0 0 0 0 0 y",
        b"run",
        b"end",
        b"",
    ],
)
def test_what_is_no_report_is_passed_over(said: bytes) -> None:
    report = fed(said + b"\n", b"end done 3 1 30 0 0 -1 0 0 -1\n")
    assert report.whole
    assert report.status == 3


def test_sizes_below_nothing_are_nothing() -> None:
    report = fed(b"end done 0 0 1 -5 -5 -1 -9 0 -1\nrest")
    assert report.whole
    assert report.streams()[0].text == ""
