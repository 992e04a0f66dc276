# SPDX-License-Identifier: Apache-2.0
"""Attention."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

Array = np.ndarray


def attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, past_k: Array | None = None, past_v: Array | None = None,
    nonpad: Array | None = None, *, is_causal: int = 0, kv_num_heads: int = 0, q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0, scale: float | None = None, softcap: float = 0.0, softmax_precision: int = 0,
    left_window_size: int = -1, right_window_size: int = -1, outputs: int = 1,
) -> Any:  # fmt: skip
    """Softmax(cap(Q K^T scale) + mask) V: queries stand at the end of the keys, and one without any key gives zeros."""
    del softmax_precision
    if outputs > 3 and qk_matmul_output_mode not in (0, 3):
        raise NotImplementedError("scores between the steps")
    flat, kind, kind_v = q.ndim == 3, q.dtype, v.dtype
    if flat:
        q, k, v = _in_heads(q, q_num_heads), _in_heads(k, kv_num_heads), _in_heads(v, kv_num_heads)
    offset = 0 if past_k is None else past_k.shape[2]
    k = k if past_k is None else np.concatenate([past_k, k], axis=2)
    v = v if past_v is None else np.concatenate([past_v, v], axis=2)
    batch, heads, asked, depth = q.shape
    total, times = k.shape[2], heads // k.shape[1]
    wide_k, wide_v = (np.repeat(value.astype(np.float64), times, axis=1) for value in (k, v))
    scores = q.astype(np.float64) @ wide_k.swapaxes(2, 3) * (1 / sqrt(depth) if scale is None else scale)
    capped = softcap * np.tanh(scores / softcap) if softcap else scores
    own = np.arange(asked)[:, None] + np.full((batch, 1, 1, 1), offset)
    if nonpad is not None:
        own = own + (nonpad.reshape(-1, 1, 1, 1) - asked)
    keys = np.arange(total)
    allowed = np.ones((batch, 1, asked, total), bool)
    allowed &= keys <= own if is_causal else True
    allowed &= keys >= own - left_window_size if left_window_size >= 0 else True
    allowed &= keys <= own + right_window_size if right_window_size >= 0 else True
    allowed &= keys < nonpad.reshape(-1, 1, 1, 1) if nonpad is not None else True
    if mask is not None:
        short = total - mask.shape[-1]
        if mask.dtype == bool:
            allowed = allowed & np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, short)])
        else:
            capped = capped + np.pad(mask.astype(np.float64), [(0, 0)] * (mask.ndim - 1) + [(0, short)],
                                     constant_values=-np.inf)  # fmt: skip
    capped = np.where(allowed, capped, -np.inf)
    most = np.max(capped, axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(capped - np.where(np.isfinite(most), most, 0))
    sums = powers.sum(axis=-1, keepdims=True)
    shares = powers / np.where(sums == 0, 1, sums)
    y = (shares @ wide_v).astype(kind)
    if flat:
        y = y.swapaxes(1, 2).reshape(batch, asked, -1)
    seen = shares if qk_matmul_output_mode else scores
    return (y, k, v.astype(kind_v), seen.astype(kind))[:outputs] if outputs > 1 else y


def _in_heads(x: Array, heads: int) -> Array:
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)
