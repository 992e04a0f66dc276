# SPDX-License-Identifier: Apache-2.0
"""Constant: elements without a tensor (12), sparse ones (11), dtypes other than floats (9)."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnx_convert
from boundaries import Row, each_of, keeps, rewrites
from oracle import evaluate, validate


def _constant(y: str, attribute: str) -> str:
    return f"(double x) => ({y} y, double z) {{ y = Constant<{attribute}>() z = Identity(x) }}"


ELEMENTS = {
    "value_int": ("int64", "value_int=7"),
    "value_ints": ("int64[3]", "value_ints=[1,-2,3]"),
    "value_string": ("string", 'value_string="a"'),
    "value_strings": ("string[2]", 'value_strings=["a","b"]'),
}
TENSORS = {
    "int64": ("int64[2]", "value=int64[2] {1,-2}"),
    "int64 beyond double": ("int64", "value=int64 {9007199254740993}"),
    "int32": ("int32[2,1]", "value=int32[2,1] {1,-2}"),
    "bool": ("bool[2]", "value=bool[2] {1,0}"),
    "string": ("string[2]", 'value=string[2] {"a","b"}'),
}
# double, because there is a variant that makes every other float a float16
FLOATS = ("double[2]", "value=double[2] {0.5,1.5}")

CONSTANTS: list[Row] = [
    *(rewrites(f"Constant {name}", 12, 11, _constant(*made), into=["Identity"]) for name, made in ELEMENTS.items()),
    *(rewrites(f"Constant {name}", 25, 7, _constant(*made), into=["Identity"] * 2) for name, made in ELEMENTS.items()),
    *(keeps(f"Constant {name}", 12, 25, _constant(*made)) for name, made in ELEMENTS.items()),
    *(
        rewrites(f"Constant of {name}", 9, 8, _constant(*made), into=["Identity", "Identity"])
        for name, made in TENSORS.items()
    ),
    *(keeps(f"Constant of {name}", 12, 9, _constant(*made)) for name, made in TENSORS.items()),
    *(keeps(f"Constant of {name}", 9, 25, _constant(*made)) for name, made in TENSORS.items()),
    keeps("Constant of float", 25, 1, _constant(*FLOATS)),
    keeps("Constant of float", 1, 25, _constant(*FLOATS)),
    rewrites(
        "Constant shape for another adapter",
        12,
        7,
        "(float[2,3] x) => (float[3,2] y) { s = Constant<value_ints=[3,2]>() y = Reshape(x, s) }",
    ),
    *(
        rewrites(
            f"Constant {made}",
            25,
            1,
            f"(int32 x) => (int32{y} y, int32 z) {{ f = Constant<{made}>() y = Cast<to=6>(f) z = Identity(x) }}",
        )
        for made, y in (("value_float=7.5", ""), ("value_floats=[7.5]", "[1]"))
    ),
]


ROWS = CONSTANTS

test_rows = each_of(ROWS)


# ---- sparse constants


def _sparse(values: np.ndarray, indices: list[object], dims: list[int]) -> onnx.SparseTensorProto:
    places = numpy_helper.from_array(np.array(indices, dtype=np.int64), "indices")
    return helper.make_sparse_tensor(numpy_helper.from_array(values, "values"), places, dims)


SPARSE = [
    (_sparse(np.array([1.5, 2.5], np.float32), [1, 5], [2, 3]), [[0, 1.5, 0], [0, 0, 2.5]]),
    (_sparse(np.array([1.5, 2.5], np.float32), [[0, 1], [1, 2]], [2, 3]), [[0, 1.5, 0], [0, 0, 2.5]]),
    (_sparse(np.array([7], np.int64), [2], [4]), [0, 0, 7, 0]),
    (_sparse(np.array([], np.float32), [], [2]), [0, 0]),
]


@pytest.mark.parametrize(("sparse", "dense"), SPARSE)
@pytest.mark.parametrize("target", [9, 10])
def test_sparse_constant(sparse: onnx.SparseTensorProto, dense: list[object], target: int) -> None:
    node = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
    output = helper.make_tensor_value_info("y", sparse.values.data_type, list(sparse.dims))
    opsets = [helper.make_opsetid("", 13)]
    model = helper.make_model(helper.make_graph([node], "g", [], [output]), opset_imports=opsets, ir_version=7)
    result = onnx_convert.convert(model, to=target).model
    validate(result)
    assert evaluate(result, {}).values[0].tolist() == dense
