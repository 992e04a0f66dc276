# SPDX-License-Identifier: Apache-2.0
"""LayerNormalization, RMSNormalization, MeanVarianceNormalization. (GroupNormalization has a file with its versions.)

9: MeanVarianceNormalization.   17: LayerNormalization.   23: RMSNormalization.

The variance is the mean of squared distances from the mean: the difference of two squares, which the bodies of the
specification take, loses everything where the mean is large. Stages work in single precision at least, as runtimes do;
`stash_type` is the dtype of the statistics that are handed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import cast, working_dtype
from onnx_convert.adapters.lib.shapes import ones_like, part, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_BIAS: Final = 2
_MEAN, _INVERSE_DEVIATION = 1, 2
_TO_THE_DEVIATION: Final = 1e-9  # MeanVarianceNormalization adds it to the root, the others to what is under it


@downgrade("LayerNormalization", at=17)
def normalise_trailing_axes(node: Node, op: Emitter) -> tuple[Value | None, ...]:
    """Distances from the mean over their root mean square, then scale and bias."""
    op.equivalent("mean and variance are computed by other operators")
    dtype, stash, bias = node.dtype(0), node.attr("stash_type"), node.optional_input(_BIAS)
    work = working_dtype(dtype, stash)
    view, axes = _view(node, op)
    x = cast(op, view, work)
    mean = _mean(op, x, axes)
    distance = op.Sub(x, mean)
    deviation = _root_mean_square(node, op, distance, axes, work)
    y = op.Mul(_restored(node, op, cast(op, op.Div(distance, deviation), dtype)), node.input(1))
    statistics: list[Value | None] = [None, None]
    if node.is_read(_MEAN):
        statistics[0] = cast(op, _with_ones(node, op, mean), stash)
    if node.is_read(_INVERSE_DEVIATION):
        statistics[1] = cast(op, _with_ones(node, op, op.Reciprocal(deviation)), stash)
    return (y if bias is None else op.Add(y, bias), *statistics)


@downgrade("RMSNormalization", at=23)
def divide_by_root_mean_square(node: Node, op: Emitter) -> Value:
    """Elements over their root mean square, times the scale."""
    op.equivalent("the mean square is computed by other operators")
    work = working_dtype(node.dtype(0), node.attr("stash_type"))
    view, axes = _view(node, op)
    x = cast(op, view, work)
    y = op.Div(x, _root_mean_square(node, op, x, axes, work))
    return op.Mul(_restored(node, op, cast(op, y, node.dtype(1))), node.input(1))


@downgrade("MeanVarianceNormalization", at=9)
def normalise_named_axes(node: Node, op: Emitter) -> Value:
    """Distances from the mean over the standard deviation, to which a little is added."""
    op.equivalent("mean and variance are computed by other operators")
    dtype, axes = node.dtype(0), node.attr("axes")
    work = working_dtype(dtype)
    x = cast(op, node.input(0), work)
    distance = op.Sub(x, _mean(op, x, axes))
    deviation = op.Sqrt(_mean(op, op.Mul(distance, distance), axes))
    return cast(op, op.Div(distance, op.Add(deviation, op.const(_TO_THE_DEVIATION, work))), dtype)


def _mean(op: Emitter, x: Value, axes: list[int]) -> Value:
    return op.at(13).ReduceMean(x, axes=axes or None, keepdims=1)


def _root_mean_square(node: Node, op: Emitter, x: Value, axes: list[int], dtype: int) -> Value:
    square = _mean(op, op.Mul(x, x), axes)
    return op.Sqrt(op.Add(square, op.const(node.attr("epsilon"), dtype)))


# ---- an axis that counts from the beginning of an unknown rank


def _is_flattened(node: Node) -> bool:
    return node.input(0).rank is None and node.attr("axis") >= 0


def _view(node: Node, op: Emitter) -> tuple[Value, list[int]]:
    """Returns the input, or a matrix of it, and the axes to normalise."""
    x, axis = node.input(0), node.attr("axis")
    if _is_flattened(node):
        return op.Flatten(x, axis=axis), [1]
    if x.rank is None:
        return x, list(range(axis, 0))
    return x, list(range(node.axis(axis, x.rank), x.rank))


def _restored(node: Node, op: Emitter, y: Value) -> Value:
    return reshape(op, y, op.Shape(node.input(0))) if _is_flattened(node) else y


def _with_ones(node: Node, op: Emitter, statistic: Value) -> Value:
    """Returns a statistic with as many dimensions as the input."""
    if not _is_flattened(node):
        return statistic
    shape, axis = op.Shape(node.input(0)), node.attr("axis")
    after = ones_like(op, part(op, shape, axis))
    return reshape(op, statistic, op.Concat(part(op, shape, 0, axis), after, axis=0) if axis else after)
