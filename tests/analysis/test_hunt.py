# SPDX-License-Identifier: Apache-2.0
"""A sample of the hunt: what inference says although it is not so is put right."""

from __future__ import annotations

import pytest
from hunt.run import OURS, RAW, hunt, hunt_vectors, seeds

LAX = ("Pow-1", "Split-18")  # run by whoever takes more than the text does


@pytest.fixture(scope="module")
def rows() -> list[object]:
    return seeds(cases=False)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2))
def test_what_inference_says_of_single_nodes_is_put_right(rows: list, seed: int) -> None:
    result = hunt(rows, seconds=8, seed=seed, resizes=False)
    assert result.runs > 50
    assert not [f.example for key, f in result.findings.items() if f.who == OURS and not f.operator.startswith(LAX)]


def test_wrong_inference_is_found() -> None:
    result = hunt(seeds(["STFT", "Slice"], cases=False), seconds=8, seed=0, resizes=False)
    found = {finding.operator for finding in result.findings.values() if finding.who == RAW}
    assert "STFT-17" in found or "Slice-10" in found


def test_what_inference_says_of_the_elements_of_shapes_is_put_right() -> None:
    result = hunt_vectors(seconds=20, seed=7, most=1500)
    assert result.runs > 100
    assert not [finding.example for finding in result.findings.values() if finding.who == OURS]
