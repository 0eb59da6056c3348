"""A hosts.yml that was read anew, or refused, is in the audit log."""

from __future__ import annotations

from pathlib import Path

from bot.audit.reloads import inventory_reloads
from bot.ssh.inventory import LiveInventory
from storage import audit
from storage.store import Store

HOSTS = "defaults: {user: opsbot, known_hosts: known, identity: [hosts.yml]}\nhosts:\n- {name: web-1, address: 10.0.0.11}\n"


async def test_each_outcome_of_a_reload_is_an_event(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text(HOSTS)
    live = LiveInventory(path, inventory_reloads(store, path))
    path.write_text("hosts: 5\n")
    assert not await live.reload()
    path.write_text(HOSTS.replace("web-1", "web-2"))
    assert await live.reload()
    async with store.begin() as db:
        refused, reloaded = reversed(await audit.list_(db))
    assert (refused.event, reloaded.event) == ("inventory.refused", "inventory.reloaded")
    assert "hosts.yml:1: hosts" in refused.detail["note"]
    assert reloaded.detail == {"path": str(path)}
    assert reloaded.person == "opsthread"


async def test_a_database_that_is_away_keeps_no_change_back(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text(HOSTS)
    away = Store("postgresql://nobody@127.0.0.1:1/none")
    live = LiveInventory(path, inventory_reloads(away, path))
    path.write_text(HOSTS.replace("web-1", "web-2"))
    assert await live.reload()
    assert live.current.for_team("").hosts[0].name == "web-2"
    await away.close()
