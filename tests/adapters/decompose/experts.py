# SPDX-License-Identifier: Apache-2.0
"""GroupedMatMul (29) where it does not exist."""

from __future__ import annotations

import numpy as np

from boundaries import Row, each_of, rewrites

ROWS: list[Row] = [
    rewrites(
        f"GroupedMatMul {name} below 29, to {target}",
        29,
        target,
        f"({dtype}[{m},4] x, {dtype}[3,4,5] w, {index}[{m},{s}] i{', ' + dtype + '[3,5] b' if bias else ''}) => "
        f"({dtype}[{m},{s},5] y) {{ y = GroupedMatMul(x, w, i{', b' if bias else ''}) }}",
        feeds={"i": np.arange(m * s).reshape(m, s).astype(index) % 3},
    )
    for target in (28, 12, 9)
    for name, dtype, index, m, s, bias in (
        ("plain", "float", "int64", 2, 3, False),
        ("with a bias", "float", "int32", 2, 3, True),
        ("of doubles", "double", "int64", 4, 1, True),
        ("of no rows", "float", "int64", 0, 3, True),
        ("of no choice", "float", "int64", 2, 0, False),
    )
]

test_rows = each_of(ROWS)
