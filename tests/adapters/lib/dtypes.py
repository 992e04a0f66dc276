# SPDX-License-Identifier: Apache-2.0
"""What adapters know of dtypes is what numpy and onnx say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnx_convert.adapters.lib import dtypes

INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
BITS = {"FLOAT16": (5, 10), "BFLOAT16": (8, 7), "FLOAT": (8, 23), "DOUBLE": (11, 52)}  # of exponent and fraction


def test_names_are_those_of_onnx() -> None:
    known = dict(TensorProto.DataType.items())
    numbers = {name: getattr(dtypes, name) for name in dir(dtypes) if name in known}
    assert len(numbers) == 16
    assert numbers == {name: known[name] for name in numbers}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    dtype = getattr(dtypes, name)
    info = np.iinfo(helper.tensor_dtype_to_np_dtype(dtype))
    assert (dtypes.lowest(dtype), dtypes.largest(dtype)) == (info.min, info.max)
    assert (dtypes.width_of(dtype), dtypes.is_unsigned(dtype)) == (info.bits, info.kind == "u")
    assert dtypes.is_integer(dtype)


@pytest.mark.parametrize("name", BITS)
def test_floats(name: str) -> None:
    dtype = getattr(dtypes, name)
    exponent, fraction = BITS[name]
    largest = float(2 ** (2**exponent // 2 - 1) * (2 - Fraction(1, 2**fraction)))
    assert (dtypes.lowest(dtype), dtypes.largest(dtype)) == (-largest, largest)
    assert dtype in dtypes.FLOATS
    assert not dtypes.is_integer(dtype)
    assert dtypes.working_dtype(dtype) == (dtypes.DOUBLE if name == "DOUBLE" else dtypes.FLOAT)
