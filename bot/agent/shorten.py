"""Pure: one result made shorter: cut in its middle, or told in one line."""

from __future__ import annotations

from bot.outside import FRAME, line
from bot.tools.reported import Reported, Told, reported

HOSTS = 10  # hosts that a digest names for each outcome


def shorten(text: str, keep: int) -> str:
    """Head and tail of a result with a line between that says how much is missing.

    The tail begins where a line begins, or gets the frame of the line it was cut from.
    """
    if len(text) <= keep:
        return text
    head = text[: keep * 2 // 3]
    tail = text[-(keep // 3) :] if keep >= 3 else ""
    begun = tail.find("\n") + 1
    tail = tail[begun:]
    left = len(text) - len(head) - len(tail)
    return f"{head}\n… {left} characters left out here …\n{'' if begun else FRAME}{tail}"


def digest(text: str) -> str:
    """One line of ours: what ran where, how it ended, how much is left out, and that it is kept."""
    told = reported(text)
    if told is None:
        return f"(shortened: {len(text)} characters are left out here and kept in the session)"
    kept = [host.kept_as for host in told.hosts if host.kept_as]
    where = f" as command {', '.join(kept[:HOSTS])}" if kept else ""
    return (
        f"(shortened: {line(told.command, 300)} · {outcomes(told)} · {sum(h.printed for h in told.hosts)} bytes"
        f" left out here, the full output is kept{where})"
    )


def outcomes(told: Reported) -> str:
    """`exit 0 on web-1, web-2; exit 1 on db-1`"""
    by_outcome: dict[str, list[Told]] = {}
    for host in told.hosts:
        by_outcome.setdefault(host.outcome, []).append(host)
    return "; ".join(f"{outcome} on {_names(hosts)}" for outcome, hosts in by_outcome.items())


def _names(hosts: list[Told]) -> str:
    more = f" and {len(hosts) - HOSTS} more" if len(hosts) > HOSTS else ""
    return ", ".join(line(host.host, 80) for host in hosts[:HOSTS]) + more
