# SPDX-License-Identifier: Apache-2.0
"""Computes the shapes of outputs from the texts of the operators, for those of which onnx's inference says something
else, or nothing; those that only move, add, stretch or drop axes are in `axis_shapes`. `corrections` tells which those
are, at which versions, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.analysis.operator_call import Call, Dims, size_of, stretched, unknown

if TYPE_CHECKING:
    from onnx_convert.analysis.propagation import Size


def pool(call: Call) -> list[Dims]:
    """Pools with `ceil_mode`: a window that would begin in the pads at the end is left out."""
    x, options = call.dims(0), call.given
    kernel = options.get("kernel_shape", [])
    if x is None or len(x) != len(kernel) + 2:
        return [None] * call.outputs
    strides = options.get("strides") or [1] * len(kernel)
    dilations = options.get("dilations") or [1] * len(kernel)
    padded = options.get("auto_pad", "NOTSET") == "NOTSET"
    pads = (options.get("pads") if padded else None) or [0] * 2 * len(kernel)
    y = x[:2]
    for axis, size in enumerate(x[2:]):
        begin, end, stride = pads[axis], pads[axis + len(kernel)], strides[axis]
        if not isinstance(size, int):
            y.append(None)
            continue
        if options.get("auto_pad", "").startswith("SAME"):
            y.append(-(-size // stride))
            continue
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        windows = -(-(size + begin + end - extent) // stride) + 1
        y.append(windows - 1 if (windows - 1) * stride >= size + begin else windows)
    return [[*y] for _ in range(call.outputs)]


def stft(call: Call) -> list[Dims]:
    """Returns the shapes of STFT: [batch, frames, bins, 2]; `onesided` is 1 unless it is said to be 0."""
    signal, window = call.dims(0), call.dims(2)
    batch, length = (signal[0], signal[1]) if signal is not None and len(signal) == 3 else (None, None)
    step = call.numbers(1)
    frame: Size = length
    if call.has(3):
        known = call.numbers(3)
        frame = known[0] if known and len(known) == 1 else None
    elif call.has(2):
        frame = window[0] if window else None
    frames: Size = None
    if isinstance(length, int) and isinstance(frame, int) and step and len(step) == 1 and step[0] > 0:
        frames = (length - frame) // step[0] + 1
    bins = frame
    if call.given.get("onesided", 1):
        bins = frame // 2 + 1 if isinstance(frame, int) else None
    return [[batch, frames, bins, 2]]


def dft(call: Call) -> list[Dims]:
    """Returns the shapes of DFT: the axis has as many elements as `dft_length` says, of which one side may be left
    out."""
    x, options = call.dims(0), call.given
    if not x:
        return [None]
    onesided, inverse = bool(options.get("onesided", 0)), bool(options.get("inverse", 0))
    y = [*x[:-1], 1 if onesided and inverse else 2]
    axis: int | None = options.get("axis", 1)
    if call.version >= 20:
        known = call.numbers(2) if call.has(2) else [-2]
        axis = known[0] if known and len(known) == 1 else None
    if axis is None or not -len(x) <= axis < len(x):
        return [[*unknown(len(x) - 1), y[-1]]]
    length: Size = x[axis]
    if call.has(1):
        known = call.numbers(1)
        length = known[0] if known and len(known) == 1 else None
    elif onesided and inverse:
        length = 2 * (length - 1) if isinstance(length, int) else None
    if onesided and not inverse:
        length = length // 2 + 1 if isinstance(length, int) else None
    y[axis] = length
    return [y]


def attention(call: Call) -> list[Dims]:
    """Returns the shapes of Attention: Y, the present keys and values, and the products of queries and keys."""
    q, k, v = (_four(call, index) for index in range(3))
    past_k, past_v = call.dims(4), call.dims(5)
    present_k, present_v = _joined(call.has(4), past_k, k), _joined(call.has(5), past_v, v)
    rank = next((len(dims) for dims in map(call.dims, range(3)) if dims is not None), None)
    heads, size = q[1], v[3]
    hidden = heads * size if isinstance(heads, int) and isinstance(size, int) else None
    y: Dims = None
    if rank == 4:
        y = [q[0], q[1], q[2], v[3]]
    elif rank == 3:
        y = [q[0], q[2], hidden]
    products: list[Size] = [q[0], q[1], q[2], present_k[2]]
    return [y, present_k, present_v, products][: call.outputs]


def _four(call: Call, index: int) -> list[Size]:
    """Returns queries, keys or values as [batch, heads, length, size]."""
    dims = call.dims(index)
    heads: Size = call.given.get("kv_num_heads" if index else "q_num_heads")
    if dims is not None and len(dims) == 4:
        return dims
    if dims is None or len(dims) != 3:
        return [None, heads, None, None]
    size = dims[2] // heads if isinstance(dims[2], int) and isinstance(heads, int) and heads else None
    return [dims[0], heads, dims[1], size]


def _joined(has_past: bool, past: Dims, new: list[Size]) -> list[Size]:
    if not has_past:
        return [*new]
    if past is None or len(past) != 4:
        return [*new[:2], None, new[3]]
    length = past[2] + new[2] if isinstance(past[2], int) and isinstance(new[2], int) else None
    return [new[0], new[1], length, new[3]]


def affine_grid(call: Call) -> list[Dims]:
    """Returns the shapes of AffineGrid: [N, H, W, 2] or [N, D, H, W, 3], as the length of `size` says, or the
    matrices."""
    theta, size = call.dims(0), call.vector(1)
    if size is not None and len(size.sizes) in (4, 5):
        sizes = [size_of(one) for one in size.sizes]
        return [[sizes[0], *sizes[2:], len(sizes) - 2]]
    axes = theta[1] if theta is not None and len(theta) == 3 else None
    if axes not in (2, 3) or theta is None:
        return [None]
    return [[theta[0], *unknown(2 if axes == 2 else 3), axes]]


def einsum(call: Call) -> list[Dims]:
    """Returns the shapes of Einsum: a label that is 1 in one operand is stretched to what it is in another."""
    equation = call.given.get("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    found: dict[str, Size] = {}
    longest = 0
    if len(terms) != len(call.node.input):
        return [None]
    operands = []
    for index, term in enumerate(terms):
        dims = call.dims(index)
        if dims is None:
            if "..." in term:
                return [None]
            dims = unknown(len(term))
        before, dots, after = term.partition("...")
        hidden = len(dims) - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            return [None]
        longest = max(longest, hidden)
        operands.append((before, after, dims))
    for before, after, dims in operands:
        hidden = len(dims) - len(before) - len(after)
        labels = [*before, *(f".{i}" for i in range(longest - hidden, longest)), *after]
        for label, size in zip(labels, dims, strict=True):
            found[label] = stretched(found[label], size) if label in found else size
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        right = ("..." if "..." in left else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    before, dots, after = right.partition("...")
    wanted = [*before, *(f".{i}" for i in range(longest if dots else 0)), *after]
    return [[found.get(label) for label in wanted]]


def as_input(call: Call) -> list[Dims]:
    """Returns what an operator makes of each element by itself."""
    return [call.dims(0)]


def window(call: Call) -> list[Dims]:
    """Returns the shape of a window: as many elements as are asked for."""
    size = call.numbers(0)
    return [[size[0] if size else None]]


def conv_transpose(call: Call) -> list[Dims]:
    """Returns the shape of ConvTranspose with `output_shape`, which may have the batch and the channels too: the text
    leaves that open below 11, and onnx's own models of that time have them."""
    x, w, wanted = call.dims(0), call.dims(1), call.given["output_shape"]
    if x is None or len(wanted) < len(x) - 2:
        return [None]
    channels = w[1] if w is not None else None
    group = call.given.get("group", 1)
    return [[x[0], channels * group if isinstance(channels, int) else None, *wanted[2 - len(x) :]]]
