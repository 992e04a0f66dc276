# SPDX-License-Identifier: Apache-2.0
"""BitCast (26) where it does not exist."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise import NUMPY, known_model, operands, same_bits, unary
from onnx import helper

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run

BIT_CASTS: list[Row] = [
    *(
        rewrites(
            f"BitCast of {t} to {number}",
            26,
            25,
            unary(f"BitCast<to={number}>(x)", "10", t, result),
            feeds={"x": operands(t)["a"]},
            into=["Cast"],
        )
        for t, number, result in (
            ("int8", 2, "uint8"),
            ("uint8", 3, "int8"),
            ("int16", 4, "uint16"),
            ("uint32", 6, "int32"),
            ("int64", 13, "uint64"),
            ("uint64", 7, "int64"),
        )
    ),
    rewrites("BitCast to the same", 26, 25, unary("BitCast<to=6>(x)", "3", "int32"), into=["Identity"]),
    rewrites("BitCast of booleans", 26, 9, unary("BitCast<to=2>(x)", "3", "bool", "uint8"), into=["Cast"]),
    refuses("BitCast of floats", 26, 25, unary("BitCast<to=7>(x)", "3", "double", "int64"), because="bits of double"),
    *(
        rewrites(f"BitCast to {result}", 26, target, unary(f"BitCast<to={number}>(x)", "10", t, result))
        for t, number, result in (
            ("int64", 11, "double"),
            ("uint16", 10, "float16"),
        )
        for target in (25, 13, 9)
    ),
]


ROWS = BIT_CASTS

test_rows = each_of(ROWS)


PATTERNS = {
    16: np.arange(2**16, dtype=np.uint16),
    32: np.concatenate(
        [
            np.random.default_rng(0).integers(0, 2**32, 20000, dtype=np.uint32),
            (np.arange(512, dtype=np.uint32) << 23)[:, None].repeat(3, 1).ravel() + np.tile([0, 1, 2**23 - 1], 512),
        ]
    ).astype(np.uint32),
    64: np.concatenate(
        [
            np.random.default_rng(0).integers(0, 2**64, 20000, dtype=np.uint64),
            np.array([0, 1, 2**52 - 1, 2**52, 0x7FF << 52, 0xFFF << 52, 1 << 63, (0x7FF << 52) + 1], dtype=np.uint64),
        ]
    ),
}


@pytest.mark.parametrize("target", [25, 11])
@pytest.mark.parametrize(
    ("start", "stop"),
    [
        *(("int16", "float16"), ("uint16", "float16"), ("int32", "float"), ("uint32", "float"), ("int64", "double")),
        *(("float16", "int16"), ("float16", "uint16"), ("float", "int32"), ("float", "uint32")),
    ],
)
def test_bits_of_floats(start: str, stop: str, target: int) -> None:
    types = [np.dtype(NUMPY.get(name, name)) for name in (start, stop)]
    patterns = PATTERNS[types[0].itemsize * 8]
    x, expected = (patterns.view(dtype) for dtype in types)
    number = helper.np_dtype_to_tensor_dtype(types[1])
    source = known_model(26, f"({start}[N] x) => ({stop}[N] y) {{ y = BitCast<to={number}>(x) }}")
    (got,) = run(onnx_convert.convert(source, to=target, exact=True).model, {"x": x})
    if types[1].kind == "f":
        same_bits(got, expected)
    else:
        np.testing.assert_array_equal(got[~np.isnan(x)], expected[~np.isnan(x)])
        assert np.isnan(got[np.isnan(x)].view(types[0])).all()
