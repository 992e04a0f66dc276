# SPDX-License-Identifier: Apache-2.0
"""What changed is told of each node, and found out once for a rewrite and its replays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from onnx import NodeProto
from texts import model

import onnx_convert
from onnx_convert.planning import changes


def test_a_rewrite_and_its_replays_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """New nodes are serialised, and thousands of them need not be parsed for a report."""
    looked_at: list[str] = []
    outcome = changes.outcome_of

    def noting(source: NodeProto, new: Sequence[NodeProto]) -> tuple[str, ...] | None:
        looked_at.append(source.output[0])
        return outcome(source, new)

    monkeypatch.setattr(changes, "outcome_of", noting)
    nodes = [f"x{i + 1} = {('Softmax<axis=1>', 'LogSoftmax<axis=1>')[i % 2]}(x{i})" for i in range(20)]
    graph = f"(float[2,3,4] x0) => (float[2,3,4] x20) {{ {' '.join(nodes)} }}"
    report = onnx_convert.convert(model(graph, 12), to=13).report
    assert looked_at == ["x1", "x2"]
    assert [(change.operator, len(change.became)) for change in report.changes] == [("Softmax", 3), ("LogSoftmax", 3)]
    assert [change.nodes for change in report.changes] == [
        tuple(f"x{i}" for i in range(start, 21, 2)) for start in (1, 2)
    ]
    assert sorted(report.steps.values()) == [10, 10]


def test_what_a_replay_leaves_equal_is_no_change() -> None:
    """An upgrade that has nothing to say about a node, many times."""
    nodes = [f"x{i + 1} = Softmax<axis=-1>(x{i})" for i in range(5)]
    graph = f"(float[2,3,4] x0) => (float[2,3,4] x5) {{ {' '.join(nodes)} }}"
    report = onnx_convert.convert(model(graph, 12), to=13).report
    assert (report.nodes_changed, report.nodes_kept, report.changes) == (0, 5, [])
