# SPDX-License-Identifier: Apache-2.0
"""DepthToSpace, SpaceToDepth.

Both know two orders of the channels: under DCR the place in the block counts first, under CRD the depth does.
11: DepthToSpace has `mode`; below, it is DCR.
28: SpaceToDepth has `mode`; below, it is DCR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.shapes import part, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@downgrade("DepthToSpace", at=11)
def reorder_channels_before(node: Node, op: Emitter) -> Value:
    """Channels in the order of CRD are put in that of DCR first."""
    x, places = node.input(0), node.attr("blocksize") ** 2
    if node.attr("mode") == "DCR":
        return op.same(drop=("mode",))
    channels = x.shape[1] if x.shape else None
    return op.same(_reordered(op, x, channels, places, places_last=True), drop=("mode",))


@downgrade("SpaceToDepth", at=28)
def reorder_channels_after(node: Node, op: Emitter) -> Value:
    """Channels that come out in the order of DCR are put in that of CRD."""
    x, places = node.input(0), node.attr("blocksize") ** 2
    y = op.same(drop=("mode",))
    if node.attr("mode") == "DCR":
        return y
    depth = x.shape[1] if x.shape else None
    channels = depth * places if isinstance(depth, int) else None
    return _reordered(op, y, channels, places, places_last=False)


def _reordered(op: Emitter, x: Value, channels: int | str | None, places: int, *, places_last: bool) -> Value:
    """Returns the channels, which count depth and places in one order, in the other one."""
    if isinstance(channels, int):
        depth = channels // places
        outer, inner = (places, depth) if places_last else (depth, places)
        order = [i * outer + o for o in range(outer) for i in range(inner)]
        return op.Gather(x, op.const(order), axis=1)
    shape = op.Shape(x)
    depths, number = op.at(7).Div(part(op, shape, 1, 2), op.const([places])), op.const([places])
    split = (depths, number) if places_last else (number, depths)
    apart = reshape(op, x, op.Concat(part(op, shape, 0, 1), *split, part(op, shape, 2), axis=0))
    return reshape(op, op.Transpose(apart, perm=[0, 2, 1, 3, 4]), shape)
