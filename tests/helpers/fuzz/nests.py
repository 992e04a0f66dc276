# SPDX-License-Identifier: Apache-2.0
"""Puts some nodes of a flat graph where exporters put them: into a branch, a loop or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, helper

from boundaries.variants import LOCAL, Case
from fuzz.growing import copied, dtype_of, elem_type, value_info
from oracle import opset_of


@dataclass(frozen=True)
class Run:
    """Nodes in a row, the values that they take from outside, and those that are needed outside; the model, for what
    has to be added to it, and the array of every value."""

    nodes: list[NodeProto]
    taken: list[str]
    given: list[str]
    model: ModelProto
    values: Mapping[str, np.ndarray]

    def body(self, name: str) -> GraphProto:
        """Returns a subgraph of these nodes, with names of its own, that captures what it takes."""
        prefix = f"{name}_"
        made = {output for node in self.nodes for output in node.output if output}
        nodes = [copied(node) for node in self.nodes]
        for node in nodes:
            node.name = prefix + node.name
            for names in (node.input, node.output):
                names[:] = [prefix + n if n in made else n for n in names]
        return helper.make_graph(nodes, name, [], [value_info(prefix + n, self.values[n]) for n in self.given])

    def leaves(self, operator: str) -> bool:
        """Tells whether the values that are needed outside can come out of this operator."""
        types = onnx.defs.get_schema(operator, opset_of(self.model), "").outputs[0].types
        return bool(self.given) and all(f"tensor({dtype_of(self.values[name])})" in types for name in self.given)


# Makes one node of a run, and values for the inputs that it adds to the model; None if that cannot be.
Nest = Callable[[Run, Random], tuple[NodeProto, dict[str, Any]] | None]


def nest(case: Case, values: Mapping[str, np.ndarray], how: Nest, random: Random) -> Case | None:
    """Returns the case with a random run of its nodes replaced by one node; None if that cannot be."""
    model = copied(case.model)
    nodes = [copied(node) for node in model.graph.node]
    start = random.randrange(len(nodes))
    stop = random.randint(start + 1, len(nodes))
    inside, after = nodes[start:stop], nodes[stop:]
    made = {name for node in inside for name in node.output if name}
    taken = dict.fromkeys(name for node in inside for name in node.input if name and name not in made)
    wanted = {name for node in after for name in node.input} | {value.name for value in model.graph.output}
    given = [name for node in inside for name in node.output if name in wanted]
    nested = how(Run(inside, list(taken), given, model, values), random)
    if nested is None:
        return None
    node, feeds = nested
    del model.graph.node[:]
    model.graph.node.extend([*nodes[:start], node, *after])
    return case.with_model(model, **feeds)


def in_branch(run: Run, random: Random) -> tuple[NodeProto, dict[str, Any]] | None:
    """Both branches of an If do the same."""
    if not run.leaves("If"):
        return None
    run.model.graph.input.append(helper.make_tensor_value_info("nest_cond", elem_type("bool"), []))
    branches = {name: run.body(name) for name in ("then_branch", "else_branch")}
    node = helper.make_node("If", ["nest_cond"], run.given, "nest_if", **branches)
    return node, {"nest_cond": np.array(random.random() < 0.5)}


def in_loop(run: Run, random: Random) -> tuple[NodeProto, dict[str, Any]] | None:
    """A Loop does it, perhaps several times; what comes out is carried, and starts as something of the same type."""
    if not run.leaves("Loop"):
        return None
    body = run.body("loop_body")
    body.node.append(helper.make_node("Identity", ["loop_cond"], ["loop_go_on"], "loop_identity"))
    results = [copied(value) for value in body.output]
    del body.output[:]
    body.output.extend([helper.make_tensor_value_info("loop_go_on", elem_type("bool"), []), *results])
    starts = {f"nest_start_{name}": np.zeros_like(run.values[name]) for name in run.given}
    for graph, counter, condition, carried in (
        (body, "loop_iteration", "loop_cond", "loop_in"),
        (run.model.graph, "nest_trips", "nest_cond", "nest_start"),
    ):
        graph.input.append(helper.make_tensor_value_info(counter, elem_type("int64"), []))
        graph.input.append(helper.make_tensor_value_info(condition, elem_type("bool"), []))
        graph.input.extend(value_info(f"{carried}_{name}", run.values[name]) for name in run.given)
    inputs = ["nest_trips", "nest_cond", *starts]  # without a condition the reference does not loop at all
    node = helper.make_node("Loop", inputs, run.given, "nest_loop", body=body)
    trips = np.array(random.randint(1, 3), np.int64)
    return node, {"nest_trips": trips, "nest_cond": np.array(True), **starts}


def in_function(run: Run, random: Random) -> tuple[NodeProto, dict[str, Any]]:
    """A local function does it."""
    model = run.model
    if model.ir_version < 4:  # from there on initializers do not have to be inputs, too
        fixed = {tensor.name for tensor in model.graph.initializer}
        free = [copied(value) for value in model.graph.input if value.name not in fixed]
        del model.graph.input[:]
        model.graph.input.extend(free)
    model.ir_version = max(model.ir_version, 8)
    imports = [helper.make_opsetid("", opset_of(model))]
    model.functions.append(helper.make_function(LOCAL, "Nested", run.taken, run.given, run.nodes, imports))
    model.opset_import.append(helper.make_opsetid(LOCAL, 1))
    return helper.make_node("Nested", run.taken, run.given, "nest_call", domain=LOCAL), {}


NESTS: dict[str, Nest] = {"in_branch": in_branch, "in_loop": in_loop, "in_function": in_function}
