# SPDX-License-Identifier: Apache-2.0
"""Makes the elements of inputs: random ones of each dtype, and those of the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.verification.comparison import is_float

if TYPE_CHECKING:
    from collections.abc import Callable

Array = numpy.ndarray[Any, Any]

RANDOM: Final = "random"
EDGES: Final = ("between 0 and 1", "zeros", "negative", "large", "tiny", "NaN")
"""The kinds of values besides random ones: what hides behind a sign, a size or a NaN."""


def random_array(random: numpy.random.Generator, dtype: numpy.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Returns values that one dtype represents exactly: reals within about +-3, integers within -4..4 (0..7)."""
    if dtype.kind == "O":
        return numpy.asarray(random.choice(numpy.array(["", "a", "b", "ab"], dtype=object), size=shape), dtype=object)
    if dtype.kind == "b":
        return numpy.asarray(random.random(shape) < 0.5)
    if is_float(dtype):
        values = random.standard_normal(shape)
        return numpy.asarray(numpy.where(random.random(shape) < 0.1, 0.0, values)).astype(dtype)
    if dtype.kind == "c":
        return numpy.asarray(random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    low, high = (0, 8) if "uint" in dtype.name else (-4, 5)
    if dtype.name.endswith("int2"):
        low, high = (0, 4) if low == 0 else (-2, 2)
    return numpy.asarray(random.integers(low, high, size=shape)).astype(dtype)


def edge_array(kind: str, random: numpy.random.Generator, dtype: numpy.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Returns floats of one of `EDGES`; of other dtypes zeros, or random values."""
    if not is_float(dtype):
        zeros = kind == "zeros" and dtype.kind in "biu"
        return numpy.zeros(shape, dtype) if zeros else random_array(random, dtype, shape)
    normal = random.standard_normal(shape)
    high, low = (2, -3) if dtype.itemsize < 4 else (4, -4)  # powers of ten that even the square of stays a number
    made: dict[str, Callable[[], Any]] = {
        "between 0 and 1": lambda: random.random(shape),
        "zeros": lambda: numpy.zeros(shape),
        "negative": lambda: -numpy.abs(normal),
        "large": lambda: numpy.sign(normal) * 10.0 ** random.uniform(1, high, shape),
        "tiny": lambda: numpy.sign(normal) * 10.0 ** random.uniform(low, -2, shape),
        "NaN": lambda: numpy.where(random.random(shape) < 0.1, numpy.nan, normal),
    }
    return numpy.asarray(made[kind]()).astype(dtype)
