# SPDX-License-Identifier: Apache-2.0
"""SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss (12) where they do not exist."""

from __future__ import annotations

import numpy as np
from texts import model

import onnx_convert
from boundaries import Row, each_of, rewrites
from oracle import run

LABELS = [[2, 0], [1, 3]]
STRAY = {"t": [[-1, 0], [1, -1]]}


def loss(operator: str, attributes: str = "", *, weights: bool = False, log: bool = False, dtype: str = "int64") -> str:
    """Returns a loss of 2 members, 4 classes and 2 places."""
    more, w = (", float[4] w", ", w") if weights else ("", "")
    results, outputs = ("y, p", ", float[2,4,2] p") if log else ("y", "")
    y = "float[2,2]" if 'reduction="none"' in attributes else "float"
    return (
        f"(float[2,4,2] x, {dtype}[2,2] t{more}) => ({y} y{outputs}) "
        f"{{ {results} = {operator}{attributes and f'<{attributes}>'}(x, t{w}) }}"
    )


ROWS: list[Row] = [
    rewrites(f"{operator} {name}", 12, target, loss(operator, attributes, **more), feeds=feeds)
    for operator in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
    for target in (11, 10, 9, 7)
    for name, attributes, more, feeds in (
        ("mean", "", {}, {"t": LABELS}),
        ("sum", 'reduction="sum"', {"dtype": "int32"}, {"t": LABELS}),
        ("none", 'reduction="none"', {}, {"t": LABELS}),
        ("weighed mean", "", {"weights": True}, {"t": LABELS}),
        ("of some", "ignore_index=-1", {}, STRAY),
        ("of some, weighed", "ignore_index=-1", {"weights": True}, STRAY),
        ("of all that are int32", f"ignore_index={2**31}", {"dtype": "int32"}, {"t": LABELS}),
        ("of each but some", 'ignore_index=-1,reduction="none"', {"weights": True}, STRAY),
    )
] + [
    rewrites(
        "SoftmaxCrossEntropyLoss with probabilities",
        13,
        target,
        loss("SoftmaxCrossEntropyLoss", log=True),
        feeds={"t": LABELS},
    )
    for target in (11, 9)
]


test_rows = each_of(ROWS)


def test_labels_beyond_the_classes_are_ignored() -> None:
    graph = "(float[4,3] x, int64[4] t) => (float y) { y = NegativeLogLikelihoodLoss<ignore_index=255>(x, t) }"
    x = np.array([[1, 2, 3], [np.nan, np.inf, 0], [4, 5, 6], [7, 8, 9]], np.float32)
    for target in (11, 9, 7):
        (y,) = run(onnx_convert.convert(model(graph, 12), to=target).model, {"x": x, "t": np.array([2, 255, 0, 1])})
        assert y == -5


def test_large_scores_lose_as_much_as_they_should() -> None:
    graph = "(float[2,3] x, int64[2] t) => (float y) { y = SoftmaxCrossEntropyLoss(x, t) }"
    x = np.array([[1e4, 0, -1e4], [300, 301, -5]], np.float32)
    (y,) = run(onnx_convert.convert(model(graph, 12), to=9).model, {"x": x, "t": np.array([2, 0])})
    np.testing.assert_allclose(y, (2e4 + np.log(1 + np.e)) / 2, rtol=1e-6)
