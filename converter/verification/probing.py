# SPDX-License-Identifier: Apache-2.0
"""Runs rewritten nodes of subgraphs and functions alone, on numbers of their own: no output shows a branch that is not
taken, and no value of it can be looked at from outside.

That is only done where any numbers will do: of floats, and of what a node hands on as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy
from onnx import ModelProto, NodeProto, TensorProto, helper

from onnx_convert.analysis import view
from onnx_convert.analysis.onnx_inference import infer
from onnx_convert.model.graphs import every_node, name_of, plain, subgraphs, used_names
from onnx_convert.model.tensors import tensor_of
from onnx_convert.verification.bundle import around
from onnx_convert.verification.comparison import is_float
from onnx_convert.verification.evaluators import LacksError, RunError
from onnx_convert.verification.subjects import Subject
from onnx_convert.verification.uses import PASSES
from onnx_convert.verification.values import random_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import FunctionProto, GraphProto, TypeProto

    from onnx_convert.verification.judging import Judge
    from onnx_convert.verification.structure import Inner

    Body = GraphProto | FunctionProto

_MOST: Final = 256  # nodes that are run alone
_DRAWS: Final = 2
_OPEN: Final = 5  # the size of what is open


class _Constants(NamedTuple):
    """Whatever is constant in a model, as `around` looks for it: all in one graph."""

    proto: ModelProto
    source: Any


def probe(source: Subject, result: Subject, judge: Judge, inner: Sequence[Inner]) -> tuple[int, str]:
    """Returns how many of the nodes could be run alone, and what is said of the first that computes something else."""
    if len(inner) > _MOST:
        inner = [inner[i * len(inner) // _MOST] for i in range(_MOST)]
    types = _types(source) if inner else {}
    before, after = _constants(source), _constants(result)
    count = 0
    for node, bodies in inner:
        for value in node.output:
            for body in bodies if value else ():
                told = _probed(node, value, body, types, (before, after), judge)
                count += told is not None
                if told:
                    name = f"{node.op_type} {plain(name_of(node))!r}"
                    return count, f"{name} became nodes that compute something else, run alone: {told}"
    return count, ""


def _probed(
    node: NodeProto, value: str, body: Body, types: Mapping[str, TypeProto], both: tuple[Any, Any],
    judge: Judge,
) -> str | None:  # fmt: skip
    """Returns how one value differs, "" if it does not; None if it cannot be made alone."""
    fixed = [{tensor.name for tensor in constants.proto.graph.initializer} for constants in both]
    wanted = {name: position for position, name in enumerate(node.input) if name and name not in fixed[0]}
    if not wanted or any(subgraphs(node)) or (became := _between(body, value, {*wanted}, fixed[1])) is None:
        return None
    told: str | None = None
    for seed in range(_DRAWS):
        random = numpy.random.default_rng(seed)
        inputs = {}
        for name, position in wanted.items():
            array = _made(types.get(name), random, passes=position in PASSES.get(node.op_type, ()))
            if array is None:
                return None
            inputs[name] = array
        values = []
        for constants, nodes in zip(both, ([node], became), strict=True):
            try:
                with Subject(around(constants, nodes, inputs, value)) as alone:
                    values.append(alone.program().run(inputs)[0])
            except (RunError, LacksError) as error:
                return f"the result does not run: {error}" if values else told
        output = judge.output(value, *values)
        if not output.agrees:
            return output.why
        told = ""
    return told


def _between(body: Body, value: str, inputs: set[str], fixed: set[str]) -> list[NodeProto] | None:
    """Returns the nodes of a body that make a value from inputs and constants; None if it takes more than that."""
    producers = {name: (place, node) for place, node in enumerate(body.node) for name in node.output if name}
    taken: dict[int, NodeProto] = {}
    waiting = [value]
    while waiting:
        name = waiting.pop()
        if (name in inputs and name != value) or name in fixed:
            continue
        if name not in producers:
            return None
        place, node = producers[name]
        if place not in taken:
            taken[place] = node
            waiting += used_names(node)
    return [taken[place] for place in sorted(taken)]


def _made(kind: TypeProto | None, random: numpy.random.Generator, *, passes: bool) -> Any:
    """Returns numbers of a type; None if not any of them will do, or nothing is known."""
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dtype = helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
    if dtype.kind == "O" or not (passes or dtype.kind == "b" or is_float(dtype)):
        return None
    shape = tuple(dim.dim_value if dim.HasField("dim_value") else _OPEN for dim in kind.tensor_type.shape.dim)
    return random_array(random, dtype, shape)


def _constants(subject: Subject) -> _Constants:
    """Returns whatever is constant in a model, Constant nodes as well."""
    proto = subject.proto
    gathered = ModelProto(ir_version=max(proto.ir_version, 4), opset_import=proto.opset_import)
    for body in (proto.graph, *proto.functions):
        gathered.graph.initializer.extend(getattr(body, "initializer", ()))
        for node in every_node(body):
            if node.op_type == "Constant" and (tensor := tensor_of(node)) is not None:
                copy = TensorProto()
                copy.CopyFrom(tensor)
                copy.name = node.output[0]
                gathered.graph.initializer.append(copy)
            for _, _, graph in subgraphs(node):
                gathered.graph.initializer.extend(graph.initializer)
    return _Constants(gathered, subject.source)


def _types(subject: Subject) -> dict[str, TypeProto]:
    """Returns the types of values in all graphs of a model, as far as inference knows them."""
    data = view.of_source(subject.source).serialised()
    try:
        graph = infer(data, check_type=False, strict=False, data_prop=True)
    except Exception:  # C++ errors come as several unrelated types
        return {}
    found: dict[str, TypeProto] = {}
    for one in _graphs(graph):
        for value in (*one.input, *one.value_info, *one.output):
            found[value.name] = value.type
    return found


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for _, _, inner in subgraphs(node):
            yield from _graphs(inner)
