# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""The mathematics of hyperbolic functions, in ONNX Script: nothing overflows, cancels or gets lost near 0 where the
function does not. No conversion imports this: `python tests/helpers/compile_scripts.py` compiles it into
`hyperbolic.onnxtxt`.
"""

from onnxscript import opset18 as op
from onnxscript import script

LARGE = 2.0**30  # beyond, the square root of 1 + a * a is a in every dtype; a * a overflows in none, float16 apart


@script()
def cosh(x):
    """exp(x) / 2 + exp(-x) / 2, of squares that are halved before they are whole: overflows no earlier than Cosh."""
    grown = op.Exp(x * 0.5)
    shrunk = op.Reciprocal(grown)
    return grown * 0.5 * grown + shrunk * 0.5 * shrunk


@script()
def sinh(x):
    """2 sinh(x / 2) cosh(x / 2), whose first factor is tanh(x / 2) cosh(x / 2): nothing cancels near 0."""
    half = x * 0.5
    grown = op.Exp(half)
    both = grown + op.Reciprocal(grown)
    return op.Tanh(half) * both * 0.5 * both


@script(default_opset=op)
def _one_more(x):
    """1 + x as it is rounded, and what was lost: log(1 + x) is Log of the first plus the quotient of both."""
    total = x + 1.0
    return total, x - (total - 1.0)


@script()
def _asinh_of_magnitude(a):
    """log(1 + y) where y is b + b * b / (1 + sqrt(1 + b * b)) and b is a up to the large number; beyond, a grows by
    what is added last as log(a / b), which is 0 up to it."""
    b = op.Clip(a, 0.0, LARGE)
    square = b * b
    total, lost = _one_more(b + square / (op.Sqrt(square + 1.0) + 1.0))
    return op.Log(total) + lost / total + op.Log((a - b) / LARGE + 1.0)


@script()
def asinh(x):
    """Not by Sign, which is no older than Asinh and would have to be replaced with care for NaN."""
    return _asinh_of_magnitude(op.Abs(x)) * (1.0 - op.CastLike(x < 0.0, x) * 2.0)


@script()
def acosh(x):
    """2 asinh(sqrt((x - 1) / 2)), which is NaN below 1."""
    return _asinh_of_magnitude(op.Sqrt((x - 1.0) * 0.5)) * 2.0


@script()
def atanh(x):
    """Half of log(1 + x) - log(1 - x). What is lost is as good as its quotient here, since 1 - x is exact where x is no
    small number."""
    up, lost_up = _one_more(x)
    down, lost_down = _one_more(-x)
    return (op.Log(up) + lost_up - (op.Log(down) + lost_down)) * 0.5
