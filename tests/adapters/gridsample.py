# SPDX-License-Identifier: Apache-2.0
"""GridSample: other names of modes, and volumes (20)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites

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


ROWS = GRID

test_rows = each_of(ROWS)
