# SPDX-License-Identifier: Apache-2.0
"""The windows of a pool: where they lie, which pads find them all, also where sizes are not known.

`ceil_mode` takes a last window that leaves the padded input, unless it would begin behind the input: longer pads at the
end do just that, whatever the sizes are. SAME pads leave nothing to round.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.lib.dtypes import number_like
from onnx_convert.adapters.lib.numbers import Number, Numbers
from onnx_convert.adapters.lib.shapes import known_size, ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Value

SAME: Final = ("SAME_UPPER", "SAME_LOWER")


class Windows:
    """The places of the windows of a pool, with an entry for each spatial axis.

    `begin` and `end` are the pads; `reach` is the pad at the end with which rounding down finds all windows. They are
    computed at run time where SAME makes them depend on a size that is not known.
    """

    def __init__(self, node: Node, op: Emitter) -> None:
        self.x, self.numbers = node.input(0), Numbers(op)
        self.kernel: list[int] = node.attr("kernel_shape")
        self.axes: Final = range(len(self.kernel))
        self.strides: list[int] = node.attr("strides") or [1 for _ in self.axes]
        self.dilations: list[int] = node.attr("dilations") or [1 for _ in self.axes]
        self.extents: Final = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        self.gaps: Final = [k > 1 and d > 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        self.mode: Final[str] = node.attr("auto_pad")
        self.ceil: Final = bool(node.attr("ceil_mode")) and self.mode not in SAME
        given = (node.attr("pads") if self.mode == "NOTSET" else None) or [0 for _ in self.axes] * 2
        self._pads = [self.numbers.of(pad) for pad in given]
        fixed = (1 in (self.strides[i], self.extents[i]) or self.known_size(i) is not None for i in self.axes)
        self.known = self.mode not in SAME or all(fixed)  # the pads

    def size(self, axis: int) -> Number:
        """Returns the size of the input along a spatial axis."""
        return self.numbers.size(self.x, axis + 2)

    def known_size(self, axis: int) -> int | None:
        """Returns the same, None if it is not known."""
        return known_size(self.x, axis + 2)

    @cached_property
    def begin(self) -> list[Number]:
        """The pads before the input."""
        if self.mode not in SAME:
            return self._pads[: len(self.kernel)]
        return [total - total // 2 if self.mode == "SAME_LOWER" else total // 2 for total in map(self._same, self.axes)]

    @cached_property
    def end(self) -> list[Number]:
        """The pads after the input."""
        if self.mode not in SAME:
            return self._pads[len(self.kernel) :]
        return [self._same(axis) - self.begin[axis] for axis in self.axes]

    @cached_property
    def reach(self) -> list[Number]:
        """The pads after the input with which rounding down finds all windows, and none that begins in them."""
        return [self._reach(axis) for axis in self.axes] if self.ceil else self.end

    def _reach(self, axis: int) -> Number:
        end, stride, extent, size = self.end[axis], self.strides[axis], self.extents[axis], self.known_size(axis)
        reach = (end + (stride - 1)).at_most(extent - 1)
        if size is None:
            return reach
        spans = [(size + self.begin[axis] + pad - extent) // stride for pad in (end, reach)]
        return end if spans[0].number == spans[1].number else spans[1] * stride + extent - size - self.begin[axis]

    def _same(self, axis: int) -> Number:
        """Returns all that SAME pads on an axis."""
        stride, extent = self.strides[axis], self.extents[axis]
        if 1 in (stride, extent):
            return self.numbers.of(extent - 1)
        size = self.size(axis)
        return ((size.divided_up(stride) - 1) * stride + extent - size).at_least(0)

    @property
    def pads(self) -> list[int]:
        """The known pads that find all windows when their number is rounded down."""
        return [pad.number for pad in (*self.begin, *self.reach)]

    @property
    def counted(self) -> list[Number]:
        """The pads at the end, where they lie within a window."""
        return [end.at_most(reach) for end, reach in zip(self.end, self.reach, strict=True)]

    def padded(self, end: Sequence[Number], value: float = 0.0) -> Windows:
        """Makes the pads before the input, and these at its end, part of it: returns the windows over the result."""
        other = copy(self)
        other.x = pad_spatial(self.numbers.op, self.x, self.begin, end, value)
        zero, other.known = self.numbers.of(0), True
        other.begin = [zero for _ in self.axes]
        other.end = other.reach = [
            zero if reach is pad else reach - pad for reach, pad in zip(self.reach, end, strict=True)
        ]
        return other

    def count(self, axis: int) -> Number:
        """Returns how many windows an axis has."""
        return (self.size(axis) + self.begin[axis] + self.reach[axis] - self.extents[axis]) // self.strides[axis] + 1


def pad_spatial(op: Emitter, x: Value, begin: Sequence[Number], end: Sequence[Number], value: float) -> Value:
    """Writes a Pad of the axes behind batch and channels; nothing where all pads are known to be 0."""
    known = [pad.number for pad in (*begin, *end)]
    if None in known:
        x, pads = ranked(op, x, 2 + len(begin)), begin[0].numbers.vector([0, 0, *begin, 0, 0, *end])
        return op.at(11).Pad(x, pads, number_like(op, value, x))
    if not any(known):
        return x
    return op.at(10).Pad(x, pads=[0, 0, *known[: len(begin)], 0, 0, *known[len(begin) :]], value=float(value))
