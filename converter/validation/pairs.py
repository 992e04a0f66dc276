# SPDX-License-Identifier: Apache-2.0
"""Checks that the shapes of a node's inputs go together, where onnx's own inference does not look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx_convert.validation.uses import Use

    Rule = Callable[[Use], str]


def differ(a: int | None, b: int | None) -> bool:
    """Returns whether two sizes are known and not the same."""
    return a is not None and b is not None and a != b


def ranks(index: int, *allowed: int) -> Rule:
    """Returns a rule that an input has one of some ranks."""

    def rule(use: Use) -> str:
        dims = use.dims(index)
        if dims is None or len(dims) in allowed:
            return ""
        return f"input {index} has rank {len(dims)}, not {' or '.join(map(str, allowed))}"

    return rule


def channels(*indices: int) -> Rule:
    """Returns a rule that inputs are vectors with an element for each channel, the second axis of the first input."""

    def rule(use: Use) -> str:
        dims = use.dims(0)
        if use.given.get("spatial", 1) == 0:
            return ""  # of each feature, below opset 9
        for index in indices:
            own = use.dims(index)
            if own is None:
                continue
            if len(own) != 1:
                return f"input {index} has rank {len(own)}, not 1"
            if dims is not None and len(dims) > 1 and differ(own[0], dims[1]):
                return f"input {index} has {own[0]} elements for {dims[1]} channels"
        return ""

    return rule


def alike(first: int, second: int) -> Rule:
    """Returns a rule that two inputs have one shape."""

    def rule(use: Use) -> str:
        a, b = use.dims(first), use.dims(second)
        if a is None or b is None:
            return ""
        if len(a) != len(b) or any(differ(m, n) for m, n in zip(a, b, strict=True)):
            return f"inputs {first} and {second} differ in shape: {shown(a)} and {shown(b)}"
        return ""

    return rule


def same_rank(first: int, second: int) -> Rule:
    """Returns a rule that two inputs have as many axes."""

    def rule(use: Use) -> str:
        a, b = use.dims(first), use.dims(second)
        return f"inputs {first} and {second} have ranks {len(a)} and {len(b)}" if a and b and len(a) != len(b) else ""

    return rule


def onto(first: int, *others: int) -> Rule:
    """Returns a rule that inputs are repeated to the shape of another one, which they do not change."""

    def rule(use: Use) -> str:
        dims = use.dims(first)
        for index in others:
            own = use.dims(index)
            if dims is None or own is None:
                continue
            pairs = zip(reversed(own), reversed(dims), strict=False)
            if any(size != 1 and differ(size, wide) for size, wide in pairs) or len(own) > len(dims):
                return f"input {index}, of shape {shown(own)}, does not go onto {shown(dims)}"
        return ""

    return rule


def single(index: int) -> Rule:
    """Returns a rule that an input is one number; a list of one stands for it, as runtimes have always let it."""

    def rule(use: Use) -> str:
        dims = use.dims(index)
        return "" if dims is None or tuple(dims) in ((), (1,), (None,)) else f"input {index} is not a single number"

    return rule


def scatter_nd(use: Use) -> str:
    """Returns what is wrong with the updates of ScatterND: a block for each index."""
    data, indices, updates = use.dims(0), use.dims(1), use.dims(2)
    if not indices:
        return "indices have rank 0" if indices is not None else ""
    last = indices[-1]
    if data is not None and last is not None and last > len(data):
        return f"indices of {last} numbers for {len(data)} axes"
    if data is None or updates is None or last is None:
        return ""
    wanted = (*indices[:-1], *data[last:])
    if len(wanted) != len(updates) or any(differ(a, b) for a, b in zip(wanted, updates, strict=True)):
        return f"updates have the shape {shown(updates)}, not {shown(wanted)}"
    return ""


def affine_grid(use: Use) -> str:
    """Returns what is wrong with theta and size: matrices of as many axes, for as many images."""
    theta, size = use.dims(0), use.length(1)
    if theta is not None and len(theta) != 3:
        return f"theta has rank {len(theta)}, not 3"
    if size is not None and size not in (4, 5):
        return f"size has {size} elements, not 4 or 5"
    if theta is None or size is None:
        return ""
    if differ(theta[1], size - 2) or differ(theta[2], size - 1):
        return f"theta has the shape {shown(theta)} for {size - 2} axes"
    known = use.elements(1)
    return f"theta is for {theta[0]} images, size for {known[0]}" if known and differ(theta[0], known[0]) else ""


def losses(use: Use) -> str:
    """Returns what is wrong with scores and labels: labels have the shape of the scores without the classes."""
    scores, labels, weights = (use.dims(index) for index in range(3))
    if scores is not None and len(scores) < 2:
        return f"scores have rank {len(scores)}"
    if weights is not None and len(weights) != 1:
        return f"weights have rank {len(weights)}, not 1"
    if scores is None:
        return ""
    if weights is not None and differ(weights[0], scores[1]):
        return f"{weights[0]} weights for {scores[1]} classes"
    wanted = (scores[0], *scores[2:])
    if labels is not None and (
        len(labels) != len(wanted) or any(differ(a, b) for a, b in zip(labels, wanted, strict=True))
    ):
        return f"labels have the shape {shown(labels)}, not {shown(wanted)}"
    return ""


def joined(use: Use) -> str:
    """Returns what is wrong with the shapes of what Concat puts side by side: they differ in one axis at most."""
    shapes = [dims for index in range(len(use.inputs)) if (dims := use.dims(index)) is not None]
    axis = use.given.get("axis", 1 if use.opset < 4 else None)
    if len({len(dims) for dims in shapes}) > 1:
        return f"the inputs differ in rank: {', '.join(map(shown, shapes[:8]))}"
    if not shapes or not isinstance(axis, int) or not -len(shapes[0]) <= axis < len(shapes[0]):
        return ""
    place = axis % len(shapes[0])
    for index, sizes in enumerate(zip(*shapes, strict=True)):
        known = {size for size in sizes if size is not None}
        if index != place and len(known) > 1:
            return f"the inputs differ in axis {index}: {', '.join(map(shown, shapes[:8]))}"
    return ""


def axis_of_transform(use: Use) -> str:
    """Returns what is wrong with the axis of DFT, which is none of the last one, that holds real and imaginary part."""
    dims = use.dims(0)
    if dims is None:
        return ""
    if len(dims) < 2:
        return f"the signal has rank {len(dims)}"
    if dims[-1] is not None and dims[-1] not in (1, 2):
        return f"the last axis has size {dims[-1]}, not 1 or 2"
    if use.given.get("onesided") and dims[-1] == 2 and not use.given.get("inverse"):
        return "it is one-sided, and the signal is complex"
    axis = use.given.get("axis", 1) if use.opset < 20 else next(iter(use.elements(2) or ()), None)
    if axis is None:
        return ""
    low = -len(dims)
    return "" if low <= axis < len(dims) - 1 and axis != -1 else f"axis {axis} is none of a signal of rank {len(dims)}"


def pads_list(use: Use) -> str:
    """Returns what is wrong with the shape of a list of pads: one row."""
    dims = use.dims(1) if use.opset >= 11 else None
    if dims is None or len(dims) == 1 or (len(dims) == 2 and dims[0] in (1, None)):
        return ""
    return f"pads has rank {len(dims)}, not 1"


def repeats(use: Use) -> str:
    """Returns what is wrong with the shape of what Tile is given: from 6 on a row, below two numbers."""
    return ranks(1, 1)(use) if use.opset >= 6 else ""


def statistics(use: Use) -> str:
    """Returns what is wrong with the shapes of scale, bias, mean and variance: one number a channel, and one an element
    below 9 where `spatial` is 0."""
    return channels(1, 2, 3, 4)(use) if use.given.get("spatial", 1) else ""


def shown(dims: Sequence[int | None]) -> str:
    """Returns a shape for people: [2, ?, 4]."""
    return f"[{', '.join('?' if size is None else str(size) for size in dims)}]"


BY_OPERATOR: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (
    ("Tile", (repeats,)),
    ("Concat", (joined,)),
    ("Pad", (pads_list,)),
    ("BatchNormalization", (statistics,)),
    ("InstanceNormalization", (channels(1, 2),)),
    ("LayerNormalization", (onto(0, 1, 2),)),
    ("RMSNormalization", (onto(0, 1),)),
    ("ScatterElements Scatter", (same_rank(0, 1), alike(1, 2))),
    ("GatherElements", (same_rank(0, 1),)),
    ("ScatterND", (scatter_nd,)),
    ("MaxUnpool", (alike(0, 1),)),
    ("AffineGrid", (affine_grid,)),
    ("SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss", (losses,)),
    ("DFT", (axis_of_transform,)),
    ("RoiAlign", (ranks(0, 4), ranks(1, 2))),
    ("MaxRoiPool", (ranks(0, 4), ranks(1, 2))),
    ("NonMaxSuppression", (ranks(0, 3), ranks(1, 3))),
    ("Gemm", (ranks(0, 2), ranks(1, 2))),
)
"""Rules by operators."""
