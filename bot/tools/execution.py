"""Runs judged commands on hosts: claim, send, watch, store. Reads die with us, approved changes do not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bot.errors import HostError, Refused
from bot.events import CommandProgress
from bot.journal import Journal, Wanted
from bot.ssh.inventory import Host
from bot.ssh.remote import Outcome, Progress, Remote
from bot.tools.questions import Place
from bot.tools.report import Part, ran
from bot.tools.toolbox import NOT_RECORDED
from storage.errors import DatabaseUnavailable
from storage.records import Approval, Command, CommandState, Ended, MilestoneKind, MilestoneSource

T = TypeVar("T")


class Executor:
    """One turn's hands: everything that reaches a host goes through here, and through the journal first."""

    def __init__(self, *, remote: Remote, journal: Journal) -> None:
        self._remote = remote
        self._journal = journal
        self._ledger = journal.ledger

    async def place(self, host: Host) -> Place:
        """The host with its verified key and those of its bastions. Raises HostError."""
        fingerprint = await self._remote.fingerprint(host)
        bastions: list[tuple[Host, str]] = []
        at = host.via
        while at is not None:
            bastions.insert(0, (at, await self._remote.fingerprint(at)))
            at = at.via
        return Place(host, fingerprint, tuple(bastions))

    async def read(self, host: Host, wanted: Wanted) -> Part:
        """Run an allowed command (the host's key is filled in here). Cancelling ends it on the host."""
        try:
            wanted = replace(wanted, fingerprint=await self._remote.fingerprint(host))
            command = await self._ledger.started(wanted)
        except (HostError, Refused) as error:
            await self._ledger.refused(host=host.name, run=wanted.run, reason=str(error))
            return Part(host.name, f"not run: {error}")
        except DatabaseUnavailable:  # on this host: on others it may have begun
            return Part(host.name, NOT_RECORDED)
        if command is None:
            return Part(host.name, "not run: this very call was claimed before; make a new call")
        try:
            outcome = await self._remote.run(
                host, wanted.run, limit_s=wanted.limit_s, on_progress=self._progress(command)
            )
        except HostError as error:
            return await self._not_sent(command, error)
        except asyncio.CancelledError:
            await asyncio.shield(self._stopped(command))
            raise
        return await self._store(command, outcome)

    async def approved(self, approval: Approval, hosts: dict[str, Host], *, policy: str) -> list[Part]:
        """Use an approval, once, on all its hosts side by side. Cancelling us does not end it there.

        Raises Refused while nothing may be changed.
        """
        commands = await self._ledger.used(approval, policy=policy)
        if commands is None:
            return [
                Part(host.name, "not run: the approval was used or withdrawn, or its time is over")
                for host in approval.hosts
            ]
        return await side_by_side(
            [self._change(command, hosts[command.host], approval) for command in commands]
        )

    async def _change(self, command: Command, host: Host, approval: Approval) -> Part:
        try:
            outcome = await self._remote.change(
                host,
                command.run,
                key=change_key(approval, command),
                limit_s=approval.limit_s,
                on_progress=self._progress(command),
            )
        except HostError as error:
            return await self._not_sent(command, error)
        if outcome.exit_status == 0 and not outcome.unknown:
            said = f"`{command.run}` on {command.host}: exit 0 after {outcome.seconds:.1f} s"
            await self._journal.milestone(MilestoneKind.CHANGE, said, MilestoneSource.RULE)
        return await self._store(command, outcome)

    async def interrupted(self, command: Command, host: Host | None, approval: Approval | None) -> Part:
        """A command whose process was interrupted: collect an approved one, call a read unknown."""
        outcome: Outcome | None = None
        note = "the bot was interrupted while it ran; I do not know whether it finished"
        if approval is not None and host is not None:
            try:
                outcome = await self._remote.collect(
                    host, key=change_key(approval, command), limit_s=approval.limit_s
                )
                if outcome is None:
                    note = "the bot was interrupted before it was sent, or its record on the host is gone"
            except HostError as error:
                note = f"the bot was interrupted while it ran, and its outcome cannot be collected: {error}"
        if outcome is not None:
            return await self._store(command, outcome)
        return await self._unknown(command, note)

    async def _stopped(self, command: Command) -> None:
        await self._unknown(command, "it was stopped while it ran")

    async def _not_sent(self, command: Command, error: HostError) -> Part:
        """The connection failed before anything was sent: known not to have run."""
        return await self._end(command, Ended(CommandState.DONE, note=str(error)))

    async def _unknown(self, command: Command, note: str) -> Part:
        return await self._end(command, Ended(CommandState.UNKNOWN, note=note))

    async def _store(self, command: Command, outcome: Outcome) -> Part:
        return await self._end(command, ended(outcome))

    async def _end(self, command: Command, end: Ended) -> Part:
        """Keep what became of it. The model reads what was kept, nothing else."""
        end = await self._ledger.finished(command, end)
        finished = replace(
            command,
            state=end.state,
            exit_status=end.exit_status,
            signal=end.signal,
            note=end.note,
            seconds=end.seconds,
        )
        return ran(finished, end.stdout, end.stderr)

    def _progress(self, command: Command) -> Progress:
        async def tell(seconds: float, size: int) -> None:
            await self._journal.show(
                CommandProgress(
                    command_id=command.id,
                    host=command.host,
                    run=command.run,
                    seconds=seconds,
                    bytes_so_far=size,
                )
            )

        return tell


def ended(outcome: Outcome) -> Ended:
    """How the executor saw it end -> how it is kept."""
    return Ended(
        state=CommandState.UNKNOWN if outcome.unknown else CommandState.DONE,
        exit_status=outcome.exit_status,
        signal=outcome.signal,
        note=outcome.unknown or ("stopped at its time limit" if outcome.timed_out else ""),
        seconds=outcome.seconds,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        stdout_bytes=outcome.stdout_bytes,
        stderr_bytes=outcome.stderr_bytes,
        truncated=outcome.truncated,
    )


async def side_by_side(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once, in their order. When one raises the others are ended, so that none goes on unwatched."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def change_key(approval: Approval, command: Command) -> str:
    """The name under which a change is kept on its host: nobody else's, whatever database it comes from."""
    return f"{approval.token}:{command.host}"
