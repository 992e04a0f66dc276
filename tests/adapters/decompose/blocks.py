# SPDX-License-Identifier: Apache-2.0
"""Col2Im (18) where it does not exist."""

from __future__ import annotations

import numpy as np

from boundaries import Row, each_of, refuses, rewrites

# ---- Col2Im

BLOCKS = (
    "(float[2,12,{}] x) => (float[2,{},{}] y) <int64[2] i = {{{}}}, int64[2] b = {{{}}}> {{ y = Col2Im{}(x, i, b) }}"
)
COLUMNS: list[Row] = [
    *(
        row
        for target in (17, 12, 10, 7)
        for row in (
            rewrites("Col2Im", 18, target, BLOCKS.format(8, 3, "3,5", "3,5", "2,2", "")),
            rewrites("Col2Im of flat blocks", 18, target, BLOCKS.format(20, 4, "4,7", "4,7", "1,3", "")),
            rewrites(
                "Col2Im spread", 18, target, BLOCKS.format(4, 3, "5,7", "5,7", "2,2", "<strides=[2,3],dilations=[1,2]>")
            ),
            rewrites(
                "Col2Im padded", 18, target, BLOCKS.format(12, 3, "4,4", "4,4", "2,2", "<strides=[2,1],pads=[1,0,1,1]>")
            ),
        )
    ),
    rewrites(
        "Col2Im of an image of any size",
        18,
        13,
        "(float[2,12,4] x, int64[2] i) => (float[2,3,?,?] y) <int64[2] b = {2,2}> "
        "{ y = Col2Im<strides=[2,3],dilations=[1,2]>(x, i, b) }",
        feeds={"i": [5, 7]},
    ),
    *(
        rewrites(
            f"Col2Im of blocks of any size{more}",
            18,
            target,
            f"(float[2,12,{count}] x, int64[2] i, int64[2] b) => (float[2,3,?,?] y) {{ y = Col2Im{more}(x, i, b) }}",
            feeds={"i": image, "b": [2, 2]},
            may_refuse={} if more else {"ranks": "axes"},
        )
        for target in (17, 13, 9)
        for more, count, image in (
            ("", 8, [3, 5]),
            ("<strides=[2,3],dilations=[1,2]>", 4, [5, 7]),
            ("<strides=[2,1],pads=[1,0,1,1]>", 12, [4, 4]),
        )
    ),
    rewrites(
        "Col2Im of lines of any size",
        18,
        13,
        "(float[N,6,4] x, int64[1] i, int64[1] b) => (float[N,2,?] y) { y = Col2Im(x, i, b) }",
        feeds={"i": [6], "b": [3]},
        dims={"N": 2},
        may_refuse={"ranks": "axes"},
    ),
    rewrites(
        "Col2Im of integers",
        18,
        17,
        "(int32[1,4,2] x) => (int32[1,1,2,3] y) <int64[2] i = {2,3}, int64[2] b = {2,2}> { y = Col2Im(x, i, b) }",
    ),
    rewrites(
        "Col2Im with as many axes as strides",
        18,
        17,
        "(float[1,4,9] x, int64[N] i, int64[N] b) => (float[M] y) <int64[1] m = {-1}>"
        " { z = Col2Im<strides=[1,1]>(x, i, b) y = Reshape(z, m) }",
        dims={"N": 2},
        feeds={"i": [4, 4], "b": [2, 2]},
    ),
    rewrites(
        "Col2Im with as many axes as its output",
        18,
        17,
        "(float[1,4,9] x, int64[N] i, int64[N] b) => (float[1,1,?,?] y) { y = Col2Im(x, i, b) }",
        dims={"N": 2},
        feeds={"i": [4, 4], "b": [2, 2]},
        may_refuse={"ranks": "axes", "function": "axes"},
    ),
]


EDGES: list[Row] = [
    rewrites(
        "Col2Im with pads into an image that the blocks do not fill",
        18,
        target,
        "(float[1,3,4] x, int64[2] i) => (float[1,1,2,4] y) <int64[2] b = {1,3}> "
        "{ y = Col2Im<strides=[1,2],pads=[0,1,0,1]>(x, i, b) }",
        feeds={"i": [2, 4]},
        may_refuse={"ranks": "axes", "function": "axes"},
    )
    for target in (17, 13, 10)
] + [
    *(  # an infinity is added to what it meets, and to nothing else
        rewrites(
            f"Col2Im of infinities{more}",
            18,
            target,
            f"(float[1,4,{count}] x) => (float[1,1,4,5] y) <int64[2] i = {{4,5}}, int64[2] b = {{2,2}}> "
            f"{{ y = Col2Im{more}(x, i, b) }}",
            feeds={"x": np.resize([1, np.inf, -2, 0, np.nan, 3, -np.inf], (1, 4, count))},
            unjudged={"float16": "the runtime has no Col2Im of halves"},
        )
        for target in (17, 9)
        for more, count in (("", 12), ("<strides=[3,1],dilations=[1,3],pads=[0,1,0,0]>", 3), ("<strides=[2,3]>", 4))
    ),
    rewrites(
        "Col2Im of no image",
        18,
        17,
        "(float[N,C,4] x, int64[2] i) => (float[?,?,?,?] y) <int64[2] b = {1,3}> { y = Col2Im(x, i, b) }",
        feeds={"i": [1, 6]},
        dims={"N": 0, "C": 6},
        may_refuse={"ranks": "axes", "function": "axes"},
        unjudged={"float64": "onnxruntime has no Col2Im of double, and the reference none of no image"},
    ),
]

WORDS: list[Row] = [
    refuses(
        "Col2Im of strings",
        18,
        17,
        "(string[1,4,1] x) => (string[1,1,2,2] y) <int64[2] i = {2,2}, int64[2] b = {2,2}> { y = Col2Im(x, i, b) }",
        because="no sum",
    ),
]

ROWS = [*COLUMNS, *EDGES, *WORDS]

test_rows = each_of(ROWS)
