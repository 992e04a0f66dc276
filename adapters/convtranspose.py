# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose.

11: where an odd number of pads is found for the node, below the text gives the odd one to the other side than from 11
on. Runtimes have always followed 11, so that is what the node means; stated as pads, every reader agrees. Before 11 the
text leaves open whether output_shape has the batch and the channels too; from 11 on it has not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.windows import SAME

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@upgrade("ConvTranspose", at=11)
@downgrade("ConvTranspose", at=11)
def state_odd_pads(node: Node, op: Emitter) -> Value:
    """Pads that are found for the node are stated where their number is odd, if the sizes are known."""
    pads, wanted = _pads(node), _wanted(node)
    if pads is not None and pads[: len(pads) // 2] != pads[len(pads) // 2 :]:
        return op.same(drop=("auto_pad", "output_shape"), pads=pads)
    return op.same() if wanted == node.attr("output_shape") else op.same(output_shape=wanted)


def _pads(node: Node) -> list[int] | None:
    """Returns the pads as of 11, None if they are stated or depend on sizes that are not known."""
    mode, wanted = node.attr("auto_pad"), _wanted(node)
    if mode not in SAME and not wanted:
        return None
    if not wanted and any(node.attr("output_padding") or ()):
        return None  # text, inference and runtimes disagree on the size: it stays as it is
    kernel, sizes = node.attr("kernel_shape") or _spatial(node, 1), _spatial(node, 0)
    if kernel is None:
        return None
    ones = [1] * len(kernel)
    strides, dilations = node.attr("strides") or ones, node.attr("dilations") or ones
    extra = node.attr("output_padding") or [0] * len(kernel)
    begin, end = [], []
    for i, (k, stride, dilation) in enumerate(zip(kernel, strides, dilations, strict=True)):
        total = (k - 1) * dilation + 1 + extra[i] - stride  # SAME: the output is the input times the stride
        if wanted:
            if sizes is None:
                return None
            total += stride * sizes[i] - wanted[i]
        total = max(total, 0)
        first = total // 2 if mode == "SAME_UPPER" else total - total // 2
        begin.append(first)
        end.append(total - first)
    return begin + end


def _wanted(node: Node) -> list[int] | None:
    """Returns output_shape without the batch and the channels."""
    wanted, kernel = node.attr("output_shape"), node.attr("kernel_shape")
    rank = len(kernel) + 2 if kernel else node.input(0).rank
    return wanted[2:] if wanted and len(wanted) == rank else wanted


def _spatial(node: Node, index: int) -> list[int] | None:
    shape = node.input(index).shape
    sizes = [size for size in shape[2:] if isinstance(size, int)] if shape is not None else []
    return sizes if shape is not None and len(sizes) == len(shape) - 2 else None
