# SPDX-License-Identifier: Apache-2.0
"""Spoils a model in one place: an element of a weight, an attribute, the order of two inputs, an input for another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from onnx_convert.model.graphs import subgraphs

# Attributes of which any number but 0 says the same, so that 1 less is the other one.
TRUTHS = ("keepdims", "transA", "transB", "linear_before_reset", "ceil_mode", "exclusive", "reverse", "largest",
          "sorted", "noop_with_empty_axes", "allowzero", "select_last_index", "count_include_pad", "fmod")  # fmt: skip
END = 1 << 31  # an end of a Slice from here on is that of the axis, whichever it is
ORDERED = ("MatMul", "Sub", "Div", "Gather", "Concat", "Pow", "Less", "Greater", "Gemm")


def copied(source: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(source)
    return copy


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yields a graph and those that its nodes hold."""
    yield graph
    for node in graph.node:
        for _, _, inner in subgraphs(node):
            yield from graphs(inner)


def changes(attribute: AttributeProto) -> Iterator[tuple[str, AttributeProto]]:
    """Yields other values of an attribute, and what is other about them."""
    whole = [int(not attribute.i)] if attribute.name in TRUTHS else [attribute.i - 1, attribute.i + 1]
    for field, values in (("i", whole), ("f", [attribute.f * 1.5])):
        if attribute.type == {"i": AttributeProto.INT, "f": AttributeProto.FLOAT}[field]:
            for value in values:
                if value != getattr(attribute, field):
                    yield f"= {value}", _with(attribute, field, value)
    if attribute.type == AttributeProto.INTS:
        for place, whole_number in enumerate(attribute.ints):
            if whole_number >= END:
                continue
            other = AttributeProto()
            other.CopyFrom(attribute)
            other.ints[place] += 1
            yield f"[{place}] + 1", other
        if [*attribute.ints] != [*attribute.ints][::-1]:
            other = AttributeProto()
            other.CopyFrom(attribute)
            other.ints[:] = list(attribute.ints)[::-1]
            yield "reversed", other
    if attribute.type == AttributeProto.TENSOR and attribute.t.data_type != TensorProto.STRING:
        array = numpy_helper.to_array(attribute.t)
        if array.size:
            other = AttributeProto()
            other.CopyFrom(attribute)
            other.t.CopyFrom(numpy_helper.from_array(moved(array, 0), attribute.t.name))
            yield "[0] is another number", other


def _with(attribute: AttributeProto, field: str, value: float) -> AttributeProto:
    other = AttributeProto()
    other.CopyFrom(attribute)
    setattr(other, field, value)
    return other


def moved(array: np.ndarray, place: int) -> np.ndarray:
    """Returns an array with another number at one place."""
    other = array.copy()
    if array.dtype.kind == "b":
        other.flat[place] = not other.flat[place]
    else:
        whole = array.dtype.kind in "iu" or (array == np.round(array.astype(np.float32))).all()
        other.flat[place] += np.asarray(1 if whole else 0.5, array.dtype)
    return other


def spoilt(result: ModelProto, weights: int = 4) -> Iterator[tuple[str, ModelProto]]:
    """Yields what was spoiled, and the model: each attribute in each way, and so many elements of each weight."""
    random = np.random.default_rng(0)
    for what, spoil in ways(result, random, weights):
        copy = copied(result)
        spoil(copy)
        yield what, copy


def ways(result: ModelProto, random: np.random.Generator, weights: int = 4) -> Iterator:
    """Yields each way to spoil a model: what is spoiled, and a function that does it to a copy."""
    for at, graph in enumerate(graphs(result.graph)):
        for index, tensor in enumerate(graph.initializer):
            if tensor.data_type == TensorProto.STRING or 0 in tensor.dims:
                continue
            size = int(np.prod(tensor.dims, dtype=np.int64))
            for place in random.permutation(size)[:weights] if size < 1 << 16 else random.integers(0, size, weights):
                yield f"weight {tensor.name}[{place}]", _weight(at, index, int(place))
        for index, node in enumerate(graph.node):
            for number, attribute in enumerate(node.attribute):
                for what, change in changes(attribute):
                    yield f"{node.op_type} {attribute.name} {what}", _attribute(at, index, number, change)
            if _is_ordered(node):
                yield f"{node.op_type} inputs", _inputs(at, index)


def _is_ordered(node: NodeProto) -> bool:
    return len(node.input) > 1 and node.op_type in ORDERED and node.input[0] != node.input[1]


def _graph(model: ModelProto, at: int) -> GraphProto:
    return [*graphs(model.graph)][at]


def _weight(at: int, index: int, place: int):
    def spoil(model: ModelProto) -> None:
        tensor = _graph(model, at).initializer[index]
        tensor.CopyFrom(numpy_helper.from_array(moved(numpy_helper.to_array(tensor), place), tensor.name))

    return spoil


def _attribute(at: int, index: int, number: int, change: AttributeProto):
    return lambda model: _graph(model, at).node[index].attribute[number].CopyFrom(change)


def _inputs(at: int, index: int):
    def spoil(model: ModelProto) -> None:
        node = _graph(model, at).node[index]
        node.input[0], node.input[1] = node.input[1], node.input[0]

    return spoil
