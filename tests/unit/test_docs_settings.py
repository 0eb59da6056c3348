"""README, docs/configuration.md and .env.example say exactly what Settings takes and the program offers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from bot.settings import Settings, variable
from tests.docs_tables import commands_table, default, section, settings_table

ROOT = Path(__file__).parents[2]


def bounds(field: FieldInfo) -> str:
    low: Any = next((m.ge for m in field.metadata if isinstance(m, Ge)), None)
    high: Any = next((m.le for m in field.metadata if isinstance(m, Le)), None)
    if low is None:
        return ""
    return f"{low} to {high}" if high is not None else f"at least {low}"


@pytest.mark.parametrize(("name", "table"), [("settings", settings_table), ("commands", commands_table)])
def test_the_readme_holds_the_tables_of_the_code(name: str, table: Callable[[], str]) -> None:
    """When this fails: python -m tests.docs_tables."""
    assert section((ROOT / "README.md").read_text(encoding="utf-8"), name) == table()


def test_configuration_md_explains_every_setting_with_its_default_and_bounds() -> None:
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (.*) \|$", text, re.MULTILINE))
    assert set(rows) == {variable(name) for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        shown_default, shown_bounds, words = rows[variable(name)].split(" | ", 2)
        assert shown_default.strip("`").strip() == default(field), variable(name)
        assert shown_bounds.strip() == bounds(field), variable(name)
        assert len(words) > 20, variable(name)


def test_env_example_names_every_setting_and_sets_none() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    given = dict(re.findall(r"^#([A-Z_]+)=(.*)$", text, re.MULTILINE))
    assert given == {variable(name): default(field) for name, field in Settings.model_fields.items()}
    assert not re.search(r"^[^#\n]", text, re.MULTILINE)


@pytest.mark.parametrize("field", Settings.model_fields.values())
def test_every_setting_has_a_description_without_a_table_break(field: FieldInfo) -> None:
    assert field.description
    assert "|" not in field.description
