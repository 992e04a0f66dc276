# SPDX-License-Identifier: Apache-2.0
"""RoiAlign.

16: `coordinate_transformation_mode`: `half_pixel` (the default) shifts regions by half a pixel, `output_half_pixel` is
the old rule, which besides makes a region that is smaller than a pixel one pixel wide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, upgrade

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_MODE: Final = "coordinate_transformation_mode"


@upgrade("RoiAlign", at=16)
def old_coordinates_by_name(node: Node, op: Emitter) -> Value:
    """The old rule is output_half_pixel now."""
    return op.same(coordinate_transformation_mode="output_half_pixel")


@downgrade("RoiAlign", at=16)
def regions_half_a_pixel_off(node: Node, op: Emitter) -> Value:
    """half_pixel moves the regions by half a pixel; the same for those of at least one pixel."""
    if node.attr(_MODE) == "output_half_pixel":
        return op.same(drop=(_MODE,))
    x, rois, images = node.input(0), node.input(1), node.input(2)
    scale, known = node.attr("spatial_scale"), rois.constant
    if known is not None and ((known[:, 2:] - known[:, :2]) * scale >= 1).all():
        op.equivalent("the regions are shifted before they are scaled")
    else:
        op.conditional("every region is at least one pixel wide and high after `spatial_scale`")
    shifted = op.Sub(rois, op.const(0.5 / scale, node.dtype(1)))
    return op.same(x, shifted, images, drop=(_MODE,))
