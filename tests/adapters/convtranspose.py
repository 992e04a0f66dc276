# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose: where the padding of SAME goes (11)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites

# ---- ConvTranspose


def transposed(attributes: str, y: str, x: str = "1,2,4,5", w: str = "2,1,4,3") -> str:
    """Returns a graph with one ConvTranspose of two axes."""
    return f"(float[{x}] x, float[{w}] w) => (float[{y}] y) {{ y = ConvTranspose<{attributes}>(x, w) }}"


STATED, FOUND = "pads=[0,1,1,0],strides=[2,1]", 'auto_pad="SAME_{}",strides=[2,2]'
CONV: list[Row] = [
    row
    for source, target in ((9, 11), (11, 9), (22, 7))
    for row in (
        keeps("ConvTranspose", source, target, transposed(STATED, "1,1,9,6")),
        *(
            rewrites(
                f"ConvTranspose {side}",
                source,
                target,
                transposed(FOUND.format(side), "1,1,8,10"),
                into=["ConvTranspose"],
            )
            for side in ("UPPER", "LOWER")
        ),
        keeps("ConvTranspose evenly", source, target, transposed('auto_pad="SAME_UPPER",strides=[2,1]', "1,1,8,5")),
    )
]


ROWS = CONV

test_rows = each_of(ROWS)
