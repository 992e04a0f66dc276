# SPDX-License-Identifier: Apache-2.0
"""Shape.

15: `start` and `end` choose a part of the shape; below, it is the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.shapes import END, part

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@downgrade("Shape", at=15)
def slice_of_whole_shape(node: Node, op: Emitter) -> Value:
    """A part of the shape is cut out of the whole."""
    start, end, rank = node.attr("start"), node.attr("end"), node.input(0).rank
    whole = op.same(drop=("start", "end"))
    if rank is not None:  # bounds before the first axis, which Slice does not promise to clamp, are clamped here
        start, end, _ = slice(start, end).indices(rank)
        end = None if end == rank else end
    return whole if start == 0 and end is None else part(op, whole, start, END if end is None else end)
