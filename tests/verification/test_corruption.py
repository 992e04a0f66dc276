# SPDX-License-Identifier: Apache-2.0
"""Results that are spoiled on purpose, in a weight, an attribute, an axis or the order of inputs: verification notices.

Each network is converted, and the result is spoiled in one place at a time; what does not load or has other shapes
counts as well. One in a hundred may slip through: where a spoilt weight meets nothing but zeros.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, numpy_helper
from texts import model

import onnx_convert

# A graph, its opset and that of the result, and the weights to fill at random: name, shape.
NETWORKS = {
    "convolutions": (
        """(float[N,3,8,8] x) => (float[N,4] y)
        { c = Conv <kernel_shape = [3,3], pads = [1,1,1,1]> (x, w, b)  r = LeakyRelu <alpha = 0.2> (c)
          p = AveragePool <kernel_shape = [2,2]> (r)  m = ReduceMean <axes = [2,3], keepdims = 0> (p)
          g = Gemm <transB = 1, alpha = 0.7, beta = 1.3> (m, v, d)  y = Softmax <axis = 1> (g) }""",
        11,
        18,
        {"w": (6, 3, 3, 3), "b": (6,), "v": (4, 6), "d": (4,)},
    ),
    "attention": (
        """(float[N,5,8] x) => (float[N,5,8] y)
        { q = MatMul (x, wq)  k = MatMul (x, wk)  v = MatMul (x, wv)  t = Transpose <perm = [0,2,1]> (k)
          s = MatMul (q, t)  a = Softmax <axis = -1> (s)  h = MatMul (a, v)  u = Add (h, x)
          y = LayerNormalization <axis = -1, epsilon = 0.01> (u, g, b) }""",
        17,
        12,
        {"wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "g": (8,), "b": (8,)},
    ),
    "recurrent": (
        """(float[T,N,3] x) => (float[T,1,N,4] y)
        { y, h = GRU <hidden_size = 4, linear_before_reset = 1> (x, w, r, b) }""",
        14,
        11,
        {"w": (1, 12, 3), "r": (1, 12, 4), "b": (1, 24)},
    ),
    "words": (
        """(int64[N,L] ids, float[N,L,1] weights) => (float[N,8] y)
        { e = Gather <axis = 0> (table, ids)  m = Mul (e, weights)  s = ReduceSum <axes = [1], keepdims = 0> (m)
          t = Tanh (s)  c = Concat <axis = 1> (s, t)  y = Mul (c, scale) }""",
        11,
        13,
        {"table": (7, 4), "scale": (8,)},
    ),
    "images": (
        """(float[1,2,6,6] x) => (float[1,2,12,12] y, float[1,2,3,3] z)
        { y = Upsample <mode = "nearest"> (x, up)  c = Clip <min = -0.5, max = 0.8> (x)
          z = MaxPool <kernel_shape = [2,2], strides = [2,2]> (c) }""",
        9,
        13,
        {},
    ),
}


def network(name: str) -> tuple[ModelProto, int]:
    text, opset, target, weights = NETWORKS[name]
    head, _, body = text.partition("{")
    constants = "<float[4] up = {1.0, 1.0, 2.0, 2.0}>" if name == "images" else ""
    source = model(f"{head} {constants} {{{body}", opset)
    random = np.random.default_rng(len(name))
    for weight, shape in weights.items():
        array = random.standard_normal(shape).astype(np.float32)
        source.graph.initializer.append(numpy_helper.from_array(array, weight))
    return source, target


def spoilt(result: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    """Yields what was spoiled, and the model."""
    random = np.random.default_rng(0)
    for index, tensor in enumerate(result.graph.initializer):
        array = numpy_helper.to_array(tensor)
        for place in random.permutation(array.size)[:4]:
            other = array.copy()
            other.flat[place] += np.asarray(1 if (array == np.round(array)).all() else 0.5, array.dtype)
            copy = copied(result)
            copy.graph.initializer[index].CopyFrom(numpy_helper.from_array(other, tensor.name))
            yield f"weight {tensor.name}[{place}]", copy
    for index, node in enumerate(result.graph.node):
        for number, attribute in enumerate(node.attribute):
            for what, change in changes(attribute):
                copy = copied(result)
                copy.graph.node[index].attribute[number].CopyFrom(change)
                yield f"{node.op_type} {attribute.name} {what}", copy
        if len(node.input) > 1 and node.op_type in ("MatMul", "Sub", "Div", "Gather", "Concat"):
            copy = copied(result)
            copy.graph.node[index].input[0], copy.graph.node[index].input[1] = node.input[1], node.input[0]
            if node.input[0] != node.input[1]:
                yield f"{node.op_type} inputs", copy


TRUTHS = ("keepdims", "transB", "linear_before_reset")  # of which any other number says the same


def changes(attribute: AttributeProto) -> Iterator[tuple[str, AttributeProto]]:
    whole = [1 - attribute.i] if attribute.name in TRUTHS else [attribute.i - 1, attribute.i + 1]
    for field, values in (("i", whole), ("f", [attribute.f * 1.5])):
        if attribute.type == {"i": AttributeProto.INT, "f": AttributeProto.FLOAT}[field]:
            for value in values:
                other = AttributeProto()
                other.CopyFrom(attribute)
                setattr(other, field, value)
                yield f"= {value}", other
    if attribute.type == AttributeProto.INTS:
        for place in range(len(attribute.ints)):
            other = AttributeProto()
            other.CopyFrom(attribute)
            other.ints[place] += 1
            yield f"[{place}] + 1", other
        if len(set(attribute.ints)) > 1:
            other = AttributeProto()
            other.CopyFrom(attribute)
            other.ints[:] = list(attribute.ints)[::-1]
            if list(other.ints) != list(attribute.ints):
                yield "reversed", other
    if attribute.type == AttributeProto.TENSOR and len(attribute.t.dims) <= 1:
        array = numpy_helper.to_array(attribute.t)
        other = AttributeProto()
        other.CopyFrom(attribute)
        other.t.CopyFrom(numpy_helper.from_array(np.asarray(array + np.asarray(1, array.dtype))))
        yield "+ 1", other


def copied(source: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(source)
    return copy


def caught(source: ModelProto, result: ModelProto, report: onnx_convert.Report) -> bool:
    try:
        return not onnx_convert.verify(source, result, report=report).same
    except onnx_convert.InvalidModelError:
        return True


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_not_spoiled_passes(name: str) -> None:
    source, target = network(name)
    conversion = onnx_convert.convert(source, to=target)
    verified = onnx_convert.verify(source, conversion.model, report=conversion.report)
    assert verified.same, verified.reason
    assert verified.first is None and not verified.kept
    assert onnx.checker.check_model(conversion.model) is None


@pytest.mark.thorough
def test_what_is_spoiled_is_caught() -> None:
    missed: list[str] = []
    count = 0
    for name in NETWORKS:
        source, target = network(name)
        conversion = onnx_convert.convert(source, to=target)
        for what, result in spoilt(conversion.model):
            count += 1
            if not caught(source, result, conversion.report):
                missed.append(f"{name}: {what}")
    assert count >= 100
    assert len(missed) <= count // 100, f"{len(missed)} of {count}: {missed}"
