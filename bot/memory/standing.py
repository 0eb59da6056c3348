"""Which standing preferences a word of their person reaches: those taken back, and one said again in other words."""

from __future__ import annotations

from collections.abc import Sequence

from bot.memory.records import Found, TakenBack
from bot.memory.words import alike, content, stems
from storage.records import MemoryKind

NEAR = 0.8  # share of words from which two free preferences are one
LONG = 30  # characters; a shorter one is a known matter's value, and those have keys of their own
_ABOUT = {  # words for a matter as a whole
    "answer language": "language 语言 答语", "time zone": "time zone timezone 时区 时间", "output format": "format output 格式 输出",
    "answer length": "length short detailed 长短 简短 详细 简洁", "default namespace": "namespace 命名空间", "default cluster": "cluster 集群",
    "sudo": "sudo", "editor": "editor 编辑器", "units": "units 单位", "emojis": "emoji 表情",
}  # fmt: skip


def taken_back(back: TakenBack, standing: Sequence[Found]) -> tuple[Found, ...]:
    """Which of `standing`, the oldest first, a person means: those that share words with it, or the last one."""
    theirs = [f for f in standing if f.kind is MemoryKind.USER_PREFERENCE and f.subject == back.subject]
    if not back.words:
        return tuple([f for f in theirs if not back.latest or f.source >= back.since][-1:])
    words = stems(back.words)
    return tuple(f for f in theirs if stems(_about(f)) & words)


def said_before(found: Found, standing: Sequence[Found]) -> Found | None:
    """The free preference of the same person that says nearly the same under another key."""
    if found.kind is not MemoryKind.USER_PREFERENCE:
        return None
    words = content(found.value)
    for other in standing:
        same = other.kind is found.kind and other.subject == found.subject and other.key != found.key
        if same and len(other.value) > LONG and alike(words, content(other.value)) >= NEAR:
            return other
    return None


def _about(found: Found) -> frozenset[str]:
    matter = found.attribute.split(" (")[0]
    return content(f"{found.text} {found.value} {_ABOUT.get(matter, '')} {matter}") | content(
        _ABOUT.get(matter, "")
    )
