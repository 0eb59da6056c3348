"""The tables of README that follow from the code; `python -m tests.docs_tables` writes them into README.md."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer
from pydantic.fields import FieldInfo

from bot.cli.main import COMMANDS, app, load
from bot.settings import Settings, variable

ROOT = Path(__file__).parents[1]


def default(field: FieldInfo) -> str:
    return "" if field.default is None else str(field.default)


def settings_table() -> str:
    rows = ["| name | default | what it is |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        value = f"`{default(field)}`" if default(field) else ""
        rows.append(f"| `{variable(name)}` | {value} | {field.description} |")
    return "\n".join(rows)


@cache
def command_paths() -> frozenset[str]:
    return frozenset(path for path, _ in _commands())


def commands_table() -> str:
    rows = ["| command | what it does |", "|---|---|"]
    rows += [f"| `{_usage(path, command)}` | {_says(command)} |" for path, command in _commands()]
    return "\n".join(rows)


def section(text: str, name: str) -> str:
    return text.split(f"<!-- {name} -->", 1)[1].split(f"<!-- /{name} -->", 1)[0].strip()


def with_section(text: str, name: str, table: str) -> str:
    before, rest = text.split(f"<!-- {name} -->", 1)
    _, after = rest.split(f"<!-- /{name} -->", 1)
    return f"{before}<!-- {name} -->\n{table}\n<!-- /{name} -->{after}"


def _commands() -> Iterator[tuple[str, Any]]:
    def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
        children = getattr(command, "commands", None)
        if children is None:
            yield path, command
            return
        # Not in the order of registration, which hangs on what was called for before.
        for name in sorted(children, key=list(COMMANDS).index) if not path else children:
            child = children[name]
            if not child.hidden:
                yield from walk(f"{path} {name}".strip(), child)

    load()
    yield from walk("", typer.main.get_command(app))


def _usage(path: str, command: Any) -> str:
    words = [path]
    for param in command.params:
        if param.param_type_name == "argument":
            name = str(param.name).upper()
            words.append(name if param.required else f"[{name}]")
        elif not getattr(param, "hidden", False):
            words.append(_option(param))
    return " ".join(words)


def _option(param: Any) -> str:
    text = max(param.opts, key=len)
    if not getattr(param, "is_flag", False):
        number = param.type_descriptor.annotation is int
        text += " N" if number else " " + text.lstrip("-").upper().replace("-", "_")
    return text if param.required else f"[{text}]"


def _says(command: Any) -> str:
    first = (command.help or "").strip().split("\n\n", 1)[0]
    return " ".join(first.split()).replace("|", "\\|")


def main() -> None:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    text = with_section(text, "settings", settings_table())
    readme.write_text(with_section(text, "commands", commands_table()), encoding="utf-8")


if __name__ == "__main__":
    main()
