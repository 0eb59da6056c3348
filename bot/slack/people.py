"""Who somebody is, which groups they are in, what kind of channel it is: asked of Slack, kept for a minute.

Tiers: users.info, conversations.info 50+ a minute, usergroups.users.list 20+ a minute; hence the caches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot import log, outside
from bot.access import Actor
from bot.errors import OpsthreadError
from bot.redact import Redactor
from bot.slack.incoming import Us
from bot.ssh.inventory import Inventory

FRESH_S = 60.0  # how old a fact may be when rights hang on it
STALE_S = 3600.0  # how old it may be while Slack does not answer (never for group membership)
_KEPT = 5_000  # entries a cache may hold

CALL_FAILED = (SlackClientError, aiohttp.ClientError, TimeoutError, OSError, ValueError)

T = TypeVar("T")


class SlackSilent(OpsthreadError):
    """Slack does not answer who you are right now; please try again in a minute."""


@dataclass(frozen=True, slots=True)
class Person:
    """What users.info says. stranger: belongs to another company."""

    id: str
    name: str
    guest: bool = False
    bot: bool = False
    deleted: bool = False
    stranger: bool = False

    @property
    def refused(self) -> bool:
        """Whether the rules give this person nothing whatever they say."""
        return self.guest or self.bot or self.deleted or self.stranger


@dataclass(frozen=True, slots=True)
class Channel:
    """What conversations.info says. shared: with another company, now or soon."""

    id: str
    name: str
    is_dm: bool = False
    shared: bool = False
    private: bool = False


class _Cache(Generic[T]):
    """Facts with an age. An old one stands in while Slack is silent, up to `stale_s`."""

    def __init__(self, ask: Callable[[str], Awaitable[T]], *, stale_s: float) -> None:
        self._ask = ask
        self._stale_s = stale_s
        self._known: dict[str, tuple[float, T]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, key: str) -> T:
        """Raises SlackSilent when Slack does not answer and nothing young enough is known."""
        if (found := self._young(key, FRESH_S)) is not None:
            return found[1]
        lock = self._locks.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                if (found := self._young(key, FRESH_S)) is not None:
                    return found[1]
                try:
                    value = await self._ask(key)
                except CALL_FAILED as error:
                    if (found := self._young(key, self._stale_s)) is not None:
                        return found[1]
                    raise SlackSilent from error
                if len(self._known) >= _KEPT:
                    self._known.pop(next(iter(self._known)))
                self._known[key] = (time.monotonic(), value)
                return value
        finally:
            if not lock.locked():
                self._locks.pop(key, None)

    def forget(self, key: str) -> None:
        self._known.pop(key, None)

    def _young(self, key: str, limit_s: float) -> tuple[float, T] | None:
        found = self._known.get(key)
        return found if found and time.monotonic() - found[0] < limit_s else None


class People:
    """The facts about people, groups and channels of one workspace.

    enterprise: our organisation in an Enterprise Grid; its other workspaces' people are no strangers.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        us: Us,
        *,
        inventory: Callable[[], Inventory],
        enterprise: str | None = None,
        redactor: Redactor,
    ) -> None:
        self._redactor = redactor
        self._client = client
        self._us = us
        self._inventory = inventory
        self._enterprise = enterprise
        self._people = _Cache(self._ask_person, stale_s=STALE_S)
        self._channels = _Cache(self._ask_channel, stale_s=STALE_S)
        self._groups = _Cache(self._ask_group, stale_s=FRESH_S)
        self._members = _Cache(self._ask_members, stale_s=FRESH_S)
        self._log = log.get("slack.people")

    async def person(self, id: str) -> Person:  # noqa: A002
        """Raises SlackSilent."""
        return await self._people.get(id)

    async def channel(self, id: str) -> Channel:  # noqa: A002
        """Raises SlackSilent."""
        return await self._channels.get(id)

    async def actor(self, id: str) -> Actor:  # noqa: A002
        """The person as the access rules see them, with the groups those rules name. Raises SlackSilent."""
        person = await self.person(id)
        groups = frozenset[str]() if person.refused else await self._groups_of(id)
        return Actor(team=self._us.team, id=id, name=person.name, groups=groups, guest=person.refused)

    async def shared(self, channel: str) -> bool:
        """Whether another company reads along. Raises SlackSilent."""
        return (await self.channel(channel)).shared

    async def names(self, ids: Iterable[str]) -> Mapping[str, str]:
        """Names to show; whom Slack does not tell of stays out."""
        found: dict[str, str] = {}
        for each in ids:
            try:
                found[each] = (await self.person(each)).name
            except SlackSilent:
                continue
        return found

    async def in_channel(self, person: str, channel: str) -> bool:
        """Whether the person is a member, as far as Slack tells us; unreadable: no."""
        try:
            return person in await self._members.get(channel)
        except SlackSilent:
            return False

    async def _groups_of(self, person: str) -> frozenset[str]:
        found = set()
        for group in _groups_named(self._inventory()):
            try:
                if person in await self._groups.get(group):
                    found.add(group)
            except SlackSilent as error:
                self._log.warning("user group cannot be read", group=group, fault=str(error.__cause__))
        return frozenset(found)

    async def _ask_person(self, id: str) -> Person:  # noqa: A002
        try:
            answer = await self._client.users_info(user=id)
        except SlackApiError as error:
            if error.response.get("error") in ("user_not_found", "user_not_visible"):
                return Person(id, id, stranger=True)
            raise
        user: dict[str, Any] = answer["user"]
        found = person_from(user, us=self._us, enterprise=self._enterprise)
        return replace(
            found, name=self._redactor.text(found.name).text
        )  # it is kept and shown wherever they act

    async def _ask_channel(self, id: str) -> Channel:  # noqa: A002
        answer = await self._client.conversations_info(channel=id)
        found: dict[str, Any] = answer["channel"]
        return Channel(
            id=id,
            name=found.get("name") or id,
            is_dm=bool(found.get("is_im")),
            shared=bool(found.get("is_ext_shared") or found.get("is_pending_ext_shared")),
            private=bool(found.get("is_private") or found.get("is_im") or found.get("is_mpim")),
        )

    async def _ask_group(self, id: str) -> frozenset[str]:  # noqa: A002
        answer = await self._client.usergroups_users_list(usergroup=id)
        return frozenset(answer["users"])

    async def _ask_members(self, channel: str) -> frozenset[str]:
        members: set[str] = set()
        cursor = ""
        for _ in range(50):
            answer = await self._client.conversations_members(
                channel=channel, limit=1000, cursor=cursor or None
            )
            members.update(answer["members"])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                break
        return frozenset(members)


def person_from(user: Mapping[str, Any], *, us: Us, enterprise: str | None) -> Person:
    """A user object of Slack's (docs.slack.dev/reference/objects/user-object)."""
    profile = user.get("profile") or {}
    team = user.get("team_id") or us.team
    of_our_org = bool(enterprise) and (user.get("enterprise_user") or {}).get("enterprise_id") == enterprise
    return Person(
        id=str(user.get("id", "")),
        name=outside.name(
            str(
                profile.get("display_name")
                or profile.get("real_name")
                or user.get("real_name")
                or user.get("name")
                or ""
            ),
            str(user.get("id", "")),
        ),
        guest=bool(user.get("is_restricted") or user.get("is_ultra_restricted")),
        bot=bool(user.get("is_bot")) or user.get("id") == "USLACKBOT",
        deleted=bool(user.get("deleted")),
        stranger=bool(user.get("is_stranger")) or (team != us.team and not of_our_org),
    )


def _groups_named(inventory: Inventory) -> list[str]:
    """The user groups whose membership any rule asks for."""
    named = {
        each
        for rule in inventory.rules
        for each in (*rule.usergroups, *rule.approvers)
        if each.startswith("S")
    }
    return sorted(named)
