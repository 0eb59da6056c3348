"""The write gate: what never becomes a memory, whoever said it."""

from __future__ import annotations

import re

LONGEST_VALUE = 200
LONGEST_TEXT = 600
_TO_THE_MODEL = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|your|system)\b.{0,30}"
    r"\b(?:instruction|prompt|rule|guideline|polic|restriction|safety)"
    r"|\bsystem prompt\b|\byou are now\b|\bdeveloper mode\b|\bjailbreak|\bpretend (?:to be|you)|\bact as (?:if|an?)\b"
    r"|\breveal (?:your|the) (?:prompt|instruction|secret|key)|\b(?:bypass|skip|without)\b.{0,20}\bapprovals?\b"
    r"|(?<!never )(?<!not )(?<!n't )\b(?:approve|run) (?:everything|anything|all commands)|<\|?(?:system|im_start|assistant)|\[/?inst\]"
    r"|(?:忽略|无视|忘记|不要理会|绕过).{0,12}(?:指令|指示|提示词|规则|限制|设定|审批)|系统提示词?|你现在是|扮演|开发者模式|越狱"
    r"|(?:跳过|不需要|无需|自动通过).{0,6}(?:审批|批准)",
    re.I,
)


def to_the_model(text: str) -> bool:
    """Whether a text is phrased as an instruction against the model's rules. Stored, it would be obeyed later."""
    return bool(_TO_THE_MODEL.search(text[:20_000]))


def may_stay(*parts: str) -> bool:
    """Whether a memory made of these parts may be kept: nothing redacted, nothing empty, nothing overlong."""
    return all(
        part.strip() and "[redacted:" not in part and not to_the_model(part) and len(part) <= LONGEST_TEXT
        for part in parts
    )
