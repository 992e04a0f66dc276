# SPDX-License-Identifier: Apache-2.0
"""Element types, by their numbers in TensorProto.DataType: which there are, how wide they are, what they hold."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import Refuse, dtype_name, dtype_number

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Value

BOOL: Final = dtype_number("bool")
STRING: Final = dtype_number("string")
INT8: Final = dtype_number("int8")
INT16: Final = dtype_number("int16")
INT32: Final = dtype_number("int32")
INT64: Final = dtype_number("int64")
UINT8: Final = dtype_number("uint8")
UINT16: Final = dtype_number("uint16")
UINT32: Final = dtype_number("uint32")
UINT64: Final = dtype_number("uint64")
FLOAT16: Final = dtype_number("float16")
BFLOAT16: Final = dtype_number("bfloat16")
FLOAT: Final = dtype_number("float")
DOUBLE: Final = dtype_number("double")
COMPLEX64: Final = dtype_number("complex64")
COMPLEX128: Final = dtype_number("complex128")

HALVES: Final = (FLOAT16, BFLOAT16)
FIRST_FLOATS: Final = (FLOAT16, FLOAT, DOUBLE)  # all that there were below opset 13
FLOATS: Final = (*FIRST_FLOATS, BFLOAT16)

_LARGEST_FLOATS: Final = {
    FLOAT16: 65504.0,
    BFLOAT16: 3.3895313892515355e38,
    FLOAT: 3.4028234663852886e38,
    DOUBLE: 1.7976931348623157e308,
}
_TO_INFINITY: Final = 65520.0  # from here on, the nearest float16 is infinity


def is_integer(dtype: int) -> bool:
    """Returns whether a dtype is one of int8 to int64, uint8 to uint64, or narrower."""
    return "int" in dtype_name(dtype)


def is_unsigned(dtype: int) -> bool:
    """Returns whether a dtype is an integer without a sign."""
    return dtype_name(dtype).startswith("uint")


def width_of(dtype: int) -> int:
    """Returns the number of bits of an integer dtype; refuses any other one, such as float8e4m3fn."""
    if not is_integer(dtype):
        raise Refuse(
            f"there is no arithmetic of {dtype_name(dtype)} below",
            "choose an opset on this side of the boundary, or change the dtype",
        )
    return int(dtype_name(dtype).removeprefix("u").removeprefix("int"))


def lowest(dtype: int) -> float:
    """Returns the lowest finite number of a dtype: -128 of int8, -65504.0 of float16."""
    if dtype in _LARGEST_FLOATS:
        return -_LARGEST_FLOATS[dtype]
    return 0 if is_unsigned(dtype) else -(2 ** (width_of(dtype) - 1))


def largest(dtype: int) -> float:
    """Returns the largest finite number of a dtype: 127 of int8, 65504.0 of float16."""
    if dtype in _LARGEST_FLOATS:
        return _LARGEST_FLOATS[dtype]
    return 2 ** (width_of(dtype) - (not is_unsigned(dtype))) - 1


def cast(op: Emitter, x: Value, to: int) -> Value:
    """Writes a Cast; returns the value itself where it is known to have the dtype."""
    return x if x.dtype == to else op.Cast(x, to=to)


def working_dtype(*dtypes: int) -> int:
    """Returns the dtype to compute in: double if one of these is, else float, which float16 and bfloat16 become."""
    return DOUBLE if DOUBLE in dtypes else FLOAT


# ---- scalars


def number_like(op: Emitter, number: float, x: Value) -> Value:
    """Returns a float32 number as a scalar of a value's dtype, in float16 perhaps an infinity."""
    if x.dtype is None:
        return op.at(15).CastLike(op.const(number, FLOAT), x)
    if x.dtype == FLOAT16 and abs(number) >= _TO_INFINITY:
        number = math.copysign(math.inf, number)
    return op.const(number, x.dtype)


def float32_of(value: Value) -> float | None:
    """Returns the element of a constant scalar, if float32 holds it."""
    known = value.constant
    return None if known is None or known.size != 1 else as_float32(float(known.item()))


def as_float32(number: float) -> float | None:
    """Returns a number that float32 holds, None instead of another one."""
    try:
        (rounded,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return None
    return number if rounded == number or math.isnan(number) else None
