# SPDX-License-Identifier: Apache-2.0
"""MaxUnpool (9), RoiAlign (10), GridSample (16), CenterCropPad (18), AffineGrid (20) where they do not exist."""

from __future__ import annotations

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import compare, run, validate

EXACT = {"exact": True}

# ---- GridSample


def sample(attributes: str) -> str:
    """GridSample of an image, behind a Celu, which takes single precision only; see `gridsample`."""
    return (
        "(float[2,3,4,5] x, float[2,3,2,2] g) => (float[2,3,3,2] y) "
        f"{{ z = Celu(x) y = GridSample<{attributes}>(z, g) }}"
    )


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
            nodes=nodes,
        )
        for mode, nodes in (("bilinear", 27), ("bicubic", 31))
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
    rewrites("RoiAlign of no regions", 10, 8, align("sampling_ratio=2").replace("[4", "[0")),
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
        ("of no axis", "(float[2] x, int64[0] s) => (float[2] y) {y=CenterCropPad<axes: ints = []>(x, s)}", {"s": []}),
        ("at run time", "(float[4,5] x, int32[2] s) => (float[?,?] y) { y = CenterCropPad(x, s) }", {"s": [3, 8]}),
    )
]  # fmt: skip


ROWS = [*GRID, *AFFINE, *ROI, *UNPOOL, *CROP]

test_rows = each_of(ROWS)


RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((2, 3, 8, 7)).astype(np.float32)


def test_regions_of_no_channels() -> None:
    graph = (
        "(float[1,0,4,4] x, float[R,4] r, int64[R] b) => (float[R,0,2,3] y) "
        "{ y = RoiAlign<output_height=2,output_width=3,sampling_ratio=2>(x, r, b) }"
    )
    feeds = {"x": np.zeros((1, 0, 4, 4), np.float32), "r": np.ones((2, 4), np.float32), "b": np.zeros(2, np.int64)}
    for target in (9, 7):
        assert (
            compare(run(model(graph, 10), feeds), run(onnx_convert.convert(model(graph, 10), to=target).model, feeds))
            is None
        )


@pytest.mark.parametrize("sizes", ["2,3,8,7", "N,C,H,W"])
@pytest.mark.parametrize("target", [9, 7])
def test_no_regions(sizes: str, target: int) -> None:
    graph = (
        f"(float[{sizes}] x, float[R,4] r, int64[R] b) => (float[R,3,2,2] y) "
        "{ y = RoiAlign<output_height=2,output_width=2,sampling_ratio=2>(x, r, b) }"
    )
    feeds = {"x": IMAGE, "r": np.zeros((0, 4), np.float32), "b": np.zeros(0, np.int64)}
    (y,) = run(onnx_convert.convert(model(graph, 10), to=target).model, feeds)
    assert y.shape == (0, 3, 2, 2)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_points_that_are_no_numbers_harm_no_others(mode: str, padding: str) -> None:
    graph = (
        "(float[2,3,8,7] x, float[2,1,4,2] g) => (float[2,3,1,4] y) "
        f'{{ y = GridSample<mode="{mode}",padding_mode="{padding}">(x, g) }}'
    )
    grid = RANDOM.random((2, 1, 4, 2)).astype(np.float32) * 2.4 - 1.2
    source = model(graph, 16)
    result = onnx_convert.convert(source, to=12).model
    expected = run(source, {"x": IMAGE, "g": grid})[0]
    grid[:, :, :2] = [[np.nan, 0], [np.inf, -np.inf]]
    (y,) = run(result, {"x": IMAGE, "g": grid})
    assert compare([expected[..., 2:]], [y[..., 2:]]) is None


def test_outside_is_zero_even_beside_an_infinity() -> None:
    graph = "(float[1,1,2,2] x, float[1,1,1,2] g) => (float[1,1,1,1] y) { y = GridSample(x, g) }"
    feeds = {"x": np.full((1, 1, 2, 2), np.inf, np.float32), "g": np.full((1, 1, 1, 2), 3, np.float32)}
    assert run(onnx_convert.convert(model(graph, 16), to=15).model, feeds)[0] == 0


@pytest.mark.parametrize(("corners", "first"), [(0, 0.0), (1, -1.0)])
def test_a_grid_of_one_element(corners: int, first: float) -> None:
    graph = (
        "(float[1,2,3] t) => (float[1,1,1,2] y) <int64[4] s = {1,1,1,1}> "
        f"{{ y = AffineGrid<align_corners={corners}>(t, s) }}"
    )
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
    (y,) = run(onnx_convert.convert(model(graph, 20), to=13).model, {"t": theta})
    assert y.ravel().tolist() == [first, first]


@pytest.mark.parametrize(
    ("corners", "sizes", "says"), [(0, "1,1,1,2", False), (1, "1,1,2,2", False), (1, "1,1,1,2", True)]
)
def test_where_the_corner_of_one_element_lies_is_told(corners: int, sizes: str, says: bool) -> None:
    """Nobody specifies it: the reference has it at -1, onnxruntime at 1, torch at 0."""
    graph = f"(float[1,2,3] t) => (float[1,?,?,2] y) <int64[4] s = {{{sizes}}}> "
    report = onnx_convert.plan(model(graph + f"{{ y = AffineGrid<align_corners={corners}>(t, s) }}", 20), to=13)
    assert any("no text specifies" in step.condition for step in report.steps) == says


def test_large_grids_have_small_constants() -> None:
    graph = "(float[1,2,3] t) => (float[1,1080,1920,2] y) <int64[4] s = {1,3,1080,1920}> { y = AffineGrid(t, s) }"
    result = onnx_convert.convert(model(graph, 20), to=13).model
    validate(result)
    assert result.ByteSize() < 50_000


OUTPUT = "(float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,5,5] y) <int64[4] s = {1,1,5,5}> "


def test_an_output_shape_that_runtimes_disagree_on() -> None:
    """Known from a constant, or from what the model states of its output."""
    stated = OUTPUT.partition("<")[0].replace("i) =>", "i, int64[4] s) =>")
    for given in (OUTPUT, stated):
        graph = given + "{ y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(x, i, s) }"
        with pytest.raises(onnx_convert.RefusedError, match="output_shape"):
            onnx_convert.convert(model(graph, 9), to=8, allow={"conditional"})


def test_an_output_shape_that_is_computed() -> None:
    graph = OUTPUT.partition("<")[0].replace("float[1,1,5,5]", "float[a,b,c,d]").replace("i) =>", "i, int64[4] s) =>")
    source = model(graph + "{ y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(x, i, s) }", 9)
    with pytest.raises(onnx_convert.RefusedError, match="output_shape"):
        onnx_convert.convert(source, to=8)
    feeds = {
        "x": IMAGE[:1, :1, :2, :2],
        "i": np.array([[[[5, 7], [13, 15]]]]),
        "s": np.array([1, 1, 4, 4]),
    }
    result = onnx_convert.convert(source, to=8, allow={"conditional"}).model
    assert compare(run(source, feeds), run(result, feeds), exact=True) is None


def test_large_unpooling_compares_each_window_only() -> None:
    graph = (
        "(float[1,4,56,56] x, int64[1,4,56,56] i) => (float[1,4,112,112] y) "
        "{ y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(x, i) }"
    )
    image = RANDOM.standard_normal((1, 4, 112, 112)).astype(np.float32)
    pool = model(
        "(float[1,4,112,112] x) => (float[1,4,56,56] y, int64[1,4,56,56] i) "
        "{ y, i = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) }",
        9,
    )
    pooled, indices = run(pool, {"x": image})
    source = model(graph, 9)
    feeds = {"x": pooled, "i": indices}
    result = onnx_convert.convert(source, to=8).model
    assert compare(run(source, feeds), run(result, feeds), exact=True) is None
