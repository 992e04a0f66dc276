# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression (10) where it does not exist."""

from __future__ import annotations

from boundaries.rows import Row, refuses, rewrites

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
