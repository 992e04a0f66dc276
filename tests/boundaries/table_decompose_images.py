# SPDX-License-Identifier: Apache-2.0
"""What operators on images become below: MaxUnpool (9), RoiAlign (10), GridSample (16), CenterCropPad and Col2Im (18),
AffineGrid (20)."""

from __future__ import annotations

from boundaries.rows import Row, refuses, rewrites

EXACT = {"exact": True}

# ---- GridSample


def sample(attributes: str) -> str:
    """GridSample of an image, behind a Celu, which takes single precision only; see `table_sampling`."""
    return (
        "(float[2,3,4,5] x, float[2,3,2,2] g) => (float[2,3,3,2] y) "
        f"{{ z = Celu(x) y = GridSample<{attributes}>(z, g) }}"
    )


AROUND = ["Gather", "Add", "Div", "Mul", "Sub", "Floor", "Unsqueeze", "Add", "Transpose", "Pad", "Add"]
AROUND += ["Greater", "Min", "Where", "Cast", "GatherND"]

GRID: list[Row] = [
    rewrites(f"GridSample of images {mode} {padding} {corners}", 16, target, sample(attributes))
    for target in (15, 9)
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for corners in (0, 1)
    for attributes in (f'mode="{mode}",padding_mode="{padding}",align_corners={corners}',)
] + [
    rewrites("GridSample of images cubic", 22, 12, sample('mode="cubic"'), may_refuse={"ranks": "rank"}),
    *(
        rewrites(
            f"GridSample of {dtype} {padding}",
            16,
            target,
            f"({dtype}[1,2,3,4] x, float[1,2,5,2] g) => ({dtype}[1,2,2,5] y) "
            f'{{ y = GridSample<mode="nearest",padding_mode="{padding}">(x, g) }}',
            options=EXACT,
        )
        for dtype in ("int64", "bool", "double")
        for padding in ("zeros", "border")
        for target in (15, 9)
    ),
    # As many nodes for four elements around a point as for sixteen.
    *(
        rewrites(
            f"GridSample of {mode} images, all at once",
            16,
            15,
            sample(f'mode="{mode}"'),
            into=["Celu", *AROUND, *weights, "Mul", "ReduceSum", "Transpose"],
        )
        for mode, weights in (
            ("bilinear", ["Sub", "Unsqueeze", "Mul", "Add", "ReduceProd"]),
            ("bicubic", ["Sub", "Unsqueeze", *["Mul", "Add"] * 3, "ReduceProd"]),
        )
    ),
]

# ---- AffineGrid


def affine(axes: int, corners: int) -> str:
    """AffineGrid of a constant size."""
    sizes = (3, 4, 2)[:axes]
    shape = ",".join(str(size) for size in sizes)
    return (
        f"(float[2,{axes},{axes + 1}] t) => (float[2,{shape},{axes}] y) "
        f"<int64[{axes + 2}] s = {{2,3,{shape}}}> {{ y = AffineGrid<align_corners={corners}>(t, s) }}"
    )


AFFINE: list[Row] = [
    *(
        rewrites(f"AffineGrid of {axes} axes {corners}", 20, target, affine(axes, corners))
        for target in (19, 12, 9, 7)
        for axes in (2, 3)
        for corners in (0, 1)
    ),
    *(
        rewrites(
            f"AffineGrid at run time {corners}",
            20,
            target,
            f"(float[2,2,3] t, int64[4] s) => (float[?,?,?,2] y) {{ y = AffineGrid<align_corners={corners}>(t, s) }}",
            feeds={"s": [2, 1, 3, 4]},
            may_refuse={"ranks": "rank"},
        )
        for target in (19, 12, 9)
        for corners in (0, 1)
    ),
]

# ---- RoiAlign

REGIONS = {"r": [[0.5, 0.5, 4.5, 5.5], [1, 2, 6, 4.25], [-3, 2, 9.5, 11], [2, 2, 2.25, 2.5]], "b": [0, 1, 1, 0]}


def align(attributes: str) -> str:
    """RoiAlign of four regions: inside, reaching outside, and smaller than an element."""
    return (
        "(float[2,3,8,7] x, float[4,4] r, int64[4] b) => (float[4,3,2,3] y) "
        f"{{ y = RoiAlign<output_height=2,output_width=3,{attributes}>(x, r, b) }}"
    )


ROI: list[Row] = [
    *(
        rewrites(f"RoiAlign written out {mode}", 10, target, align(f"sampling_ratio=2,{mode}"), feeds=REGIONS)
        for target in (9, 8, 7)
        for mode in ("spatial_scale=0.75", 'mode="max"')
    ),
    refuses(
        "RoiAlign of as many samples as it takes", 10, 9, align("sampling_ratio=0"), feeds=REGIONS, because="samples"
    ),
]

# ---- MaxUnpool

INDEX = {"i": [[[[0, 3], [13, 15]], [[17, 18], [28, 31]]]]}
UNKNOWN = {"dims": "shape", "ranks": "shape"}
UNPOOL: list[Row] = [
    row
    for target in (8, 7)
    for row in (
        rewrites(
            "MaxUnpool",
            9,
            target,
            "(float[1,2,2,2] x, int64[1,2,2,2] i) => (float[1,2,4,4] y) "
            "{ y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(x, i) }",
            feeds=INDEX,
            may_refuse=UNKNOWN,
            options=EXACT,
        ),
        rewrites(
            "MaxUnpool of overlapping windows",
            9,
            target,
            "(float[2,1,3] x, int64[2,1,3] i) => (float[2,1,5] y) { y = MaxUnpool<kernel_shape=[3],pads=[0,0]>(x, i) }",
            feeds={"i": [[[0, 2, 4]], [[5, 7, 9]]]},
            may_refuse=UNKNOWN,
            options=EXACT,
        ),
    )
]

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
]

# ---- CenterCropPad


def crop(sizes: str, attributes: str = "", y: str = "") -> str:
    """CenterCropPad to constant sizes."""
    count = sizes.count(",") + 1
    return (
        f"(float[4,5,6] x) => (float[{y or sizes}] y) <int64[{count}] s = {{{sizes}}}> "
        f"{{ y = CenterCropPad{attributes and f'<{attributes}>'}(x, s) }}"
    )


CROP: list[Row] = [
    rewrites(
        f"CenterCropPad {name}", 18, target, graph, feeds=feeds, options=EXACT,
        may_refuse={"ranks": "rank"} if target < 11 else {},
    )
    for target in (17, 13, 11, 10)
    for name, graph, feeds in (
        ("of all axes", crop("7,5,3"), {}),
        ("of some axes", crop("2,9", "axes=[-1,0]", y="9,5,2"), {}),
        ("to the same", crop("4,5,6"), {}),
        ("to nothing", crop("0", "axes=[1]", y="4,0,6"), {}),
        ("at run time", "(float[4,5] x, int32[2] s) => (float[?,?] y) { y = CenterCropPad(x, s) }", {"s": [3, 8]}),
    )
]  # fmt: skip

ROWS = [*GRID, *AFFINE, *ROI, *UNPOOL, *COLUMNS, *CROP]
