# SPDX-License-Identifier: Apache-2.0
"""What a description calls within reach is what `convert` does, with the same options: for rows, at opsets of every age
and at both ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from remedies.walk import NEWEST, walked_rows

import onnx_convert
from onnx_convert import RefusedError

if TYPE_CHECKING:
    from boundaries.rows import Row

ROWS = walked_rows()
AGES = (1, 5, 7, 8, 11, 13, 16, 18, 21)
OPTIONS: dict[str, dict[str, Any]] = {
    "as usual": {},
    "exact": {"exact": True},
    "strict": {"strict": True},
    "all that is allowed": {"types": "cast-rounding", "allow": ("conditional",), "expand": "all"},
}


def is_reached(row: Row, opset: int, options: dict[str, Any]) -> bool:
    try:
        onnx_convert.plan(row.model, to=opset, **options)
    except RefusedError:
        return False
    return True


def contradictions(row: Row, options: dict[str, Any]) -> list[str]:
    """Returns where a description of a row and a conversion of it say different things."""
    told = onnx_convert.inspect(row.model, **options)
    shown = f"{row}: in reach {told.lowest} to {told.highest}"
    ends = [end for end in (told.lowest - 1, told.lowest, told.highest, told.highest + 1) if 1 <= end <= NEWEST]
    found = [
        f"{shown}, yet at {opset} it is {'refused' if said else 'converted'}"
        for opset in sorted({*ends, row.target, *AGES})
        if (said := told.lowest <= opset <= told.highest) != is_reached(row, opset, options)
    ]
    if bool(told.below) != (told.lowest > 1) or bool(told.above) != (told.highest < NEWEST):
        found.append(f"{shown}, with what stands in the way: {told.below} {told.above}")
    return found


@pytest.mark.parametrize("options", OPTIONS)
def test_what_is_within_reach_is_converted(options: str) -> None:
    rows = ROWS[3 + [*OPTIONS].index(options) :: 149]
    assert [text for row in rows for text in contradictions(row, OPTIONS[options])] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("options", OPTIONS)
def test_what_is_within_reach_of_every_row_is_converted(options: str, part: int) -> None:
    assert [text for row in ROWS[part::8] for text in contradictions(row, OPTIONS[options])] == []
