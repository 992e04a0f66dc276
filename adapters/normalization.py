# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization.

BatchNormalization, InstanceNormalization
6: below, the input has four dimensions, and there is `consumed_inputs`, a hint about memory: of BatchNormalization
required, a flag for each of five inputs.

BatchNormalization
7: `is_test` goes; a node that has more outputs than Y trains, one that has not infers.
9: `spatial` goes: without it, every feature (C x D1 x ... x Dn) had statistics of its own. The input may be 1-D.
14: `training_mode` tells training from inference; the outputs `saved_mean`, `saved_var` go. The variance is that of the
population, and the running statistics may have a dtype of their own.
15: scale and bias, too; training computes the statistics of float16 in float.

GroupNormalization
21: scale and bias are per channel, below per group; `stash_type` is the dtype of the first stage, below that of the
input. The version below has been deprecated from its birth at 18, so nothing leads down to it.

MeanVarianceNormalization
9: below, it is experimental: no schema describes it.
13: more dtypes. onnx cannot check a node of this version that leaves `axes` to its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT
from onnx_convert.adapters.lib.shapes import part

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_MEAN, _VARIANCE = 3, 4
_SAVED_MEAN, _SAVED_VARIANCE = 3, 4

# ---- BatchNormalization, InstanceNormalization


@upgrade("BatchNormalization", "InstanceNormalization", at=6)
def forget_memory_hint(node: Node, op: Emitter) -> Value:
    """`consumed_inputs` never changed a number."""
    return op.same(drop=("consumed_inputs",))


@downgrade("BatchNormalization", at=6)
def consume_running_statistics(node: Node, op: Emitter) -> Value:
    """Training updates the mean and the variance in place, inference nothing."""
    _need_four_dimensions(node)
    flags = [0, 0, 0, 0, 0] if node.attr("is_test") else [0, 0, 0, 1, 1]
    return op.same(consumed_inputs=flags)


@downgrade("InstanceNormalization", at=6)
def keep_four_dimensions(node: Node, op: Emitter) -> Value:
    """Nothing changes for an input of four dimensions, the only one that was meant."""
    _need_four_dimensions(node)
    return op.same()


def _need_four_dimensions(node: Node) -> None:
    rank = node.input(0).rank
    if rank not in (None, 4):
        node.refuse(
            f"below opset 6 the input has four dimensions, and this one has {rank}",
            "go no lower than opset 6, or reshape the input to four dimensions",
        )


# ---- BatchNormalization


@upgrade("BatchNormalization", at=7)
def let_outputs_tell_the_mode(node: Node, op: Emitter) -> Value:
    """`is_test` is dropped where the outputs tell the same."""
    if bool(node.attr("is_test")) == _has_statistics(node):
        if _has_statistics(node):
            node.refuse("is_test is set, yet the node has outputs of training", "drop the outputs, or is_test")
        op.conditional("the node is meant for inference, as its single output says, although is_test is 0")
    return op.same(drop=("is_test",))


@downgrade("BatchNormalization", at=7)
def tell_the_mode(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """Without outputs of training, `is_test` is set. Where statistics are per feature, the input is flattened."""
    is_test = None if _has_statistics(node) else 1
    return op.same(is_test=is_test) if node.attr("spatial") else _flattened(node, op, is_test=is_test)


@upgrade("BatchNormalization", at=9)
def flatten_features(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """`spatial` is dropped; if it was 0, the features become the channels of a flat input."""
    return op.same(drop=("spatial",)) if node.attr("spatial") else _flattened(node, op)


@downgrade("BatchNormalization", at=9)
def give_one_channel(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """A 1-D input gets a channel dimension of size 1."""
    x = node.input(0)
    if x.rank != 1:
        return op.same()
    y, *statistics = op.sames(op.at(11).Unsqueeze(x, axes=[1]), *node.inputs[1:])
    return (op.at(11).Squeeze(y, axes=[1]), *statistics)


@upgrade("BatchNormalization", at=14)
def tell_training(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """Training is said, and what it saved for the gradient computed beside it."""
    if not _has_statistics(node):
        return op.same()
    y, mean, variance = op.sames(outputs=3, training_mode=1)
    saved: list[Value | None] = [None, None]
    if node.uses_output(_SAVED_MEAN) or node.is_read(_SAVED_VARIANCE):
        x, axes = _with_channels(node, op)
        center = op.at(13).ReduceMean(x, axes=axes, keepdims=1)
        op.equivalent("what training saved is computed by other operators")
        if node.uses_output(_SAVED_MEAN):
            saved[0] = op.at(11).Squeeze(center, axes=axes)
        if node.uses_output(_SAVED_VARIANCE):
            op.conditional("what reads saved_var expects the population variance there: runtimes differ")
            saved[1] = _mean_square(op, op.at(7).Sub(x, center), axes, keepdims=0)
    return (y, mean, variance, *saved)


@downgrade("BatchNormalization", at=14)
def compute_batch_statistics(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """Inference stays, in one dtype; training is written out."""
    if not node.attr("training_mode"):
        return _in_one_dtype(node, op, 5)
    op.equivalent("the statistics of the batch are computed by other operators")
    narrow, narrow_statistics = node.dtype(0), node.dtype(_MEAN)
    dtype = DOUBLE if DOUBLE in (narrow, narrow_statistics) else FLOAT
    x, axes = _with_channels(node, op)
    x = _cast(op, x, narrow, dtype)
    scale, bias, mean, variance = (_cast(op, node.input(i), node.input(i).dtype, dtype) for i in range(1, 5))
    center = op.at(13).ReduceMean(x, axes=axes, keepdims=1)
    distance = op.at(7).Sub(x, center)
    spread = _mean_square(op, distance, axes, keepdims=1)
    deviation = op.Sqrt(op.at(7).Add(spread, op.const(node.attr("epsilon"), dtype)))
    if len(axes) > 1:
        scale, bias = (op.at(11).Unsqueeze(value, axes=[axis - 1 for axis in axes[1:]]) for value in (scale, bias))
    y = op.at(7).Add(op.at(7).Mul(op.at(7).Div(distance, deviation), scale), bias)
    y = _cast(op, y, dtype, narrow)
    if node.input(0).rank in (None, 1):
        y = op.Reshape(y, op.Shape(node.input(0)))
    running: list[Value | None] = [None, None]
    for index, (old, new) in enumerate(((mean, center), (variance, spread))):
        if node.uses_output(index + 1):
            running[index] = _cast(op, _moved(node, op, old, new, axes, dtype), dtype, narrow_statistics)
    return (y, *running)


@downgrade("BatchNormalization", at=15)
def normalise_in_one_dtype(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """If the dtypes of scale and input differ, the node works in the wider one."""
    return _in_one_dtype(node, op, 3)


def _has_statistics(node: Node) -> bool:
    return any(node.uses_output(index) for index in range(1, len(node.proto.output)))


def _flattened(node: Node, op: Emitter, **attributes: Any) -> tuple[Value | None, ...]:
    """Returns the node on the features in one dimension."""
    x, (scale, *others) = node.input(0), (node.input(index) for index in range(1, 5))
    if any(_is_by_channel(value, x) for value in (scale, *others)):
        node.refuse("spatial is 0, yet there is not one statistic for each feature", "set spatial to 1 if it is meant")
    flat = [op.Reshape(value, op.const([-1])) if value.rank != 1 else value for value in (scale, *others)]
    y, *statistics = op.sames(op.at(9).Flatten(x, axis=1), *flat, drop=("spatial",), **attributes)
    features = scale.shape if scale.shape and all(isinstance(size, int) and size for size in scale.shape) else None
    whole = op.Shape(x) if features is None else op.const([0, *features])
    values: list[Value | None] = [op.Reshape(y, whole)]
    for index, value in enumerate(statistics, 1):
        feature = op.Shape(scale) if features is None else op.const(features)
        values.append(op.Reshape(value, feature) if node.uses_output(index) else None)
    return tuple(values)


def _is_by_channel(statistic: Value, x: Value) -> bool:
    """Returns whether a statistic is known not to have the shape of a member of the batch."""
    if statistic.shape is None or x.shape is None:
        return False
    pairs = list(zip(statistic.shape, x.shape[1:], strict=False))
    clash = any(isinstance(one, int) and isinstance(other, int) and one != other for one, other in pairs)
    return clash or len(statistic.shape) != len(x.shape) - 1


def _with_channels(node: Node, op: Emitter) -> tuple[Value, list[int]]:
    """Returns the input, in a view of three dimensions if its rank is unknown, and its axes but that of the
    channels."""
    x, scale = node.input(0), node.input(1)
    if x.rank is None:  # it may be 1: then there is one channel, of which the input says nothing
        size = scale.shape[0] if scale.shape else None
        channels = op.const([size]) if isinstance(size, int) else op.Shape(scale)
        return op.Reshape(x, op.Concat(op.const([0]), channels, op.const([-1]), axis=0)), [0, 2]
    if x.rank == 1:
        return op.at(11).Unsqueeze(x, axes=[1]), [0]
    return x, [0, *range(2, x.rank)]


def _mean_square(op: Emitter, distance: Value, axes: list[int], keepdims: int) -> Value:
    return op.at(13).ReduceMean(op.at(7).Mul(distance, distance), axes=axes, keepdims=keepdims)


def _moved(node: Node, op: Emitter, old: Value, new: Value, axes: list[int], dtype: int) -> Value:
    """Returns a running statistic, moved towards that of the batch."""
    momentum = node.attr("momentum")
    kept = op.at(7).Mul(old, op.const(momentum, dtype))
    return op.at(7).Add(kept, op.at(7).Mul(op.at(11).Squeeze(new, axes=axes), op.const(1 - momentum, dtype)))


def _in_one_dtype(node: Node, op: Emitter, count: int) -> Value | tuple[Value | None, ...]:
    """Returns the node in the widest dtype of its first inputs; as it is, if they agree as far as one knows."""
    dtypes = [node.input(index).dtype for index in range(5)]
    if len({*dtypes[:count]} - {None}) < 2:
        return op.same(drop=("training_mode",) if count == 5 else ())
    op.equivalent("computed in a wider float, rounded once")
    dtype = DOUBLE if DOUBLE in dtypes else FLOAT
    inputs = [_cast(op, node.input(index), known, dtype) for index, known in enumerate(dtypes)]
    y, *statistics = op.sames(*inputs, drop=("training_mode",) if count == 5 else ())
    narrow, narrow_statistics = node.dtype(0), node.dtype(_MEAN)
    others = (
        _cast(op, value, dtype, narrow_statistics) if node.uses_output(index) else None
        for index, value in enumerate(statistics, 1)
    )
    return (_cast(op, y, dtype, narrow), *others)


def _cast(op: Emitter, value: Value, dtype: int | None, to: int) -> Value:
    return value if dtype == to else op.Cast(value, to=to)


# ---- GroupNormalization


@upgrade("GroupNormalization", at=21)
def spread_groups_over_channels(node: Node, op: Emitter) -> Value:
    """Each scale and bias is repeated for the channels of its group; the first stage keeps the input's dtype."""
    dtype = node.dtype(0)
    return op.same(*_by_channel(node, op), stash_type=None if dtype == FLOAT else dtype)


@downgrade("GroupNormalization", at=18)
def normalise_groups_by_channel(node: Node, op: Emitter) -> Value:
    """The node as version 21 writes it, which goes down from there."""
    given = {name: node.attr(name) for name in ("num_groups", "epsilon")}
    return op.at(21).GroupNormalization(*_by_channel(node, op), stash_type=node.dtype(0), **given)


def _by_channel(node: Node, op: Emitter) -> tuple[Value, Value, Value]:
    """Returns the inputs, with one scale and bias for each channel."""
    x, groups = node.input(0), node.attr("num_groups")
    channels = x.shape[1] if x.shape is not None and len(x.shape) > 1 else None
    if isinstance(channels, int):
        repeats = op.const([1, channels // groups])
    else:
        size = op.at(7).Div(part(op, op.Shape(x), 1, 2), op.const([groups]))
        repeats = op.Concat(op.const([1]), size, axis=0)

    def spread(parameter: Value) -> Value:
        known = parameter.shape
        if known and isinstance(known[0], int) and known[0] != groups:
            node.refuse(f"{parameter.name!r} has {known[0]} elements, where there is one for each of {groups} groups")
        column = op.Reshape(parameter, op.const([groups, 1]))
        return op.Reshape(op.at(8).Expand(column, repeats), op.const([-1]))

    return x, spread(node.input(1)), spread(node.input(2))


@downgrade("GroupNormalization", at=21)
def normalise_groups(node: Node, op: Emitter) -> Value:
    """InstanceNormalization takes the groups for channels; then scale and bias apply to the channels. Runtimes have it
    for no doubles."""
    op.equivalent("each group is normalised by InstanceNormalization")
    x, groups = node.input(0), node.attr("num_groups")
    narrow = node.dtype(0)
    if 0 in (x.shape or ()):
        return op.Identity(x)
    stash = DOUBLE if node.attr("stash_type") == DOUBLE else FLOAT
    rows = _cast(op, op.Reshape(x, op.const([0, groups, -1])), narrow, stash)
    if stash == DOUBLE:
        stage = _standardised(op, rows, node.attr("epsilon"))
    else:
        one, zero = op.const([1] * groups, stash), op.const([0] * groups, stash)
        stage = op.at(6).InstanceNormalization(rows, one, zero, epsilon=node.attr("epsilon"))
    stage = _cast(op, stage, stash, narrow)
    if x.rank is None:
        blocks = op.Concat(op.const([0]), _channels(op, node), op.const([-1]), axis=0)
        return op.Reshape(_scaled(op, node, op.Reshape(stage, blocks), 3), op.Shape(x))
    return _scaled(op, node, op.Reshape(stage, _like(op, x)), x.rank)


def _standardised(op: Emitter, rows: Value, epsilon: float) -> Value:
    """Returns doubles whose last axis of three has a mean of 0 and a variance of 1."""
    centred = op.at(7).Sub(rows, op.at(17).ReduceMean(rows, axes=[2], keepdims=1))
    variance = op.at(17).ReduceMean(op.at(7).Mul(centred, centred), axes=[2], keepdims=1)
    return op.at(7).Div(centred, op.at(6).Sqrt(op.at(7).Add(variance, op.const(epsilon, DOUBLE))))


def _channels(op: Emitter, node: Node) -> Value:
    known = node.input(1).shape
    if known and isinstance(known[0], int):
        return op.const([known[0]])
    return part(op, op.Shape(node.input(0)), 1, 2)


def _scaled(op: Emitter, node: Node, y: Value, rank: int) -> Value:
    """Returns scale and bias, one a channel, on a value of that rank."""
    factor, shift = node.input(1), node.input(2)
    if rank > 2:
        column = op.const([-1] + [1] * (rank - 2))
        factor, shift = op.Reshape(factor, column), op.Reshape(shift, column)
    return op.at(7).Add(op.at(7).Mul(y, factor), shift)


def _like(op: Emitter, x: Value) -> Value:
    """Returns the shape of a value, for a Reshape of something with the same first dimension."""
    sizes = [size if isinstance(size, int) else -1 for size in (x.shape or ())[1:]]
    if sizes.count(-1) < 2 and 0 not in sizes:
        return op.const([0, *sizes])
    return op.Shape(x)


# ---- MeanVarianceNormalization


@upgrade("MeanVarianceNormalization", at=9)
def keep_axes(node: Node, op: Emitter) -> Value:
    """The operator proper is the function of ONNX 1.3; the one before it said by flags what to normalise."""
    if node.has("across_channels") or node.has("normalize_variance"):
        node.refuse(
            "the flags across_channels and normalize_variance have no exact definition in the specification",
            "write the normalisation out, or state `axes`",
        )
    return op.same()


@upgrade("MeanVarianceNormalization", at=13)
def spell_out_axes(node: Node, op: Emitter) -> Value:
    """The default is written out, without which onnx's checker fails on the function body."""
    return op.same() if node.has("axes") else op.same(axes=[0, 2, 3])
