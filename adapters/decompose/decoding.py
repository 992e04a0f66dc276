# SPDX-License-Identifier: Apache-2.0
"""RotaryEmbedding, TensorScatter, CausalConvWithState, LinearAttention: what stands beside attention in a decoder.

23: RotaryEmbedding.   24: TensorScatter.   27: CausalConvWithState, LinearAttention.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.bodies import element_type, tensor_type
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT, cast
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import END, count_up, known_size, never_empty, part, product, reshape, size_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.adapter import Emitter, Node, Value


# ---- RotaryEmbedding


@downgrade("RotaryEmbedding", at=23)
def rotate_pairs(node: Node, op: Emitter) -> Value:
    """Rotates each pair of elements by the angle of its position; what is beyond `rotary_embedding_dim` stays."""
    op.equivalent("products are summed by operators of their own")
    x, positions, heads = node.input(0), node.optional_input(3), node.attr("num_heads")
    rank = x.rank or node.output().rank or (node.rank(0) if heads else 4)
    numbers, interleaved = Numbers(op), node.attr("interleaved")
    width = numbers.size(x, rank - 1)
    size = width // heads if rank == 3 else width
    blocks = op.Reshape(x, numbers.vector([0, 0, heads, size])) if rank == 3 else x
    turned = numbers.of(node.attr("rotary_embedding_dim")) if node.attr("rotary_embedding_dim") else size
    end = turned.number
    partly = end is not None and end != size.number
    whole = op.at(9).Slice(blocks, axes=[3], starts=[0], ends=[end]) if partly else blocks
    if interleaved:  # neighbours are a pair, otherwise what is half the size apart
        whole = op.Reshape(whole, numbers.vector([0, 0, 0, turned // 2, 2]))
    one, other = op.node("Split", whole, outputs=2, at=11, axis=4 if interleaved else 3)
    cosine, sine = (
        op.at(11).Unsqueeze(_angles(op, table, positions, end), axes=[2 if rank == 3 else 1])
        for table in (node.input(1), node.input(2))
    )
    if interleaved:
        cosine, sine = (op.at(11).Unsqueeze(factor, axes=[4]) for factor in (cosine, sine))
    real = op.Sub(op.Mul(cosine, one), op.Mul(sine, other))
    imaginary = op.Add(op.Mul(sine, one), op.Mul(cosine, other))
    y = op.Concat(real, imaginary, axis=4 if interleaved else 3)
    if interleaved:
        y = op.Reshape(y, numbers.vector([0, 0, 0, turned]))
    if partly:
        y = op.Concat(y, op.at(9).Slice(blocks, axes=[3], starts=[end], ends=[END]), axis=3)
    return op.Reshape(y, numbers.vector([0, 0, width])) if rank == 3 else y


def _angles(op: Emitter, table: Value, positions: Value | None, turned: int | None) -> Value:
    """Writes the cosines or sines of each position; a table may be made for the whole head, of which the first are
    used."""
    found = table if positions is None else op.Gather(table, positions)
    width = found.shape[-1] if found.shape else None
    if turned is None or not isinstance(width, int) or width == turned // 2:
        return found
    return op.at(9).Slice(found, axes=[2], starts=[0], ends=[turned // 2])


# ---- TensorScatter


@downgrade("TensorScatter", at=24)
def scatter_sequences(node: Node, op: Emitter) -> Value:
    """The update replaces as many elements of the sequence, from the place on that each member of the batch has."""
    past, update, first, axis = node.input(0), node.input(1), node.optional_input(2), node.attr("axis")
    if first is None:
        start = size_at(op, op.Shape(update), axis)
        rest = op.Slice(past, start, op.const([END]), op.const([axis]))
        return op.Concat(update, rest, axis=axis)
    rank, shape = past.rank or update.rank, op.Shape(past)
    if rank is None:
        cache, new = _in_four_dimensions(op, past, axis), _in_four_dimensions(op, update, axis)
        return reshape(op, _scattered(node, op, cache, new, first, 4, 2), shape)
    return _scattered(node, op, past, update, first, rank, node.axis(axis, rank))


def _in_four_dimensions(op: Emitter, x: Value, axis: int) -> Value:
    """Returns [batch, what is before the axis, the axis, what is after it]."""
    shape = op.Shape(x)
    before, after = product(op, part(op, shape, 1, axis)), op.const([1])
    if axis != -1:
        after = product(op, part(op, shape, axis + 1))
    return reshape(op, x, op.Concat(part(op, shape, 0, 1), before, size_at(op, shape, axis), after, axis=0))


def _scattered(node: Node, op: Emitter, past: Value, update: Value, first: Value, rank: int, axis: int) -> Value:
    count, length = known_size(update, axis), known_size(past, axis)
    steps = op.const([list(range(count))]) if count is not None else count_up(op, size_at(op, op.Shape(update), axis))
    places = op.Add(op.at(11).Unsqueeze(first, axes=[1]), steps)
    if node.attr("mode") == "circular":
        places = op.Mod(places, op.const([length]) if length is not None else size_at(op, op.Shape(past), axis))
    others = [other for other in range(1, rank) if other != axis]
    places = op.at(11).Unsqueeze(places, axes=others) if others else places
    return op.ScatterElements(past, op.Expand(places, op.Shape(update)), update, axis=axis)


# ---- CausalConvWithState


@downgrade("CausalConvWithState", at=27)
def convolve_with_the_past(node: Node, op: Emitter) -> tuple[Value, Value | None]:
    """A Conv of each channel over the past and the input; the last elements of the two are what is carried on."""
    op.equivalent("the convolution is an operator of its own")
    x, weight, bias, past = node.input(0), node.input(1), node.optional_input(2), node.optional_input(3)
    kept, channels = _kept(node), next((c for c in (known_size(x, 1), known_size(weight, 0)) if c is not None), None)
    if past is not None:
        padded = op.Concat(past, x, axis=2)
    else:
        padded = op.at(10).Pad(x, pads=[0, 0, kept, 0, 0, 0]) if kept else x
    steps = known_size(x, 2)
    if steps == 0:  # runtimes convolve nothing
        y = x
    elif channels is not None:
        more = 0 if steps else 1
        y = op.Conv(padded, weight, bias, group=channels, pads=[more, 0] if more else None)
        y = op.at(9).Slice(y, axes=[2], starts=[more], ends=[END]) if more else y
    else:
        y = _sum_of_taps(op, padded, weight, bias, kept)
    if node.attr("activation") in ("silu", "swish"):
        wide = cast(op, y, DOUBLE if node.dtype(0) == DOUBLE else FLOAT)
        y = cast(op, op.Mul(wide, op.Sigmoid(wide)), node.dtype(0))
    state = op.at(9).Slice(padded, axes=[2], starts=[-kept if kept else END], ends=[END]) if node.is_read(1) else None
    return y, state


def _kept(node: Node) -> int:
    """Returns how many elements are carried on: one less than the kernel has."""
    sizes = [(node.input(1), 1), (node.output(1), 0) if node.uses_output(1) else (node.input(1), 1)]
    if (past := node.optional_input(3)) is not None:
        sizes.append((past, 0))
    known = next((size - more for value, more in sizes if (size := known_size(value, 2)) is not None), None)
    if known is None:
        node.refuse("the size of the kernel is not known", "give the model's inputs shapes", unknown=True)
    return known


def _sum_of_taps(op: Emitter, padded: Value, weight: Value, bias: Value | None, kept: int) -> Value:
    """Returns the convolution of any number of channels: the sum of the input moved by 0, 1, 2 ... times one weight
    each."""
    taps = op.Transpose(weight, perm=[1, 0, 2])
    terms = []
    for tap in range(kept + 1):
        moved = op.at(9).Slice(padded, axes=[2], starts=[tap], ends=[tap - kept or END])
        terms.append(op.Mul(moved, op.at(9).Slice(taps, axes=[2], starts=[tap], ends=[tap + 1])))
    if bias is not None:
        terms.append(op.at(11).Unsqueeze(bias, axes=[1]))
    return op.Sum(*terms)


# ---- LinearAttention

_QUERY, _KEY, _VALUE, _PAST, _DECAY, _BETA = range(6)


@downgrade("LinearAttention", at=27)
def scan_over_time(node: Node, op: Emitter) -> tuple[Value, Value]:
    """Carries the state, in single precision, from one token to the next by a Scan."""
    op.equivalent("the tokens are taken one by one, in single precision")
    numbers, groups, heads = Numbers(op), node.attr("kv_num_heads"), node.attr("q_num_heads")
    dtype, decay, beta, past = node.dtype(_QUERY), *(node.optional_input(index) for index in (_DECAY, _BETA, _PAST))
    width = [numbers.size(node.input(index), 2) // groups for index in (_QUERY, _KEY, _VALUE)]
    rows = heads // groups
    query = _float(op, node.input(_QUERY), numbers.vector([0, 0, groups, rows, width[_QUERY] // rows]))
    key, value = (
        _float(op, node.input(index), numbers.vector([0, 0, groups, 1, width[index]])) for index in (_KEY, _VALUE)
    )
    scanned = [_scaled(node, numbers, query), key, value]
    if decay is not None:
        each = numbers.size(decay, 2) // groups
        scanned.append(_float(op, decay, numbers.vector([0, 0, groups, each, 1])))
    if beta is not None:
        scanned.append(_float(op, beta, numbers.vector([0, 0, numbers.size(beta, 2), 1, 1])))
    if past is None:
        sizes = numbers.vector([numbers.size(key, 0), groups, width[_KEY], width[_VALUE]])
        state = op.at(8).Expand(op.const(0, FLOAT), sizes)
    else:
        state = cast(op, past, FLOAT)
    if state.rank is None:  # a Scan wants to know the rank of what it carries
        state = op.Reshape(state, op.const([0, 0, 0, 0]))

    def step(op: Emitter, state: Value, query: Value, key: Value, value: Value, *gates: Value) -> list[Value]:
        if decay is not None:
            state = op.Mul(state, op.Exp(gates[0]))
        if beta is not None:
            value = op.Mul(gates[-1], op.Sub(value, op.MatMul(key, state)))
        state = op.Add(state, op.Mul(op.Transpose(key, perm=[0, 1, 3, 2]), value))
        return [state, op.MatMul(query, state)]

    last, outputs = _scan(op, state, scanned, step)
    y = op.Reshape(outputs, numbers.vector([0, 0, width[_VALUE] * heads]))
    return cast(op, y, dtype), cast(op, last, dtype if past is None else node.dtype(_PAST))


def _scan(op: Emitter, state: Value, scanned: list[Value], step: Callable[..., list[Value]]) -> tuple[Value, Value]:
    """Writes a Scan over the second axis. If there may be nothing to scan, that axis is made the first one before, and
    a step of zeros comes first, which changes no state: runtimes fail at a Scan of no step, and at another axis of what
    is empty."""
    axis, filled = 1, all(never_empty(value) for value in scanned)
    if not filled:
        axis, steps = 0, next((size for value in scanned if (size := known_size(value, 1)) is not None), None)
        scanned = [op.Transpose(value, perm=[1, 0, 2, 3, 4]) for value in scanned]
        if not steps:
            scanned = [op.at(10).Pad(value, pads=[1, *[0] * 9]) for value in scanned]
    carried, *elements = (value.type or tensor_type(FLOAT) for value in (state, *scanned))
    kinds = [element_type(carried), *(element_type(kind, axis) for kind in elements)]
    body = op.graph("token", kinds, step)
    last, outputs = op.node(
        "Scan", state, *scanned, outputs=2, body=body, num_scan_inputs=len(scanned),
        scan_input_axes=[axis] * len(scanned), scan_output_axes=[axis],
    )  # fmt: skip
    if filled:
        return last, outputs
    outputs = outputs if steps else op.at(9).Slice(outputs, axes=[0], starts=[1], ends=[END])
    return last, op.Transpose(outputs, perm=[1, 0, 2, 3, 4])


def _float(op: Emitter, x: Value, shape: Value) -> Value:
    return cast(op, op.Reshape(x, shape), FLOAT)


def _scaled(node: Node, numbers: Numbers, query: Value) -> Value:
    """Writes the query times `scale`, by default one over the root of the size of a head."""
    op, scale, size = numbers.op, node.attr("scale"), numbers.size(query, 4)
    if not scale and size.number is None:
        return op.Div(query, op.Sqrt(size.in_dtype(FLOAT)))
    return op.Mul(query, op.const(scale or (1 / sqrt(size.number) if size.number else 0), FLOAT))
