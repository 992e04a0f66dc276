# SPDX-License-Identifier: Apache-2.0
"""What the elements of an input may be, as the nodes say that use it: an index in range, a mask, a length, a shape.

A row of `ROLES` is an operator, an input of it, and the function that says what this input may hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from onnx import TensorProto

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onnx_convert.verification.uses import Use, Uses

    Shapes = Mapping[str, "list[int | None]"]


@dataclass(frozen=True)
class Allowed:
    """The elements that an input may have: at least `low`, at most `high`, one of `choices`; all of
    a tensor `whole`, an arrangement that a name tells. `nonzero`: not 0."""

    low: float = -math.inf
    high: float = math.inf
    choices: tuple[Any, ...] = ()
    whole: str = ""
    like: tuple[int, ...] = ()
    nonzero: bool = False

    @property
    def free(self) -> bool:
        """Whether nothing is said."""
        return self == ANYTHING

    def also(self, other: Allowed) -> Allowed:
        """Returns what both allow; of two ways to arrange a tensor or to choose the first."""
        both = replace(
            self,
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            choices=self.choices or other.choices,
            whole=self.whole or other.whole,
            like=self.like or other.like,
            nonzero=self.nonzero or other.nonzero,
        )
        return both if both.low <= both.high else self


ANYTHING: Final = Allowed()
BINARY: Final = Allowed(choices=(0, 1), whole="mask")
_POSITIVE: Final = Allowed(low=0.01, high=0.5)


def allowed(name: str, uses: Uses, shapes: Shapes) -> Allowed:
    """Returns what the elements of an input may be. `shapes` are of all values, as far as they are known."""
    found = ANYTHING
    for use in uses.of(name):
        rule = ROLES.get((use.operator, use.position)) or ROLES.get((use.operator, -1))
        if rule is not None:
            found = found.also(rule(use, Sizes(uses, shapes)))
    if found.free and "mask" in name.lower():
        return BINARY
    return found


class Sizes:
    """The sizes of values, by name."""

    def __init__(self, uses: Uses, shapes: Shapes) -> None:
        self._uses = uses
        self._shapes = shapes

    def of(self, name: str) -> list[int | None] | None:
        """Returns the dimensions of a value, None for one that is not known; None for an unknown rank."""
        known: list[int | None] | None = [*self._uses.dims[name]] if name in self._uses.dims else self._shapes.get(name)
        return known

    def at(self, name: str, axis: int) -> int:
        """Returns one dimension; 1, which is always in range, if it is not known."""
        dims = self.of(name)
        if dims is None or not -len(dims) <= axis < len(dims):
            return 1
        return dims[axis] or 1

    def least(self, name: str) -> int:
        """Returns the smallest dimension."""
        return min((dim or 1 for dim in self.of(name) or ()), default=1)


def _range(low: float, high: float) -> Callable[[Use, Sizes], Allowed]:
    return lambda use, sizes: Allowed(low, high)


def _fixed(*choices: Any) -> Callable[[Use, Sizes], Allowed]:
    return lambda use, sizes: Allowed(choices=choices)


def _arranged(whole: str) -> Callable[[Use, Sizes], Allowed]:
    return lambda use, sizes: Allowed(whole=whole, like=_known(sizes.of(use.input(0))))


def _known(dims: list[int | None] | None, *, wholly: bool = False) -> tuple[int, ...]:
    """Returns dimensions, 1 for an unknown one; none if they have to be `wholly` known, and are not."""
    return () if wholly and dims is not None and None in dims else tuple(dim or 1 for dim in dims or ())


def _indexed(default: int, whole: str = "") -> Callable[[Use, Sizes], Allowed]:
    """Allows indices into the first input along its axis."""

    def rule(use: Use, sizes: Sizes) -> Allowed:
        axis = use.attribute("axis", default)
        return Allowed(0, sizes.at(use.input(0), axis) - 1, whole=whole, like=(axis,))

    return rule


def _first_of(position: int) -> Callable[[Use, Sizes], Allowed]:
    """Allows indices into the first axis of another input."""
    return lambda use, sizes: Allowed(0, sizes.at(use.input(position), 0) - 1)


def _length(position: int, axis: int) -> Callable[[Use, Sizes], Allowed]:
    """Allows lengths along an axis of another input."""
    return lambda use, sizes: Allowed(1, sizes.at(use.input(position), axis))


def _reverse(use: Use, sizes: Sizes) -> Allowed:
    return Allowed(1, sizes.at(use.input(0), use.attribute("time_axis", 0)))


def _sequence(use: Use, sizes: Sizes) -> Allowed:
    return Allowed(1, sizes.at(use.input(0), 1 if use.attribute("layout", 0) else 0))


def _one_hot(use: Use, sizes: Sizes) -> Allowed:
    depth = use.constant(1)
    return Allowed(0, int(depth.item()) - 1 if depth is not None and depth.size == 1 else 1)


def _top(use: Use, sizes: Sizes) -> Allowed:
    return Allowed(1, min(sizes.at(use.input(0), use.attribute("axis", -1)), 4))


def _equal(use: Use, sizes: Sizes) -> Allowed:
    """Allows the constants that the input is compared with, and one number beside them."""
    other = use.constant(1 - use.position)
    if other is None or other.dtype.kind not in "iu" or other.size > 16:
        return ANYTHING
    values = [int(value) for value in other.flatten()]
    return Allowed(choices=tuple(dict.fromkeys([*values, values[0] + 1]))) if values else ANYTHING


def _cast(use: Use, sizes: Sizes) -> Allowed:
    return Allowed(choices=(0, 1), whole="mask") if use.attribute("to", 0) in (TensorProto.BOOL, "BOOL") else ANYTHING


def _inverted(use: Use, sizes: Sizes) -> Allowed:
    """Allows 0 and 1 for what is subtracted from 1, which is a mask."""
    one = use.constant(0)
    return BINARY if one is not None and one.size == 1 and one.item() == 1 else ANYTHING


def _keys(use: Use, sizes: Sizes) -> Allowed:
    """Allows keys of a table, of whichever kind the node has."""
    for name in ("keys_strings", "cats_strings", "keys_int64s", "cats_int64s"):
        if keys := use.attribute(name, []):
            return Allowed(choices=tuple(keys[:8]))
    return ANYTHING


def _classes(use: Use, sizes: Sizes) -> Allowed:
    return Allowed(0, sizes.at(use.input(0), 1) - 1)


def _past_and_new(minus: int) -> Callable[[Use, Sizes], Allowed]:
    """Allows the length of what is attended to: the past keys, where there are any, and the new ones."""

    def rule(use: Use, sizes: Sizes) -> Allowed:
        past = sizes.at(use.input(3), 2) if use.input(3) else 0
        return Allowed(choices=(past + sizes.at(use.input(0), 1) - minus,))

    return rule


def _exactly(values: Callable[[Use, Sizes], Sequence[int]]) -> Callable[[Use, Sizes], Allowed]:
    """Allows the values that follow from the other inputs; anything where these tell nothing."""

    def rule(use: Use, sizes: Sizes) -> Allowed:
        found = tuple(values(use, sizes))
        return Allowed(whole="exactly", like=found) if found else ANYTHING

    return rule


def _block(use: Use, sizes: Sizes) -> Sequence[int]:
    """Returns the block of a Col2Im: 2 wherever the channels can be divided by that."""
    constant, channels = use.constant(2), sizes.at(use.input(0), 1)
    if constant is not None:
        return [int(length) for length in constant.flatten()]
    block = []
    for _ in range(sizes.at(use.input(2), 0)):
        block.append(2 if channels % 2 == 0 else 1)
        channels //= block[-1]
    return block


def _image(use: Use, sizes: Sizes) -> Sequence[int]:
    """Returns the image of a Col2Im: of as many blocks as there are columns, all along one axis that takes them."""
    block, columns = _block(use, sizes), sizes.at(use.input(0), 2)
    axes = len(block)
    strides, dilations = (use.attribute(name, [1] * axes) for name in ("strides", "dilations"))
    pads = use.attribute("pads", [0] * 2 * axes)

    def lengths(counts: Sequence[int]) -> list[int]:
        several = zip(counts, block, strides, dilations, pads[:axes], pads[axes:], strict=True)
        return [(n - 1) * stride + dilation * (b - 1) + 1 - p - q for n, b, stride, dilation, p, q in several]

    divisors = [n for n in range(1, columns + 1) if columns % n == 0]
    for counts in product(divisors, repeat=axes) if axes <= 3 and columns <= 4096 else ():
        if math.prod(counts) == columns and min(found := lengths(counts)) > 0:
            return found
    return ()


def _grid(use: Use, sizes: Sizes) -> Sequence[int]:
    """Returns the size of an AffineGrid: batch, channels, and small images."""
    theta = sizes.of(use.input(0)) or [1, 2, 3]
    return [theta[0] or 1, 1, *(4, 3, 2)[: theta[1] or 2]]


def _unpooled(use: Use, sizes: Sizes) -> Sequence[int]:
    """Returns the shape that a MaxUnpool has by itself."""
    dims, kernel = _known(sizes.of(use.input(0))), use.attribute("kernel_shape", [])
    strides, pads = use.attribute("strides", [1] * len(kernel)), use.attribute("pads", [0] * 2 * len(kernel))
    whole = zip(dims[2:], kernel, strides, pads, pads[len(kernel) :], strict=False)
    return [*dims[:2], *((dim - 1) * stride + k - p - q for dim, k, stride, p, q in whole)]


def _parts(use: Use, sizes: Sizes) -> Sequence[int]:
    """Returns the lengths of parts of an axis, as equal as may be."""
    dim, parts = sizes.at(use.input(0), use.attribute("axis", 0)), sizes.at(use.input(1), 0)
    return [(dim + i) // parts for i in range(parts)]


def _scaled(whole: str) -> Callable[[Use, Sizes], Allowed]:
    """Allows scales or sizes of all axes, or of those that are named."""

    def rule(use: Use, sizes: Sizes) -> Allowed:
        dims = _known(sizes.of(use.input(0)))
        named = [axis % len(dims) for axis in use.attribute("axes", [])] if dims else []
        if not named:
            return Allowed(whole=whole, like=dims)
        grown = [2 if whole == "scales" else 2 * dims[axis] for axis in named]
        return Allowed(whole="exactly", like=tuple(grown))

    return rule


def _cropped(use: Use, sizes: Sizes) -> Allowed:
    return Allowed(1, max((dim or 1 for dim in sizes.of(use.input(0)) or ()), default=1) + 2)


ROLES: Final[dict[tuple[str, int], Callable[[Use, Sizes], Allowed]]] = {
    ("Gather", 1): _indexed(0),
    ("GatherElements", 1): _indexed(0),
    ("GatherND", 1): lambda use, sizes: Allowed(0, sizes.least(use.input(0)) - 1),
    ("Scatter", 1): _indexed(0, "distinct"),
    ("ScatterElements", 1): _indexed(0, "distinct"),
    ("ScatterND", 1): lambda use, sizes: Allowed(0, sizes.least(use.input(0)) - 1, whole="distinct", like=(0,)),
    ("OneHot", 0): _one_hot,
    ("OneHot", 1): _range(2, 5),
    ("TopK", 1): _top,
    ("RNN", 4): _sequence,
    ("GRU", 4): _sequence,
    ("LSTM", 4): _sequence,
    ("ReverseSequence", 1): _reverse,
    ("EmbedLayerNormalization", 0): _first_of(2),
    ("EmbedLayerNormalization", 1): _first_of(4),
    ("EmbedLayerNormalization", 7): lambda use, sizes: BINARY,
    ("RotaryEmbedding", 1): _first_of(2),
    ("RotaryEmbedding", 3): _first_of(1),
    ("GroupQueryAttention", 5): _past_and_new(1),
    ("GroupQueryAttention", 6): _past_and_new(0),
    ("Attention", 6): _length(1, 2),
    ("TensorScatter", 2): _fixed(0),
    ("SequenceAt", 1): _fixed(0),
    ("SequenceErase", 1): _fixed(0),
    ("SequenceInsert", 2): _fixed(0),
    ("NegativeLogLikelihoodLoss", 1): _classes,
    ("SoftmaxCrossEntropyLoss", 1): _classes,
    ("Equal", 0): _equal,
    ("Equal", 1): _equal,
    ("Cast", 0): _cast,
    ("Sub", 1): _inverted,
    ("Reshape", 1): lambda use, sizes: Allowed(whole="reshape", like=_known(sizes.of(use.node.output[0]), wholly=True)),
    ("Expand", 1): _fixed(1),
    ("Tile", 1): _range(1, 2),
    ("ConstantOfShape", 0): _range(1, 3),
    ("Range", 0): _fixed(0),
    ("Range", 1): _range(2, 6),
    ("Range", 2): _fixed(1),
    ("Slice", 1): _fixed(0),
    ("Slice", 2): _range(1, 2),
    ("Slice", 3): _arranged("axes"),
    ("Slice", 4): _fixed(1),
    ("Pad", 1): _range(0, 1),
    ("Pad", 3): _arranged("axes"),
    ("Squeeze", 1): _arranged("ones"),
    ("Unsqueeze", 1): _arranged("axes"),
    ("Split", 1): _exactly(_parts),
    ("SplitToSequence", 1): _fixed(1),
    ("Resize", 2): _scaled("scales"),
    ("Resize", 3): _scaled("sizes"),
    ("Col2Im", 1): _exactly(_image),
    ("Col2Im", 2): _exactly(_block),
    ("AffineGrid", 1): _exactly(_grid),
    ("MaxUnpool", 2): _exactly(_unpooled),
    ("CenterCropPad", 1): _cropped,
    ("Upsample", 1): _arranged("scales"),
    ("CumSum", 1): _fixed(0),
    ("Loop", 0): _range(1, 4),
    ("Loop", 1): _fixed(1),
    ("Trilu", 1): _range(-1, 1),
    ("BitShift", 1): _range(0, 7),
    ("Div", 1): lambda use, sizes: Allowed(nonzero=True),
    ("Mod", 1): lambda use, sizes: Allowed(nonzero=True),
    ("Reciprocal", 0): lambda use, sizes: Allowed(nonzero=True),
    ("QuantizeLinear", 1): lambda use, sizes: _POSITIVE,
    ("DequantizeLinear", 1): lambda use, sizes: _POSITIVE,
    ("BatchNormalization", 4): _range(0.1, 2),
    ("Clip", 1): lambda use, sizes: Allowed(high=-0.5),
    ("Clip", 2): lambda use, sizes: Allowed(low=0.5),
    ("Dropout", 1): _range(0, 0.5),
    ("Bernoulli", 0): _range(0, 1),
    ("NonMaxSuppression", 2): _range(1, 10),
    ("NonMaxSuppression", 3): _range(0, 1),
    ("NonMaxSuppression", 4): _range(0, 1),
    ("RoiAlign", 1): _arranged("boxes"),
    ("RoiAlign", 2): _first_of(0),
    ("GridSample", 1): _range(-1.1, 1.1),
    ("MaxUnpool", 1): lambda use, sizes: Allowed(0, math.prod(_known(sizes.of(use.input(0)))) - 1, whole="counted"),
    ("STFT", 1): _range(1, 2),
    ("STFT", 3): lambda use, sizes: Allowed(choices=(sizes.at(use.input(2), 0) if use.input(2) else 4,)),
    ("DFT", 1): _length(0, -2),
    ("DFT", 2): _fixed(1),
    ("MelWeightMatrix", 0): _range(4, 8),
    ("MelWeightMatrix", 1): _range(32, 64),
    ("MelWeightMatrix", 2): _fixed(8000),
    ("MelWeightMatrix", 3): _range(0, 100),
    ("MelWeightMatrix", 4): _range(2000, 4000),
    ("HannWindow", 0): _range(4, 8),
    ("HammingWindow", 0): _range(4, 8),
    ("BlackmanWindow", 0): _range(4, 8),
    ("LabelEncoder", 0): _keys,
    ("CategoryMapper", 0): _keys,
    ("OneHotEncoder", 0): _keys,
} | {
    (f"Reduce{name}", 1): _arranged("axes") for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
}
