# SPDX-License-Identifier: Apache-2.0
"""Bodies that go around the nodes of another body."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from texts import model

import onnx_convert
from onnx_convert.adapters.lib.bodies import Body, sequence_type, stacked_type, tensor_type
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, INT64
from onnx_convert.rewrite import registry
from oracle import run

OWN = "org.bodies"


@registry.downgrade("Repeat", at=2, domain=OWN)
def loop(node, op):
    """Does what a body does so many times."""
    body = Body(op, node.attr("body"))
    number, going = body.take("number", INT64, at=0), body.take("going", BOOL, at=1)
    body.give(body.node("Identity", going), BOOL, at=0)
    body.give(body.node("Identity", number), INT64)
    count, going = node.input(1), op.const(True, BOOL)
    return op.node("Loop", count, going, node.input(0), outputs=2, body=body.graph, unused=None)


@registry.downgrade("Choose", at=2, domain=OWN)
def take_elements(node, op):
    """Hands a body each element of its input, and gives zeros instead of the last result."""
    x, body = node.input(0), Body(op, node.attr("body"))
    (element,) = body.drop_inputs()
    number, going = body.take("number", INT64), body.take("going", BOOL)
    body.node("Gather", x.name, number, to=element, ahead=True)
    (result,) = body.outputs
    last = body.node("Equal", number, body.constant(2, INT64))
    body.put(0, body.node("Where", last, body.zeros_like(result, FLOAT), result))
    body.give(body.node("Identity", going), BOOL, at=0)
    return op.node("Loop", op.const(3), op.const(True, BOOL), body=body.graph)[0]


def test_a_body_gets_more_inputs_and_outputs() -> None:
    source = model(
        f"(float[2] x, int64 n) => (float[2] y, int64[?] numbers) "
        f"{{ y, numbers = {OWN}.Repeat<body = b (float[2] a) => (float[2] c) {{ c = Add(a, a) }}>(x, n) }}",
        13,
        org_bodies=2,
    )
    converted = onnx_convert.convert(source, to={OWN: 1}).model
    y, numbers = run(converted, {"x": np.array([1, 2], np.float32), "n": np.array(3)})
    assert y.tolist() == [8, 16]
    assert numbers.tolist() == [0, 1, 2]


def test_a_body_takes_its_inputs_itself() -> None:
    source = model(
        f"(float[3] x) => (float[3] y) {{ y = {OWN}.Choose<body = b (float a) => (float c) {{ c = Add(a, a) }}>(x) }}",
        13,
        org_bodies=2,
    )
    converted = onnx_convert.convert(source, to={OWN: 1}).model
    assert run(converted, {"x": np.array([1, 2, 3], np.float32)})[0].tolist() == [2, 4, 0]


def test_types() -> None:
    row = tensor_type(FLOAT, 2, "N", None)
    assert [dim.dim_value for dim in row.tensor_type.shape.dim] == [2, 0, 0]
    assert tensor_type(INT64).tensor_type.HasField("shape")
    assert [dim.dim_value for dim in stacked_type(row).tensor_type.shape.dim] == [0, 2, 0, 0]
    assert sequence_type(row).sequence_type.elem_type == row
    assert row.tensor_type.elem_type == TensorProto.FLOAT
