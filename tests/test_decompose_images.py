# SPDX-License-Identifier: Apache-2.0
"""Images at the edge: no regions, no batch, points that are no numbers, corners that are all there is."""

from __future__ import annotations

import numpy as np
import pytest
from texts import model

import onnx_convert
from oracle import compare, run, validate

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((2, 3, 8, 7)).astype(np.float32)


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
