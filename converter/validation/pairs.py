# SPDX-License-Identifier: Apache-2.0
"""Checks that the shapes of a node's inputs go together, where onnx's own inference does not look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx_convert.validation.uses import Use

    Rule = Callable[[Use], str]


def _differ(a: int | None, b: int | None) -> bool:
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
            if dims is not None and len(dims) > 1 and _differ(own[0], dims[1]):
                return f"input {index} has {own[0]} elements for {dims[1]} channels"
        return ""

    return rule


def alike(first: int, second: int) -> Rule:
    """Returns a rule that two inputs have one shape."""

    def rule(use: Use) -> str:
        a, b = use.dims(first), use.dims(second)
        if a is None or b is None:
            return ""
        if len(a) != len(b) or any(_differ(m, n) for m, n in zip(a, b, strict=True)):
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
            if any(size != 1 and _differ(size, wide) for size, wide in pairs) or len(own) > len(dims):
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
    if len(wanted) != len(updates) or any(_differ(a, b) for a, b in zip(wanted, updates, strict=True)):
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
    if _differ(theta[1], size - 2) or _differ(theta[2], size - 1):
        return f"theta has the shape {shown(theta)} for {size - 2} axes"
    known = use.elements(1)
    return f"theta is for {theta[0]} images, size for {known[0]}" if known and _differ(theta[0], known[0]) else ""


def attention(use: Use) -> str:
    """Returns what is wrong with queries, keys and values: of rank 3 or 4, and of as many keys as values."""
    q, k, v = (use.dims(index) for index in range(3))
    for name, dims in (("Q", q), ("K", k), ("V", v)):
        if dims is not None and len(dims) not in (3, 4):
            return f"{name} has rank {len(dims)}, not 3 or 4"
    known = [dims for dims in (q, k, v) if dims is not None]
    if len({len(dims) for dims in known}) > 1 or any(_differ(dims[0], known[0][0]) for dims in known):
        return f"Q, K and V do not go together: {', '.join(map(shown, known))}"
    if k is not None and v is not None and _differ(k[-2], v[-2]):
        return f"{k[-2]} keys and {v[-2]} values"
    if k is not None and q is not None and len(q) == 4 and _differ(k[-1], q[-1]):
        return f"queries of {q[-1]} and keys of {k[-1]} elements"
    for mine, others in ((q, k), (k, v)):
        if mine and others and len(mine) == 4 and mine[1] and others[1]:
            large, small = max(mine[1], others[1]), min(mine[1], others[1])
            if large % small or (mine is k and large != small) or (mine is q and mine[1] < others[1]):
                return f"{mine[1]} and {others[1]} heads do not go together"
    return ""


def mask_of_attention(use: Use) -> str:
    """Returns what is wrong with the shape of a mask: it goes onto [batch, heads, queries, keys], of which only the
    last may be shorter."""
    q, k, mask = use.dims(0), use.dims(1), use.dims(3)
    if mask is None or q is None or k is None or not all(2 <= len(dims) <= 4 for dims in (q, k, mask)):
        return ""
    alone = len(use.inputs) <= 4  # no keys of the past come before
    if mask[-2] != 1 and _differ(mask[-2], q[-2]):
        return f"a mask of shape {shown(mask)} for {q[-2]} queries"
    last, keys = mask[-1], k[-2]
    if alone and last is not None and keys is not None and last > keys:
        return f"a mask of shape {shown(mask)} for {keys} keys"
    return ""


def past(first: int, past_index: int, axis: int) -> Rule:
    """Returns a rule that a past state goes together with what comes, but for one axis."""

    def rule(use: Use) -> str:
        a, b = use.dims(first), use.dims(past_index)
        if b is None:
            return ""
        if len(b) != 4:
            return f"input {past_index} has rank {len(b)}, not 4"
        if a is None or len(a) != 4:
            return ""
        if any(_differ(m, n) for place, (m, n) in enumerate(zip(a, b, strict=True)) if place != axis):
            return f"inputs {first} and {past_index} do not go together: {shown(a)} and {shown(b)}"
        return ""

    return rule


def losses(use: Use) -> str:
    """Returns what is wrong with scores and labels: labels have the shape of the scores without the classes."""
    scores, labels, weights = (use.dims(index) for index in range(3))
    if scores is not None and len(scores) < 2:
        return f"scores have rank {len(scores)}"
    if weights is not None and len(weights) != 1:
        return f"weights have rank {len(weights)}, not 1"
    if scores is None:
        return ""
    if weights is not None and _differ(weights[0], scores[1]):
        return f"{weights[0]} weights for {scores[1]} classes"
    wanted = (scores[0], *scores[2:])
    if labels is not None and (
        len(labels) != len(wanted) or any(_differ(a, b) for a, b in zip(labels, wanted, strict=True))
    ):
        return f"labels have the shape {shown(labels)}, not {shown(wanted)}"
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


def rotary(use: Use) -> str:
    """Returns what is wrong with the caches of RotaryEmbedding: one for cosines and one for sines, alike, of a row for
    each position, or for each element if no positions are given; half as wide as what is rotated, or wider: the text of
    onnx 1.18, which brought the operator, took the first columns of a cache for the whole head."""
    x, told = use.dims(0), len(use.inputs) <= 3 or use.inputs[3] is not None  # else it may have positions or not
    rank = 3 if len(use.inputs) <= 3 else 2
    if x is not None and len(x) not in (3, 4):
        return f"X has rank {len(x)}, not 3 or 4"
    for index in (1, 2):
        cache = use.dims(index)
        if cache is not None and told and len(cache) != rank:
            return f"input {index} has rank {len(cache)}, {'with' if rank == 2 else 'without'} positions"
    cosines, sines = use.dims(1), use.dims(2)
    if cosines is not None and sines is not None and any(map(_differ, cosines, sines)):
        return f"inputs 1 and 2 differ in shape: {shown(cosines)} and {shown(sines)}"
    width = use.given.get("rotary_embedding_dim") or _head_size(x, use.given.get("num_heads", 0))
    if width and cosines is not None and cosines[-1] is not None and cosines[-1] < width // 2:
        return f"input 1 is {cosines[-1]} wide, for {width} elements to rotate"
    return ""


def _head_size(x: Sequence[int | None] | None, heads: int) -> int | None:
    """Returns how many elements a head of X [batch, heads, length, size] or [batch, length, heads * size] has."""
    if not x or x[-1] is None:
        return None
    return x[-1] if len(x) == 4 else x[-1] // heads if heads else None


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


_REDUCTIONS: Final = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd"

BY_OPERATOR: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (
    (f"{_REDUCTIONS} ReduceSum ReduceSumSquare", (ranks(1, 1),)),
    ("Reshape Expand", (ranks(1, 1),)),
    ("HannWindow HammingWindow BlackmanWindow", (single(0),)),
    ("OneHot", (single(1),)),
    ("Tile", (repeats,)),
    ("ConstantOfShape", (ranks(0, 1),)),
    ("Pad", (pads_list,)),
    ("BatchNormalization", (statistics,)),
    ("InstanceNormalization", (channels(1, 2),)),
    ("LayerNormalization", (onto(0, 1, 2),)),
    ("RMSNormalization", (onto(0, 1),)),
    ("ScatterElements Scatter", (same_rank(0, 1), alike(1, 2))),
    ("GatherElements", (same_rank(0, 1),)),
    ("ScatterND", (scatter_nd,)),
    ("MaxUnpool", (alike(0, 1),)),
    ("Compress", (ranks(1, 1),)),
    ("AffineGrid", (affine_grid,)),
    ("Attention", (attention, mask_of_attention, past(1, 4, 2), past(2, 5, 2))),
    ("SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss", (losses,)),
    ("RotaryEmbedding", (rotary,)),
    ("DFT", (axis_of_transform,)),
    ("RoiAlign", (ranks(0, 4), ranks(1, 2), ranks(2, 1))),
    ("MaxRoiPool", (ranks(0, 4), ranks(1, 2))),
    ("NonMaxSuppression", (ranks(0, 3), ranks(1, 3))),
    ("Gemm", (ranks(0, 2), ranks(1, 2))),
    ("ReverseSequence", (ranks(1, 1),)),
)
"""Rules by operators."""
