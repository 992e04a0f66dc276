# SPDX-License-Identifier: Apache-2.0
"""What SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss (12) become below."""

from __future__ import annotations

from boundaries.rows import Row, rewrites

LABELS = [[2, 0], [1, 3]]
STRAY = {"t": [[-1, 0], [1, -1]]}


def loss(operator: str, attributes: str = "", *, weights: bool = False, log: bool = False, dtype: str = "int64") -> str:
    """A loss of 2 members, 4 classes and 2 places."""
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
