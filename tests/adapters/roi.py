# SPDX-License-Identifier: Apache-2.0
"""RoiAlign: the half pixel (16)."""

from __future__ import annotations

from boundaries import Row, each_of, refuses, rewrites

# ---- RoiAlign

ROIS = [[0.5, 0.5, 4.5, 5.5], [1, 2, 6, 4.25]]
SMALL = [[1, 1, 1.25, 1.25], [1, 2, 6, 4.25]]
FEEDS = {"r": ROIS, "b": [0, 0]}
CONDITIONAL = {"allow": {"conditional"}}


def roi_align(attributes: str = "") -> str:
    """Returns a graph with one RoiAlign."""
    more = f",{attributes}" if attributes else ""
    return (
        "(float[1,2,8,8] x, float[2,4] r, int64[2] b) => (float[2,2,2,3] y) "
        f"{{ y = RoiAlign<output_height=2,output_width=3,sampling_ratio=2{more}>(x, r, b) }}"
    )


OLD = 'coordinate_transformation_mode="output_half_pixel"'
CONSTANT = (
    "(float[1,2,8,8] x, int64[2] b) => (float[2,2,2,3] y) <float[2,4] r = {0.5,0.5,4.5,5.5,1.0,2.0,6.0,4.25}> "
    "{ y = RoiAlign<output_height=2,output_width=3,sampling_ratio=2>(x, r, b) }"
)
ROI: list[Row] = [
    rewrites("RoiAlign", 10, 16, roi_align("spatial_scale=0.5"), feeds={**FEEDS, "r": SMALL}, into=["RoiAlign"]),
    rewrites("RoiAlign with old coordinates", 16, 10, roi_align(OLD), feeds={**FEEDS, "r": SMALL}, into=["RoiAlign"]),
    rewrites("RoiAlign", 16, 10, roi_align(), feeds=FEEDS, into=["Sub", "RoiAlign"], options=CONDITIONAL),
    rewrites("RoiAlign max", 22, 13, roi_align('mode="max",spatial_scale=0.8'), feeds=FEEDS, options=CONDITIONAL),
    refuses("RoiAlign of unknown regions", 16, 15, roi_align(), feeds=FEEDS, because="at least one pixel"),
    rewrites("RoiAlign of known regions", 16, 15, CONSTANT, feeds={"b": [0, 0]}, into=["Sub", "RoiAlign"]),
]


ROWS = ROI

test_rows = each_of(ROWS)
