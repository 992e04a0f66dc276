# SPDX-License-Identifier: Apache-2.0
"""What the old operators mean, written down from their texts: for onnx's reference evaluator, which knows only their
later meaning, and that sometimes loosely. One function an operator; `legacy_operators` picks what an opset needs."""

from __future__ import annotations

from functools import cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray


def fitted(a: Array, b: Array, axis: int | None = None, broadcast: int = 0) -> Array:
    """Returns B as the text of Add-1 and Add-6 lays it against A, in a shape that numpy broadcasts to A's.

    Equal shapes always fit. With broadcast=1 a B of one element and no higher rank than A fits, and a B whose shape
    is a contiguous block of A's that starts at `axis` (default: the end of A's shape). Nothing else does.
    """
    if a.shape == b.shape:
        return b
    if not broadcast:
        raise ValueError(f"shapes {a.shape} and {b.shape} differ, and broadcast is not set")
    if b.size == 1 and b.ndim <= a.ndim:
        return b.reshape(())
    start = a.ndim - b.ndim if axis is None or axis == -1 else axis
    if start < 0 or a.shape[start : start + b.ndim] != b.shape:
        raise ValueError(f"shape {b.shape} is no contiguous block of {a.shape} at axis {start}")
    return b.reshape(b.shape + (1,) * (a.ndim - start - b.ndim))


def _divided(a: Array, b: Array) -> Array:
    """Divides integers towards zero; the lowest one has no magnitude of its dtype."""
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    down = a // b
    return np.asarray(down + ((down < 0) & (down * b != a))).astype(a.dtype)


def _binary(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def apply(a: Array, b: Array, axis: int | None = None, broadcast: int = 0) -> Array:
        return np.asarray(function(a, fitted(a, b, axis, broadcast)))

    return apply


def _variadic(function: Callable[[Array, Array], Array], divide: bool = False) -> Callable[..., Array]:
    """Returns an operator whose inputs all have the same shape."""

    def apply(*inputs: Array) -> Array:
        total = reduce(lambda a, b: function(a, fitted(a, b)), inputs)
        return np.asarray(total / total.dtype.type(len(inputs)) if divide else total)

    return apply


def _mean(*inputs: Array) -> Array:
    """Stretches as numpy does; the reference adds in place, which fails where a later input is larger."""
    total = np.asarray(reduce(np.add, inputs))
    return np.asarray(total / total.dtype.type(len(inputs)))


def _prelu(x: Array, slope: Array) -> Array:
    """Takes a slope of one element, or a 1-D one with one element a channel (axis 1)."""
    if slope.size > 1 and slope.ndim > 1:
        raise ValueError(f"a slope of shape {slope.shape} is not one by channel")
    slope = slope.reshape(()) if slope.size == 1 else fitted(x, slope, axis=1, broadcast=1)
    return np.where(x < 0, x * slope, x)


def _prelu_stretched(x: Array, slope: Array) -> Array:
    """Stretches the slope to x, never the other way; the reference guesses a channel where it does not fit."""
    return np.where(x < 0, x * np.broadcast_to(slope, x.shape), x)


def _gemm(
    a: Array,
    b: Array,
    c: Array,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Array:
    product = (a.T if transA else a) @ (b.T if transB else b)
    return np.asarray(alpha * product + beta * fitted(product, c, broadcast=broadcast)).astype(a.dtype)


def _coerced(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """Sees the input as a matrix that is cut at `axis`; each row is one distribution."""

    def apply(x: Array, axis: int = 1) -> Array:
        cut = axis + x.ndim if axis < 0 else axis
        matrix = x.reshape(int(np.prod(x.shape[:cut], dtype=np.int64)), int(np.prod(x.shape[cut:], dtype=np.int64)))
        if not x.size:
            return x
        wide = matrix.astype(np.promote_types(x.dtype, np.float32))
        return function(wide).astype(x.dtype).reshape(x.shape)

    return apply


def _softmax(matrix: Array) -> Array:
    powers = np.exp(matrix - matrix.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _log_softmax(matrix: Array) -> Array:
    shifted = matrix - matrix.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _hardmax(matrix: Array) -> Array:
    return np.asarray(np.arange(matrix.shape[1]) == matrix.argmax(axis=1)[:, None], dtype=matrix.dtype)


def _reshape(x: Array, shape: list[int]) -> Array:
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def _cast(x: Array, to: str) -> Array:
    return x.astype(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(to)))


def _tile(x: Array, tiles: Array, axis: Array) -> Array:
    repeats = [1] * x.ndim
    repeats[int(axis.item())] = int(tiles.item())
    return np.tile(x, repeats)


def _clip(x: Array, min: float | None = None, max: float | None = None) -> Array:  # noqa: A002 (the attributes)
    """Clips by the bounds that are stated; from 6 on one that is not is the largest float32."""
    return x if min is max is None else np.clip(x, min, max).astype(x.dtype)


def _batch_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    is_test: int = 0,
    spatial: int = 1,
) -> Array:
    """Returns the first output; with is_test=0 by statistics of the batch itself; `momentum` is for the others."""
    if not spatial:
        raise ValueError("a mean for each element has no expected result")
    if not is_test:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        mean, variance = x.mean(axis=axes), x.var(axis=axes)
    scale, bias, mean, variance = (fitted(x, v, axis=1, broadcast=1) for v in (scale, bias, mean, variance))
    return np.asarray(scale * (x - mean) / np.sqrt(variance + epsilon) + bias).astype(x.dtype)


def _batch_normalization_7(*inputs: Any, **attributes: Any) -> Array:
    """Returns the first output by the statistics given; the reference takes a missing `is_test` for training."""
    return _batch_normalization(*inputs, **{**attributes, "is_test": 1})


def _concat(*inputs: Array, axis: int = 1) -> Array:
    return np.concatenate(inputs, axis=axis)


def _dropout(x: Array, is_test: int = 0, ratio: float = 0.5) -> Array:
    if not is_test:
        raise ValueError("a random Dropout has no expected result")
    return x


def _lp_pool(
    x: Array,
    p: float = 2,
    kernel_shape: list[int] | None = None,
    auto_pad: str = "NOTSET",
    pads: list[int] | None = None,
    strides: list[int] | None = None,
    dilations: list[int] | None = None,
    ceil_mode: int = 0,
) -> Array:
    """Returns the sum of the powers over a window, axis by axis; the reference counts padding as if it were input."""
    if kernel_shape is None:
        return _global_lp_pool(x, p)
    n, sums = len(kernel_shape), np.abs(x.astype(np.float64)) ** p
    strides, dilations, pads = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    for i, kernel in enumerate(kernel_shape):
        length, extent = x.shape[i + 2], (kernel - 1) * dilations[i] + 1
        begin, total = pads[i], pads[i] + pads[i + n]
        if auto_pad.startswith("SAME"):
            total = max((-(-length // strides[i]) - 1) * strides[i] + extent - length, 0)
            begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        room = length + total - extent
        count = (-(-room // strides[i]) if ceil_mode else room // strides[i]) + 1
        count -= int(bool(ceil_mode) and (count - 1) * strides[i] >= length + begin)
        places = np.arange(count)[:, None] * strides[i] - begin + np.arange(kernel) * dilations[i]
        inside = (places >= 0) & (places < length)
        taken = np.moveaxis(sums, i + 2, -1)[..., np.clip(places, 0, length - 1)]
        sums = np.moveaxis((taken * inside).sum(axis=-1), -1, i + 2)
    return np.asarray(sums ** (1 / float(p))).astype(x.dtype)


def _global_lp_pool(x: Array, p: float = 2) -> Array:
    sums = (np.abs(x.astype(np.float64)) ** p).sum(axis=tuple(range(2, x.ndim)), keepdims=True)
    return np.asarray(sums ** (1 / float(p))).astype(x.dtype)


EVER = 1000  # below no opset that exists

# Operator, below which opset, what it means there. The first row that fits is taken.
MEANINGS: list[tuple[str, int, Callable[..., Array]]] = [
    ("Add", 7, _binary(np.add)),
    ("Sub", 7, _binary(np.subtract)),
    ("Mul", 7, _binary(np.multiply)),
    ("Div", 7, _binary(_divided)),
    ("Pow", 7, _binary(np.power)),
    ("And", 7, _binary(np.logical_and)),
    ("Or", 7, _binary(np.logical_or)),
    ("Xor", 7, _binary(np.logical_xor)),
    ("Equal", 7, _binary(np.equal)),
    ("Greater", 7, _binary(np.greater)),
    ("Less", 7, _binary(np.less)),
    ("PRelu", 7, _prelu),
    ("PRelu", EVER, _prelu_stretched),
    ("Gemm", 7, _gemm),
    ("Sum", 8, _variadic(np.add)),
    ("Mean", 8, _variadic(np.add, divide=True)),
    ("Mean", EVER, _mean),
    ("Max", 8, _variadic(np.maximum)),
    ("Min", 8, _variadic(np.minimum)),
    ("Softmax", 13, _coerced(_softmax)),
    ("LogSoftmax", 13, _coerced(_log_softmax)),
    ("Hardmax", 13, _coerced(_hardmax)),
    ("Reshape", 5, _reshape),
    ("Cast", 6, _cast),
    ("LpPool", EVER, _lp_pool),
    ("GlobalLpPool", EVER, _global_lp_pool),
    ("Tile", 6, _tile),
    ("Concat", 4, _concat),
    ("Clip", 6, _clip),
    ("BatchNormalization", 7, _batch_normalization),
    ("BatchNormalization", 9, _batch_normalization_7),
    ("Dropout", 7, _dropout),
]


LEGACY = {name for name, _, _ in MEANINGS}


@cache
def legacy_operators(opset: int) -> list[type[OpRun]]:
    """Returns operators for the reference evaluator: those whose meaning at this opset it does not know."""
    return [_implementation(name, opset, meaning) for name, below, meaning in MEANINGS if opset < below]


def _implementation(name: str, opset: int, meaning: Callable[..., Array]) -> type[OpRun]:
    def _run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Array]:
        stated = {k: v for k, v in attributes.items() if v is not None and k != "consumed_inputs"}
        return (meaning(*inputs, **stated),)

    # The evaluator takes defaults from the schema, so it must be the one of this opset.
    return type(name, (OpRun,), {"_run": _run, "op_schema": onnx.defs.get_schema(name, opset, "")})
