"""The documents hold together: links lead somewhere, and the tone is plain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs_tables import command_paths

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
_NAMED = re.compile(r"`((?:bot|storage|tests|docs)/[\w/.-]+)`")


def prose(page: Path) -> str:
    return _CODE.sub("", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    lost = [link for link in _LINK.findall(prose(page)) if not (page.parent / link).exists()]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in _NAMED.findall(text) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name
)
def test_every_command_that_is_named_exists(page: Path) -> None:
    named = re.findall(
        r"opsthread ([a-z]+(?: [a-z]+)?)", "\n".join(_CODE.findall(page.read_text(encoding="utf-8")))
    )
    known = command_paths()
    assert [words for words in named if words not in known and words.split()[0] not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_raises_its_voice(page: Path) -> None:
    assert "!" not in prose(page).replace("<!--", "")
