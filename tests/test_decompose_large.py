# SPDX-License-Identifier: Apache-2.0
"""Replacements that are written only when asked for: what one row of a table does not show."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from texts import model

import onnx_convert
from oracle import run, validate

INF = float("inf")


def computed(graph: str, source: int, target: int, feeds: dict[str, Any]) -> list[Any]:
    """What the model computes at the target."""
    result = onnx_convert.convert(model(graph, source), to=target, expand="all").model
    validate(result)
    return run(result, feeds)


# ---- NonMaxSuppression

SUPPRESSION = (
    "(float[N,S,4] b, float[N,C,S] s, int64 m, float t, float c) => (int64[K,3] y) "
    "{{ y = NonMaxSuppression<center_point_box={}>(b, s, m, t, c) }}"
)


def overlap(a: np.ndarray, b: np.ndarray) -> np.float32:
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), np.float32(0))
    area = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - np.prod(sides)
    return np.prod(sides) / area if area else np.float32(0)


def suppressed(boxes: np.ndarray, scores: np.ndarray, most: int, threshold: float, least: float) -> list[list[int]]:
    """By the text: the best box that is left, in the order of images and classes."""
    kept = []
    for image, group in product(range(scores.shape[0]), range(scores.shape[1])):
        chosen: list[int] = []
        for box in np.argsort(-scores[image, group], kind="stable"):
            seen = all(overlap(boxes[image, box], boxes[image, other]) <= np.float32(threshold) for other in chosen)
            if scores[image, group, box] > least and seen and len(chosen) < most:
                chosen.append(int(box))
        kept += [[image, group, box] for box in chosen]
    return kept


@pytest.mark.parametrize("target", [9, 8, 7])
@pytest.mark.parametrize("centre", [0, 1])
@pytest.mark.parametrize(
    ("most", "threshold", "least"), [(100, 0.3, -INF), (5, 0.5, 0.25), (7, 0.0, 0.5), (100, 1.0, -1)]
)
def test_boxes_are_taken_in_order(target: int, centre: int, most: int, threshold: float, least: float) -> None:
    random = np.random.default_rng(1)
    corner, size = random.integers(0, 20, (2, 40, 2)), random.integers(0, 8, (2, 40, 2))
    corners = np.concatenate([corner, corner + size], axis=2).astype(np.float32)
    scores = (random.integers(0, 10, (2, 3, 40)) / 10).astype(np.float32)  # many are equal
    scores[0, 0] = -INF
    scores[0, 0, 5] = INF
    given = corners
    if centre:
        given = np.concatenate([corner + size / 2, size], axis=2).astype(np.float32)
    feeds = {"b": given, "s": scores, "m": np.array(most), "t": np.array(threshold, np.float32)}
    feeds["c"] = np.array(least, np.float32)
    (y,) = computed(SUPPRESSION.format(centre), 10, target, feeds)
    assert y.tolist() == suppressed(corners, scores, most, threshold, least)


def test_boxes_that_score_nothing_are_taken_if_nobody_asks_for_more() -> None:
    graph = "(float[1,3,4] b, float[1,1,3] s, int64 m) => (int64[K,3] y) { y = NonMaxSuppression(b, s, m) }"
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [5, 5, 6, 6]]], dtype=np.float32)
    (y,) = computed(graph, 11, 9, {"b": boxes, "s": np.full((1, 1, 3), -INF, np.float32), "m": np.array(2**40)})
    assert y.tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 2, 0)])
def test_no_boxes(shape: tuple[int, int, int]) -> None:
    batch, _, boxes = shape
    feeds = {"b": np.zeros((batch, boxes, 4), np.float32), "s": np.zeros(shape, np.float32), "m": np.array(3)}
    (y,) = computed(
        SUPPRESSION.format(0), 10, 9, {**feeds, "t": np.zeros((), np.float32), "c": np.zeros((), np.float32)}
    )
    assert y.shape == (0, 3)


# ---- Det


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("known", [True, False])
def test_determinants(size: int, known: bool) -> None:
    x = np.random.default_rng(size).standard_normal((50, size, size)).astype(np.float32)
    x[1] = 0
    x[2, -1] = x[2, 0]  # of two equal rows
    x[3] = np.eye(size)[::-1]
    x[4] *= 2.0**40 if size <= 2 else 2.0 ** (120 // size)
    x[5] *= 2.0 ** -(120 // size)
    x[6, 0, 0] = 0
    (y,) = computed(
        f"(float[{f'50,{size},{size}' if known else 'A,B,C'}] x) => (float[N] y) {{ y = Det(x) }}", 11, 10, {"x": x}
    )
    wanted = np.linalg.det(x.astype(np.float64))
    scale = np.prod(np.linalg.norm(x.astype(np.float64), axis=2), axis=1)  # the largest that it can be
    np.testing.assert_array_less(np.abs(y - wanted), 4e-6 * scale + 1e-37)


def test_large_elements_do_not_overflow() -> None:
    x = np.array([[[1e30, 1e30], [1e30, 1e30]], [[1e30, 1], [1, 1e-30]]], dtype=np.float32)
    (y,) = computed("(float[2,2,2] x) => (float[2] y) { y = Det(x) }", 11, 10, {"x": x})
    np.testing.assert_array_equal(y, [0, 0])


# ---- DeformConv


def deformed(
    x: np.ndarray, w: np.ndarray, offset: np.ndarray, mask: np.ndarray, pads: list[int], groups: int, offsets: int
) -> np.ndarray:
    """By the text, for any number of axes, with strides 2."""
    axes, (filters, channels, *kernel) = w.ndim - 2, w.shape
    y = np.zeros((x.shape[0], filters, *offset.shape[2:]))
    moves = offset.reshape(x.shape[0], offsets, *kernel, axes, *offset.shape[2:])
    weights = mask.reshape(x.shape[0], offsets, *kernel, *offset.shape[2:])
    for index in np.ndindex(*y.shape):
        image, filter_, *place = index
        for element in np.ndindex(channels, *kernel):
            channel = filter_ // (filters // groups) * channels + element[0]
            group = channel // (x.shape[1] // offsets)
            at = [
                p * 2 + k - pad + moves[(image, group, *element[1:], axis, *place)]
                for axis, (p, k, pad) in enumerate(zip(place, element[1:], pads[:axes], strict=True))
            ]
            value = 0.0
            for corner in product((0, 1), repeat=axes):
                where = [int(np.floor(a)) + c for a, c in zip(at, corner, strict=True)]
                if all(0 <= i < size for i, size in zip(where, x.shape[2:], strict=True)):
                    near = np.prod([1 - abs(a - i) for a, i in zip(at, where, strict=True)])
                    value += near * x[(image, channel, *where)]
            y[index] += value * w[(filter_, *element)] * weights[(image, group, *element[1:], *place)]
    return y


@pytest.mark.parametrize("target", [18, 11, 8])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_any_number_of_axes(axes: int, target: int) -> None:
    random = np.random.default_rng(axes)
    size, kernel, result, pads = (
        [5, 4, 6][:axes],
        [2, 3, 2][:axes],
        [3, 2, 3][:axes],
        [1, 1, 0][:axes] + [0, 1, 0][:axes],
    )
    elements = int(np.prod(kernel))
    feeds = {
        "x": random.standard_normal((2, 4, *size)),
        "w": random.standard_normal((6, 2, *kernel)),
        "o": random.standard_normal((2, 2 * elements * axes, *result)) * 2,
        "m": random.standard_normal((2, 2 * elements, *result)),
    }
    feeds["o"][0, 0, ...] = 1e10  # far outside
    feeds["o"][0, 1, ...] = -INF
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    formals = ", ".join(f"float[{','.join(map(str, value.shape))}] {name}" for name, value in feeds.items())
    graph = (
        f"({formals}) => (float[{','.join('?' * (axes + 2))}] y) "
        f"{{ y = DeformConv<group=2,offset_group=2,strides={[2] * axes},pads={pads}>(x, w, o, , m) }}"
    )
    (y,) = computed(graph, 19, target, feeds)
    finite = np.clip(feeds["o"].astype(np.float64), -1e6, 1e6)
    wanted = deformed(feeds["x"], feeds["w"], finite, feeds["m"], pads, 2, 2)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_a_point_outside_sees_nothing_of_an_infinite_image() -> None:
    graph = (
        "(float[1,1,2,2] x, float[1,2,2,2] o) => (float[1,1,2,2] y) <float[1,1,1,1] w = {1}> "
        "{ y = DeformConv(x, w, o) }"
    )
    outside = np.full((1, 2, 2, 2), [[[-5]], [[7]]], dtype=np.float32)
    (y,) = computed(graph, 19, 13, {"x": np.full((1, 1, 2, 2), INF, np.float32), "o": outside})
    np.testing.assert_array_equal(y, np.zeros((1, 1, 2, 2)))


# ---- Unique


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.bool_, np.int8])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_unique_slices(dtype: type, axis: int | None) -> None:
    x = np.random.default_rng(5).integers(-1, 2, (6, 5, 2))
    x[3:] = x[:3]
    x[:, 3] = x[:, 1]
    wide = (x * (2**40 + 1)).astype(dtype) if dtype is np.int64 else x.astype(dtype)
    name = {"float32": "float"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
    rank = "?,?,?" if axis is not None else "?"
    graph = (
        f"({name}[A,B,C] x) => ({name}[{rank}] y, int64[I] i, int64[J] j, int64[N] n) "
        f"{{ y, i, j, n = Unique{'' if axis is None else f'<axis={axis}>'}(x) }}"
    )
    wanted = np.unique(wide, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    for got, right in zip(computed(graph, 11, 10, {"x": wide}), wanted, strict=True):
        np.testing.assert_array_equal(got, right.reshape(got.shape))


# ---- TfIdfVectorizer


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skips", [0, 1, 3])
@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 3), (2, 3), (3, 3)])
def test_counts_of_grams(mode: str, skips: int, low: int, high: int) -> None:
    random = np.random.default_rng(2)
    pool = [0, 1, 2, *product(range(3), repeat=2), *product(range(3), repeat=3)]
    flat = ",".join(str(number) for gram in pool for number in (gram if isinstance(gram, tuple) else (gram,)))
    places = random.permutation(len(pool)).tolist()
    graph = (
        f'(int64[N,C] x) => (float[N,M] y) {{ y = TfIdfVectorizer<mode="{mode}",ngram_counts=[0,3,21],'
        f"pool_int64s=[{flat}],ngram_indexes={places},min_gram_length={low},max_gram_length={high},"
        f"max_skip_count={skips}>(x) }}"
    )
    for shape in ((4, 15), (3, 2), (1, 1)):
        x = random.integers(0, 4, shape)
        (wanted,) = run(model(graph, 9), {"x": x})
        (y,) = computed(graph, 9, 8, {"x": x})
        np.testing.assert_array_equal(y, wanted)
