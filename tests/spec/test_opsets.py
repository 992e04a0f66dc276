# SPDX-License-Identifier: Apache-2.0
"""Opsets: which boundaries a node crosses."""

from __future__ import annotations

import pytest

from onnx_convert.spec import opsets

DOWN, UP = opsets.DOWN, opsets.UP


# ---- traversal


@pytest.mark.parametrize(
    ("operator", "start", "stop", "crossed"),
    [
        ("Softmax", 9, 14, [(11, UP), (13, UP)]),
        ("Softmax", 14, 9, [(13, DOWN), (11, DOWN)]),
        ("Softmax", 13, 28, []),
        ("Softmax", 13, 13, []),
        ("Softmax", 12, 13, [(13, UP)]),
        ("Softmax", 13, 12, [(13, DOWN)]),
        ("Relu", 15, 17, []),
        ("GridSample", 17, 15, [(16, DOWN)]),  # introduced at 16: below it does not exist
        ("Upsample", 7, 11, [(9, UP), (10, UP)]),
        ("NoSuchOperator", 1, 20, []),
    ],
)
def test_crossings(operator: str, start: int, stop: int, crossed: list[tuple[int, str]]) -> None:
    assert opsets.crossings(operator, start, stop) == crossed
