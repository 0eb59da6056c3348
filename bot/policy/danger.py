"""Which commands are so grave that two different people must say yes, and why. Adds to a question; allows nothing."""

from __future__ import annotations

from bot.policy.nested import Found
from bot.policy.spec import Rules


def danger(text: str, found: list[Found], rules: Rules) -> str:
    """Why two people must approve this command; "" for most.

    found: every command in the text, those that shells and wrappers in it would run among them.
    """
    for pattern, said in rules.dangerous_text:
        if pattern.search(text):
            return said
    for name, rest in found:
        patterns = rules.dangerous.get(name)
        if patterns:
            words = f" {' '.join(rest)} " if rest else " "
            for pattern, said in patterns:
                if pattern.search(words):
                    return f"{name}: {said}"
    return ""
