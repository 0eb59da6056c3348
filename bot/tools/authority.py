"""Whose rights a turn's commands have: asked anew at every command, never remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.access import Actor, hosts_for, rule_for
from bot.ssh.inventory import AccessRule, Host, Inventory


@dataclass(frozen=True, slots=True)
class Authority:
    """The person who started the turn, where, over the inventory as it is now.

    shared: the channel is shared with another company.
    """

    actor: Callable[[], Awaitable[Actor]]
    channel: str
    shared: Callable[[], Awaitable[bool]]
    inventory: Callable[[], Inventory]

    async def hosts(self) -> tuple[Host, ...]:
        """The hosts this person may use from this channel, now."""
        return hosts_for(await self.actor(), self.channel, self.inventory(), shared=await self.shared())

    async def rule(self, host: Host) -> AccessRule | None:
        """The rule that gives this person this host, now; None: no access."""
        return rule_for(await self.actor(), self.channel, host, self.inventory(), shared=await self.shared())
