"""One turn end to end: open or resume it, run the loop, then finish, pause, fail or stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bot import log
from bot.agent import context, evidence, intent
from bot.agent.history import INTERRUPTED, open_calls, plan_author
from bot.agent.intent import Intent
from bot.agent.loop import Answer, Limits, Loop, WaitForApproval
from bot.agent.withhold import withheld
from bot.errors import ModelError, OpsthreadError
from bot.events import TextStreamed, TurnStarted
from bot.journal import Journal
from bot.model import Model
from bot.outside import name
from bot.redact import LiveText, Redactor
from bot.tools.authority import Authority
from bot.tools.toolbox import Result, Toolbox
from bot.turns.remembering import Remembered, Remembering
from storage import approvals, commands, history, inbox, milestones, tasks
from storage.errors import StorageError
from storage.history import OURS
from storage.records import (
    Approval,
    ApprovalState,
    Claim,
    Command,
    CommandState,
    Front,
    Message,
    Milestone,
    MilestoneKind,
    MilestoneSource,
    Origin,
    Role,
    ThreadLine,
    ToolCall,
    Turn,
    TurnState,
)
from storage.store import Store
from storage.tasks import Plan

MOST_RESUMED = 10  # times a turn is taken up after its process was gone
HISTORY_READ = 400  # messages read at most; the window of a request is cut from them

logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class TurnParts:
    """What a turn works with, put together by the desk for one claim."""

    store: Store
    model: Model
    toolbox: Toolbox
    authority: Authority
    journal: Journal
    limits: Limits
    redactor: Redactor
    remembering: Remembering
    max_tokens: int
    zone: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What the database knows of the session when a turn begins; read once."""

    hosts: frozenset[str]  # that this person may use
    history: list[Message]
    approvals: list[Approval]
    milestones: list[Milestone]
    plan: Plan
    next_step: str
    idle: list[ThreadLine]


async def run_turn(claim: Claim, parts: TurnParts) -> TurnState:
    """Work on a claimed turn until it is over or has to wait. Returns the state it was left in.

    Raises LeaseLost when another process took over; nothing more was written then.
    """
    turn, journal = claim.turn, parts.journal
    await journal.show(
        TurnStarted(turn=turn, session=claim.session, max_steps=parts.limits.steps, resumed=claim.resumed)
    )
    known = await _known(claim, parts)
    remembered = await parts.remembering.for_turn(turn, known.history, hosts=known.hosts, who=_author(turn))
    journal.notes.hold(remembered.private)
    for message in known.history:
        if message.role is Role.TOOL:
            journal.notes.shown(message.text)
    loop = await _loop(claim, parts, known, remembered)
    opened = any(m.turn_id == turn.id and m.role is Role.USER for m in known.history)
    await _close_calls_of_others(loop, known.approvals)
    if not opened:
        await _tell_whose_plan(claim, journal, known)
        await loop.add(Message(role=Role.USER, text=turn.text, author=_author(turn)))
        if turn.front is Front.TERMINAL and claim.session.origin is Origin.SLACK:
            asked = "\n> ".join(turn.text.split("\n"))
            await journal.note(f"asked:{turn.id}", f"{_author(turn)} asks from a terminal:\n> {asked}")
    if turn.stop_by:
        return await _stopped(loop, turn.stop_by)
    if turn.resumed > MOST_RESUMED:  # perhaps this very turn is what kills the processes
        await _settle_all(loop, INTERRUPTED)
        return await _failed(loop, f"I was interrupted {turn.resumed} times while I worked on it")
    try:
        if opened:
            await _tell_late_decisions(loop, known.approvals)
        answer = await loop.run()
    except WaitForApproval:
        return await journal.pause()
    except ModelError as error:
        return await _failed(loop, str(error))
    return await _answered(claim, parts, loop, answer, memories=remembered.used)


async def stop_turn(claim: Claim, parts: TurnParts, *, by: str) -> TurnState:
    """End a turn whose work was cancelled: every open call gets its result, people are told."""
    await parts.journal.drained()
    loop = await _loop(claim, parts, await _known(claim, parts))
    async with parts.store.begin() as db:
        ran = await commands.of_turn(db, claim.turn.id)
    left = [c for c in ran if c.approval_id is not None and c.state is CommandState.RUNNING]
    return await _stopped(loop, by, left=left)


async def fail_turn(claim: Claim, parts: TurnParts, *, reason: str) -> TurnState:
    """End a turn that broke on a fault of ours; the history stays valid and the session goes on."""
    await parts.journal.drained()
    loop = await _loop(claim, parts, await _known(claim, parts))
    await _settle_all(loop, INTERRUPTED)
    return await _failed(loop, reason)


def _author(turn: Turn) -> str:
    """The name people know; somebody who calls themselves as we sign our notes goes by their id."""
    return name(turn.person_name, turn.person)


async def _known(claim: Claim, parts: TurnParts) -> _Known:
    session, turn = claim.session, claim.turn
    mine = await _own_hosts(parts)
    async with parts.store.begin() as db:
        plan, next_step = await tasks.load(db, session.id)
        said = await history.history(db, session.id, limit=HISTORY_READ)
        return _Known(
            hosts=mine,
            history=withheld(said, denied={*session.hosts} - mine, who=_author(turn), but_turn=turn.id),
            approvals=await approvals.at_stake(db, session.id, turn_id=turn.id),
            milestones=await milestones.of_session(db, session.id, limit=20),
            plan=plan,
            next_step=next_step,
            idle=await inbox.idle_lines(
                db, team=turn.team, channel=session.channel, thread_ts=session.thread_ts, turn_id=turn.id
            )
            if session.thread_ts
            else [],
        )


async def _own_hosts(parts: TurnParts) -> frozenset[str]:
    """The names of the hosts this person may use; none while that cannot be found out."""
    try:
        return frozenset(host.name for host in await parts.authority.hosts())
    except OpsthreadError as error:
        logger.warning("rights cannot be read; results of hosts are withheld", error=str(error))
        return frozenset()


async def _loop(claim: Claim, parts: TurnParts, known: _Known, remembered: Remembered | None = None) -> Loop:
    mine = [m.kind for m in known.milestones if m.turn_id == claim.turn.id]
    parts.journal.goes_on_after(mine[-1] if mine else None)
    prompt = await context.build(
        _providers(claim, parts, known, remembered or Remembered()),
        turn_id=claim.turn.id,
        max_tokens=parts.max_tokens,
    )
    return Loop(
        messages=known.history,
        turn_id=claim.turn.id,
        model=parts.model,
        toolbox=parts.toolbox,
        prompt=prompt,
        journal=parts.journal,
        limits=parts.limits,
        live=lambda: _streamer(parts.journal, parts.redactor),
        steps=claim.turn.steps,
    )


def _providers(
    claim: Claim, parts: TurnParts, known: _Known, remembered: Remembered
) -> list[context.Provider]:
    """The blocks of the prompt, by order."""
    turn = claim.turn

    async def system() -> str:
        return context.system_text()

    async def hosts() -> str:
        return context.hosts_text(await parts.authority.hosts())

    async def core() -> str:
        return remembered.core

    async def memories() -> str:
        return remembered.text

    async def task() -> str:
        text = context.task_text(known.plan, known.next_step, known.milestones)
        goes_on = text and intent.read(turn.text).intent is Intent.CONTINUE
        return f"{text}\n\n{context.GOES_ON}" if goes_on else text

    async def idle() -> str:
        return context.idle_text(known.idle)

    async def now() -> str:
        return context.now_text(datetime.now(UTC), parts.zone, speaker=_author(turn))

    return [
        context.Provider(10, "system", context.Place.PREFIX, system),
        context.Provider(15, "hosts", context.Place.PREFIX, hosts),
        context.Provider(20, "core", context.Place.PREFIX, core),
        context.Provider(25, "memories", context.Place.TURN, memories),
        context.Provider(30, "task", context.Place.TURN, task),
        context.Provider(60, "idle", context.Place.TURN, idle),
        context.Provider(70, "now", context.Place.TURN, now),
    ]


def _streamer(journal: Journal, redactor: Redactor) -> Callable[[str], None]:
    """Hands one reply's pieces to the live view, in order, without secrets and without holding up the stream."""
    safe = LiveText(redactor)
    pieces: asyncio.Queue[str] = asyncio.Queue()
    tasks_: set[asyncio.Task[None]] = set()

    async def drain() -> None:
        while not pieces.empty():
            await journal.show(TextStreamed(piece=pieces.get_nowait()))

    def on_text(piece: str) -> None:
        pieces.put_nowait(safe.feed(piece) if piece else piece)
        if not tasks_:
            task = asyncio.get_running_loop().create_task(drain())
            tasks_.add(task)
            task.add_done_callback(tasks_.discard)

    return on_text


async def _tell_whose_plan(claim: Claim, journal: Journal, known: _Known) -> None:
    """Somebody goes on in a session with an open plan of another's: the plan is shown before it is taken up."""
    left = [step for step, state in known.plan if state in ("todo", "doing")]
    author = plan_author(known.history)
    me = _author(claim.turn)
    spoke = next((m.author for m in reversed(known.history) if m.role is Role.USER and m.author != OURS), me)
    if left and author not in (None, me) and spoke != me:
        steps = "; ".join(f"{n}. {step}" for n, step in enumerate(left, start=1))
        await journal.note(
            f"plan:{claim.turn.id}", f"{me} takes up the plan of {author}. Still to do: {steps}"
        )


async def _close_calls_of_others(loop: Loop, asked: list[Approval]) -> None:
    """A turn begins or goes on while another's calls are open: providers take no history with open calls.

    They stay the other turn's: it runs them with its person's rights, once, and tells the outcome later.
    """
    open_ids = {a.call_id for a in asked if a.state in (ApprovalState.OPEN, ApprovalState.APPROVED)}
    for each in open_calls(loop.messages):
        if each.turn_id == loop.turn_id:
            continue
        waits = each.call.id in open_ids
        text = (
            "not run yet: people were asked for an approval and have not answered. The outcome follows later."
            if waits
            else INTERRUPTED
        )
        await loop.add(Message(role=Role.TOOL, text=text, tool_call_id=each.call.id))


async def _tell_late_decisions(loop: Loop, asked: list[Approval]) -> None:
    """Approvals answered after their call got an interim result: act, and tell the outcome as a note of ours."""
    told = {m.tool_call_id for m in loop.messages if m.author == OURS}
    settled = {m.tool_call_id for m in loop.messages if m.role is Role.TOOL and m.turn_id != loop.turn_id}
    calls: dict[str, ToolCall] = {
        call.id: call for m in loop.messages if m.turn_id == loop.turn_id for call in m.tool_calls
    }
    for call_id in dict.fromkeys(a.call_id for a in asked if a.turn_id == loop.turn_id):
        if call_id in told or call_id not in settled or call_id not in calls:
            continue
        outcome = await loop.toolbox.run(calls[call_id])
        if not isinstance(outcome, Result):
            raise WaitForApproval
        await loop.add(
            Message(
                role=Role.USER,
                author=OURS,
                text=f"The approval asked for earlier was answered. Outcome:\n{outcome.text}",
                tool_call_id=call_id,
            )
        )


async def _settle_all(loop: Loop, text: str) -> None:
    for each in open_calls(loop.messages):
        await loop.add(Message(role=Role.TOOL, text=text, tool_call_id=each.call.id))


async def _stopped(loop: Loop, by: str, *, left: Sequence[Command] = ()) -> TurnState:
    await _settle_all(loop, f"stopped by {by} before it had a result; its outcome is unknown")
    text = f'Stopped by {by}. What was found so far is kept; say "continue" to go on.'
    for command in left:
        text += f"\n`{command.run}` was approved and may still run on {command.host}: it is not killed."
    await _end(loop, text, TurnState.STOPPED)
    return TurnState.STOPPED


async def _failed(loop: Loop, reason: str) -> TurnState:
    text = f'I could not finish: {reason.rstrip(".")}. Nothing is lost; say "continue" to try again.'
    await _end(loop, text, TurnState.FAILED)
    return TurnState.FAILED


async def _end(loop: Loop, text: str, state: TurnState) -> None:
    message = Message(role=Role.ASSISTANT, text=text)
    await loop.journal.finish(answer=message, footer="", state=state)


async def _answered(
    claim: Claim, parts: TurnParts, loop: Loop, answer: Answer, *, memories: int
) -> TurnState:
    if answer.limit:
        await loop.journal.milestone(
            MilestoneKind.BLOCKED, f"Stopped: {answer.limit} reached", MilestoneSource.RULE
        )
    footer = await _footer(claim, parts, answer.message.text)
    await loop.journal.finish(answer=answer.message, footer=footer, state=TurnState.DONE, memories=memories)
    return TurnState.DONE


async def _footer(claim: Claim, parts: TurnParts, text: str) -> str:
    """What stands behind the answer; without a database the answer goes out without it."""
    try:
        async with parts.store.begin() as db:
            mine = await commands.of_turn(db, claim.turn.id)
            claims = evidence.unproved_claims(text, mine)
            if claims:  # perhaps an earlier turn ran it: only then is the whole session read
                claims = evidence.unproved_claims(text, await commands.of_session(db, claim.session.id))
    except StorageError as error:
        logger.warning("answer without evidence line", error=str(error))
        return ""
    return evidence.footer(mine, claims)
