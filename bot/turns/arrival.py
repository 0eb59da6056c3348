"""A message on its way in, the same from Slack and from a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from storage.records import Front, Origin


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message a person wrote.

    message_key: unique for the message over all its events. session_key: which session it belongs to;
    session_id: the same where it is known already.
    starts_turn: the front end's etiquette decided that the bot is spoken to; False keeps it as context.
    opens_session: a new session may be opened for it (a mention, a direct message, a terminal).
    """

    team: str
    origin: Origin
    front: Front
    session_key: str
    channel: str  # Slack channel id, or `terminal`
    access_channel: str  # the word of the access rules: channel id, `dm` or `terminal`
    thread_ts: str | None
    ts: str
    message_key: str
    event_key: str | None
    person: str
    person_name: str
    owner: str
    text: str
    starts_turn: bool
    opens_session: bool
    session_id: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of an arrival. duplicate: it had been received before, nothing was done."""

    session_id: int | None
    turn_id: int | None
    duplicate: bool
    queued_behind: int = 0  # unfinished turns of the session before this one
