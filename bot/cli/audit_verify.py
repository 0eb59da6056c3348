"""`audit verify`: walks the chain of the database or of an exported file; exit 0 whole, 1 broken."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from bot import settings
from bot.audit.signing import Signer, is_public_key
from bot.audit.verify import Report, verify_lines, verify_store
from bot.cli import printing
from bot.cli.database import with_store
from bot.errors import UsageError
from bot.settings import Settings
from storage.store import Store

TELL_EVERY = 100_000  # rows


def register(app: typer.Typer) -> None:
    """Add the command to `audit`."""
    app.command("verify")(verify)


def verify(
    file: str = typer.Option("", "--file", help="an export instead of the database; - reads stdin"),
    key: list[str] = typer.Option(  # noqa: B008
        [], "--key", help="a public key (ed25519:…) that heads may be signed with; may be repeated"
    ),
    as_json: bool = typer.Option(False, "--json", help="one JSON object"),
) -> None:
    """Walk the chain and name the first broken link; exit 0 if it is whole, 1 if it is broken."""
    values = settings.load()
    keys = _keys(values, key)
    report = _of_file(file, keys) if file else _of_database(values, keys)
    if as_json:
        printing.json_lines([_record(report)])
    else:
        printing.say("\n".join(_words(report, sink=values.audit_sink is not None or bool(file))))
    raise typer.Exit(1 if report.fault else 0)


def _keys(values: Settings, named: Iterable[str]) -> frozenset[str]:
    for key in named:
        if not is_public_key(key):
            raise UsageError(
                f"--key {key}: it is a public key as `opsthread audit verify` shows it, ed25519:…"
            )
    own = [Signer(values.secret_key.get_secret_value()).public] if values.secret_key else []
    return frozenset([*own, *named])


def _of_database(values: Settings, keys: frozenset[str]) -> Report:
    async def work(store: Store) -> Report:
        return await verify_store(store, keys=keys, sink=values.audit_sink, progress=_progress())

    return with_store(work)


def _of_file(name: str, keys: frozenset[str]) -> Report:
    try:
        if name == "-":
            sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
            return verify_lines(sys.stdin, keys=keys, progress=_progress())
        with Path(name).open(encoding="utf-8", newline="\n") as lines:
            return verify_lines(lines, keys=keys, progress=_progress())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--file {name} cannot be read ({error}); it is what `opsthread audit export` printed"
        ) from None


def _progress() -> Callable[[int], None]:
    told = 0

    def tell(rows: int) -> None:
        nonlocal told
        if rows - told >= TELL_EVERY:
            told = rows
            print(f"{rows:,} rows verified so far", file=sys.stderr)

    return tell


def _record(report: Report) -> dict[str, Any]:
    return {
        "whole": report.fault is None,
        "rows": report.rows,
        "link": report.link,
        "hash": report.hash,
        "erased": report.erased,
        "unsealed": report.unsealed,
        "unsealed_since": report.unsealed_since,
        "head": asdict(report.head) if report.head else None,
        "signature": report.signature,
        "sources": list(report.sources),
        "unreadable": report.unreadable,
        "fault": asdict(report.fault) if report.fault else None,
    }


def _words(report: Report, *, sink: bool) -> list[str]:
    fault = report.fault
    told = [f"BROKEN at link {fault.link} ({fault.kind}): {fault.what}"] if fault else ["The chain is whole."]
    sound = f"sound before it: {report.rows} rows" if fault else f"rows: {report.rows}"
    told.append(f"{sound}, the last is link {report.link}, {report.erased} with erased payload")
    if report.unsealed:
        told.append(f"not sealed yet: {report.unsealed} rows, the oldest of {report.unsealed_since}")
    told.append(_head_words(report))
    if report.unreadable:
        told.append(f"lines of the sink that are no heads: {report.unreadable}")
    if not sink:
        told.append(
            "no sink is set (OPSTHREAD_AUDIT_SINK): what was changed together with its heads would not show"
        )
    return told


def _head_words(report: Report) -> str:
    if report.head is None:
        return f"heads: none that agrees (looked in {', '.join(report.sources)})"
    head = report.head
    how = {
        "valid": f"signature valid, {head.key}",
        "unchecked": f"signature of {head.key}, whose key that is was not checked:"
        " set OPSTHREAD_SECRET_KEY or give --key",
        "unsigned": "not signed: OPSTHREAD_SECRET_KEY was not set when it was written",
    }[report.signature]
    behind = report.link - head.link
    newer = f"; {behind} newer links are not vouched for" if behind else ""
    return f"head: link {head.link} of {head.at} ({how}){newer}; looked in {', '.join(report.sources)}"
