# SPDX-License-Identifier: Apache-2.0
"""Makes a trial small: whatever can go without losing the failure goes, one thing at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from onnx import NodeProto

from fuzz.growing import assemble, copied
from fuzz.trials import Trial, released


def shrink(trial: Trial, fails: Callable[[Trial], bool], patience: int = 400) -> Trial:
    """Returns a smaller trial that fails, too; `patience` bounds how many are tried."""
    found = True
    while found:
        found = False
        for smaller in _smaller(trial):
            patience -= 1
            if patience < 0:
                return trial
            if fails(smaller):
                trial, found = smaller, True
                break
    return trial


def _smaller(trial: Trial) -> Iterator[Trial]:
    nodes = list(trial.flat.graph.node)
    if len(nodes) > 1:
        for node in nodes:  # all but one node, that node alone
            yield with_nodes(trial, [node])
        for node in nodes:
            yield with_nodes(trial, [other for other in nodes if other is not node])
    for i in range(len(trial.disguises)):
        yield replace(trial, disguises=trial.disguises[:i] + trial.disguises[i + 1 :])
    for key in trial.options:
        yield replace(trial, options={k: v for k, v in trial.options.items() if k != key})
    opsets = released()
    here, there = opsets.index(trial.source), opsets.index(trial.target)
    for target in opsets[here + 1 : there] or opsets[there + 1 : here][::-1]:
        yield replace(trial, target=target)
    for node in nodes:
        for i in range(len(node.attribute)):
            copy = copied(node)
            del copy.attribute[i]
            yield with_nodes(trial, [copy if other is node else other for other in nodes])


def with_nodes(trial: Trial, nodes: Iterable[NodeProto]) -> Trial:
    """Returns the trial with these nodes; what they need and none of them makes becomes an input."""
    nodes = list(nodes)
    fixed = {tensor.name for tensor in trial.flat.graph.initializer}
    read = {name for node in nodes for name in node.input}
    made = [name for node in nodes for name in node.output if name]
    kept = {value.name for value in trial.flat.graph.output}
    outputs = [name for name in made if name not in read or name in kept]
    flat, _ = assemble(nodes, trial.values, fixed, outputs, trial.source)
    return replace(trial, flat=flat)
