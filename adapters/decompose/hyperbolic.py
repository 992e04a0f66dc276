# SPDX-License-Identifier: Apache-2.0
"""Functions of angles, circular and hyperbolic, as sound as the operators themselves: nothing overflows, cancels or
gets lost near 0 where the function does not. float16 is computed in float.

7: Sin, Cos, Tan, Asin, Acos, Atan are there; below, nothing is that they could be made of.
9: Sinh, Cosh, Asinh, Acosh, Atanh are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, impossible
from onnx_convert.adapters.lib.dtypes import FLOAT, FLOAT16
from onnx_convert.adapters.lib.script import Compiled, Function

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

WHY: Final = "made of exponentials and logarithms"

compiled: Final = Compiled("hyperbolic")

impossible(
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan"),
    at=7,
    direction="down",
    reason="there is no trigonometric operator below opset 7, and nothing to make one of but approximations",
    remedy="go no lower than opset 7",
)


@downgrade("Cosh", at=9)
def cosh_by_exponential(node: Node, op: Emitter) -> Value:
    """Half of h * h + 1 / (h * h) where h is Exp(x / 2), halved first: it overflows no earlier than Cosh."""
    return _in_float(node, op, compiled.cosh)


@downgrade("Sinh", at=9)
def sinh_by_half_angle(node: Node, op: Emitter) -> Value:
    """2 sinh(x / 2) cosh(x / 2) as tanh(x / 2) (h + 1 / h)**2 / 2 where h is Exp(x / 2): nothing cancels near 0."""
    return _in_float(node, op, compiled.sinh)


@downgrade("Asinh", at=9)
def asinh_by_logarithm(node: Node, op: Emitter) -> Value:
    """That of the magnitude, with the sign."""
    return _in_float(node, op, compiled.asinh)


@downgrade("Acosh", at=9)
def acosh_by_asinh(node: Node, op: Emitter) -> Value:
    """2 asinh(sqrt((x - 1) / 2)), which is NaN below 1."""
    return _in_float(node, op, compiled.acosh)


@downgrade("Atanh", at=9)
def atanh_by_logarithm(node: Node, op: Emitter) -> Value:
    """Half of log(1 + x) - log(1 - x)."""
    return _in_float(node, op, compiled.atanh)


def _in_float(node: Node, op: Emitter, function: Function) -> Value:
    x, dtype = node.input(0), node.dtype(0)
    op.equivalent(WHY)
    if dtype != FLOAT16:
        return op.call(function, x)
    return op.Cast(op.call(function, op.Cast(x, to=FLOAT)), to=FLOAT16)
