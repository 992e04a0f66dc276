# SPDX-License-Identifier: Apache-2.0
"""Folding: what constants make is what the text says, runtimes agree, and what a text leaves open is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from texts import model

from onnx_convert.analysis import evaluation
from oracle import run

I64, I8, F32 = np.int64, np.int8, np.float32
LOW = np.iinfo(I64).min


def fold(operator: str, opset: int, *inputs: Any, most: int = 1000, **attributes: Any) -> np.ndarray | None:
    names = ["" if array is None else f"i{index}" for index, array in enumerate(inputs)]
    arrays = [None if array is None else np.asarray(array) for array in inputs]
    return evaluation.compute(helper.make_node(operator, names, ["y"], **attributes), opset, arrays, most)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, I64)


ZERO = ints(0)
ROWS: list[tuple[str, int, list[Any], dict[str, Any], Any]] = [
    ("Slice", 13, [ints(1), ints(-3), ints(-100), ZERO, ints(-1)], {}, ints(1)),
    ("Slice", 13, [ints(1, 2, 3), ints(-1), ints(LOW), ZERO, ints(-2)], {}, ints(3, 1)),
    ("Slice", 13, [ints(1, 2, 3), ints(5), ints(0), ZERO, ints(-1)], {}, ints(3, 2)),
    ("Slice", 13, [ints(1, 2, 3), ints(-2), ints(2**63 - 1)], {}, ints(2, 3)),
    ("Slice", 13, [ints(), ints(-1), ints(5), ZERO, ints(-1)], {}, ints()),
    ("Slice", 9, [ints(1, 2, 3)], {"starts": [1], "ends": [-1]}, ints(2)),
    ("Slice", 13, [ints(1, 2, 3), ZERO, ints(1), ints(7)], {}, None),
    ("Slice", 13, [ints(1, 2, 3), ZERO, ints(1), ZERO, ZERO], {}, None),
    ("Div", 14, [ints(-7, 7, -7, 7), ints(2, -2, -2, 2)], {}, ints(-3, -3, 3, 3)),
    ("Div", 14, [ints(1), ZERO], {}, None),
    ("Div", 14, [ints(LOW), ints(-1)], {}, None),
    ("Div", 13, [F32([1, -1, 0]), F32([0, 0, 0])], {}, F32([np.inf, -np.inf, np.nan])),
    ("Add", 14, [ints(2**63 - 1), ints(1)], {}, None),
    ("Mul", 14, [ints(2**40), ints(2**40)], {}, None),
    ("Sub", 14, [np.array([3], np.uint8), np.array([4], np.uint8)], {}, None),
    ("Add", 14, [np.array([3], np.uint8), ints(4)], {}, None),
    ("Add", 6, [ints(1, 2), ints(1)], {}, None),
    ("Add", 7, [ints(1, 2), ints(1)], {}, ints(2, 3)),
    ("Neg", 13, [ints(LOW)], {}, None),
    ("Neg", 13, [F32([0.0])], {}, F32([-0.0])),
    ("Cast", 13, [F32([-1.9, 1.9])], {"to": 7}, ints(-1, 1)),
    ("Cast", 13, [F32([np.nan])], {"to": 7}, None),
    ("Cast", 13, [F32([np.inf])], {"to": 6}, None),
    ("Cast", 13, [F32([2.0**63])], {"to": 7}, None),
    ("Cast", 13, [ints(300)], {"to": TensorProto.INT8}, None),
    ("Cast", 13, [ints(0, 2)], {"to": TensorProto.BOOL}, np.array([False, True])),
    ("Cast", 13, [F32([1.0])], {"to": TensorProto.STRING}, None),
    ("Cast", 5, [F32([1.5])], {"to": "INT64"}, ints(1)),
    ("Gather", 13, [ints(1, 2, 3), ints(-1)], {}, ints(3)),
    ("Gather", 10, [ints(1, 2, 3), ints(-1)], {}, None),
    ("Gather", 13, [ints(1, 2, 3), ints(3)], {}, None),
    ("Range", 11, [I64(5), I64(0), I64(-2)], {}, ints(5, 3, 1)),
    ("Range", 11, [I64(0), I64(2**62), I64(1)], {}, None),
    ("Range", 11, [F32(0), F32(1), F32(0.1)], {}, None),
    ("Range", 11, [I64(0), I64(5), I64(0)], {}, None),
    ("ReduceProd", 13, [ints(2, 3)], {"keepdims": 0}, I64(6)),
    ("ReduceProd", 13, [ints()], {}, ints(1)),
    ("ReduceProd", 18, [ints(2, 3), ints()], {"noop_with_empty_axes": 1}, ints(2, 3)),
    ("ReduceProd", 13, [ints(2**40, 2**40)], {}, None),
    ("Reshape", 13, [ints(1, 2), ints(0, 1, -1)], {}, np.array([[[1]], [[2]]])),
    ("Reshape", 14, [ints(), ints(0, 3)], {"allowzero": 1}, np.zeros((0, 3), I64)),
    ("Reshape", 13, [ints(), ints(0, -1)], {}, None),
    ("Reshape", 13, [ints(1, 2, 3), ints(2, -1)], {}, None),
    ("ConstantOfShape", 9, [ints(10**6, 10**6)], {}, None),
    ("ConstantOfShape", 9, [ints(2, 0)], {}, np.zeros((2, 0), F32)),
    ("Expand", 13, [ints(1), ints(10**9)], {}, None),
    ("Expand", 13, [ints(1, 2), ints(2, 1)], {}, np.array([[1, 2], [1, 2]])),
    ("Concat", 13, [ints(1), ints(2)], {"axis": -1}, ints(1, 2)),
    ("Squeeze", 13, [np.ones((1, 2, 1), I64)], {}, ints(1, 1)),
    ("Squeeze", 13, [np.ones((1, 2), I64), ints(1)], {}, None),
    ("Unsqueeze", 13, [ints(1, 2), ints(-1)], {}, np.array([[1], [2]])),
    ("Unsqueeze", 13, [ints(1, 2), ints(0, 0)], {}, None),
    ("Transpose", 13, [np.ones((2, 1), I64)], {"perm": [1, 0]}, np.ones((1, 2), I64)),
    ("Where", 9, [np.array([True, False]), ints(1), ints(2)], {}, ints(1, 2)),
    ("Equal", 13, [F32([np.nan, 1]), F32([np.nan, 1])], {}, np.array([False, True])),
    ("Equal", 13, [ints(2**62 + 1), ints(2**62)], {}, np.array([False])),
    ("Identity", 13, [np.array(["a"], dtype=object)], {}, None),
    ("Softmax", 13, [F32([1])], {}, None),
]


@pytest.mark.parametrize(
    ("operator", "opset", "inputs", "attributes", "expected"),
    [pytest.param(*row, id=f"{index} {row[0]}-{row[1]}") for index, row in enumerate(ROWS)],
)
def test_folding(operator: str, opset: int, inputs: list[Any], attributes: dict[str, Any], expected: Any) -> None:
    found = fold(operator, opset, *inputs, **attributes)
    if expected is None:
        assert found is None
        return
    assert found is not None and found.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        told = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[told]), np.signbit(expected[told]))


CASES = [row for row in ROWS if row[4] is not None and row[1] >= 7 and row[0] not in ("Expand", "Where")]


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{i} {row[0]}-{row[1]}") for i, row in enumerate(CASES)])
def test_a_runtime_makes_the_same(row: tuple[str, int, list[Any], dict[str, Any], Any]) -> None:
    operator, opset, inputs, attributes, expected = row
    if operator == "Reshape" and 0 in np.shape(expected):
        pytest.skip("of nothing, which runtimes treat in their ways")
    names = [f"i{index}" for index in range(len(inputs))]
    source = model("(int64[1] x) => (int64[?] y) { y = Identity(x) }", opset)
    graph = source.graph
    del graph.input[:], graph.node[:], graph.output[:]
    graph.node.append(helper.make_node(operator, names, ["y"], **attributes))
    feeds = dict(zip(names, map(np.asarray, inputs), strict=True))
    for name, array in feeds.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    dtype = helper.np_dtype_to_tensor_dtype(np.asarray(expected).dtype)
    graph.output.append(helper.make_tensor_value_info("y", dtype, None))
    (made,) = run(source, feeds)
    np.testing.assert_array_equal(made, expected)


def test_a_value_that_fills_is_kept() -> None:
    value = numpy_helper.from_array(np.array([7], I8))
    found = fold("ConstantOfShape", 9, ints(2), value=value)
    assert found is not None and found.tolist() == [7, 7] and found.dtype == I8
