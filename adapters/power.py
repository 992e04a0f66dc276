# SPDX-License-Identifier: Apache-2.0
"""Pow, where base and exponent differ in dtype (how they are stretched is told in `broadcasting`).

12: below, base and exponent have one dtype, a float.
15: below, the exponent is no bfloat16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade, dtype_name
from onnx_convert.adapters.lib.dtypes import BFLOAT16, FLOAT

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


# The dtypes whose every value a base's dtype holds, and the base's dtype as numpy calls it.
HELD: Final = {
    "float16": ("float16", "int8 uint8"),
    "float": ("float32", "int8 uint8 int16 uint16 float16 bfloat16"),
    "double": ("float64", "int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float"),
    "int32": ("int32", "int8 uint8 int16 uint16"),
    "int64": ("int64", "int8 uint8 int16 uint16 int32 uint32"),
}


@downgrade("Pow", at=15)
def widen_exponent(node: Node, op: Emitter) -> Value:
    """An exponent of bfloat16 becomes one of float, which holds all its values."""
    exponent = node.input(1)
    return op.same(node.input(0), op.Cast(exponent, to=FLOAT)) if exponent.dtype == BFLOAT16 else op.same()


@downgrade("Pow", at=12)
def cast_exponent_to_base(node: Node, op: Emitter) -> Value:
    """The exponent gets the dtype of the base, which is right where that holds its values."""
    base, exponent = node.input(0), node.input(1)
    if base.dtype is None or exponent.dtype is None or base.dtype == exponent.dtype:
        return op.same()
    name = dtype_name(base.dtype)
    spelled, held = HELD.get(name, ("", ""))
    constant = exponent.constant
    if spelled and constant is not None and _survives(constant, spelled):
        return op.same(base, op.const(constant, base.dtype))
    if dtype_name(exponent.dtype) not in held.split():
        op.conditional(f"every exponent is a value of {name}")
    return op.same(base, op.Cast(exponent, to=base.dtype))


def _survives(exponents: numpy.ndarray[Any, Any], dtype: str) -> bool:
    with numpy.errstate(all="ignore"):
        return bool((exponents.astype(dtype).astype(exponents.dtype) == exponents).all())
