"""YAML for people: every value keeps its line, a doubled key is a fault, and `*.example.com` is just text.

Anchors and aliases do not exist in this dialect, so a leading `*` needs no quotes and no file can blow up.
Plain values stay text as written (`1.10`, `no`, `007`); pydantic gives them their type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

Loc = tuple[str | int, ...]
EMPTY = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class MarkedYaml:
    """The value, the line of every part of it (from 1), and what was wrong with the text itself."""

    value: Any
    lines: dict[Loc, int]
    faults: tuple[tuple[int, str], ...]

    def line(self, loc: Loc) -> int:
        """The line of this part, or of the nearest part around it."""
        for end in range(len(loc), 0, -1):
            if loc[:end] in self.lines:
                return self.lines[loc[:end]]
        return self.lines.get((), 1)


class _Loader(yaml.SafeLoader):
    """SafeLoader whose scanner reads a leading `*` as text instead of as an alias."""

    def fetch_alias(self) -> None:
        self.fetch_plain()


def read(text: str) -> MarkedYaml:
    """Never raises: a text that is not YAML comes back as a fault."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return MarkedYaml(None, {}, ((mark.line + 1 if mark else 1, f"is not YAML: {error.problem}"),))
    except (yaml.YAMLError, RecursionError) as error:
        return MarkedYaml(None, {}, ((1, f"is not YAML: {str(error).splitlines()[0][:120]}"),))
    finally:
        loader.dispose()
    reader = _Reader()
    value = {} if node is None else reader.value(node, ())
    return MarkedYaml(value, reader.lines, tuple(reader.faults))


class _Reader:
    """Turns the tree of nodes into plain values and notes lines and faults on the way."""

    def __init__(self) -> None:
        self.lines: dict[Loc, int] = {}
        self.faults: list[tuple[int, str]] = []

    def value(self, node: yaml.Node, loc: Loc) -> Any:
        self.lines.setdefault(loc, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, loc)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*loc, n)) for n, item in enumerate(node.value)]
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        return None if plain and node.value in EMPTY else node.value

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.faults.append((line, "a key must be a single word"))
            elif key.value in found:
                first = self.lines[(*loc, key.value)]
                self.faults.append((line, f"{key.value} is already given in line {first}"))
            else:
                self.lines[(*loc, key.value)] = line
                found[key.value] = self.value(value, (*loc, key.value))
        return found
