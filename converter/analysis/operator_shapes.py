# SPDX-License-Identifier: Apache-2.0
"""Computes the shapes of outputs from the texts of the operators, for those of which onnx's inference says something
else, or nothing. `corrections` tells which those are, at which versions, and why."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx_convert.analysis.evaluation import taken
from onnx_convert.analysis.propagation import Size, Vector, dims_of
from onnx_convert.model.attributes import given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from onnx import NodeProto, TypeProto

Dims = list[Size] | None  # of a tensor, None if its rank is not known
END = 2**31 - 1  # a bound that is meant to be the end of any axis


class Call(NamedTuple):
    """A node, the version of its operator, and what is known of the values that it uses."""

    node: NodeProto
    version: int
    type_of: Callable[[str], TypeProto | None]
    elements: Callable[[str], Vector | None]

    @property
    def given(self) -> dict[str, Any]:
        """The attributes that the node has."""
        return given(self.node)

    @property
    def outputs(self) -> int:
        """The number of outputs, those left out included."""
        return len(self.node.output)

    def has(self, index: int) -> bool:
        """Returns whether an input is given."""
        return index < len(self.node.input) and bool(self.node.input[index])

    def dims(self, index: int) -> Dims:
        """Returns the dimensions of an input."""
        return dims_of(self.type_of(self.node.input[index])) if self.has(index) else None

    def vector(self, index: int) -> Vector | None:
        """Returns what is known of the elements of an input."""
        return self.elements(self.node.input[index]) if self.has(index) else None

    def numbers(self, index: int) -> list[int] | None:
        """Returns the elements of an input, if all are known."""
        vector = self.vector(index)
        return vector.numbers if vector is not None else None

    def integers(self, name: str, index: int, since: int) -> list[int] | None:
        """Returns integers that are an attribute up to a version and an input from it on, if they are known."""
        return self.given.get(name) if self.version < since else self.numbers(index)


def unknown(count: int) -> list[Size]:
    """Returns as many unknown dimensions."""
    return [None] * count


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
        sizes = [_size(one) for one in size.sizes]
        return [[sizes[0], *sizes[2:], len(sizes) - 2]]
    axes = theta[1] if theta is not None and len(theta) == 3 else None
    if axes not in (2, 3) or theta is None:
        return [None]
    return [[theta[0], *unknown(2 if axes == 2 else 3), axes]]


def _size(one: Size) -> Size:
    return None if isinstance(one, int) and one < 0 else one


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


def stretched(a: Size, b: Size) -> Size:
    """Returns the size that two have in common where a 1 is stretched."""
    if a == 1:
        return b
    if b in (1, a):
        return a
    return a if isinstance(a, int) else b if isinstance(b, int) else None


def slice_(call: Call) -> list[Dims]:
    """Returns the shapes of Slice: the axes that are not named stay; of the others the size follows where all is
    known."""
    x = call.dims(0)
    starts, ends = call.integers("starts", 1, 10), call.integers("ends", 2, 10)
    if x is None:
        return [None]  # there should be as many starts as axes where none are named, but runtimes take fewer
    named = call.has(3) if call.version >= 10 else "axes" in call.given
    axes = call.integers("axes", 3, 10) if named else [*range(len(starts) if starts is not None else len(x))]
    if axes is None or any(not -len(x) <= axis < len(x) for axis in axes):
        return [unknown(len(x))]
    steps = call.numbers(4) if call.has(4) else [1] * len(axes)
    y = [*x]
    for index, axis in enumerate(axes):
        bounds = (starts, ends, steps)
        known = [bound[index] for bound in bounds if bound is not None and index < len(bound)]
        y[axis] = _left(x[axis], *known) if len(known) == len(bounds) and known[2] else None
    return [y]


def _left(size: Size, start: int, end: int, step: int) -> Size:
    """Returns what a slice leaves of an axis."""
    if isinstance(size, int):
        return len(taken(size, start, end, step))
    return size if (start, step) == (0, 1) and end >= END else None


def gather_nd(call: Call) -> list[Dims]:
    """Returns the shapes of GatherND: a scalar, too, which onnx does not tell from what it does not know."""
    data, indices = call.dims(0), call.dims(1)
    if data is None or not indices or not isinstance(indices[-1], int):
        return [None]
    return [[*indices[:-1], *data[call.given.get("batch_dims", 0) + indices[-1] :]]]


def reshape(call: Call) -> list[Dims]:
    """Returns the shapes of Reshape: there are as many axes as the shape has elements."""
    x = call.dims(0)
    shape = call.given.get("shape") if call.version < 5 else call.vector(1)
    if shape is None:
        return [None]
    wanted: Sequence[Size] = shape if isinstance(shape, list) else shape.sizes
    copies = not call.given.get("allowzero", 0)
    y: list[Size] = []
    for axis, size in enumerate(wanted):
        if size == 0 and copies:
            y.append(x[axis] if x is not None and axis < len(x) else None)
        else:
            y.append(size)
    # what is computed may turn out to be 0 or -1, but then the dimension is not the one that a symbol says
    if -1 in y:
        y[y.index(-1)] = _rest(x, [size for size in y if size != -1])
    return [[_size(size) for size in y]]


def _rest(x: Dims, others: Sequence[Size]) -> Size:
    """Returns what is left for the one dimension that is not given."""
    if x is None or None in x or None in others or 0 in x or 0 in others:
        return None
    symbols = [size for size in x if isinstance(size, str)]
    for size in others:
        if isinstance(size, str):
            if size not in symbols:
                return None
            symbols.remove(size)
    whole = math.prod(size for size in x if isinstance(size, int))
    part = math.prod(size for size in others if isinstance(size, int))
    if whole % part:
        return None
    if not symbols:
        return whole // part
    return symbols[0] if len(symbols) == 1 and whole == part else None


def as_input(call: Call) -> list[Dims]:
    """Returns what an operator makes of each element by itself."""
    return [call.dims(0)]


def transpose(call: Call) -> list[Dims]:
    """Returns the shapes of Transpose: `perm` tells the rank, too."""
    x, perm = call.dims(0), call.given.get("perm")
    if perm is None:
        return [x[::-1] if x is not None else None]
    if x is None or sorted(perm) != [*range(len(x))]:
        return [unknown(len(perm)) if x is None else None]
    return [[x[axis] for axis in perm]]


def constant_of_shape(call: Call) -> list[Dims]:
    """Returns the shapes of ConstantOfShape: the dimensions are the elements."""
    shape = call.vector(0)
    return [[_size(one) for one in shape.sizes] if shape is not None and not shape.scalar else None]


def expand(call: Call) -> list[Dims]:
    """Returns the shapes of Expand: the sizes of the input and those asked for, where either is stretched."""
    x, shape = call.dims(0), call.vector(1)
    if x is None or shape is None:
        return [None]
    wanted = [_size(one) for one in shape.sizes]
    rank = max(len(x), len(wanted))
    pairs = zip(_leading(x, rank), _leading(wanted, rank), strict=True)
    return [[stretched(a, b) for a, b in pairs]]


def _leading(dims: Iterable[Size], rank: int) -> list[Size]:
    dims = [*dims]
    return [*[1] * (rank - len(dims)), *dims]


def tile(call: Call) -> list[Dims]:
    """Returns the shapes of Tile: each size times its count."""
    x, counts = call.dims(0), call.vector(1)
    if x is None:
        return [unknown(len(counts.sizes)) if counts is not None else None]
    if counts is None or len(counts.sizes) != len(x):
        return [unknown(len(x))]
    return [[_times(a, b) for a, b in zip(x, counts.sizes, strict=True)]]


def _times(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return a if b == 1 else b if a == 1 else None


def unsqueeze(call: Call) -> list[Dims]:
    """Returns the shapes of Unsqueeze: there are as many axes more as are named."""
    x, axes = call.dims(0), _axes(call)
    if x is None or axes is None:
        return [None]
    rank = len(x) + len(axes.sizes)
    numbers = axes.numbers
    if numbers is None or any(not -rank <= axis < rank for axis in numbers):
        return [unknown(rank)]
    new = {axis % rank for axis in numbers}
    rest = iter(x)
    return [[1 if axis in new else next(rest, None) for axis in range(rank)]]


def squeeze(call: Call) -> list[Dims]:
    """Returns the shapes of Squeeze: there are as many axes less as are named."""
    x, axes = call.dims(0), _axes(call)
    if x is None or axes is None or len(axes.sizes) > len(x):
        return [None]
    numbers = axes.numbers
    if numbers is None or any(not -len(x) <= axis < len(x) for axis in numbers):
        return [unknown(len(x) - len(axes.sizes))]
    gone = {axis % len(x) for axis in numbers}
    return [[size for axis, size in enumerate(x) if axis not in gone]]


def _axes(call: Call) -> Vector | None:
    """Returns the axes of Squeeze and Unsqueeze, an input from 13 on."""
    if call.version >= 13:
        return call.vector(1)
    named = call.given.get("axes")
    return Vector(tuple(named)) if named is not None else None


def same_rank(call: Call) -> list[Dims]:
    """Keeps the rank; the sizes may change."""
    x = call.dims(0)
    return [unknown(len(x)) if x is not None else None]


def reduce(call: Call) -> list[Dims]:
    """Returns the shape of a reduction: an axis of size 1 stays for each unless `keepdims` is 0."""
    x = call.dims(0)
    if x is None:
        return [None]
    if call.given.get("keepdims", 1):
        return [unknown(len(x))]
    axes = call.vector(1)
    return [unknown(len(x) - len(axes.sizes)) if axes is not None and 0 < len(axes.sizes) <= len(x) else None]
