"""Container engines and clusters: their drivers, the containers with their images, the nodes with their versions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.facts.reading import KUBERNETES, Reading, Source, by_line, environment, source

MOST_ROWS = 50
_IMAGE = r"[a-z0-9][\w./-]{0,120}(?::[\w.-]{1,60})?(?:@sha256:[0-9a-f]{12,64})?"


def _container(name: str, image: str) -> Reading | None:
    if not re.fullmatch(r"[\w.-]{1,80}", name) or not re.fullmatch(_IMAGE, image):
        return None
    return environment(f"container {name}", image, f"the container {name} runs the image {image}")


def _containers(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    """`docker ps`: which image each running container was made from. The columns stand two spaces apart."""
    if not lines or not lines[0].startswith("CONTAINER ID"):
        return
    for line in lines[1:MOST_ROWS]:
        cells = re.split(r" {2,}", line.strip()[:400])
        if len(cells) >= 5 and (found := _container(cells[-1], cells[1])):
            yield found


_COLUMN = re.compile(r"\{\{ ?\.([A-Za-z]{2,20}) ?\}\}")


def _chosen_columns(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    """`docker ps --format`: the template says which column is which. Others than tabs may stand in a value."""
    columns = _COLUMN.findall(command[2])
    between = _COLUMN.split(command[2])[::2]
    if not {"Names", "Image"} <= {*columns} or {*between[1:-1]} - {r"\t", "\t"} or between[0] or between[-1]:
        return
    name, image = columns.index("Names"), columns.index("Image")
    for line in lines[1:MOST_ROWS] if command[1] else lines[:MOST_ROWS]:
        cells = re.split(r" {3,}", line) if command[1] else line.split("\t")
        if len(cells) == len(columns) and (found := _container(cells[name], cells[image])):
            yield found


def _nodes(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    """`kubectl get nodes`: how many there are, and their kubelets' versions."""
    header = next(
        (at for at, line in enumerate(lines) if re.match(r"NAME +STATUS +ROLES +AGE +VERSION", line)), None
    )
    if header is None:
        return
    row = re.compile(
        rf"([a-z0-9][\w.-]{{0,100}}) +\S{{2,60}} +\S{{1,80}} +\S{{1,20}} +v({KUBERNETES})(?: |$)"
    )
    rows = [(hit[1], hit[2]) for line in lines[header + 1 :] if (hit := row.match(line))]
    if rows:
        yield environment(
            "kubernetes node count", str(len(rows)), f"the kubernetes cluster has {len(rows)} nodes"
        )
    for name, version in rows[:MOST_ROWS]:
        yield environment(
            f"kubernetes version of node {name}",
            version,
            f"the kubernetes node {name} runs version {version}",
        )


def _releases(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    """`helm list`: the chart of each release."""
    for line in lines[:MOST_ROWS]:
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < 6 or not cells[2].isdigit() or not re.fullmatch(r"[\w.+-]{3,80}", cells[5]):
            continue
        if re.fullmatch(r"[\w.-]{1,60}", cells[0]) and re.fullmatch(r"[\w-]{1,60}", cells[1]):
            what = f"helm release {cells[1]}/{cells[0]}"
            yield environment(what, cells[5], f"the {what} is of chart {cells[5]}")


CONTAINERS: tuple[Source, ...] = (
    source(r"docker info", by_line(
        ("docker storage driver", r" {0,3}Storage Driver: ([a-z0-9]{3,20})", ""),
        ("docker cgroup driver", r" {0,3}Cgroup Driver: ([a-z]{3,20})", ""),
        ("docker default runtime", r" {0,3}Default Runtime: ([a-z0-9.-]{3,30})", ""),
        ("docker root directory", r" {0,3}Docker Root Dir: (/[\w./-]{1,80})", ""),
        ("operating system", r" {0,3}Operating System: ([A-Za-z][\w .,()/:+-]{1,80})", ""),
        ("kernel", r" {0,3}Kernel Version: ([0-9][\w.+~-]{3,60})", ""),
        ("CPU count", r" {0,3}CPUs: ([0-9]{1,4})$", ""),
        ("memory size", r" {0,3}Total Memory: ([0-9.]{1,9}[KMGT]iB)", ""))),
    source(r"(?:docker|podman|nerdctl) (?:ps|container ls)(?: -a| --no-trunc){0,2}", _containers),
    source(r"(?:docker|podman|nerdctl) (?:ps|container ls)(?: -a)? --format[ =](table )?(.{1,200})", _chosen_columns),
    source(r"kubectl get (?:nodes?|no)(?: -o wide| -owide)?", _nodes),
    source(r"kubectl config current-context", by_line(("kubernetes context", r"([\w.@:/-]{1,120})$", "")), bare=True),
    source(r"kubectl cluster-info", by_line(
        ("kubernetes control plane", r"Kubernetes (?:control plane|master) is running at (https?://[\w.:/-]{1,120})", ""))),
    source(r"helm (?:list|ls)(?: .{0,60})?", _releases),
)  # fmt: skip
