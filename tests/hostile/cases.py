"""The hostile texts, and what has to be true of them wherever they come out."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bot.outside import clean, quiet
from bot.prose import MARK
from tests.fakes.slack import rules

SHARED = rules.SHARED if rules.SHARED.is_dir() else None
# A reader's own words in Slack: what it makes of angle brackets, and links whose text is not their address.
_OWN_DATE = re.compile(r"<!date\^\d+\^\{time\}\|\d\d:\d\d \w+>")
_FORM = re.compile(r"<(?:[!@#]|https?:|mailto:|tel:)")
_LINK = re.compile(r"\]\(|\]\[|^\s*\[[^\]]+\]:", re.MULTILINE)  # read in markdown blocks only
_TOKENS = (
    "<|im_",
    "<|eot",
    "<|start",
    "</s>",
    "[INST]",
    "[/INST]",
    "<<SYS",
    "<｜",
    "<tool_call>",
    "</tool_response>",
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Case:
    """One text. runs: the commands of a model that obeys it."""

    id: str
    aim: str
    text: str
    runs: tuple[str, ...]


def load() -> list[Case]:
    raw = yaml.safe_load(Path(__file__).with_name("strings.yml").read_text(encoding="utf-8"))
    return [
        Case(f"{aim}-{n}", aim, each["text"], tuple(each.get("runs", ())))
        for aim, texts in raw.items()
        for n, each in enumerate(texts, start=1)
    ]


CASES = load()


def of(aim: str) -> list[Case]:
    return [case for case in CASES if case.aim == aim]


def lines_of(text: str) -> list[str]:
    """As the model is given them, without the frame."""
    return [quiet(line) for line in clean(text).rstrip("\n").split("\n")]


def wire_is_sound(content: str) -> None:
    """Nothing in it that a tokenizer, a terminal or nobody's eyes would read."""
    assert not [token for token in _TOKENS if token in content]
    odd = {c for c in content if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t"}
    assert not odd
    assert not [c for c in content if 0xE0000 <= ord(c) <= 0xE0FFF or c in "\u202e\u200b\u2066\ufeff"]


def slack_is_sound(method: str, payload: Mapping[str, Any], *, card: bool = False) -> None:
    """Slack would take it; nobody is pinged, no link hides where it leads, no buttons but on a card."""
    given = {key: value for key, value in payload.items() if key not in ("method", "ref", "otherwise")}
    place = {"channel": "C1", "ts": "1.0"} if method == "chat.update" else {"channel": "C1"}
    assert rules.faults(method, {**given, **place}, SHARED) == []
    if method == "chat.postMessage":
        assert (given.get("unfurl_links"), given.get("unfurl_media")) == (False, False)
    blocks: list[dict[str, Any]] = given.get("blocks") or []
    for block in blocks:
        assert block["type"] != "actions" or card
        if block["type"] != "rich_text":
            for text in rules.texts(block):
                assert not _FORM.search(_OWN_DATE.sub("", text))
                assert block["type"] != "markdown" or not _LINK.search(_without_code(text))
    assert not _FORM.search(_OWN_DATE.sub("", given["text"]))
    for block in blocks:
        if block["type"] in ("section", "context"):
            for each in [block.get("text"), *block.get("elements", ())]:
                assert each is None or each.get("type") != "mrkdwn" or each["verbatim"] is True


def _without_code(text: str) -> str:
    return re.sub(r"(?<![`\\])(`+)(?!`)[^\n]+?(?<!`)\1(?!`)", "", text)


def terminal_is_sound(printed: str, *, colours: bool = False) -> None:
    """Only newlines, tabs and (on a terminal) our own colours beside what can be seen."""
    rest = _COLOURS.sub("", printed) if colours else printed
    odd = {
        f"U+{ord(c):04X}"
        for c in rest
        if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t"
    }
    assert not odd
    assert not [c for c in rest if 0xE0000 <= ord(c) <= 0xE0FFF or c in "\u202e\u200b\u2066\ufeff"]


def imitations(lines: Iterable[str]) -> list[str]:
    """Lines that begin as a card, a decision or an evidence line of ours, and are not marked."""
    ours = (
        r"approval needed|a\W*pproved\W* by|\d+ commands? on |(?:root cause|finding) · \d|已由.*批准|批准人"
    )
    found = re.compile(rf"^[\W_]*(?:{ours})", re.IGNORECASE)
    return [line for line in lines if found.match(line) and MARK not in line]


def one_object_a_line(printed: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in printed.split("\n") if line]
    assert all(isinstance(each, dict) for each in found)
    return found
