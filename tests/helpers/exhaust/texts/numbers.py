# SPDX-License-Identifier: Apache-2.0
"""Operators whose elements are computed: bounds, quantization, products, normalization, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

Array = np.ndarray

# ---- bounds


def limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Returns the lowest and the largest finite element of a dtype."""
    info = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    return info.min, info.max


def clip(x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Min(max, Max(input, min)): an absent bound is the limit of the dtype."""
    lowest, largest = limits(x.dtype)
    lower = x.dtype.type(lowest) if low is None else low.reshape(())
    upper = x.dtype.type(largest) if high is None else high.reshape(())
    return np.minimum(upper, np.maximum(x, lower)).astype(x.dtype)


def clip_6(x: Array, min: float, max: float) -> Array:  # noqa: A002 (the attributes)
    """The bounds are attributes, float32."""
    with np.errstate(over="ignore"):
        return np.minimum(x.dtype.type(max), np.maximum(x, x.dtype.type(min))).astype(x.dtype)


def shrink(x: Array, *, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """Input + bias below -lambd, input - bias above lambd, else 0."""
    wide = x.astype(np.float64) if x.dtype.kind in "iu" else x
    border, added = wide.dtype.type(lambd), wide.dtype.type(bias)
    return np.where(wide < -border, wide + added, np.where(wide > border, wide - added, 0)).astype(x.dtype)


# ---- quantization


def spread(values: Array, x: Array, axis: int, block_size: int) -> Array:
    """Returns scales or zero points as they lie against x: one for all, for each place of an axis or each block."""
    if block_size:
        wide = np.repeat(values, block_size, axis=axis)
        return np.take(wide, range(x.shape[axis]), axis=axis)
    if values.size == 1 and values.ndim < 2:
        return values.reshape(())
    return values.reshape([-1 if place == axis % x.ndim else 1 for place in range(x.ndim)])


def saturated(values: Array, dtype: np.dtype[Any]) -> Array:
    """Rounds half to even has been done: returns the integers, those out of reach as the nearest end."""
    low, high = limits(dtype)
    return np.clip(values, low, high).astype(dtype)


def quantize(
    x: Array,
    scale: Array,
    zero: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Array:
    """saturate((x / scale) rounded half to even + zero point), of dtypes that numpy has."""
    del saturate  # of floats of 8 bits
    work = np.float16 if precision == onnx.TensorProto.FLOAT16 else np.float32
    kind = zero.dtype if zero is not None else np.dtype(
        onnx.helper.tensor_dtype_to_np_dtype(output_dtype) if output_dtype else np.uint8)  # fmt: skip
    if kind.kind not in "iu" or kind.name not in ("int8", "uint8", "int16", "uint16"):
        raise NotImplementedError(f"quantized to {kind}")
    quotient = x.astype(work) / spread(scale, x, axis, block_size).astype(work)
    shift = 0 if zero is None else spread(zero, x, axis, block_size).astype(np.float64)
    return saturated(np.rint(quotient.astype(np.float64)) + shift, kind)


def matmul_integer(a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
    """The zero points are subtracted, by row of A and by column of B, and the products are summed up as int32."""
    return np.matmul(_shifted(a, a_zero, -1), _shifted(b, b_zero, -2)).astype(np.int32)


def _shifted(x: Array, zero: Array | None, axis: int) -> Array:
    if zero is None:
        return x.astype(np.int64)
    one_each = zero.ndim == 1 and zero.size > 1
    return x.astype(np.int64) - (np.expand_dims(zero, axis) if one_each else zero).astype(np.int64)


def qlinear_matmul(
    a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array, y_scale: Array, y_zero: Array
) -> Array:
    """MatMul of what A and B stand for, quantized: saturate(round(y / y_scale) + y_zero)."""

    def column(values: Array, axis: int) -> Array:
        return np.expand_dims(values, axis) if values.ndim == 1 and values.size > 1 else values

    products = np.matmul(_shifted(a, a_zero, -1), _shifted(b, b_zero, -2)).astype(np.float64)
    scale = column(a_scale, -1).astype(np.float64) * column(b_scale, -2) / column(y_scale, -1)
    return saturated(np.rint(products * scale) + column(y_zero, -1).astype(np.float64), y_zero.dtype)


# ---- normalization


def batch_normalization(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array,
    *, epsilon: float = 1e-5, momentum: float = 0.9, training_mode: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    """By the statistics that are given; in training by those of the batch, and the given ones follow."""
    shape = [1, -1, *[1] * (x.ndim - 2)]
    wide = x.astype(np.float64)
    means, variances = mean.astype(np.float64), variance.astype(np.float64)
    running: tuple[Array, ...] = ()
    if training_mode:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        now = wide.mean(axis=axes), wide.var(axis=axes)
        running = tuple((old * momentum + new * (1 - momentum)).astype(mean.dtype)
                        for old, new in zip((means, variances), now, strict=True))  # fmt: skip
        means, variances = now
    y = (wide - means.reshape(shape)) / np.sqrt(variances.reshape(shape) + epsilon)
    y = (y * scale.reshape(shape).astype(np.float64) + bias.reshape(shape).astype(np.float64)).astype(x.dtype)
    return (y, *running)[:outputs] if outputs > 1 else y


def batch_normalization_9(*inputs: Array, epsilon: float = 1e-5, momentum: float = 0.9, outputs: int = 1) -> Any:
    """With one output by the statistics that are given."""
    if outputs > 1:
        raise NotImplementedError("training")
    return batch_normalization(*inputs, epsilon=epsilon, momentum=momentum)


def batch_normalization_7(*inputs: Array, spatial: int = 1, **attributes: Any) -> Any:
    """Without `spatial` there is a mean for each element."""
    if not spatial:
        raise NotImplementedError("a mean for each element")
    return batch_normalization_9(*inputs, **attributes)


def mean_variance_normalization(x: Array, axes: Any = (0, 2, 3)) -> Array:
    """(X - E(X)) / (sqrt(E(X^2) - E(X)^2) + 1e-9), as the body of the function has it."""
    axes, wide = tuple(axes), x.astype(np.float64)
    mean = wide.mean(axis=axes, keepdims=True)
    spread_ = np.sqrt(np.maximum((wide**2).mean(axis=axes, keepdims=True) - mean**2, 0))
    return ((wide - mean) / (spread_ + 1e-9)).astype(x.dtype)


def log_softmax_1(x: Array, axis: int = 1) -> Array:
    """The input is seen as a matrix that is cut at `axis`."""
    if not x.size:
        return x
    rows = int(np.prod(x.shape[: axis % x.ndim if axis < 0 else axis], dtype=np.int64))
    return log_softmax(x.reshape(rows, -1)).reshape(x.shape)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """Log(Softmax(x)), where no quotient is so small that its logarithm is lost."""
    if not x.size:
        return x
    wide = x.astype(np.float64)
    shifted = wide - wide.max(axis=axis, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))).astype(x.dtype)


def negative_log_likelihood(
    x: Array, target: Array, weight: Array | None = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Array:
    """Minus the score of each label times its weight; what is ignored has none, and a mean is over the weights."""
    kept = np.ones(target.shape, bool) if ignore_index is None else target != ignore_index
    labels = np.where(kept, target, 0)
    each = (np.ones(x.shape[1]) if weight is None else weight.astype(np.float64))[labels] * kept
    losses = -each * np.take_along_axis(x.astype(np.float64), labels[:, None], axis=1)[:, 0]
    if reduction == "none":
        return losses.astype(x.dtype)
    return np.asarray(losses.sum() / (each.sum() if reduction == "mean" else 1)).astype(x.dtype)


# ---- powers and reductions


def power(base: Array, exponent: Array) -> Array:
    """Integers are raised as integers, and what does not fit loses its high bits."""
    if base.dtype.kind not in "iu" or exponent.dtype.kind not in "iu" or (exponent < 0).any():
        return np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(base.dtype)
    width = 8 * base.dtype.itemsize
    pairs = np.broadcast(base, exponent)
    made = [pow(int(a), int(b), 1 << width) for a, b in pairs]
    return np.array(made, dtype=np.uint64).reshape(pairs.shape).astype(f"uint{width}").view(base.dtype)


def _axes_of(x: Array, axes: Any, noop: int) -> tuple[int, ...] | None:
    """Returns the axes to reduce; None if nothing is reduced."""
    if axes is None or not len(axes):
        return None if noop else tuple(range(x.ndim))
    return tuple(int(axis) % x.ndim for axis in axes)


def reduction(operator: str) -> Any:
    """Returns the function of a reduction by `operator`, with axes as an input or as an attribute."""

    def apply(x: Array, given: Array | None = None, *, axes: Any = None, keepdims: int = 1,
              noop_with_empty_axes: int = 0) -> Array:  # fmt: skip
        over = _axes_of(x, given if given is not None else axes, noop_with_empty_axes)
        if over is None:
            return _REDUCED[operator](x[..., None], (-1,)).astype(x.dtype).reshape(x.shape)
        return np.asarray(_REDUCED[operator](x, over)).astype(x.dtype).reshape(
            [1 if axis in over else size for axis, size in enumerate(x.shape) if keepdims or axis not in over]
        )  # fmt: skip

    return apply


def _log_sum_exp(x: Array, over: tuple[int, ...]) -> Array:
    wide = x.astype(np.float64)
    most = np.max(wide, axis=over, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    return np.log(np.exp(wide - most).sum(axis=over)) + np.squeeze(most, axis=over)


def _mean(x: Array, over: tuple[int, ...]) -> Array:
    """Of integers it is cut off, and no sum of them is too large."""
    if x.dtype.kind not in "iu":
        return x.astype(np.float64).mean(axis=over)
    count = int(np.prod([x.shape[axis] for axis in over]))
    sums = np.asarray(x.astype(object).sum(axis=over))
    return np.array([abs(total) // count * (1 if total >= 0 else -1) for total in sums.flat]).reshape(sums.shape)


def _in_integers(x: Array) -> Array:
    """Returns integers as such, so that they lose no bits, and reals as doubles."""
    return x if x.dtype.kind in "iu" else x.astype(np.float64)


_REDUCED = {
    "ReduceL1": lambda x, over: np.abs(_in_integers(x)).sum(axis=over, dtype=_in_integers(x).dtype),
    "ReduceL2": lambda x, over: np.sqrt((x.astype(np.float64) ** 2).sum(axis=over)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMean": _mean,
    "ReduceProd": lambda x, over: _in_integers(x).prod(axis=over, dtype=_in_integers(x).dtype),
    "ReduceSumSquare": lambda x, over: (_in_integers(x) ** 2).sum(axis=over, dtype=_in_integers(x).dtype),
}
