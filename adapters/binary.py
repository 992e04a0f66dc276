# SPDX-License-Identifier: Apache-2.0
"""The binary operators: Add, Sub, Mul, Div, Pow, And, Or, Xor, Equal, Greater, Less.

6: below, Add, Sub, Mul and Div have `consumed_inputs`, a hint about memory.
7: below, shapes are equal, or `broadcast` is 1: then B has one element, or its shape is a contiguous block of A's that
begins at `axis` (default: that ends where A's ends); A is never stretched. From 7 on both are stretched as in numpy.
11: below, Equal takes bool, int32 and int64 only.
12: below, base and exponent of Pow have one dtype, a float.
15: below, the exponent of Pow is no bfloat16.
19: below, Equal does not take strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy

from onnx_convert.adapter import downgrade, dtype_name, upgrade
from onnx_convert.adapters.lib.broadcast import is_single, padded, rank_of, same_shape, stretched
from onnx_convert.adapters.lib.dtypes import BFLOAT16, BOOL, DOUBLE, FIRST_FLOATS, FLOAT, INT64, STRING, UINT64
from onnx_convert.adapters.lib.indices import flat, like
from onnx_convert.adapters.lib.shapes import END

if TYPE_CHECKING:
    from onnx_convert.adapter import Dim, Emitter, Node, Shape, Value

OPERATORS: Final = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")

# What an operator is called when its inputs change places.
MIRRORED: Final = {
    **{operator: operator for operator in ("Add", "Mul", "And", "Or", "Xor", "Equal")},
    "Greater": "Less",
    "Less": "Greater",
}


@upgrade("Add", "Sub", "Mul", "Div", at=6)
def forget_memory_hint(node: Node, op: Emitter) -> Value:
    """`consumed_inputs` never changed a number."""
    return op.same(drop=["consumed_inputs"])


# ---- up


@upgrade(*OPERATORS, at=7)
def align_block(node: Node, op: Emitter) -> Value:
    """A block that is not the end of A's shape gets trailing axes of length 1; the attributes go."""
    a, b = node.input(0), node.input(1)
    if node.attr("broadcast"):
        b = _aligned(node, op, a, b, node.attr("axis", default=-1))
    elif a.shape is not None and b.shape is not None and _differ(a.shape, b.shape):
        shapes = f"{_shown(a.shape)} and {_shown(b.shape)}"
        node.invalid(f"without broadcast A and B have one shape, not {shapes}", "set broadcast")
    return op.same(a, b, drop=["axis", "broadcast"])


def _aligned(node: Node, op: Emitter, a: Value, b: Value, axis: int) -> Value:
    """Returns B as numpy has to see it; in the wild an axis of -1 says what no axis says."""
    if b.rank == 0 or (is_single(b) and a.rank is not None and b.rank is not None and b.rank <= a.rank):
        return b
    if is_single(b):
        return _scalar(op, b)
    if axis < -1:
        node.invalid(f"axis {axis} is none: they are counted from the front", "correct the axis")
    if a.shape is None or b.shape is None:
        return b if axis == -1 else _aligned_at_run_time(op, a, b, axis)
    start = len(a.shape) - len(b.shape) if axis == -1 else axis
    missing = len(a.shape) - len(b.shape) - start
    if start >= 0 and missing >= 0:
        if any(_clash(dim, other) and other != 1 for dim, other in zip(a.shape[start:], b.shape, strict=False)):
            _refuse_shapes(node, a.shape, b.shape)
        return op.Unsqueeze(b, axes=list(range(len(b.shape), len(b.shape) + missing))) if missing else b
    if any(_clash(dim, 1) for dim in b.shape):
        _refuse_shapes(node, a.shape, b.shape)
    return _scalar(op, b)


def _refuse_shapes(node: Node, a: Shape, b: Shape) -> NoReturn:
    axis = node.attr("axis")
    place = "at its end" if axis in (None, -1) else f"at axis {axis}"
    node.invalid(f"B of shape {_shown(b)} is no block of A's {_shown(a)} {place}", "correct the shapes or the axis")


def _differ(a: Shape, b: Shape) -> bool:
    """Returns whether two shapes are known not to be the same."""
    return len(a) != len(b) or any(map(_clash, a, b))


def _clash(one: Dim, other: Dim) -> bool:
    """Returns whether two sizes are known not to be the same."""
    return isinstance(one, int) and isinstance(other, int) and one != other


def _shown(shape: Shape) -> str:
    return f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]"


def _scalar(op: Emitter, x: Value) -> Value:
    """Returns the one element of a value that has a higher rank than what it is combined with."""
    return op.Reshape(x, op.const([]))


def _aligned_at_run_time(op: Emitter, a: Value, b: Value, axis: int) -> Value:
    """Appends rank(A) - axis - rank(B) ones to B's shape; none if that is below 0, as one element allows."""
    beyond = op.Sub(op.Sub(rank_of(op, a), rank_of(op, b)), op.const([axis], DOUBLE))
    ones = op.Tile(op.const([1]), op.Cast(op.Relu(beyond), to=INT64))
    return op.Reshape(b, op.Concat(op.Shape(b), ones, axis=0))


# ---- down


@downgrade(*OPERATORS, at=7)
def fit_as_block(node: Node, op: Emitter) -> Value:
    """Equal shapes need nothing, a block `broadcast` and `axis`; all else is repeated to the common shape."""
    a, b = node.input(0), node.input(1)
    if same_shape(a, b):
        return op.same()
    if (span := block(a.shape, b.shape)) is not None:
        return _fitted(op, a, b, span, node.operator)
    mirrored = MIRRORED.get(node.operator)
    if mirrored is not None and (span := block(b.shape, a.shape)) is not None:
        return _fitted(op, b, a, span, mirrored)
    return op.same(*stretched(op, a, b))


def block(a: Shape | None, b: Shape | None) -> tuple[int, int] | None:
    """Returns the axes of A that B stands against without its outer axes of length 1, if it is known to fit there."""
    if b == ():
        return 0, 0
    if a is None or b is None or len(b) > len(a):
        return None
    dims = padded(b, len(a))
    inner = [axis for axis, dim in enumerate(dims) if dim != 1]
    start, stop = (inner[0], inner[-1] + 1) if inner else (0, 0)
    fits = all(dim is not None and dim == other for dim, other in zip(dims[start:stop], a[start:stop], strict=True))
    return (start, stop) if fits else None


def _fitted(op: Emitter, a: Value, b: Value, span: tuple[int, int], operator: str) -> Value:
    start, stop = span
    if start == stop:
        return op.same(a, b, operator=operator, broadcast=1)
    rank, own = len(a.shape or ()), len(b.shape or ())
    outer = [axis - rank + own for axis in range(rank - own, rank) if not start <= axis < stop]
    inner = op.Squeeze(b, axes=outer) if outer else b
    return op.same(a, inner, operator=operator, broadcast=1, axis=start if stop < rank else None)


# ---- Equal, by dtype


@downgrade("Equal", at=11)
def compare_floats_by_order(node: Node, op: Emitter) -> Value:
    """Floats are equal if none is less or greater and none is NaN.

    The sum shows a NaN in either of them. It is one for opposite infinities too, which are not equal anyway.
    """
    a, b = node.input(0), node.input(1)
    dtype = a.dtype or b.dtype or node.dtype(0)
    if dtype == UINT64:  # a difference wraps around, and is 0 for equal numbers only
        return op.Not(op.Cast(op.at(7).Sub(a, b), to=BOOL))
    if dtype not in FIRST_FLOATS:
        return op.same()
    total = op.Add(a, b)
    ordered = op.Or(op.Less(total, op.const(1, dtype)), op.Greater(total, op.const(0, dtype)))
    return op.And(ordered, op.Not(op.Or(op.Less(a, b), op.Greater(a, b))))


@downgrade("Equal", at=19)
def compare_strings_by_rank(node: Node, op: Emitter) -> Value:
    """Strings are numbered in one Unique of both inputs, and the numbers compared."""
    a, b = node.input(0), node.input(1)
    if STRING not in (a.dtype, b.dtype):
        return op.same()
    flat_a, flat_b = flat(op, a), flat(op, b)
    number = op.node("Unique", op.Concat(flat_a, flat_b, axis=0), outputs=3)[2]
    border = op.Shape(flat_a)
    first = op.Slice(number, op.const([0]), border)
    second = op.Slice(number, border, op.const([END]))
    return op.same(like(op, first, a), like(op, second, b))


# ---- Pow, whose base and exponent differ in dtype

# The dtypes whose every value a base's dtype holds, and the base's dtype as numpy calls it.
_HELD: Final = {
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
    spelled, held = _HELD.get(name, ("", ""))
    constant = exponent.constant
    if spelled and constant is not None and _survives(constant, spelled):
        return op.same(base, op.const(constant, base.dtype))
    if dtype_name(exponent.dtype) not in held.split():
        op.conditional(f"every exponent is a value of {name}")
    return op.same(base, op.Cast(exponent, to=base.dtype))


def _survives(exponents: numpy.ndarray[Any, Any], dtype: str) -> bool:
    with numpy.errstate(all="ignore"):
        return bool((exponents.astype(dtype).astype(exponents.dtype) == exponents).all())
