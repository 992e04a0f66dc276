# SPDX-License-Identifier: Apache-2.0
"""Results that are spoiled on purpose, in a weight, an attribute, an axis or the order of inputs: verification notices.

Each network is converted, and the result is spoiled in one place at a time; what does not load or has other shapes
counts as well. One in a hundred may slip through.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper
from spoiling import spoilt
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


CLOSED = """(float[4] x) => (float[4] y) <float[4] w = {%s}, float b = {-900000}>
    { m = Mul (x, w)  s = Add (m, b)  r = Relu (s)  y = Softmax <axis = %s> (r) }"""


@pytest.mark.parametrize("reported", [True, False])
def test_a_weight_that_no_output_shows(reported: bool) -> None:
    """Behind a Relu that is closed whatever is put in."""
    source, spoiled = model(CLOSED % ("1,1,1,1", "0"), 13), model(CLOSED % ("1,1,1,2", "0"), 12)
    report = onnx_convert.plan(source, to=12) if reported else None
    assert onnx_convert.verify(source, model(CLOSED % ("1,1,1,1", "0"), 12), report=report).same
    found = onnx_convert.verify(source, spoiled, report=report)
    assert found.verdict == "different"
    assert found.reason == (
        "initializer 'w' has other elements: 1 of 4, first at [3]: 1.0 in the source, 2.0 in the result; "
        "no output shows it on these inputs"
    )
    assert found.first is not None and (found.first.operator, found.first.value) == ("Mul", "m")


def test_a_node_that_the_report_does_not_name() -> None:
    """Although it computes the same: nobody has said that it would be another one."""
    text = "(float[2,3] x) => (float[2,3] y) { y = Concat <axis = %s> (x) }"
    source, other = model(text % "1", 13), model(text % "-1", 12)
    report = onnx_convert.plan(source, to=12)
    assert onnx_convert.verify(source, other).same
    found = onnx_convert.verify(source, other, report=report)
    assert found.reason == (
        "Concat 'y' has other values of the attribute axis (axis = 1 in the source, axis = -1 in the result), and the "
        "report does not say so; no output shows it on these inputs"
    )


def test_a_value_that_no_output_shows() -> None:
    """A rewritten node that computes something else, behind a product with zero."""
    text = """(float[2,3,4] x) => (float[2,3,4] y) <float z = {0}>
        { s = Softmax <axis = 1> (x)  m = Mul (s, z)  y = Add (m, x) }"""
    source = model(text, 13)
    conversion = onnx_convert.convert(source, to=12)
    spoiled = conversion.model
    for node in spoiled.graph.node:
        if node.op_type == "Softmax":
            node.attribute[0].i = 1
    for report in (conversion.report, None):
        found = onnx_convert.verify(source, spoiled, report=report)
        assert found.verdict == "different" and found.reason.startswith("value 's', random 0: ")
        assert found.first is not None and found.first.operator == "Softmax" and found.within.values == 1


def test_what_is_no_conversion_is_judged_by_its_outputs() -> None:
    """A result that goes another way need not have the same values on it."""
    text = "(float[2] x) => (float[2] y) <float[2] w = {%s}> { %s }"
    one = model(text % ("3,4", "t = Mul (x, w)  u = Add (t, t)  y = Neg (u)"), 13)
    other = model(text % ("6,8", "t = Mul (x, w)  y = Neg (t)"), 13)
    assert onnx_convert.verify(one, other).same


def test_a_node_of_a_branch_that_is_not_taken() -> None:
    text = """(float[2,3,4] x) => (float[2,3,4] y) <bool never = {0}> { y = If (never) <
        then_branch = g () => (float[2,3,4] t) { t = Softmax <axis = 1> (x) },
        else_branch = h () => (float[2,3,4] e) { e = Abs (x) }> }"""
    source = model(text, 13)
    conversion = onnx_convert.convert(source, to=12)
    spoiled = conversion.model
    assert onnx_convert.verify(source, spoiled, report=conversion.report).within.values >= 1
    for node in spoiled.graph.node[0].attribute[0].g.node:
        if node.op_type == "Softmax":
            node.attribute[0].i = 1
    for report in (conversion.report, None):
        found = onnx_convert.verify(source, spoiled, report=report)
        assert found.verdict == "different"
        assert found.reason.startswith("Softmax 't' became nodes that compute something else, run alone: ")
