"""What `--user U` may see of a session: results from hosts that hosts.yml does not give U are withheld."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bot import settings
from bot.access import LOCAL, Actor, hosts_for
from bot.agent.withhold import withheld
from bot.ssh.inventory import load
from storage.history import message_of
from storage.records import Session


def texts(rows: Iterable[Any], session: Session, user: str) -> dict[int, str]:
    """seq -> text, for rows of a session's messages. Without a person and without hosts.yml nothing is
    withheld. User groups are Slack's to know: what only they give is withheld here.
    """
    messages = [message_of(row) for row in rows]
    hosts = settings.load().hosts
    if user.startswith(("U", "W", LOCAL)) and hosts is not None:
        inventory = load(hosts, check_files=False).for_team(session.team)
        actor = Actor(team=session.team, id=user, name=user)
        channel = "dm" if session.channel.startswith("D") else session.channel
        usable = {host.name for host in hosts_for(actor, channel, inventory)}
        messages = withheld(messages, denied={*session.hosts} - usable, who=user)
    return {message.seq: message.text for message in messages if message.seq is not None}
