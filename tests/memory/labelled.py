"""The labelled messages and results of cases/ and held_out/, and how extraction does on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bot.memory import Found, Heard, extract
from storage.records import Role

FOLDER = Path(__file__).parent
_KIND = {
    "preference": "USER_PREFERENCE",
    "environment": "ENVIRONMENT_FACT",
    "software": "SOFTWARE_FACT",
    "case": "TROUBLESHOOTING_CASE",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation, what must stand at its end, and what may stand without harm ("KIND: words in it")."""

    place: str
    language: str
    messages: tuple[Heard, ...]
    want: tuple[str, ...]
    may: tuple[str, ...] = ()


@dataclass(slots=True)
class Score:
    """Counts by (kind, language)."""

    right: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)

    def precision(self, key: tuple[str, str]) -> float:
        """The share of what was found that is right; 1 when nothing was found."""
        return (
            self.right[key] / (self.right[key] + self.wrong[key] or 1)
            if self.right[key] + self.wrong[key]
            else 1.0
        )

    def recall(self, key: tuple[str, str]) -> float:
        """The share of what stands that was found."""
        return (
            self.right[key] / (self.right[key] + self.missed[key] or 1)
            if self.right[key] + self.missed[key]
            else 1.0
        )

    def groups(self) -> list[tuple[str, str]]:
        """The kinds and languages that occur."""
        return sorted({*self.right, *self.wrong, *self.missed})

    def table(self) -> str:
        """For people."""
        rows = [
            f"{kind:22}{lang:4}{self.precision((kind, lang)):10.3f}{self.recall((kind, lang)):8.3f}"
            f"{self.right[kind, lang]:7}{self.wrong[kind, lang]:7}{self.missed[kind, lang]:7}"
            for kind, lang in self.groups()
        ]
        return "\n".join(
            [f"{'kind':22}{'':4}{'precision':>10}{'recall':>8}{'right':>7}{'wrong':>7}{'missed':>7}", *rows]
        )


def cases(folder: str) -> Iterator[Case]:
    """The cases of one folder; the language is the second part of the file's name."""
    for path in sorted((FOLDER / folder).glob("*.yml")):
        language = path.name.split(".")[1]
        for number, entry in enumerate(yaml.safe_load(path.read_text("utf-8")), 1):
            data: dict[str, Any] = {"say": entry} if isinstance(entry, str) else entry
            yield Case(
                f"{folder}/{path.name} {number}",
                language,
                tuple(_messages(data)),
                tuple(data.get("want") or ()),
                tuple(data.get("may") or ()),
            )


def _messages(data: dict[str, Any]) -> Iterator[Heard]:
    if "run" in data:
        yield _heard(data)
    for entry in data.get("talk", [data["say"]] if isinstance(data.get("say"), str) else data.get("say", [])):
        yield _heard(entry)


def _heard(entry: str | dict[str, Any]) -> Heard:
    if isinstance(entry, dict):
        return Heard(
            Role.TOOL,
            str(entry["out"]),
            host=entry.get("host", "web-1"),
            command=entry["run"],
            exit_status=entry.get("exit", 0),
        )
    who, mark, text = entry.partition("> ")
    if not mark or who not in ("bot", "U1", "U2"):
        return Heard(Role.USER, entry, "U1")
    return Heard(Role.ASSISTANT, text) if who == "bot" else Heard(Role.USER, text, who)


def judge(all_cases: list[Case]) -> Score:
    """Run extraction over the cases and hold it against the labels."""
    score = Score()
    for case in all_cases:
        found = list(extract(case.messages))
        for label in case.want:
            hit = next((f for f in found if _fits(f, label)), None)
            key = (_KIND[label.split(":")[0]], case.language)
            if hit:
                found.remove(hit)
                score.right[key] += 1
            else:
                score.missed[key] += 1
                score.said.append(f"{case.place}: missed {label!r} in {case.messages[-1].text[:100]!r}")
        for extra in found:
            if not any(_fits(extra, label) for label in (*case.may, *case.want)):
                score.wrong[extra.kind.value, case.language] += 1
                score.said.append(
                    f"{case.place}: wrong {extra.kind}: {extra.attribute} = {extra.value} | {extra.text}"
                )
    return score


def _fits(found: Found, label: str) -> bool:
    kind, _, words = label.partition(": ")
    told = f"{found.subject} {found.attribute} {found.value} {found.text}".lower()
    return found.kind.value == _KIND[kind] and all(word in told for word in words.lower().split())
