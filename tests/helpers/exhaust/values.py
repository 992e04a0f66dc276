# SPDX-License-Identifier: Apache-2.0
"""The elements of tensors: for each dtype plain ones, its extremes, ties, halves, and numbers that float32 rounds."""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

PLAIN, EXTREME, TIES, HALVES, LONG = KINDS = "plain", "extreme", "ties", "halves", "long"

REALS = {
    PLAIN: [1.0, -2.0, 0.5, 3.0, 0.0, -1.5, 2.0, -0.25, 1.25, -3.0, 0.75],
    TIES: [1.0, 1.0, -1.0, 0.0, -0.0, 1.0, 0.0],
    HALVES: [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5],
    LONG: [16777217.0, -0.1, 1e-3, 1234567.8, 33554435.0, 1e10, -7.3],
}
INTEGERS = {
    PLAIN: [1, -2, 3, 0, 2, -1, 4, -3, 5],
    TIES: [1, 1, -1, 0, 0, 1],
    HALVES: [2, 7, -7, 5, -5, 8],
    LONG: [16777217, -33554435, 2**31 + 3, 2**53 + 1, -(2**53) - 1, 255, 127],
}
FIRSTS = "float int64 double float16 int32 bool uint8 int8 string".split()  # the simpler dtypes
WORDS = {
    PLAIN: ["b", "a", "ab", "", "c"],
    EXTREME: ["", "ä", "a b", "\U0001f600", "A", "a"],
    TIES: ["a", "a", "b"],
    HALVES: ["0", "-1", "a"],
    LONG: ["a" * 40, "b"],
}


def has_nan(array: np.ndarray) -> bool:
    """Tells whether there is a NaN, of which few texts say which place it takes among numbers."""
    if array.dtype.kind in "biuO":
        return False
    return bool(np.isnan(array if array.dtype.kind == "c" else array.astype(np.float64)).any())


def elem_type(dtype: str) -> int:
    """Returns the number of a dtype as a schema spells it, without `tensor()`."""
    return int(TensorProto.DataType.Value(dtype.upper()))


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Returns the dtype of arrays that hold it."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type(dtype)))


@cache
def pool(dtype: str, kind: str) -> np.ndarray:
    """Returns the elements of a kind, in the dtype: those of wider ones that it does not have are left out."""
    if dtype == "string":
        return np.array(WORDS[kind], dtype=object)
    if dtype == "bool":
        return np.array([True, False, True] if kind != TIES else [True, True])
    made = numpy_dtype(dtype)
    if "int" in dtype:
        info = ml_dtypes.iinfo(made)
        low, high = int(info.min), int(info.max)
        extremes = [high, low, high - 1, low + 1, 0, 1, -1 if low else high // 2]
        wanted = extremes if kind == EXTREME else INTEGERS[kind]
        fitting = [one for one in wanted if low <= one <= high] or extremes
        return np.array(fitting, dtype=np.uint64 if dtype == "uint64" else np.int64).astype(made)
    if "complex" in dtype:
        real = pool("float", kind)[:5].astype(np.float64)
        return np.array([complex(a, b) for a, b in zip(real, real[::-1], strict=True)]).astype(made)
    with np.errstate(all="ignore"):
        if kind != EXTREME:
            return np.array(REALS[kind]).astype(made)
        info = ml_dtypes.finfo(made)
        biggest, least = float(info.max), float(info.smallest_subnormal)
        edges = [np.nan, np.inf, -np.inf, -0.0, biggest, -biggest, least, -least, float(info.tiny), 1.0, 0.0]
        return np.array(edges).astype(made)


def array(dtype: str, shape: tuple[int, ...], kind: str, name: str) -> np.ndarray:
    """Returns an array of elements of that kind; which comes first depends on the name of the value."""
    elements = pool(dtype, kind)
    start = zlib.crc32(name.encode()) % len(elements)
    count = int(np.prod(shape, dtype=np.int64))
    return elements[(start + np.arange(count)) % len(elements)].reshape(shape)
