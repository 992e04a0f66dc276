# SPDX-License-Identifier: Apache-2.0
"""Which random models are tried in every run, and which only in the slow one."""

from __future__ import annotations

from typing import Any

import pytest

ALL = 12_000


def chunks(size: int, *, quick: int) -> list[Any]:
    """Returns the seeds by `size` at a time, as parameters of a test: a test that fails says which.

    Those from `quick` on are slow; a quarter of the others is tried in every run, and the rest if that is thorough.
    """

    def mark(start: int) -> Any:
        return pytest.mark.slow if start >= quick else pytest.mark.thorough if start >= max(quick // 4, 1) else ()

    return [pytest.param(range(start, start + size), marks=mark(start), id=str(start)) for start in range(0, ALL, size)]
