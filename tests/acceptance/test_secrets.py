"""Made-up secrets, from a person, a host and the model: none reaches the model, Slack, the database or the log."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import text

from storage.store import Store
from tests.acceptance import processes
from tests.acceptance.conftest import Office, run
from tests.fakes.model import call, calls, say
from tests.redact.test_redactor import secrets


async def everything(store: Store) -> str:
    """Every row of every table."""
    async with store.begin() as db:
        names = await db.execute(
            text("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        )
        rows: list[str] = []
        for (name,) in names.all():
            found = await db.execute(text(f"SELECT row_to_json(t)::text FROM {name} t"))
            rows += [f"{name} {row}" for (row,) in found.all()]
    return "\n".join(rows)


def as_slack_sends(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


async def test_no_secret_goes_anywhere(office: Office, tmp_path: Path) -> None:
    cases = list(secrets())
    said = "\n".join(line for _, line in cases[0::3])
    printed = tmp_path / "printed"
    printed.write_text("\n".join(line for _, line in cases) + "\n")
    of_model = "\n".join(line for _, line in cases[1::3])
    command = next(line for secret, line in cases if line.startswith("mysql") and secret in line)
    office.env["OPENAI_API_KEY"] = "made-up-key-of-the-model"
    bot = await office.serve()
    office.model.push(
        run(f"cat {printed}"),
        calls(
            [
                call("milestone", kind="finding", text=f"seen {of_model}"),
                call("plan", steps=[{"step": of_model, "state": "todo"}], next_step=of_model),
                call("run_command", hosts=["web-1"], command=command, purpose=of_model),
                call("no_such_tool", secret=of_model),
            ],
            text=of_model,
        ),
        run(f"cat {tmp_path}/{of_model.splitlines()[0]}"),
        say(f"the end: {of_model} and made-up-key-of-the-model"),
    )
    root = await office.slack.mention("U02BOB", f"please look: {as_slack_sends(said)}")
    card = await office.card(root)
    await office.slack.click(card, "approve", "U01ALICE")
    await office.answered(root)
    named = next(secret for secret, _ in cases if secret.startswith("ghp_"))
    picture = await office.slack.mention("U02BOB", "", subtype="file_share", files=[{"name": f"{named}.png"}])
    await office.slack.until(lambda: office.slack.posts("C01OPS", picture["ts"]), what="a word on the file")
    await office.slack.mention("U02BOB", f"search {as_slack_sends(said[:300])}")
    await office.slack.slash("U02BOB", f"search {of_model[:300]}")
    await office.slack.until(lambda: bool(office.slack.responses))
    status, exported = await processes.run("sessions", "export", "1", env=office.env)
    assert status == 0
    _, post_mortem = await processes.run("sessions", "export", "1", "--markdown", env=office.env)
    assert await bot.terminate() == 0

    places = {
        "model": json.dumps(office.model.requests, ensure_ascii=False),
        "Slack": json.dumps([c.args for c in office.slack.calls], ensure_ascii=False, default=str)
        + json.dumps(office.slack.responses, ensure_ascii=False),
        "database": await everything(office.store),
        "log": bot.text(),
        "export": exported.text(),
        "post-mortem": post_mortem.text(),
    }
    for place, whole in places.items():
        assert len(whole) > 200, place
        plain = whole.replace("\\n", "\n")
        leaked = [secret for secret, _ in cases if secret in plain or json.dumps(secret)[1:-1] in plain]
        around = plain[plain.find(leaked[0]) - 300 :][:400] if leaked else ""
        assert leaked == [], f"{place}: {len(leaked)} of {len(cases)}, the first in {around!r}"
        assert "made-up-key-of-the-model" not in plain, place
    assert "[redacted:" in places["model"]
    assert "secrets do not pass through here" in places["model"]
    office.sound()
