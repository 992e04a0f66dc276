# SPDX-License-Identifier: Apache-2.0
"""Operators on images and signals that changed once: RoiAlign (16), GridSample and DFT (20), ConvTranspose (11)."""

from __future__ import annotations

from boundaries.rows import Row, keeps, refuses, rewrites

# ---- RoiAlign

ROIS = [[0.5, 0.5, 4.5, 5.5], [1, 2, 6, 4.25]]
SMALL = [[1, 1, 1.25, 1.25], [1, 2, 6, 4.25]]
FEEDS = {"r": ROIS, "b": [0, 0]}
CONDITIONAL = {"allow": {"conditional"}}


def roi_align(attributes: str = "") -> str:
    """A graph with one RoiAlign."""
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

# ---- GridSample

RANK = {"ranks": "rank"}
PADDINGS = ("zeros", "border", "reflection")


def grid_sample(attributes: str, x: str = "2,3,4,5", grid: str = "2,3,2,2", y: str = "2,3,3,2") -> str:
    """A graph with one GridSample; the grid is random, so that a third of it lies outside."""
    return f"(float[{x}] x, float[{grid}] g) => (float[{y}] y) {{ y = GridSample<{attributes}>(x, g) }}"


def image(attributes: str) -> str:
    """The same behind a Celu, which takes single precision only: of doubles every evaluator makes something else."""
    return (
        "(float[2,3,4,5] x, float[2,3,2,2] g) => (float[2,3,3,2] y) "
        f"{{ z = Celu(x) y = GridSample<{attributes}>(z, g) }}"
    )


VOLUME = {"x": "2,3,4,5,3", "grid": "2,3,2,4,3", "y": "2,3,3,2,4"}
GRID: list[Row] = [
    *(
        row
        for new, old in (("linear", "bilinear"), ("cubic", "bicubic"))
        for row in (
            rewrites(f"GridSample {old}", 16, 20, image(f'mode="{old}"'), into=["Celu", "GridSample"]),
            rewrites(f"GridSample {new}", 20, 16, image(f'mode="{new}"'), into=["Celu", "GridSample"], may_refuse=RANK),
        )
    ),
    keeps("GridSample", 16, 22, image("align_corners=1")),
    keeps("GridSample", 22, 16, image('padding_mode="border"'), may_refuse=RANK),
    rewrites("GridSample nearest", 20, 16, image('mode="nearest"'), into=["Celu", "GridSample"], may_refuse=RANK),
    *(
        rewrites(
            f"GridSample of volumes {mode} {padding} {corners}",
            20,
            19,
            grid_sample(f'mode="{mode}",padding_mode="{padding}",align_corners={corners}', **VOLUME),
            may_refuse=RANK,
        )
        for mode in ("linear", "nearest")
        for padding in PADDINGS
        for corners in (0, 1)
    ),
    refuses(
        "GridSample of volumes cubic",
        20,
        19,
        grid_sample('mode="cubic"', **VOLUME),
        because="rank",
    ),
]

# ---- DFT


def dft(attributes: str = "", x: str = "2,4,6,1", y: str = "2,4,6,2", axis: str | None = None, length: str = "") -> str:
    """A graph with one DFT, its axis and length as constants."""
    given = [f"int64 {name} = {{{value}}}" for name, value in (("n", length), ("a", axis)) if value]
    inputs = ["x", "n" if length else '""', *(["a"] if axis else [])]
    written = f"<{attributes}>" if attributes else ""
    return f"(float[{x}] x) => (float[{y}] y) <{', '.join(given)}> {{ y = DFT{written}({', '.join(inputs)}) }}"


FOURIER: list[Row] = [
    rewrites("DFT", 17, 20, dft(), into=["DFT"]),
    rewrites("DFT axis", 17, 20, dft("axis=2,onesided=1", y="2,4,4,2"), into=["DFT"]),
    rewrites("DFT length", 17, 20, dft("axis=-2,inverse=1", x="2,4,6,2", y="2,4,5,2", length="5"), into=["DFT"]),
    rewrites("DFT", 20, 17, dft(), into=["DFT"]),
    rewrites("DFT axis", 20, 17, dft(axis="1"), into=["DFT"]),
    rewrites("DFT negative axis", 20, 17, dft("onesided=1", y="2,3,6,2", axis="-3"), into=["DFT"]),
    rewrites("DFT length", 20, 17, dft(axis="2", length="9", y="2,4,9,2"), into=["DFT"]),
    *(
        rewrites(
            f"DFT of axis {axis} at run time",
            20,
            17,
            '(float[2,4,6,1] x, int64 a) => (float[?,?,?,2] y) { y = DFT<onesided=1>(x, "", a) }',
            feeds={"a": axis},
        )
        for axis in (0, 1, 2, -2, -4)
    ),
]

# ---- ConvTranspose


def transposed(attributes: str, y: str, x: str = "1,2,4,5", w: str = "2,1,4,3") -> str:
    """A graph with one ConvTranspose of two axes."""
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

ROWS = [*ROI, *GRID, *FOURIER, *CONV]
