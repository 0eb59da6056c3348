"""Messages in, memories out: who may say what, and what stands at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.memory.cases import Cases
from bot.memory.facts.read import facts
from bot.memory.gate import may_stay
from bot.memory.preferences.read import preferences
from bot.memory.records import Found, Heard, Kind, TakenBack
from bot.memory.words import alike, content
from storage.records import Role

NEAR = 0.8  # share of words from which two free preferences are one
_ABOUT = {  # words for a matter as a whole
    "answer language": "language 语言 答语", "time zone": "time zone timezone 时区 时间", "output format": "format output 格式 输出",
    "answer length": "length short detailed 长短 简短 详细 简洁", "default namespace": "namespace 命名空间", "default cluster": "cluster 集群",
    "sudo": "sudo", "editor": "editor 编辑器", "units": "units 单位", "emojis": "emoji 表情",
}  # fmt: skip


def extract(messages: Sequence[Heard]) -> tuple[Found, ...]:
    """What would stand after these messages: superseded and taken-back memories are gone, equal ones come once."""
    standing: dict[tuple[Kind, str, str], Found] = {}
    for event in events(messages):
        if isinstance(event, TakenBack):
            for key in _meant(event, list(standing.values())):
                del standing[key]
            continue
        if (near := _near(event, standing)) is not None:
            del standing[near]
        old = standing.pop(event.key, None)
        standing[event.key] = event if old is None or old.value != event.value else old
    return tuple(sorted(standing.values(), key=lambda found: found.source))


def events(messages: Sequence[Heard]) -> Iterator[Found | TakenBack]:
    """What is found and what is taken back, in order. Nothing here knows of earlier conversations."""
    cases = Cases()
    before: dict[str, int] = {}  # the last message of each person
    for number, heard in enumerate(messages, 1):
        if (case := cases.hear(heard, number)) and may_stay(case.text):
            yield case
        if heard.role is Role.TOOL:
            yield from (f for f in facts(heard, number) if may_stay(f.value, f.text))
        elif heard.role is Role.USER:
            for event in preferences(heard, number):
                if isinstance(event, TakenBack):
                    yield TakenBack(event.subject, event.words, event.latest, before.get(heard.author, 0))
                elif may_stay(event.value, event.text):
                    yield event
            before[heard.author] = number


def _meant(back: TakenBack, standing: list[Found]) -> list[tuple[Kind, str, str]]:
    """Which preferences a taking back means: those it shares words with, or the last one."""
    theirs = [f for f in standing if f.kind is Kind.USER_PREFERENCE and f.subject == back.subject]
    if not back.words:
        last = [f for f in theirs if not back.latest or f.source >= back.source]
        return [last[-1].key] if last else []
    return [f.key for f in theirs if _about(f) & back.words]


def _about(found: Found) -> frozenset[str]:
    matter = found.attribute.split(" (")[0]
    return content(f"{found.text} {found.value} {_ABOUT.get(matter, '')} {matter}") | content(
        _ABOUT.get(matter, "")
    )


def _near(found: Found, standing: dict[tuple[Kind, str, str], Found]) -> tuple[Kind, str, str] | None:
    """The free preference of the same person that says nearly the same."""
    if found.kind is not Kind.USER_PREFERENCE:
        return None
    words = content(found.value)
    for key, other in standing.items():
        same = other.kind is found.kind and other.subject == found.subject and key != found.key
        if same and len(other.value) > 30 and alike(words, content(other.value)) >= NEAR:
            return key
    return None
