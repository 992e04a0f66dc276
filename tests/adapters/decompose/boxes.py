# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression (10) where it does not exist."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run, validate

ALL = {"expand": "all"}
BOXES = [
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, -0.1, 0, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]],
    [[2, 2, 0, 0], [0, 0, 2, 2], [1, 1, 1, 1], [0, 0, 2, 1.5], [3, 3, 4, 4], [3, 3, 4, 4.5]],
]
SCORES = [
    [[0.9, 0.75, 0.6, 0.95, 0.5, 0.3], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]],
    [[0.1, 0.2, 0.3, 0.2, -1, -2], [0.4, 0.9, 0.9, 0.1, 0.8, 0.7]],
]
FEEDS = {"b": BOXES, "s": SCORES}


def suppression(further: str = "", initializers: str = "", attributes: str = "", inputs: str = "") -> str:
    return (
        f"(float[2,6,4] b, float[2,2,6] s{inputs}) => (int64[N,3] y) {initializers} "
        f"{{ y = NonMaxSuppression{attributes}(b, s{further}) }}"
    )


ROWS: list[Row] = [
    *(
        rewrites(name, source, target, graph, feeds=FEEDS, options=ALL)
        for source, target in ((10, 9), (13, 8), (11, 7))
        for name, graph in (
            ("NonMaxSuppression", suppression(", m, t", "<int64 m = {3}, float t = {0.5}>")),
            (
                "NonMaxSuppression of good ones",
                suppression(", m, t, c", "<int64[1] m = {9}, float[1] t = {0.25}, float[1] c = {0.35}>"),
            ),
            ("NonMaxSuppression of what touches", suppression(", m", "<int64 m = {9}>")),
            (
                "NonMaxSuppression around centres",
                suppression(", m, t", "<int64 m = {4}, float t = {0.5}>", "<center_point_box=1>"),
            ),
        )
    ),
    *(
        rewrites(name, 11, target, graph, feeds=FEEDS, options=ALL)
        for target in (9, 8)
        for name, graph in (
            ("NonMaxSuppression of none", suppression(", m", "<int64 m = {0}>")),
            ("NonMaxSuppression of bad ones", suppression(", m, , c", "<int64 m = {9}, float c = {5}>")),
        )
    ),
    rewrites(
        "NonMaxSuppression of as many as are asked for",
        11,
        9,
        suppression(", m, t, c", inputs=", int64[1] m, float[1] t, float c"),
        feeds={**FEEDS, "m": [2], "t": [0.75], "c": 0.15},
        options=ALL,
    ),
    rewrites(
        "NonMaxSuppression of one image and class",
        10,
        9,
        "(float[1,6,4] b, float[1,1,6] s) => (int64[N,3] y) <int64 m = {3}, float t = {0.5}> "
        "{ y = NonMaxSuppression(b, s, m, t) }",
        feeds={"b": BOXES[:1], "s": [SCORES[0][:1]]},
        options=ALL,
    ),
    rewrites(
        "NonMaxSuppression of no boxes",
        10,
        9,
        "(float[1,0,4] b, float[1,2,0] s) => (int64[N,3] y) <int64 m = {3}> { y = NonMaxSuppression(b, s, m) }",
        options=ALL,
    ),
    rewrites("NonMaxSuppression without a limit", 10, 9, suppression(), feeds=FEEDS),
    refuses(
        "NonMaxSuppression unasked",
        10,
        9,
        suppression(", m", "<int64 m = {3}>"),
        because="very large",
    ),
]


test_rows = each_of(ROWS)


INF = float("inf")


def computed(graph: str, source: int, target: int, feeds: dict[str, Any]) -> list[Any]:
    """Returns what the model computes at the target."""
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


@pytest.mark.parametrize("target", [9, 8, 7])
def test_scores_that_are_no_numbers_come_last(target: int) -> None:
    """No text says where they are; the order of those that are numbers stays what it is."""
    graph = "(float[1,4,4] b, float[1,1,4] s, int64 m) => (int64[K,3] y) { y = NonMaxSuppression(b, s, m) }"
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [0, 0, 1, 1], [5, 5, 6, 6]]], dtype=np.float32)
    scores = np.array([[[np.nan, 0.5, 0.25, 0.75]]], dtype=np.float32)
    (y,) = computed(graph, 11, target, {"b": boxes, "s": scores, "m": np.array(9)})
    assert y.tolist() == [[0, 0, 3], [0, 0, 2]]


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 2, 0)])
def test_no_boxes(shape: tuple[int, int, int]) -> None:
    batch, _, boxes = shape
    feeds = {"b": np.zeros((batch, boxes, 4), np.float32), "s": np.zeros(shape, np.float32), "m": np.array(3)}
    (y,) = computed(
        SUPPRESSION.format(0), 10, 9, {**feeds, "t": np.zeros((), np.float32), "c": np.zeros((), np.float32)}
    )
    assert y.shape == (0, 3)
