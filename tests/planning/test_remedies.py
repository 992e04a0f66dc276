# SPDX-License-Identifier: Apache-2.0
"""Every remedy works: it is followed for the refusals of all rows, and leads to a result or to what it announces.

`helpers/remedies` follows them; `python -m remedies.run` goes all ways.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from remedies.following import dead_end_of_runtime, refusals_of
from remedies.walk import Walk, walked_rows

import onnx_convert
from boundaries.variants import VARIANTS, Case
from onnx_convert import RefusedError
from onnx_convert.planning import remedies

if TYPE_CHECKING:
    from boundaries.rows import Row

ROWS = walked_rows()
PARTS = 16


@pytest.mark.parametrize(
    ("remedy", "way", "told"),
    [
        (f"fold it, or {remedies._HERE}", "go no lower than opset 5", "fold it, or go no lower than opset 5"),
        (f"fold it, or {remedies._HERE}", remedies.NONE, "fold it"),
        (f"{remedies._HERE}, or cast", remedies.NONE, "cast"),
        (remedies._HERE, remedies.NONE, remedies.NONE),
        ("", "go no lower than opset 5", "go no lower than opset 5"),
    ],
)
def test_a_way_that_is_none_is_not_offered(remedy: str, way: str, told: str) -> None:
    assert remedies.with_way(remedy, way) == told


def test_a_remedy_that_sends_somewhere_says_where() -> None:
    root = Path(__file__).parents[2]
    sources = [path for folder in ("adapters", "converter") for path in (root / folder).rglob("*.py")]
    told = [
        found for path in sources for found in re.findall(r"go no (?:lower|higher)\b.{0,9}", path.read_text("utf-8"))
    ]
    assert [found for found in told if " than" not in found] == []
    assert len(told) > 10


def test_a_runtime_cannot_choose_its_opset() -> None:
    def for_runtime(remedy: str) -> str:
        return remedies.for_runtime(remedy, {"ai.onnx": 17, "ai.onnx.ml": 2})

    assert for_runtime("fold it, or go no lower than opset 5") == "fold it, or take a runtime that runs it at opset 5"
    assert for_runtime("go no lower than opset 3 of ai.onnx.ml") == "take a runtime that runs it at ai.onnx.ml 3"
    assert for_runtime("--types cast, and go no higher than opset 6") == (
        "--types cast, and take a runtime that runs it at opset 6"
    )
    without = "writes it without asking for kernels"
    assert for_runtime(f"x 9 has kernels for Y; or --to 13 {without}") == f"x 9 has kernels for Y; or --to 13 {without}"
    assert for_runtime(f"x 9 has kernels for Y; or --to 17 {without}") == "x 9 has kernels for Y"
    assert for_runtime(f"--to ai.onnx.ml:2 {without}") == "there is none"
    assert for_runtime(f"--types cast; then no: --to 17 {without}") == "--types cast; then no: there is none"
    assert for_runtime(f"--to ai.onnx.ml:1 {without}") == f"--to ai.onnx.ml:1 {without}"


def refused(name: str, variant: str, to: int, **options: Any) -> str:
    """Returns the remedy of the one refusal of a row."""
    row = next(row for row in ROWS if str(row) == name)
    case = VARIANTS[variant](Case(row.model, row.inputs, to))
    assert case is not None
    (remedy,) = {refusal.remedy for refusal in refusals_of(case.model, to, **options)}
    return remedy


def test_what_the_replacement_is_refused_for_is_announced() -> None:
    """With the options that the node asks for, its replacement is refused, under a name of its own."""
    assert refused("Det of 5,5 11->10", "plain", 1, exact=True) == (
        "--expand all, leave out --exact, and go no lower than opset 6"
    )


def test_what_a_call_is_refused_for_is_announced() -> None:
    """With the options that a node of a function asks for, the function is inlined, and refused where it is called."""
    assert refused("DeformConv in groups 19->11", "function", 15, exact=True) == (
        "--expand all, if a very large model is acceptable; then what replaces it needs DeformConv: the only form is "
        "equivalent, not exact: the interpolation is written out, and may round otherwise: leave out --exact"
    )


def test_a_call_may_stay_on_this_side_of_the_boundary_of_a_node_in_its_function() -> None:
    assert refused("ReduceMax at run time, two 18->17", "function", 1, types="cast", allow=("conditional",)) == (
        "make it a constant (fold constants first), or go no lower than opset 5"
    )


def dead_ends(rows: list[Row], variant: str, *targets: int) -> list[str]:
    """Returns what is wrong with the remedies of refusals of rows on their way to their own target, or others."""
    walk = Walk()
    for row in rows:
        walk.row(row, variant, [to for to in targets if to < row.source] or [row.target])
    return [*walk.dead_ends.values()]


@pytest.mark.parametrize("part", range(PARTS))
def test_remedies_of_rows(part: int) -> None:
    assert dead_ends(ROWS[part::PARTS], "plain") == []


@pytest.mark.parametrize("variant", ["dims", "ranks", "computed", "branch", "function"])
def test_remedies_where_less_is_known(variant: str) -> None:
    assert dead_ends(ROWS[3::29], variant) == []


RUNTIMES = ("onnxruntime@1.10", "onnxruntime@1.20", "tensorrt@7.0", "tensorrt@8.6", "triton@22.12", "sentis")


def dead_ends_of_runtime(rows: list[Row], runtime: str) -> list[str]:
    found = []
    for row in rows:
        try:
            onnx_convert.plan(row.model, runtime=runtime)
        except RefusedError as error:
            wrong = [dead_end_of_runtime(row.model, runtime, refusal) for refusal in error.refusals]
            found += [f"{row} for {runtime}: {text}" for text in wrong if text]
    return found


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_remedies_for_runtimes(runtime: str) -> None:
    assert dead_ends_of_runtime(ROWS[RUNTIMES.index(runtime) :: 43], runtime) == []


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_remedies_of_everything_for_runtimes(runtime: str) -> None:
    assert dead_ends_of_runtime(ROWS, runtime) == []


@pytest.mark.thorough
@pytest.mark.parametrize("variant", ["plain", "function"])
def test_remedies_on_long_ways_down(variant: str) -> None:
    assert dead_ends(ROWS[2::37], variant, 8, 5, 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("which", ["--variants plain", "--every 4 --first 1"])
def test_remedies_of_everything(which: str) -> None:
    """All rows, on all ways down, with all options; a quarter of them in the variants that less is known of, too."""
    command = [sys.executable, "-m", "remedies.run", "--jobs", "2", *which.split()]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "helpers")}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
