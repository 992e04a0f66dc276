# SPDX-License-Identifier: Apache-2.0
"""One trial: a random graph, in the shape in which exporters write models, with a target and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, helper

from boundaries.variants import LOCAL, VARIANTS, Case
from fuzz.growing import Growth, dtype_of, elem_type, value_info
from fuzz.recipes import RECIPES, available, history
from oracle import opset_of

MOST_NODES = 7


@cache
def released() -> list[int]:
    """The opsets that came with a release of ONNX: there is no IR version that belongs to the others."""
    newest = onnx.defs.onnx_opset_version()
    return sorted({int(row[2]) for row in helper.VERSION_TABLE if row[2] <= newest})


@dataclass(frozen=True)
class Trial:
    """A flat model with all sizes known, the array of each of its values, what is done to it before it is converted
    (names with a seed each), where it goes, and how."""

    flat: ModelProto
    values: Mapping[str, np.ndarray]
    target: int
    disguises: tuple[tuple[str, int], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> int:
        """The opset that the model has."""
        return opset_of(self.flat)

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        """A value for every input of the flat model."""
        fixed = {tensor.name for tensor in self.flat.graph.initializer}
        return {v.name: self.values[v.name] for v in self.flat.graph.input if v.name not in fixed}

    def disguised(self) -> Case:
        """The model to convert, with a value for every input."""
        case = Case(self.flat, self.feeds, min(self.source, self.target))
        for name, seed in self.disguises:
            if name in NESTS:
                changed = _nested(case, self.values, NESTS[name], Random(seed))
            else:
                changed = VARIANTS[name](case)
            case = changed or case
        return case

    def __str__(self) -> str:
        disguises = "".join(f", {name}" for name, _ in self.disguises)
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        return f"{self.source} to {self.target}{disguises}{options}"


@dataclass
class Tally:
    """How many nodes of each operator were made, and how many could not be."""

    made: dict[str, int] = field(default_factory=dict)
    unfit: dict[str, int] = field(default_factory=dict)


def make(seed: int, tally: Tally | None = None) -> Trial | None:
    """The trial of a seed; None where no node grew."""
    random = Random(seed)
    opsets = released()
    source = random.choices(opsets, [1 if opset < 6 else 3 for opset in opsets])[0]
    target = _target(random, source, opsets)
    growth = Growth(source, random, exotic=random.random() < 0.1)
    tally = tally or Tally()
    operators = list(available(source))
    weights = [_interest(operator, source, target) for operator in operators]
    for _ in range(random.randint(1, MOST_NODES)):
        operator = random.choices(operators, weights)[0]
        try:
            growth.try_node(operator, RECIPES[operator])
        except Exception:  # noqa: BLE001 (whatever the checker and the evaluators say, the node does not fit)
            tally.unfit[operator] = tally.unfit.get(operator, 0) + 1
        else:
            tally.made[operator] = tally.made.get(operator, 0) + 1
    if not growth.nodes:
        return None
    flat, _ = growth.model()
    return Trial(flat, growth.values, target, _disguises(random), _options(random))


def _target(random: Random, source: int, opsets: list[int]) -> int:
    index = opsets.index(source)
    if random.random() < 0.3:
        return random.choice([*opsets[max(0, index - 1) : index], *opsets[index + 1 : index + 2]])
    others = [opset for opset in opsets if opset != source]
    return random.choices(others, [1 if opset < 6 else 3 for opset in others])[0]


def _interest(operator: str, source: int, target: int) -> float:
    """Operators that change on the way are tried more often, those that the target does not have less often."""
    changes = sum(min(source, target) < opset <= max(source, target) for opset in history(operator))
    absent = target < history(operator)[0]
    return (0.1 if absent else 1.0) * (3.0 if changes else 1.0)


def _disguises(random: Random) -> tuple[tuple[str, int], ...]:
    chosen = [random.choice(list(NESTS))] if random.random() < 0.3 else []
    variants = [name for name in VARIANTS if name not in ("plain", "float16", "float64")]
    chosen += random.sample(variants, random.choice([0, 1, 1, 2]))
    return tuple((name, random.getrandbits(32)) for name in chosen)


def _options(random: Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if random.random() < 0.3:
        options["types"] = "cast"
    elif random.random() < 0.2:
        options["exact"] = True
    return options


# ---- nesting: a run of nodes moves into a branch, a loop or a function


@dataclass(frozen=True)
class _Run:
    """Nodes in a row, the values that they take from outside, and those that are needed outside."""

    nodes: list[NodeProto]
    taken: list[str]
    given: list[str]
    model: ModelProto
    values: Mapping[str, np.ndarray]

    def body(self, name: str) -> GraphProto:
        """A subgraph of these nodes, with names of its own."""
        prefix = f"{name}_"
        made = {output for node in self.nodes for output in node.output if output}
        nodes = []
        for node in self.nodes:
            copy = NodeProto()
            copy.CopyFrom(node)
            for names in (copy.input, copy.output):
                names[:] = [prefix + n if n in made else n for n in names]
            copy.name = prefix + node.name
            nodes.append(copy)
        return helper.make_graph(nodes, name, [], [value_info(prefix + n, self.values[n]) for n in self.given])


Nest = Callable[[_Run, Case, Random], Case | None]


def _nested(case: Case, values: Mapping[str, np.ndarray], nest: Nest, random: Random) -> Case | None:
    """The case with a random run of its nodes replaced."""
    model = ModelProto()
    model.CopyFrom(case.model)
    nodes = list(model.graph.node)
    start = random.randrange(len(nodes))
    stop = random.randint(start + 1, len(nodes))
    inside = nodes[start:stop]
    made = {name for node in inside for name in node.output if name}
    taken = dict.fromkeys(name for node in inside for name in node.input if name and name not in made)
    wanted = {name for node in nodes[stop:] for name in node.input} | {v.name for v in model.graph.output}
    given = [name for node in inside for name in node.output if name in wanted]
    replacement = nest(_Run(inside, list(taken), given, model, values), case.with_model(model), random)
    if replacement is None:
        return None
    graph = replacement.model.graph
    new = list(graph.node)[len(nodes) :]
    kept = [helper_copy(node) for node in (*nodes[:start], *new, *nodes[stop:])]
    del graph.node[:]
    graph.node.extend(kept)
    return replacement


def helper_copy(node: NodeProto) -> NodeProto:
    """A node that lives on when its graph is emptied."""
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def in_branch(run: _Run, case: Case, random: Random) -> Case | None:
    """Both branches of an If do the same with captured values."""
    if not _carries("If", run, run.given, case):
        return None
    case.model.graph.input.append(helper.make_tensor_value_info("nest_cond", elem_type("bool"), []))
    branches = {name: run.body(name) for name in ("then_branch", "else_branch")}
    case.model.graph.node.append(helper.make_node("If", ["nest_cond"], run.given, "nest_if", **branches))
    return case.with_model(case.model, nest_cond=np.array(random.random() < 0.5))


def in_loop(run: _Run, case: Case, random: Random) -> Case | None:
    """A Loop does it once; the values that come out are carried, and start as something of the same type."""
    if not _carries("Loop", run, run.given, case):
        return None
    body = run.body("loop_body")
    cond = helper.make_node("Identity", ["loop_cond"], ["loop_go_on"], "loop_identity")
    body.node.append(cond)
    body.input.append(helper.make_tensor_value_info("loop_iteration", elem_type("int64"), []))
    body.input.append(helper.make_tensor_value_info("loop_cond", elem_type("bool"), []))
    body.input.extend(value_info(f"loop_in_{name}", run.values[name]) for name in run.given)
    results = [_copied(v) for v in body.output]
    del body.output[:]
    body.output.extend([helper.make_tensor_value_info("loop_go_on", elem_type("bool"), []), *results])
    graph = case.model.graph
    graph.input.append(helper.make_tensor_value_info("nest_trips", elem_type("int64"), []))
    graph.input.append(helper.make_tensor_value_info("nest_cond", elem_type("bool"), []))
    graph.input.extend(value_info(f"nest_start_{name}", run.values[name]) for name in run.given)
    starts = {f"nest_start_{name}": np.zeros_like(run.values[name]) for name in run.given}
    inputs = ["nest_trips", "nest_cond", *starts]  # without a condition the reference does not loop at all
    graph.node.append(helper.make_node("Loop", inputs, run.given, "nest_loop", body=body))
    return case.with_model(case.model, nest_trips=np.array(1, np.int64), nest_cond=np.array(True), **starts)


def in_function(run: _Run, case: Case, random: Random) -> Case | None:
    """A local function does it."""
    model = case.model
    model.ir_version = max(model.ir_version, 8)
    fixed = {tensor.name for tensor in model.graph.initializer}
    free = [_copied(value) for value in model.graph.input if value.name not in fixed]
    del model.graph.input[:]
    model.graph.input.extend(free)  # only below IR version 4 do initializers have to be inputs, too
    imports = [helper.make_opsetid("", opset_of(model))]
    model.functions.append(helper.make_function(LOCAL, "Nested", run.taken, run.given, run.nodes, imports))
    model.opset_import.append(helper.make_opsetid(LOCAL, 1))
    model.graph.node.append(helper.make_node("Nested", run.taken, run.given, "nest_call", domain=LOCAL))
    return case


NESTS: dict[str, Nest] = {"in_branch": in_branch, "in_loop": in_loop, "in_function": in_function}


def _carries(operator: str, run: _Run, names: list[str], case: Case) -> bool:
    """Whether values can leave the operator at this opset."""
    types = onnx.defs.get_schema(operator, opset_of(case.model), "").outputs[0].types
    return bool(names) and all(f"tensor({dtype_of(run.values[name])})" in types for name in names)


def _copied(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    return copy


def with_target(trial: Trial, target: int) -> Trial:
    """The same trial to another opset."""
    return replace(trial, target=target)
