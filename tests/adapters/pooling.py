# SPDX-License-Identifier: Apache-2.0
"""The pools: `count_include_pad` (7), `Indices` (8), `ceil_mode` and `dilations` (10, LpPool 18, AveragePool 19), the
exponent of LpPool and GlobalLpPool (2)."""

from __future__ import annotations

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, keeps, rewrites
from oracle import run, run_reference


def pool(operator: str, attributes: str, x: str, y: str) -> str:
    """Returns a graph with one pool; x and y are the sizes of input and output."""
    return f"(float[{x}] x) => (float[{y}] y) {{ y = {operator}<{attributes}>(x) }}"


A, M, L, G = "AveragePool", "MaxPool", "LpPool", "GlobalLpPool"

# Attributes, sizes of input and output, whether the gaps are what matters.
CEIL = [
    ("kernel_shape=[3,3],strides=[2,2]", "1,2,6,7", "1,2,3,3"),
    ("kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]", "1,2,6,7", "1,2,4,4"),
    ("kernel_shape=[3],strides=[3],pads=[1,1]", "1,2,7", "1,2,3"),
    ("kernel_shape=[2],strides=[3]", "2,1,8", "2,1,3"),
    ("kernel_shape=[2,3,2],strides=[2,2,3],pads=[0,1,1,1,1,0]", "1,1,5,6,7", "1,1,3,4,3"),
]

CEIL_ROWS: list[Row] = [
    rewrites(f"{op} ceil {number}", source, target, pool(op, f"{attributes},ceil_mode=1", x, y), into=[op])
    for op, source, target in ((M, 10, 8), (M, 22, 8), (A, 10, 7), (A, 22, 7), (L, 18, 11), (L, 22, 5))
    for number, (attributes, x, y) in enumerate(CEIL)
] + [
    rewrites(
        f"{A} ceil with pads that count {number}",
        10,
        7,
        pool(A, f"{attributes},ceil_mode=1,count_include_pad=1", x, y),
        into=["Pad", A] if "pads" in attributes and number != 2 else [A],  # of which rounding down finds all windows
    )
    for number, (attributes, x, y) in enumerate(CEIL)
]

PLAIN: list[Row] = [
    keeps(f"{op} {number}", source, target, pool(op, attributes, x, y))
    for op in (A, M, L)
    for source, target in ((5 if op == L else 1, 22), (22, 8))
    for number, (attributes, x, y) in enumerate(
        [
            ("kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]", "1,2,5,7", "1,2,3,4"),
            ('kernel_shape=[3,2],strides=[2,2],auto_pad="SAME_UPPER"', "1,2,6,6", "1,2,3,3"),
            ('kernel_shape=[3],auto_pad="VALID"', "2,2,5", "2,2,3"),
        ]
    )
] + [
    rewrites(f"{op} {attributes}", 22, 8, pool(op, f"kernel_shape=[3],{attributes}", "2,1,5", "2,1,3"), into=[op])
    for op in (A, M, L)
    for attributes in ("ceil_mode=0,dilations=[1]", "ceil_mode=1")
]

GAPS = [
    ("kernel_shape=[3],dilations=[2]", "2,3,9", "2,3,5"),
    ("kernel_shape=[3],dilations=[2],strides=[2],pads=[2,1]", "2,3,8", "2,3,4"),
    ("kernel_shape=[2,3],dilations=[3,2],strides=[1,2],pads=[1,1,2,0]", "1,2,7,9", "1,2,7,3"),
    ("kernel_shape=[2,3],dilations=[1,2],strides=[2,3],pads=[1,1,0,1],ceil_mode=1", "2,2,7,9", "2,2,4,3"),
]

GAP_ROWS: list[Row] = (
    [
        rewrites(f"{op} with gaps {number}", source, target, pool(op, attributes, x, y), may_refuse={"*": "NonZero"})
        for op, source, target in ((M, 10, 8), (M, 22, 9), (A, 19, 18), (A, 22, 9), (L, 18, 17), (L, 22, 9))
        for number, (attributes, x, y) in enumerate(GAPS)
    ]
    + [
        rewrites(
            f"{A} with gaps and pads that count {number}", 19, 9, pool(A, f"{attributes},count_include_pad=1", x, y)
        )
        for number, (attributes, x, y) in enumerate(GAPS)
    ]
    + [
        rewrites(f"{L} with gaps, p={p}", 18, 11, pool(L, f"kernel_shape=[3],dilations=[2],p={p}", "2,3,9", "2,3,5"))
        for p in (1, 2, 3)
    ]
)

COUNT: list[Row] = [
    rewrites(f"{A} counts {number}", 9, 6, pool(A, f"{attributes},count_include_pad=1", x, y), into=into)
    for number, (attributes, x, y, into) in enumerate(
        [
            ("kernel_shape=[3,3],pads=[1,1,1,1],strides=[2,2]", "1,2,5,7", "1,2,3,4", ["Pad", A]),
            ("kernel_shape=[3],pads=[2,0]", "2,2,5", "2,2,5", ["Pad", A]),
            ("kernel_shape=[3]", "2,2,5", "2,2,3", [A]),
            ('kernel_shape=[3],auto_pad="SAME_UPPER",strides=[2]', "2,2,6", "2,2,3", ["Pad", A]),
            ('kernel_shape=[4],auto_pad="SAME_LOWER"', "2,2,6", "2,2,6", ["Pad", A]),
        ]
    )
] + [
    rewrites(
        f"{A} counts nothing",
        9,
        1,
        pool(A, "kernel_shape=[3],pads=[2,0],count_include_pad=0", "2,2,5", "2,2,5"),
        into=[A],
    )
]


def indices(attributes: str, x: str, y: str) -> str:
    """Returns a graph with a MaxPool of which both outputs are used."""
    return f"(float[{x}] x) => (float[{y}] y, int64[{y}] i) {{ y, i = {M}<{attributes}>(x) }}"


# Windows that begin in the pads at the end: inference below 22 would count them.
SKIPPED = [
    ("kernel_shape=[3],strides=[3],pads=[1,1]", "1,2,7", "1,2,3"),
    ("kernel_shape=[3],strides=[3],pads=[1,1]", "1,2,8", "1,2,3"),
    ('kernel_shape=[1],strides=[3],auto_pad="SAME_UPPER"', "1,2,8", "1,2,3"),
]
GAPS_AT_22 = "kernel_shape=[1,2],strides=[2,3],dilations=[1,2],ceil_mode=1"
LONG_ROWS: list[Row] = [
    *(
        rewrites(f"{op} with gaps, none skipped", 22, 21, pool(op, GAPS_AT_22, "1,1,1,4", "1,1,1,2"))
        for op in (M, A, L)
    ),
    *(rewrites(f"{op} with gaps, one skipped", 22, 21, pool(op, GAPS_AT_22, "1,1,2,4", "1,1,1,2")) for op in (M, L)),
]
SKIP_ROWS: list[Row] = [
    rewrites(f"{op} skips {number}", 22, target, pool(op, f"{attributes},ceil_mode=1", x, y), into=[op])
    for op, target in ((M, 12), (A, 19), (A, 13), (L, 19))
    for number, (attributes, x, y) in enumerate(SKIPPED if op == L else SKIPPED[:2])  # runtimes have no such SAME
]

INDEX: list[Row] = [
    rewrites(
        f"{M} with gaps, VALID",
        22,
        9,
        pool(M, 'kernel_shape=[3,2],dilations=[2,1],auto_pad="VALID"', "1,1,7,6", "1,1,3,5"),
    ),
    *(
        rewrites(f"{M} with indices {number}", source, 7, indices(attributes, x, y))
        for source in (8, 22)
        for number, (attributes, x, y) in enumerate(
            [
                ("kernel_shape=[2],strides=[2]", "2,3,6", "2,3,3"),
                ("kernel_shape=[3,2],strides=[2,1],pads=[1,1,0,1]", "1,2,6,5", "1,2,3,6"),
                ("kernel_shape=[2,2],storage_order=1,pads=[0,1,1,0]", "2,2,4,5", "2,2,4,5"),
            ]
        )
    ),
    *(
        rewrites(f"{M} with indices of {attributes}", 12, 9, indices(f"{attributes},dilations=[2,1]", x, y))
        for attributes, x, y in (
            ("kernel_shape=[2,2],strides=[2,2],storage_order=1,ceil_mode=1", "2,1,6,5", "2,1,3,3"),
            ("kernel_shape=[3,2],strides=[2,3],pads=[2,1,1,0]", "1,2,5,4", "1,2,2,2"),
            ('kernel_shape=[2,1],auto_pad="VALID"', "0,1,5,4", "0,1,3,4"),
        )
    ),
    *(
        rewrites(
            f"{M} with indices of {x}, {mode}",
            10,
            8,
            indices(f'kernel_shape=[3,2],strides=[2,2],auto_pad="{mode}",ceil_mode=1,storage_order=1', x, y),
        )
        for mode in ("SAME_UPPER", "SAME_LOWER")
        for x, y in (("1,2,5,4", "1,2,3,2"), ("2,1,4,5", "2,1,2,3"))
    ),
    rewrites(
        f"{M} with indices and ceil",
        10,
        8,
        indices("kernel_shape=[3],strides=[2],ceil_mode=1", "2,3,6", "2,3,3"),
        into=[M],
    ),
    rewrites(f"{M} with indices and gaps", 12, 9, indices(*GAPS[3])),
    rewrites(
        f"{M} with indices and gaps of an unknown batch",
        12,
        9,
        indices("kernel_shape=[3],strides=[2],dilations=[2]", "N,C,9", "N,C,3"),
    ),
    *(
        rewrites(
            f"{M} of {dtype} with gaps",
            12,
            target,
            pool(M, "kernel_shape=[3,3],dilations=[2,2],pads=[1,1,1,1]", "1,1,8,8", "1,1,6,6").replace("float", dtype),
            options={"types": "cast"},
        )
        for dtype in ("int8", "uint8")
        for target in (10, 9, 8, 7, 6)
    ),
    *(
        rewrites(
            f"{M} of {dtype} with indices, nothing in {x} above the lowest",
            12,
            target,
            indices(attributes, x, y).replace("float", dtype),
            feeds={"x": np.full([int(size) for size in x.split(",")], {"int8": -128}.get(dtype, 0))},
            options={"types": "cast"},
        )
        for dtype in ("int8", "uint8")
        for target in (9, 7)
        for attributes, x, y in (
            ("kernel_shape=[2,2],pads=[1,1,1,1],dilations=[2,2]", "1,2,4,4", "1,2,4,4"),
            ("kernel_shape=[3],pads=[2,1],strides=[2]", "2,1,6", "2,1,4"),
            ("kernel_shape=[2,3],storage_order=1,pads=[1,2,0,1]", "1,1,3,4", "1,1,3,5"),
        )
    ),
    rewrites(f"{M} storage_order", 8, 7, pool(M, "kernel_shape=[2],storage_order=1", "2,3,6", "2,3,5"), into=[M]),
]

NORM: list[Row] = [
    rewrites(f"{L} p", 1, 5, pool(L, "kernel_shape=[2],p=3.0", "2,3,6", "2,3,5"), into=[L]),
    rewrites(f"{L} broken p", 1, 5, pool(L, "kernel_shape=[2],p=2.5", "2,3,6", "2,3,5")),
    rewrites(f"{L} broken p", 1, 18, pool(L, "kernel_shape=[2],p=2.5", "2,3,6", "2,3,5")),
    rewrites(f"{L} without a kernel", 1, 7, pool(L, "p=1.0", "2,3,6,4", "2,3,1,1"), into=[G]),
    rewrites(f"{L} p", 11, 1, pool(L, "kernel_shape=[2],p=3", "2,3,6", "2,3,5"), into=[L]),
    rewrites(f"{G} p", 1, 5, pool(G, "p=3.0", "2,3,6", "2,3,1"), into=[G]),
    rewrites(f"{G} broken p", 1, 7, pool(G, "p=0.5", "2,3,6", "2,3,1")),
    rewrites(f"{G} p", 22, 1, pool(G, "p=3", "2,3,6", "2,3,1"), into=[G]),
    rewrites(f"{G}", 22, 1, "(float[2,3,6] x) => (float[2,3,1] y) { y = GlobalLpPool(x) }", into=[G]),
]


ROWS = [*CEIL_ROWS, *SKIP_ROWS, *LONG_ROWS, *PLAIN, *GAP_ROWS, *COUNT, *INDEX, *NORM]

test_rows = each_of(ROWS)


@pytest.mark.parametrize("sizes", ["1,2,7", "N,C,L"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("operator", "source"), [(M, 12), (A, 19), (L, 18)])
def test_same_pads_hold_the_gaps(operator: str, source: int, mode: str, sizes: str) -> None:
    """Runtimes forget the gaps when they find the pads of SAME, so the text judges: 4 windows that span 5 of 7."""
    attributes = f'kernel_shape=[3],dilations=[2],strides=[2],auto_pad="{mode}"'
    graph = f"(float[{sizes}] x) => (float[?,?,?] y) {{ y = {operator}<{attributes}>(x) }}"
    x = np.random.default_rng(0).standard_normal((1, 2, 7)).astype(np.float32)
    windows = [x[:, :, [place for place in range(2 * i - 2, 2 * i + 3, 2) if 0 <= place < 7]] for i in range(4)]
    over = {M: lambda w: w.max(2), A: lambda w: w.mean(2), L: lambda w: np.sqrt((w * w).sum(2))}[operator]
    result = onnx_convert.convert(model(graph, source), to=9).model
    np.testing.assert_allclose(run(result, {"x": x})[0], np.stack([over(w) for w in windows], 2), rtol=1e-5)


@pytest.mark.parametrize("target", [9, 7])
def test_an_index_of_minus_infinity_is_none_of_a_pad(target: int) -> None:
    """The text judges: the first of equal elements in the input."""
    attributes = "kernel_shape=[2,2],pads=[1,1,0,1]"
    graph = f"(float[1,1,3,4] x) => (float[?,?,?,?] y, int64[?,?,?,?] i) {{ y, i = MaxPool<{attributes}>(x) }}"
    x = np.full((1, 1, 3, 4), -np.inf, np.float32)
    x[0, 0, 1, 2] = -5
    result = onnx_convert.convert(model(graph, 12), to=target).model
    indices = run(result, {"x": x})[1] if target == 9 else run_reference(result, {"x": x})[1]
    expected = [[0, 0, 1, 2, 3], [0, 0, 6, 6, 3], [4, 4, 6, 6, 7]]
    assert indices[0, 0].tolist() == expected
