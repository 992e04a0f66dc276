# SPDX-License-Identifier: Apache-2.0
"""Permutations of axes. What counts axes from the front is tested by the rows of the families that use it."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_convert.adapters.lib.axes import exchanged, inverse, moved

RANKS = [(one, other, rank) for rank in (1, 2, 4) for one in range(rank) for other in range(rank)]


@pytest.mark.parametrize(("one", "other", "rank"), RANKS)
def test_permutations(one: int, other: int, rank: int) -> None:
    x = np.zeros(range(2, rank + 2))
    assert x.transpose(exchanged(one, other, rank)).shape == x.swapaxes(one, other).shape
    assert x.transpose(moved(one, other, rank)).shape == np.moveaxis(x, one, other).shape
    there = moved(one, other, rank)
    assert x.transpose(there).transpose(inverse(there)).shape == x.shape
