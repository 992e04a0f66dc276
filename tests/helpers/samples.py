# SPDX-License-Identifier: Apache-2.0
"""Writes the models with which `--explain` draws rewrites: one for each crossing, from the rows of the families.

`python tests/helpers/samples.py` writes `converter/reference/samples.json` anew. Of the rows that a crossing rewrites,
the simplest are tried, and the first is taken that becomes a few nodes: a picture tells most of those.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "helpers")]

from boundaries import REWRITES, Row  # noqa: E402
from boundaries.tables import rows  # noqa: E402
from onnx_convert.reference.samples import drawn_from  # noqa: E402
from onnx_convert.rewrite import registry  # noqa: E402
from onnx_convert.rewrite.registry import Adapter  # noqa: E402
from onnx_convert.spec import opsets  # noqa: E402

LONGEST = 600  # letters of a graph
TRIED = 12  # rows for a crossing
FEW = range(2, 7)  # nodes that one becomes
FILE = ROOT / "converter" / "reference" / "samples.json"


def crossings(row: Row) -> list[str]:
    """Returns the crossings of the nodes of a row that adapters make: `Softmax@13 down`."""
    return [
        f"{operator}@{boundary} {direction}"
        for operator in {node.op_type for node in row.model.graph.node}
        for boundary, direction in opsets.crossings(operator, row.source, row.target)
        if isinstance(registry.decision(operator, boundary, direction), Adapter)
    ]


def cost(row: Row) -> tuple[int, int, int]:
    """Returns how far from simple a row is: opsets crossed, nodes, letters."""
    return abs(row.source - row.target), len(row.model.graph.node), len(row.graph)


def samples() -> dict[str, list[int | str]]:
    """Returns the opsets from and to and the graph, by crossing."""
    usable = sorted((row for row in rows() if row.outcome == REWRITES and not row.options), key=cost)
    candidates: dict[str, list[tuple[int, int, str]]] = {}
    for row in usable:
        if max(row.source, row.target) <= opsets.latest() and len(row.graph) <= LONGEST:
            for crossing in crossings(row):
                candidates.setdefault(crossing, []).append((row.source, row.target, " ".join(row.graph.split())))
    found: dict[str, list[int | str]] = {}
    for crossing, models in sorted(candidates.items()):
        shown = [(model, example) for model in models[:TRIED] if (example := drawn_from(crossing, *model)) is not None]
        if shown:
            telling = [model for model, example in shown if len(example.after.nodes) in FEW]
            found[crossing] = list(telling[0] if telling else shown[0][0])
    return found


def text(found: dict[str, list[int | str]]) -> str:
    """Returns samples as the file has them, a line each."""
    lines = [f"  {json.dumps(crossing)}: {json.dumps(sample)}" for crossing, sample in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(samples()), encoding="utf-8")
