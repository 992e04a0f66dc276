# SPDX-License-Identifier: Apache-2.0
"""DeformConv (19) where it does not exist."""

from __future__ import annotations

from boundaries.rows import Row, refuses, rewrites

ALL = {"expand": "all"}
WEIGHTS = {"dims": "weights", "ranks": "input W"}


def conv(x: str, w: str, offset: str, y: str, further: str = "", inputs: str = "", attributes: str = "") -> str:
    return (
        f"(float[{x}] x, float[{w}] w, float[{offset}] o{inputs}) => (float[{y}] y) "
        f"{{ y = DeformConv{attributes and f'<{attributes}>'}(x, w, o{further}) }}"
    )


ROWS: list[Row] = [
    *(
        rewrites(name, source, target, graph, options=ALL, may_refuse=WEIGHTS)
        for source, target in ((19, 18), (22, 13), (19, 11), (19, 9), (19, 8))
        for name, graph in (
            ("DeformConv", conv("1,1,3,3", "1,1,2,2", "1,8,4,4", "1,1,4,4", attributes="pads=[1,1,1,1]")),
            (
                "DeformConv with mask and bias",
                conv("2,2,5,4", "3,2,2,3", "2,12,4,2", "2,3,4,2", ", b, m", ", float[3] b, float[2,6,4,2] m"),
            ),
            (
                "DeformConv in groups",
                conv(
                    "2,4,6,6",
                    "2,2,2,2",
                    "2,16,2,3",
                    "2,2,2,3",
                    attributes="group=2,offset_group=2,strides=[2,2],dilations=[2,1],pads=[0,0,0,1]",
                ),
            ),
            (
                "DeformConv without a bias",
                conv("1,2,3,3", "2,2,1,1", "1,2,3,3", "1,2,3,3", ", , m", ", float[1,1,3,3] m"),
            ),
        )
    ),
    *(
        rewrites(
            "DeformConv of any images",
            19,
            target,
            "(float[N,4,H,W] x, float[N,16,P,Q] o) => (float[N,2,P,Q] y) <float[2,2,2,2] w = "
            "{1,2,3,4,5,6,7,8,0.5,-1,-2,1,2,-1,0,1}> "
            "{ y = DeformConv<group=2,offset_group=2,pads=[1,0,0,1]>(x, w, o) }",
            dims={"N": 2, "H": 4, "W": 5, "P": 4, "Q": 5},
            options=ALL,
        )
        for target in (18, 12, 9)
    ),
    refuses(
        "DeformConv unasked",
        19,
        18,
        "(float[1,1,3,3] x, float[1,8,2,2] o) => (float[1,1,2,2] y) <float[1,1,2,2] w = {1,2,3,4}> "
        "{ y = DeformConv(x, w, o) }",
        because="large",
    ),
]
