# SPDX-License-Identifier: Apache-2.0
"""Tells how far a model can go: the opsets within its reach, each confirmed by planning, and what blocks the way
beyond."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.planning.planner import plan
from onnx_convert.spec import opsets
from onnx_convert.target.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.model.source import SourceModel
    from onnx_convert.report import Refusal
    from onnx_convert.target.request import Request


class Reach:
    """The opsets of ai.onnx that one model can be brought to by a request, whatever it asks for other domains."""

    def __init__(self, source: SourceModel, request: Request) -> None:
        self._source = source
        self._request = request
        self._start = source.imports.main.get(opsets.AI_ONNX, 0)

    def refusals_at(self, opset: int) -> Sequence[Refusal]:
        """Returns what stands in the way of an opset, found by planning."""
        request = self._request.at(opset)
        return plan(self._source, resolve(self._source, request), request.options).refusals

    def nearest(self, aim: int, refusals: Sequence[Refusal]) -> int | None:
        """Returns the opset closest to a refused one that can be reached, None if there is none but the model's own.

        It is what the boundaries of the refusals suggest, or is found by halving where they suggest none.
        """
        if aim != self._start and self._suggested(aim, refusals) is None:
            furthest, _ = self.limit(aim)
            return furthest if furthest not in (aim, self._start) else None
        while (candidate := self._suggested(aim, refusals)) is not None:
            if not min(self._start, aim) < candidate < max(self._start, aim):
                return None
            refusals, aim = self.refusals_at(candidate), candidate
            if not refusals:
                return candidate
        return None

    def limit(self, aim: int) -> tuple[int, Sequence[Refusal]]:
        """Returns the opset furthest on the way to `aim` that can be reached, and what is refused one step beyond it.

        What the refusals suggest is tried first, then the next opset beyond; halving is for refusals without boundary.
        """
        refusals = self.refusals_at(aim) if aim != self._start else []
        if not refusals:
            return aim, []
        good, bad = self._start, aim
        step = 1 if aim > good else -1
        while bad - good != step:
            candidate = self._suggested(bad, refusals)
            if candidate is None or (bad - candidate) * step <= 0:
                candidate = good + step * ((bad - good) * step // 2)
            elif (candidate - good) * step <= 0:
                candidate = good + step
            found = self.refusals_at(candidate)
            if found:
                bad, refusals = candidate, found
            else:
                good = candidate
        return good, refusals

    def _suggested(self, aim: int, refusals: Sequence[Refusal]) -> int | None:
        """Returns the nearest opset at which none of the refused boundaries is crossed; None if they do not tell."""
        boundaries = [refusal.boundary for refusal in refusals if refusal.domain == "ai.onnx"]
        if not boundaries or not all(boundaries):
            return None
        return max(boundaries) if aim < self._start else min(boundaries) - 1
