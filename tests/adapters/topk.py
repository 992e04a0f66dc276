# SPDX-License-Identifier: Apache-2.0
"""TopK: the number as an attribute or as an input (10), the smallest elements (11)."""

from __future__ import annotations

import numpy as np

from boundaries import Row, each_of, keeps, refuses, rewrites
from onnx_convert.spec import opsets

# ---- TopK


def topk(x: str, y: str, attributes: str, k: str = "", dtype: str = "float") -> str:
    """The number k is an attribute, a constant (k="2") or computed (k="?")."""
    made = f"<int64[1] k = {{{k}}}>" if k.isdigit() else ""
    more, name = (", int64[1] k" if k == "?" else ""), (", k" if k else "")
    written = f"<{attributes}>" if attributes else ""
    outputs = f"{dtype}[{y}] v, int64[{y}] i"
    return f"({dtype}[{x}] x{more}) => ({outputs}) {made} {{ v, i = TopK{written}(x{name}) }}"


def _then(graph: str) -> str:
    """States a size: what a constant K says of an axis of unknown size is lost to inference."""
    return (
        graph.replace(" v, int64", " w, int64")
        .replace(" i) =>", " j) =>")
        .replace(" i) ", " j) ", 1)
        .replace("(x) }", "(x) w = Identity(v) j = Identity(i) }")
    )


TIES = {"x": [[3, 1, 3, 2, 1, 1], [0, -5, 2, -5, 0, 2]]}
LEFT = np.resize(np.array([np.inf, 0, -np.inf, 3, -np.inf, np.inf, -1e38, 3, -0.0, 2, 1], dtype=np.float32), (2, 3, 6))
EXTREMES = {"x": [[-(2**31), 2**31 - 1, 0, -1, -(2**31), 5]]}

TOPK: list[Row] = [
    rewrites("TopK", 9, 10, _then(topk("2,6", "2,3", "k=3")), into=["TopK", "Identity", "Identity"], feeds=TIES),
    rewrites("TopK", 1, 25, _then(topk("6,2", "3,2", "k=3,axis=0")), into=["TopK", "Identity", "Identity"]),
    rewrites("TopK", 10, 9, topk("2,6", "2,3", "", "3"), into=["TopK"], feeds=TIES),
    rewrites("TopK", 25, 6, topk("6,2", "3,2", "axis=0", "3"), into=["TopK"]),
    rewrites(
        "TopK at run time",
        10,
        9,
        topk("2,6", "2,?", "", "?"),
        feeds={**TIES, "k": [2]},
    ),
    rewrites(
        "TopK at run time of the first axis",
        11,
        9,
        topk("6,2", "?,2", "axis=0", "?"),
        feeds={"k": [0]},
    ),
    *(
        rewrites(
            f"TopK of {k} of {x} at run time, axis {axis}",
            10,
            target,
            topk("A,B,C", "?,?,?", f"axis={axis}", "?"),
            feeds={"x": LEFT[: size[0], : size[1], : size[2]], "k": [k]},
            dims=dict(zip("ABC", size, strict=True)),
        )
        for target in (9, 8)
        for axis, x in ((-1, "2,3,6"), (0, "2,3,6"), (1, "2,3,6"), (1, "0,3,6"), (1, "2,0,6"))
        for size in [[int(length) for length in x.split(",")]]
        for k in sorted({0, min(1, size[axis]), size[axis]})
    ),
    keeps("TopK", 10, 11, topk("2,6", "2,3", "", "3"), feeds=TIES),
    rewrites("TopK largest", 11, 10, topk("2,6", "2,3", "largest=1,sorted=1", "3"), into=["TopK"], feeds=TIES),
    rewrites("TopK smallest", 11, 10, topk("2,6", "2,3", "largest=0", "3"), into=["Neg", "TopK", "Neg"], feeds=TIES),
    rewrites("TopK smallest", 24, 9, topk("2,6", "2,6", "largest=0", "6"), feeds=TIES),
    *(
        rewrites(
            f"TopK smallest of {dtype}",
            11,
            target,
            topk("2,6", "2,3", "largest=0", "3", dtype),
            feeds={"x": [[3, 1, 2, 0, 1, 7], [2**53 if dtype.endswith("64") else 127, 0, 0, 5, 2, 1]]},
            options={"types": "cast", "allow": {"conditional"}},
        )
        for dtype in ("uint64", "int64", "uint32", "int8", "uint8")
        for target in (10, 9)
    ),
    rewrites("TopK smallest at run time", 11, 10, topk("2,6", "2,?", "largest=0", "?"), feeds={**TIES, "k": [2]}),
    rewrites("TopK of a middle axis", 11, 10, topk("2,6,3", "2,2,3", "axis=-2", "2"), into=["TopK"]),
    rewrites("TopK of the last axis", 11, 10, topk("2,6,3", "2,6,2", "axis=-1", "2"), into=["TopK"]),
    rewrites("TopK smallest of a middle axis", 11, 10, topk("2,6,3", "2,2,3", "axis=-2,largest=0", "2")),
    # The texts want a positive k; runtimes and onnx take none as well, onnx before it came to opset 29.
    *(
        rewrites("TopK of nothing", 11, 10, topk("2,0", "2,0", "", "0"), into=["TopK"])
        for _ in range(opsets.latest() < 29)
    ),
    *(
        rewrites(f"TopK of none of {x}", source, target, topk(x, y, more, "0"))
        for source, target, more in ((10, 9, ""), (11, 9, "largest=0"), (24, 6, "axis=1"))
        for x, y in (("2,3", "2,0"), ("2,0", "2,0"))
        if opsets.latest() < 29
    ),
    rewrites(
        "TopK at run time of nothing",
        10,
        9,
        topk("2,0", "2,?", "", "?"),
        feeds={"k": [0]},
        may_refuse=dict.fromkeys(("dims", "ranks"), "length"),
    ),
    refuses("TopK of int32", 11, 10, topk("2,6", "2,3", "", "3", "int32"), because="int32"),
    rewrites(
        "TopK smallest of int32 with Casts",
        11,
        10,
        topk("1,6", "1,4", "largest=0", "4", "int32"),
        feeds=EXTREMES,
        options={"types": "cast"},
        may_refuse={"ranks": "dtype"},
    ),
    rewrites(
        "TopK smallest of uint32 with Casts",
        11,
        10,
        topk("1,3", "1,2", "largest=0", "2", "uint32"),
        feeds={"x": [[2**32 - 1, 0, 7]]},
        options={"types": "cast"},
    ),
    rewrites(
        "TopK of integers, of a computed number and along an unknown length",
        11,
        9,
        "(int64[N] x, int64[1] k) => (int64[K] v, int64[K] i) { v, i = TopK(x, k) }",
        feeds={"x": [3, -(2**63), 3, -(2**63)], "k": [4]},
        dims={"N": 4},
    ),
    rewrites(
        "TopK of which only the values are used",
        11,
        10,
        "(float[6] x) => (float[2] v) <int64[1] k = {2}> { v, i = TopK<largest=0>(x, k) }",
        into=["Neg", "TopK", "Neg"],
    ),
]


ROWS = TOPK

test_rows = each_of(ROWS)
