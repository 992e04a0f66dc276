# SPDX-License-Identifier: Apache-2.0
"""Which random models are tried in every run, and which only in the slow one."""

from __future__ import annotations

from typing import Any

import pytest

ALL = 12_000


def chunks(size: int, *, quick: int) -> list[Any]:
    """The seeds by `size` at a time, as parameters of a test: a test that fails says which. Those from `quick` on are
    slow."""
    starts = range(0, ALL, size)
    return [
        pytest.param(range(start, start + size), marks=pytest.mark.slow if start >= quick else (), id=str(start))
        for start in starts
    ]
