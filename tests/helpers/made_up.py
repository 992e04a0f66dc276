# SPDX-License-Identifier: Apache-2.0
"""Operators of a made-up domain, so that each situation can be had at will: a chain of rewrites, a bug, a refusal.

Whoever imports this module registers their adapters.
"""

from __future__ import annotations

from onnx import ModelProto
from texts import model, with_names

import onnx_convert
from onnx_convert.rewrite import registry

OWN = "org.engine"


@registry.upgrade("Walker", at=2, domain=OWN)
@registry.upgrade("Walker", at=3, domain=OWN)
def step_up(node, op):
    """Writes down where it has been."""
    return op.same(path=[*(node.attr("path") or []), node.opset])


@registry.downgrade("Walker", at=3, domain=OWN)
@registry.downgrade("Walker", at=2, domain=OWN)
def step_down(node, op):
    """Writes down where it has been."""
    return op.same(path=[*(node.attr("path") or []), node.opset])


@registry.upgrade("Turning", at=2, domain=OWN)
def back_again(node, op):
    """Writes itself for the opset that it came from."""
    return op.node("Turning", *node.inputs, at=1, domain=OWN)[0]


@registry.upgrade("Broken", at=2, domain=OWN)
def divide(node, op):
    """Has a bug."""
    return op.same(path=[1 // 0])


@registry.upgrade("Wrong", at=2, domain=OWN)
def change_the_rank(node, op):
    """Has a bug that only inference notices."""
    return op.at(13).Unsqueeze(node.input(0), op.const([0]))


@registry.upgrade("Rounded", at=2, domain=OWN)
def round_otherwise(node, op):
    """The same mathematics."""
    op.equivalent("the sum is taken in another order")
    return op.same()


@registry.upgrade("Guessed", at=2, domain=OWN)
def hope(node, op):
    """Right if all goes well."""
    op.conditional("no element is negative")
    return op.same()


@registry.upgrade("Counted", at=2, domain=OWN)
def count_a_text(node, op):
    """Reads an attribute that may be long."""
    return op.same(size=len(node.attr("text")), last=node.attr("texts")[-1][-3:])


registry.impossible("Stuck", at=2, direction="up", domain=OWN, reason="nobody knows how", remedy="stay at version 1")


def own(operator: str, version: int = 1, graph: str = "") -> ModelProto:
    """Returns a model of one node of this domain, or of a graph with nodes of it."""
    graph = graph or f"(float[2] x) => (float[2] y) {{ y = org.engine.{operator} (x) }}"
    return with_names(model(graph, 17, org_engine=version))


def steps(report: onnx_convert.Report) -> list[tuple[str, int, str]]:
    """Returns the crossings that a report tells, as (operator, boundary, direction)."""
    return [(step.operator, step.boundary, step.direction) for step in report.steps]
