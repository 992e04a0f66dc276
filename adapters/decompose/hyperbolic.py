# SPDX-License-Identifier: Apache-2.0
"""Functions of angles, circular and hyperbolic, as sound as the operators themselves: nothing overflows, cancels or
gets lost near 0 where the function does not. float16 is computed in float.

7: Sin, Cos, Tan, Asin, Acos, Atan are there; below, nothing is that they could be made of.
9: Sinh, Cosh, Asinh, Acosh, Atanh are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.shapes import FLOAT
from onnx_convert.registry import downgrade, impossible
from onnx_convert.types import dtype_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value

    Build = Callable[[Emitter, Value, int], Value]

FLOAT16: Final = dtype_number("float16")
WHY: Final = "made of exponentials and logarithms"

# Beyond this the square root of 1 + a * a is a in every dtype, and a * a overflows in none that is computed in.
LARGE: Final = 2.0**30

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
    return _in_float(node, op, _cosh)


@downgrade("Sinh", at=9)
def sinh_by_half_angle(node: Node, op: Emitter) -> Value:
    """2 sinh(x / 2) cosh(x / 2) as tanh(x / 2) (h + 1 / h)**2 / 2 where h is Exp(x / 2): nothing cancels near 0."""
    return _in_float(node, op, _sinh)


@downgrade("Asinh", at=9)
def asinh_by_logarithm(node: Node, op: Emitter) -> Value:
    """That of the magnitude, with the sign."""
    return _in_float(node, op, _asinh)


@downgrade("Acosh", at=9)
def acosh_by_asinh(node: Node, op: Emitter) -> Value:
    """2 asinh(sqrt((x - 1) / 2)), which is NaN below 1."""
    return _in_float(node, op, _acosh)


@downgrade("Atanh", at=9)
def atanh_by_logarithm(node: Node, op: Emitter) -> Value:
    """Half of log(1 + x) - log(1 - x)."""
    return _in_float(node, op, _atanh)


def _in_float(node: Node, op: Emitter, build: Build) -> Value:
    x, dtype = node.input(0), node.dtype(0)
    op.equivalent(WHY)
    if dtype != FLOAT16:
        return build(op, x, dtype)
    return op.Cast(build(op, op.Cast(x, to=FLOAT), FLOAT), to=FLOAT16)


def _cosh(op: Emitter, x: Value, dtype: int) -> Value:
    half = op.const(0.5, dtype)
    grown = op.Exp(op.Mul(x, half))
    shrunk = op.Reciprocal(grown)
    return op.Add(op.Mul(op.Mul(grown, half), grown), op.Mul(op.Mul(shrunk, half), shrunk))


def _sinh(op: Emitter, x: Value, dtype: int) -> Value:
    half = op.const(0.5, dtype)
    halved = op.Mul(x, half)
    grown = op.Exp(halved)
    both = op.Add(grown, op.Reciprocal(grown))
    return op.Mul(op.Mul(op.Mul(op.Tanh(halved), both), half), both)


def _asinh(op: Emitter, x: Value, dtype: int) -> Value:
    return op.Mul(_asinh_of_magnitude(op, op.Abs(x), dtype), op.at(9).Sign(x))


def _acosh(op: Emitter, x: Value, dtype: int) -> Value:
    root = op.Sqrt(op.Mul(op.Sub(x, op.const(1, dtype)), op.const(0.5, dtype)))
    return op.Mul(_asinh_of_magnitude(op, root, dtype), op.const(2, dtype))


def _asinh_of_magnitude(op: Emitter, a: Value, dtype: int) -> Value:
    """log(1 + y) where y is b + b * b / (1 + sqrt(1 + b * b)) and b is a up to the large number; beyond, a grows by
    what is added here as log(a / b), which is 0 up to it."""
    one = op.const(1, dtype)
    b = op.at(6).Clip(a, max=LARGE)
    square = op.Mul(b, b)
    y = op.Add(b, op.Div(square, op.Add(op.Sqrt(op.Add(square, one)), one)))
    total, lost = _one_more(op, y, one)
    beyond = op.Add(op.Mul(op.Sub(a, b), op.const(1 / LARGE, dtype)), one)
    return op.Add(op.Add(op.Log(total), op.Div(lost, total)), op.Log(beyond))


def _atanh(op: Emitter, x: Value, dtype: int) -> Value:
    one = op.const(1, dtype)
    # what is lost is as good as its quotient here, since 1 - x is exact where x is no small number
    up, down = (op.Add(op.Log(total), lost) for total, lost in (_one_more(op, y, one) for y in (x, op.Neg(x))))
    return op.Mul(op.Sub(up, down), op.const(0.5, dtype))


def _one_more(op: Emitter, x: Value, one: Value) -> tuple[Value, Value]:
    """1 + x as it is rounded, and what was lost: log(1 + x) is Log of the first plus the quotient of both."""
    total = op.Add(x, one)
    return total, op.Sub(x, op.Sub(total, one))
