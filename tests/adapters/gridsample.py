# SPDX-License-Identifier: Apache-2.0
"""GridSample: other names of modes, and volumes (20)."""

from __future__ import annotations

import numpy
import pytest
from onnx.reference import ReferenceEvaluator
from texts import model

import onnx_convert
from boundaries import Row, each_of, keeps, rewrites
from oracle import evaluate, feeds_for

# ---- GridSample

RANK = {"ranks": "rank"}
PADDINGS = ("zeros", "border", "reflection")


def grid_sample(attributes: str, x: str = "2,3,4,5", grid: str = "2,3,2,2", y: str = "2,3,3,2") -> str:
    """Returns a graph with one GridSample; the grid is random, so that a third of it lies outside."""
    return f"(float[{x}] x, float[{grid}] g) => (float[{y}] y) {{ y = GridSample<{attributes}>(x, g) }}"


def image(attributes: str) -> str:
    """The same behind a Celu, which takes single precision only: of doubles every evaluator makes something else."""
    return (
        "(float[2,3,4,5] x, float[2,3,2,2] g) => (float[2,3,3,2] y) "
        f"{{ z = Celu(x) y = GridSample<{attributes}>(z, g) }}"
    )


# Places along an axis of four elements, or of five with aligned corners, exactly; many are half-way between two.
_PLACES = numpy.arange(-4.5, 5.0, 0.5)
_ALONG = [(2 * _PLACES + 1) / 4 - 1, _PLACES / 2 - 1]
HALVES = [numpy.stack([along, along[::-1]], -1).reshape(1, 19, 1, 2) for along in _ALONG]
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
            f"GridSample nearest {padding} {corners} of points half-way",
            16,
            15,
            grid_sample(
                f'mode="nearest",padding_mode="{padding}",align_corners={corners}',
                f"1,1,{4 + corners},{4 + corners}",
                "1,19,1,2",
                "1,1,19,1",
            )
            .replace("float[1,19,1,2] g", "float[1,19,1,2] h")
            .replace("{ y", "{ g = Identity(h) y"),
            feeds={"h": HALVES[corners]},
            unjudged={"float64": "of doubles every evaluator makes something else"},
            may_refuse=RANK,
        )
        for padding in PADDINGS
        for corners in (0, 1)
    ),
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
]


ROWS = GRID

test_rows = each_of(ROWS)


@pytest.mark.parametrize("padding", ["zeros", "reflection"])  # the reference brings the point itself to the border
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("axes", [1, 3])
def test_cubic_in_more_or_fewer_dimensions_than_an_image(padding: str, corners: int, axes: int) -> None:
    """The runtime interpolates by cubes in images alone, but the text goes on to any number of axes."""
    image, grid = ("2,3,5", "2,4,1") if axes == 1 else ("2,3,4,5,3", "2,3,2,4,3")
    y = "2,3,4" if axes == 1 else "2,3,3,2,4"
    source = model(grid_sample(f'mode="cubic",padding_mode="{padding}",align_corners={corners}', image, grid, y), 20)
    feeds = feeds_for(source)
    (expected,) = ReferenceEvaluator(source).run(None, feeds)
    (got,) = evaluate(onnx_convert.convert(source, to=19).model, feeds).values
    numpy.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_what_is_infinitely_far_lies_outside(mode: str) -> None:
    """There it is zeros, whatever they weigh; runtimes count such a place with integers, which end before."""
    graph = f'(float[1,1,3,4] x, float[1,1,4,2] g) => (float[1,1,1,4] y) {{ y = GridSample<mode="{mode}"> (x, g) }}'
    result = onnx_convert.convert(model(graph, 16), to=15).model
    far = numpy.array([[numpy.inf, 0], [0, -numpy.inf], [3e38, 0.1], [-3e38, -3e38]], numpy.float32)
    feeds = {"x": numpy.ones((1, 1, 3, 4), numpy.float32), "g": far.reshape(1, 1, 4, 2)}
    assert evaluate(result, feeds).values[0].tolist() == [[[[0, 0, 0, 0]]]]
