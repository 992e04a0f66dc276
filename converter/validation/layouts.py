# SPDX-License-Identifier: Apache-2.0
"""Checks lists that have an entry for each axis, group or gate, where onnx's own inference does not count them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from onnx_convert.validation.pairs import alike, ranks, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx_convert.validation.uses import Use

    Rule = Callable[[Use], str]

_GATES: Final = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _demanded(use: Use, index: int, wanted: Sequence[int | None], what: str) -> str:
    """Returns what is wrong with the shape of an input, "" if nothing is known to be."""
    dims = use.dims(index)
    if dims is None:
        return ""
    if len(dims) != len(wanted) or any(
        a is not None and b is not None and a != b for a, b in zip(dims, wanted, strict=True)
    ):
        return f"{what} has the shape {shown(dims)}, not {shown(wanted)}"
    return ""


def recurrent(use: Use) -> str:
    """Returns what is wrong with the shapes of a recurrent layer: an entry for each direction, gate, and element of the
    state."""
    x, gates = use.dims(0), _GATES[use.operator]
    directions = 2 if use.given.get("direction") in ("bidirectional", b"bidirectional") else 1
    hidden = use.given.get("hidden_size")
    if not isinstance(hidden, int):
        recurrence = use.dims(2)
        hidden = recurrence[-1] if recurrence else None
    if x is not None and len(x) != 3:
        return f"X has rank {len(x)}, not 3"
    first, second, features = x if x is not None else (None, None, None)
    batch = first if use.given.get("layout") else second
    state = [batch, directions, hidden] if use.given.get("layout") else [directions, batch, hidden]

    def times(count: int) -> int | None:
        return count * hidden if hidden is not None else None

    demands = [
        (1, [directions, times(gates), features], "W"),
        (2, [directions, times(gates), hidden], "R"),
        (3, [directions, times(2 * gates)], "B"),
        (4, [batch], "sequence_lens"),
        (5, state, "initial_h"),
        (6, state, "initial_c"),
        (7, [directions, times(3)], "P"),
    ]
    return next((found for index, wanted, what in demands if (found := _demanded(use, index, wanted, what))), "")


def grid(use: Use) -> str:
    """Returns what is wrong with the grid of GridSample: a place of as many numbers as an image has axes."""
    x, places = use.dims(0), use.dims(1)
    if x is not None and (len(x) < 3 or (use.opset < 20 and len(x) != 4)):
        return f"X has rank {len(x)}"
    if x is None or places is None:
        return ""
    return _demanded(use, 1, [x[0], *[None] * (len(x) - 2), len(x) - 2], "grid")


def crop(use: Use) -> str:
    """Returns what is wrong with the sizes of CenterCropPad: one for each axis."""
    dims, axes, count = use.dims(0), use.given.get("axes"), use.length(1)
    wanted = len(axes) if isinstance(axes, list) else len(dims) if dims is not None else None
    return f"shape has {count} sizes for {wanted} axes" if None not in (count, wanted) and count != wanted else ""


def transform(use: Use) -> str:
    """Returns what is wrong with the signal and the steps of STFT."""
    dims, step, length = use.dims(0), use.elements(1), use.elements(3)
    if dims is not None and (len(dims) != 3 or dims[-1] not in (1, 2, None)):
        return f"the signal has the shape {shown(dims)}, not [batch, length, 1] or [batch, length, 2]"
    for what, numbers in (("frame_step", step), ("frame_length", length)):
        if numbers and numbers[0] < 1:
            return f"{what} is {numbers[0]}, and has to be at least 1"
    window = use.dims(2)
    if window is None or len(window) != 1:
        return f"the window has rank {len(window)}, not 1" if window is not None else ""
    wrong = length and window[0] is not None and window[0] != length[0]
    return f"a window of {window[0]} for frames of {length[0]}" if wrong and length else ""


def resize(use: Use) -> str:
    """Returns what is wrong with the scales and sizes of Resize and Upsample: one for each axis, of one of them."""
    dims, axes = use.dims(0), use.given.get("axes")
    if use.given.get("keep_aspect_ratio_policy") in ("", b""):
        return "keep_aspect_ratio_policy is empty"
    wanted = len(axes) if isinstance(axes, list) else len(dims) if dims is not None else None
    newer = use.operator == "Resize" and use.opset >= 11
    scales, sizes = (use.length(2), use.length(3)) if newer else (use.length(1), None)
    if not newer and use.opset < 9:
        given = use.given.get("scales")
        scales = len(given) if isinstance(given, list) else None
    if newer and scales == 0 and len(use.inputs) < 4:
        return "it has neither scales nor sizes"
    corners = use.length(1) if use.given.get("coordinate_transformation_mode") == "tf_crop_and_resize" else None
    if newer and corners is not None and wanted is not None and corners != 2 * wanted:
        return f"roi has {corners} entries for {wanted} axes"
    for what, count in (("scales", scales), ("sizes", sizes)):
        if wanted is not None and count and count != wanted:
            return f"{what} has {count} entries for {wanted} axes"
    return ""


def groups(use: Use) -> str:
    """Returns what is wrong with scale and bias of GroupNormalization: an entry for each channel, below 21 for each
    group."""
    dims, count = use.dims(0), use.given.get("num_groups")
    known = dims[1] if dims is not None and len(dims) > 1 else None
    if dims is not None and len(dims) < 2:
        return f"the input has rank {len(dims)}"
    if isinstance(count, int) and count > 0 and known is not None and known % count:
        return f"{known} channels cannot be divided into {count} groups"
    if use.opset < 21 and use.dims(1) == (count,):
        known = count
    return _demanded(use, 1, [known], "scale") or _demanded(use, 2, [known], "bias")


def scales_of_quantization(use: Use) -> str:
    """Returns what is wrong with scales: one, one for each slice of an axis, or one for each block of an axis."""
    dims, scale = use.dims(0), use.dims(1)
    axis, block = use.given.get("axis", 1), use.given.get("block_size", 0)
    if block and dims is not None and scale is not None and len(scale) != len(dims):
        return f"the scale has rank {len(scale)}, and there are blocks of a tensor of rank {len(dims)}"
    if dims is None or not scale or not isinstance(axis, int) or not -len(dims) <= axis < len(dims):
        return ""
    if block:
        wanted: list[int | None] = [*dims]
        size = dims[axis]
        wanted[axis] = -(-size // block) if size is not None and isinstance(block, int) else None
        return _demanded(use, 1, wanted, "the scale")
    if len(scale) > 1:
        return f"the scale has rank {len(scale)}, and there are no blocks"
    return "" if scale == (1,) else _demanded(use, 1, [dims[axis]], "the scale")


def zero_points(use: Use) -> str:
    """Returns what is wrong with zero points: one for each scale."""
    scale, zero = use.dims(1), use.dims(2)
    return "" if {scale, zero} == {(), (1,)} else alike(1, 2)(use)


_TERM: Final = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def einsum(use: Use) -> str:
    """Returns what is wrong with the equation, or with the sizes that go by one letter of it."""
    equation = use.given.get("equation")
    if not isinstance(equation, str):
        return ""
    inputs, _, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    for term in (*terms, output):
        if not _TERM.fullmatch(term):
            return f"{term!r} of the equation is not letters, with at most one '...'"
    if strange := sorted({*output} - {*inputs}):
        return f"the equation's result has {strange[0]!r}, which no input has"
    if len(terms) != len(use.inputs):
        return f"the equation is for {len(terms)} inputs, and there are {len(use.inputs)}"
    sizes: dict[str, int] = {}
    for index, term in enumerate(terms):
        dims = use.dims(index)
        if dims is None or "." in term:
            continue
        if len(term) != len(dims):
            return f"{term} stands for an input of rank {len(dims)}"
        for letter, size in zip(term, dims, strict=True):
            if size not in (None, 1) and sizes.setdefault(letter, size) != size:
                return f"{letter} stands for sizes {sizes[letter]} and {size}"
    return ""


def grams(use: Use) -> str:
    """Returns what is wrong with the counts of TfIdfVectorizer: where the grams of each length begin."""
    counts, longest = use.given.get("ngram_counts"), use.given.get("max_gram_length")
    if not isinstance(counts, list):
        return ""
    if isinstance(longest, int) and len(counts) < longest:
        return f"ngram_counts has {len(counts)} entries, and grams are up to {longest} long"
    pool = next((len(given) for name in ("pool_int64s", "pool_strings") if (given := use.given.get(name))), 0)
    if sorted(counts) != counts or max(counts, default=0) > pool:
        return f"ngram_counts is {counts[:8]}, which are no places one after the other in a pool of {pool}"
    ends = [*counts[1:], pool]
    sizes = [end - begin for begin, end in zip(counts, ends, strict=True)]
    wrong = next((length for length, size in enumerate(sizes, 1) if size % length), None)
    if wrong:
        return f"{sizes[wrong - 1]} elements of the pool are no grams of {wrong}"
    indexes, grams = len(use.given.get("ngram_indexes") or ()), sum(n // size for size, n in enumerate(sizes, 1))
    return "" if indexes == grams else f"ngram_indexes has {indexes} entries for {grams} grams"


def pads(use: Use) -> str:
    """Returns what is wrong with the number of pads, of which no element may be known: two for each axis."""
    dims, count = use.dims(0), use.length(1) if use.opset >= 11 else None
    if len(use.inputs) > 3:
        axes = use.length(3)
        wanted = 2 * axes if axes is not None else None
    else:
        wanted = 2 * len(dims) if dims is not None else None
    return f"pads has {count} entries, not {wanted}" if None not in (count, wanted) and count != wanted else ""


def deformed(use: Use) -> str:
    """Returns what is wrong with the sizes of DeformConv: channels in groups, offsets for each place of the kernel, and
    as many places of offsets and of the mask."""
    x, weights, group = use.dims(0), use.dims(1), use.given.get("group", 1)
    if x is None or weights is None:
        return ""
    if len(x) < 3 or len(weights) != len(x):
        return f"X has rank {len(x)}, and W rank {len(weights)}"
    channels, inner = x[1], weights[1]
    if 0 in (channels, inner) or 0 in weights[2:]:
        return "a size of X or W is 0"
    if isinstance(group, int) and channels is not None and inner is not None and channels != inner * group:
        return f"{channels} channels for {group} groups of {inner}"
    shape, own = use.given.get("kernel_shape"), use.given.get("offset_group", 1)
    kernel = shape if isinstance(shape, list) else weights[2:]
    spatial = len(x) - 2
    places = math.prod(kernel) if None not in kernel else None
    if isinstance(own, int) and channels is not None and channels % max(own, 1):
        return f"{channels} channels cannot be divided into {own} groups of offsets"
    each = places * own if places is not None and isinstance(own, int) else None
    room = next(
        (dims[2:] for index in (2, 4) if (dims := use.dims(index)) is not None and len(dims) == len(x)),
        [None] * spatial,
    )
    return (
        _demanded(use, 2, [x[0], each * spatial if each is not None else None, *room], "offset")
        or _demanded(use, 3, [weights[0]], "B")
        or _demanded(use, 4, [x[0], each, *room], "mask")
    )


def reversed_sequences(use: Use) -> str:
    """Returns what is wrong with the lengths of ReverseSequence: one for each entry of the batch."""
    dims, batch, time = use.dims(0), use.given.get("batch_axis", 1), use.given.get("time_axis", 0)
    if {batch, time} != {0, 1}:
        return f"batch_axis is {batch} and time_axis is {time}, which have to be 0 and 1, or 1 and 0"
    if dims is not None and len(dims) < 2:
        return f"the input has rank {len(dims)}"
    return _demanded(use, 1, [dims[batch] if dims is not None else None], "sequence_lens")


def regions(use: Use) -> str:
    """Returns what is wrong with the regions of RoiAlign, four numbers and an image each, or of MaxRoiPool, five."""
    rois = use.dims(1)
    numbers = 4 if use.operator == "RoiAlign" else 5
    wrong = _demanded(use, 1, [None, numbers], "rois")
    return wrong or _demanded(use, 2, [rois[0] if rois is not None else None], "batch_indices")


def boxes(use: Use) -> str:
    """Returns what is wrong with boxes and scores of NonMaxSuppression: four numbers a box, a score for each class."""
    scores = use.dims(1)
    batch, _, count = scores if scores is not None and len(scores) == 3 else (None, None, None)
    return _demanded(use, 0, [batch, count, 4], "boxes")


def product(use: Use) -> str:
    """Returns what is wrong with the sizes of Gemm."""
    a, b, c = use.dims(0), use.dims(1), use.dims(2)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return ""
    rows, inner = reversed(a) if use.given.get("transA") else a
    same, columns = reversed(b) if use.given.get("transB") else b
    if None not in (inner, same) and inner != same:
        return f"matrices of {inner} columns and of {same} rows"
    if c is None:
        return ""
    wanted = (rows, columns)[2 - min(len(c), 2) :]
    if len(c) > 2 or any(n not in (None, 1) and m is not None and m != n for m, n in zip(wanted, c, strict=True)):
        return f"C, of shape {shown(c)}, does not go onto {shown([rows, columns])}"
    return ""


def columns(use: Use) -> str:
    """Returns what is wrong with the sizes of Col2Im: a column for each place of a block in an image, with the elements
    of the blocks of all channels."""
    dims, image, block = use.dims(0), use.elements(1), use.elements(2)
    if dims is not None and len(dims) != 3:
        return f"the input has rank {len(dims)}, not 3"
    if image is None or block is None:
        return ""
    axes = len(image)
    names = ("strides", "dilations", "pads")
    strides, dilations, pads = (
        use.given.get(name) or [fill] * count
        for name, fill, count in zip(names, (1, 1, 0), (axes, axes, 2 * axes), strict=True)
    )
    if not axes == len(block) == len(strides) == len(dilations) == len(pads) / 2:
        return "image_shape, block_shape, strides, dilations and pads are not for one number of axes"
    if min((*image, *block), default=1) < 1:
        return f"image_shape is {[*image]} and block_shape {[*block]}: a size is below 1"
    places = 1
    for axis in range(axes):
        room = image[axis] + pads[axis] + pads[axis + axes] - dilations[axis] * (block[axis] - 1) - 1
        if room < 0:
            return f"a block of {block[axis]} does not fit into an image of {image[axis]}"
        places *= room // strides[axis] + 1
    if dims is None:
        return ""
    elements = math.prod(block)
    if dims[1] is not None and dims[1] % elements:
        return f"{dims[1]} elements are not those of blocks of {elements}"
    return f"{dims[2]} columns for {places} places" if dims[2] is not None and dims[2] != places else ""


def transposed(use: Use) -> str:
    """Returns what is wrong with the lists of ConvTranspose: an entry for each axis of an image; output_shape may tell
    batch and channels too."""
    dims = next((dims for index in (0, 1) if (dims := use.dims(index)) is not None), None)
    if dims is None:
        return ""
    axes = len(dims) - 2
    lists = (
        ("kernel_shape", axes),
        ("strides", axes),
        ("dilations", axes),
        ("output_padding", axes),
        ("pads", 2 * axes),
    )
    for name, wanted in lists:
        given = use.given.get(name)
        if given and len(given) != wanted:
            return f"{name} has {len(given)} entries for {axes} axes"
    given = use.given.get("output_shape")
    return (
        f"output_shape has {len(given)} entries for {axes} axes" if given and len(given) not in (axes, axes + 2) else ""
    )


BY_OPERATOR: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (
    ("RNN GRU LSTM", (recurrent,)),
    ("GridSample", (grid,)),
    ("CenterCropPad", (crop,)),
    ("STFT", (transform,)),
    ("Resize Upsample", (resize,)),
    ("GroupNormalization", (groups,)),
    ("QuantizeLinear DequantizeLinear", (zero_points, scales_of_quantization)),
    ("Slice", tuple(ranks(index, 1) for index in (1, 2, 3, 4))),
    ("Einsum", (einsum,)),
    ("Gemm", (product,)),
    ("TfIdfVectorizer", (grams,)),
    ("Pad", (pads,)),
    ("Col2Im", (columns,)),
    ("DeformConv", (deformed,)),
    ("ReverseSequence", (reversed_sequences,)),
    ("RoiAlign MaxRoiPool", (regions,)),
    ("NonMaxSuppression", (boxes,)),
    ("ConvTranspose", (transposed,)),
)
"""Rules by operators."""
