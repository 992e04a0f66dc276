# SPDX-License-Identifier: Apache-2.0
"""RotaryEmbedding, TensorScatter, CausalConvWithState, LinearAttention: what stands beside attention in a decoder.

23: RotaryEmbedding.   24: TensorScatter.   27: CausalConvWithState, LinearAttention.
"""

from __future__ import annotations

from copy import deepcopy
from math import sqrt
from typing import TYPE_CHECKING, Any

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT, cast
from onnx_convert.adapters.lib.shapes import END, count_up, known_size, part, product, reshape, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


# ---- RotaryEmbedding


@downgrade("RotaryEmbedding", at=23)
def rotate_pairs(node: Node, op: Emitter) -> Value:
    """Each pair of elements is rotated by the angle of its position; what is beyond `rotary_embedding_dim` stays."""
    op.equivalent("products are summed by operators of their own")
    x, positions, heads = node.input(0), node.optional_input(3), node.attr("num_heads")
    rank = x.rank or node.output().rank or (node.rank(0) if heads else 4)
    if rank == 3:
        size = known_size(x, 2)
        blocks = op.Reshape(x, op.const([0, 0, heads, -1 if size is None else size // heads]))
    else:
        blocks = x
    size = known_size(blocks, 3)
    turned = node.attr("rotary_embedding_dim") or size
    whole = blocks if turned == size else op.at(9).Slice(blocks, axes=[3], starts=[0], ends=[turned])
    one, other = _pairs(node, op, whole, turned)
    cosine, sine = (
        op.at(11).Unsqueeze(_angles(op, table, positions, turned), axes=[2 if rank == 3 else 1])
        for table in (node.input(1), node.input(2))
    )
    if node.attr("interleaved"):
        cosine, sine = (op.at(11).Unsqueeze(factor, axes=[4]) for factor in (cosine, sine))
    real = op.Sub(op.Mul(cosine, one), op.Mul(sine, other))
    imaginary = op.Add(op.Mul(sine, one), op.Mul(cosine, other))
    y = op.Concat(real, imaginary, axis=4 if node.attr("interleaved") else 3)
    if node.attr("interleaved"):
        y = op.Reshape(y, op.const([0, 0, 0, turned or -1]))
    if turned != size:
        y = op.Concat(y, op.at(9).Slice(blocks, axes=[3], starts=[turned], ends=[END]), axis=3)
    return op.Reshape(y, op.const([0, 0, known_size(x, 2) or -1])) if rank == 3 else y


def _angles(op: Emitter, table: Value, positions: Value | None, turned: int | None) -> Value:
    """The cosines or sines of each position; a table may be made for the whole head, of which the first are used."""
    found = table if positions is None else op.Gather(table, positions)
    width = found.shape[-1] if found.shape else None
    if turned is None or not isinstance(width, int) or width == turned // 2:
        return found
    return op.at(9).Slice(found, axes=[2], starts=[0], ends=[turned // 2])


def _pairs(node: Node, op: Emitter, x: Value, size: int | None) -> tuple[Value, ...]:
    """The first elements of all pairs and the second ones: neighbours, or half the size apart."""
    if node.attr("interleaved"):
        neighbours = op.Reshape(x, op.const([0, 0, 0, size // 2 if size else -1, 2]))
        return op.node("Split", neighbours, outputs=2, at=11, axis=4)
    return op.node("Split", x, outputs=2, at=11, axis=3)


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
    """[batch, what is before the axis, the axis, what is after it]."""
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
    if channels is not None:
        y = op.Conv(padded, weight, bias, group=channels)
    else:
        y = _sum_of_taps(op, padded, weight, bias, kept)
    if node.attr("activation") in ("silu", "swish"):
        wide = cast(op, y, DOUBLE if node.dtype(0) == DOUBLE else FLOAT)
        y = cast(op, op.Mul(wide, op.Sigmoid(wide)), node.dtype(0))
    state = op.at(9).Slice(padded, axes=[2], starts=[-kept if kept else END], ends=[END]) if node.is_read(1) else None
    return y, state


def _kept(node: Node) -> int:
    """How many elements are carried on: one less than the kernel has."""
    sizes = [(node.input(1), 1), (node.output(1), 0) if node.uses_output(1) else (node.input(1), 1)]
    if (past := node.optional_input(3)) is not None:
        sizes.append((past, 0))
    known = next((size - more for value, more in sizes if (size := known_size(value, 2)) is not None), None)
    if known is None:
        node.refuse("the size of the kernel is not known", "give the model's inputs shapes", unknown=True)
    return known


def _sum_of_taps(op: Emitter, padded: Value, weight: Value, bias: Value | None, kept: int) -> Value:
    """The convolution of any number of channels: the sum of the input moved by 0, 1, 2 ... times one weight each."""
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
    """A Scan carries the state, in single precision, from one token to the next."""
    op.equivalent("the tokens are taken one by one, in single precision")
    groups, heads, dtype = node.attr("kv_num_heads"), node.attr("q_num_heads"), node.dtype(_QUERY)
    query = _scaled(node, op, _rows(node, op, _QUERY, heads // groups))
    scanned = [query, _rows(node, op, _KEY, 1), _rows(node, op, _VALUE, 1)]
    decay, beta = (node.optional_input(index) for index in (_DECAY, _BETA))
    gates = [] if decay is None else [_float(op, decay, [0, 0, groups, _each(known_size(decay, 2), groups), 1])]
    gates += [] if beta is None else [_float(op, beta, [0, 0, known_size(beta, 2) or -1, 1, 1])]
    state = _first_state(node, op, scanned[1], scanned[2])

    def step(op: Emitter, state: Value, query: Value, key: Value, value: Value, *gates: Value) -> list[Value]:
        if decay is not None:
            state = op.Mul(state, op.Exp(gates[0]))
        if beta is not None:
            value = op.Mul(gates[-1], op.Sub(value, op.MatMul(key, state)))
        state = op.Add(state, op.Mul(op.Transpose(key, perm=[0, 1, 3, 2]), value))
        return [state, op.MatMul(query, state)]

    scanned += gates
    kinds = [_moment(value, 1) for value in scanned]
    body = op.graph("token", [_moment(state, None), *kinds], step)
    last, outputs = op.node(
        "Scan", state, *scanned, outputs=2, body=body, num_scan_inputs=len(scanned),
        scan_input_axes=[1] * len(scanned), scan_output_axes=[1],
    )  # fmt: skip
    width = known_size(node.input(_VALUE), 2)
    y = op.Reshape(outputs, op.const([0, 0, -1 if width is None else width // groups * heads]))
    past = node.optional_input(_PAST)
    return cast(op, y, dtype), cast(op, last, dtype if past is None else node.dtype(_PAST))


def _each(size: int | None, count: int) -> int:
    return -1 if size is None else size // count


def _float(op: Emitter, x: Value, shape: list[int]) -> Value:
    return cast(op, op.Reshape(x, op.const(shape)), FLOAT)


def _rows(node: Node, op: Emitter, index: int, rows: int) -> Value:
    """An input as [batch, time, heads of the keys, rows, size of a head]."""
    x, groups = node.input(index), node.attr("kv_num_heads")
    return _float(op, x, [0, 0, groups, rows, _each(known_size(x, 2), groups * rows)])


def _scaled(node: Node, op: Emitter, query: Value) -> Value:
    scale, size = node.attr("scale"), known_size(query, 4)
    if not scale and size is None:
        return op.Div(query, op.Sqrt(op.Cast(size_at(op, op.Shape(query), 4), to=FLOAT)))
    return op.Mul(query, op.const(scale or (1 / sqrt(size) if size else 0), FLOAT))


def _first_state(node: Node, op: Emitter, key: Value, value: Value) -> Value:
    """[batch, heads, size of a key, size of a value]: what is carried in, or zeros."""
    past = node.optional_input(_PAST)
    state = _zeros(node, op, key, value) if past is None else cast(op, past, FLOAT)
    # A Scan wants to know the rank of what it carries.
    return state if state.rank is not None else op.Reshape(state, op.const([0, 0, 0, 0]))


def _zeros(node: Node, op: Emitter, key: Value, value: Value) -> Value:
    groups, sizes = node.attr("kv_num_heads"), [known_size(key, 0), known_size(key, 4), known_size(value, 4)]
    if None not in sizes:
        shape = op.const([sizes[0], groups, sizes[1], sizes[2]])
    else:
        keys, values = op.Shape(key), op.Shape(value)
        shape = op.Concat(part(op, keys, 0, 1), op.const([groups]), part(op, keys, 4), part(op, values, 4), axis=0)
    return op.at(8).Expand(op.const(0, FLOAT), shape)


def _moment(x: Value, time: int | None) -> Any:
    """The type of a value; at one moment, if it has an axis of time."""
    kind = deepcopy(x.type)
    if kind is not None:
        if time is not None:
            del kind.tensor_type.shape.dim[time]
        for dim in kind.tensor_type.shape.dim:
            dim.ClearField("dim_param")
    return kind
