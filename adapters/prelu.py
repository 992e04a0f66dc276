# SPDX-License-Identifier: Apache-2.0
"""PRelu.

6: below, there is `consumed_inputs`, a hint about memory.
7: below, the slope has one element, or one for each channel (axis 1 of X). From 7 on the same vector (C,) stands
against the last axis: the slope is stretched to X as in numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import exchanged, permuted
from onnx_convert.adapters.lib.broadcast import is_single, padded, raise_by, rank_of, repeats, tiled
from onnx_convert.adapters.lib.dtypes import DOUBLE, INT64
from onnx_convert.adapters.lib.shapes import collapse, part, reshape, restore

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@upgrade("PRelu", at=6)
def forget_memory_hint(node: Node, op: Emitter) -> Value:
    """`consumed_inputs` never changed a number."""
    return op.same(drop=["consumed_inputs"])


@upgrade("PRelu", at=7)
def stand_slope_at_channel(node: Node, op: Emitter) -> Value:
    """A slope (C,) becomes (C, 1, ..., 1), as many ones as X has axes after the channel."""
    x, slope = node.input(0), node.input(1)
    if is_single(slope) or slope.rank not in (1, None) or (x.rank is not None and x.rank <= 2):
        return op.same()
    if x.rank is None:
        beyond = op.Relu(op.Sub(rank_of(op, x), op.const([2], DOUBLE)))
        ones = op.Tile(op.const([1]), op.Cast(beyond, to=INT64))
        return op.same(x, op.Reshape(slope, op.Concat(op.const([-1]), ones, axis=0)))
    if slope.rank is None:
        return op.same(x, op.Reshape(slope, op.const([-1] + [1] * (x.rank - 2))))
    return op.same(x, op.Unsqueeze(slope, axes=list(range(1, x.rank - 1))))


@downgrade("PRelu", at=7)
def stand_axis_as_channel(node: Node, op: Emitter) -> Value:
    """The one axis of X that the slope is about takes the place of the channel; several are flattened to one."""
    x, slope = node.input(0), node.input(1)
    if x.rank is not None and slope.rank is not None and slope.rank > x.rank:
        node.invalid("the slope has more axes than X, to which it is stretched", "reshape it")
    if is_single(slope):
        return op.same() if slope.rank == 1 else op.same(x, op.Reshape(slope, op.const([1])))
    if x.shape is None or slope.shape is None:
        return _of_unknown_rank(op, x, slope)
    rank, lead = len(x.shape), len(x.shape) - len(slope.shape)
    about = [axis for axis, dim in enumerate(padded(slope.shape, rank)) if dim != 1]
    outer = [axis for axis in range(rank - lead) if axis + lead < about[0] or axis + lead > about[-1] == about[0]]
    inner = op.Squeeze(slope, axes=outer) if outer else slope
    if about == [1]:
        return op.same(x, inner)
    if len(about) > 1 or rank == 1:
        return _flattened(op, x, inner, about[0])
    return permuted(op, x, exchanged(1, about[0], rank), lambda moved: op.same(moved, inner))


def _flattened(op: Emitter, x: Value, slope: Value, axis: int) -> Value:
    """Returns all from an axis on as one row of channels, with a slope for each."""
    shape = x.shape or ()
    counts = [repeats(dim, [length]) for dim, length in zip(slope.shape or (), shape[axis:], strict=True)]
    if None in counts:
        slope = tiled(op, slope, counts, op.Shape(slope), part(op, op.Shape(x), axis))
    else:
        slope = tiled(op, slope, counts)
    channels = op.Reshape(slope, op.const([-1])) if len(counts) > 1 else slope
    y = op.same(op.Flatten(x, axis=axis), channels)
    known = [dim for dim in shape if isinstance(dim, int) and dim]
    if len(known) >= len(shape) - 1:
        return op.Reshape(y, op.const([dim if dim in known else -1 for dim in shape]))
    return reshape(op, y, op.Shape(x))


def _of_unknown_rank(op: Emitter, x: Value, slope: Value) -> Value:
    """Writes the node where the rank is unknown: a vector is about the last axis; any other slope is repeated to the
    shape of X, and both are flattened."""
    if slope.rank == 1:
        flat, before = collapse(op, x, 1)
        return restore(op, op.same(flat, slope), before)
    raised = raise_by(op, slope, op.at(6).Sub(rank_of(op, x), rank_of(op, slope)))
    shape = op.Shape(x)
    full = tiled(op, raised, [None], op.Shape(raised), shape)
    y = op.same(op.Reshape(x, op.const([1, -1])), op.Reshape(full, op.const([-1])))
    return reshape(op, y, shape)
