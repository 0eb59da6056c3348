"""`kubectl version -o json` and `-o yaml`: two documents of one shape, read only when every line is of that shape."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.facts.reading import KUBERNETES, Reading, Source, software, source

_PARTS = {"clientVersion": "kubectl", "serverVersion": "kubernetes"}
_OPENS = re.compile(r'(?:  )?"?(clientVersion|serverVersion)"?: ?\{?')
_FIELD = re.compile(r'(?:  |    )"?([A-Za-z]{1,30})"?: "?([\w.:+ /-]{1,80})"?,?')
_CLOSES = re.compile(r' {0,4}[{}],?|(?:  )?"?kustomizeVersion"?: "?[\w.+-]{1,80}"?,?')


def _document(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    found: list[Reading] = []
    part = ""
    for line in lines:
        if hit := _OPENS.fullmatch(line):
            part = _PARTS[hit[1]]
        elif _CLOSES.fullmatch(line) or not line:
            part = part if line.strip() in ("{", "") else ""
        elif part and (hit := _FIELD.fullmatch(line)):
            if hit[1] == "gitVersion" and (version := re.fullmatch(rf"v({KUBERNETES})", hit[2])):
                found.append(software(part, version[1]))
        else:
            return
    yield from found


CLUSTER_VERSIONS: tuple[Source, ...] = (
    source(r"kubectl version(?: --client(?:=true)?)?(?: -o ?| --output[= ])(?:json|yaml)", _document),
)
