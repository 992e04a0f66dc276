# SPDX-License-Identifier: Apache-2.0
"""Walks all rows down to each lower opset, with each set of options, and follows the remedy of each distinct refusal.

Planning is cheap and remedies are not: all ways are planned, and of all refusals that say the same of the same operator
at the same boundary with the same options one is followed, the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import onnx

from boundaries.rows import Row
from boundaries.tables import rows
from boundaries.variants import VARIANTS, Case
from onnx_convert.errors import OnnxConvertError
from onnx_convert.planning.planner import plan
from onnx_convert.storage.source import open_source
from onnx_convert.target.request import requested
from onnx_convert.target.resolve import resolve
from remedies.following import dead_end, refusals_of

if TYPE_CHECKING:
    from onnx import ModelProto

    from onnx_convert import Refusal
    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.plan import Plan

NEWEST: Final = onnx.defs.onnx_opset_version()
WALKED: Final = ("plain", "dims", "ranks", "computed", "branch", "function", "float16", "float64")
"""The variants of rows that are walked: the others say what these say, spelled otherwise."""

SOME: Final = (1, 7, 12)
"""The opsets that the variants of a row are walked down to, besides its own target."""

EXACT: Final[dict[str, Any]] = {"exact": True}
STRICT: Final[dict[str, Any]] = {"strict": True}
PERMISSIONS: Final[tuple[dict[str, Any], ...]] = (
    {"types": "cast"},
    {"types": "cast-rounding"},
    {"types": "cast", "exact": True},
    {"allow": ("conditional",)},
    {"allow": ("conditional",), "types": "cast-rounding", "expand": "all"},
)
PERMITTED: Final = {"conditional-only", "dtype-cast", "not-exact", "too-large", "unknown-dtype"}
"""Codes of refusals that an option may lift, so that others come to light."""


def walked_rows() -> list[Row]:
    """Returns the rows that the installed onnx has the opsets for."""
    return [row for row in rows() if max(row.source, row.target) <= NEWEST]


class _Way(NamedTuple):
    """A model on its way to an opset, made of a row."""

    row: Row
    variant: str
    model: ModelProto
    aim: int

    def __str__(self) -> str:
        return f"{self.row} {self.variant} at {self.aim}"


@dataclass
class Walk:
    """What a walk met: ways that were planned, distinct refusals, and dead ends as texts."""

    ways: int = 0
    followed: int = 0
    dead_ends: dict[object, str] = field(default_factory=dict)
    seen: set[object] = field(default_factory=set)

    def row(self, row: Row, variant: str, targets: Sequence[int] = ()) -> None:
        """Walks one row in a variant: to its own target, to the newest opset, and to each below its own."""
        aims = targets or sorted({row.target, NEWEST, *range(1, row.source)} - {row.source})
        models: dict[bytes, tuple[ModelProto, list[int]]] = {}
        for aim in aims:  # a variant looks at the lowest opset that it will see
            case = VARIANTS[variant](Case(row.model, row.inputs, min(row.source, aim)))
            if case is not None:
                models.setdefault(case.model.SerializeToString(), (case.model, []))[1].append(aim)
        for model, ways in models.values():
            with open_source(model, None) as source:
                for aim in ways:
                    self._way(_Way(row, variant, model, aim), source)

    def _way(self, way: _Way, source: SourceModel) -> None:
        """Plans one way with each set of options that may matter: permissions where something is refused that they may
        lift, or that was not met before; `exact` where something is not, `strict` where something is assumed."""
        outcome, news = self._planned(way, source, {})
        if outcome is None:
            return
        refused = bool(outcome.refusals)
        if refused or any(step.form != "exact" for step in outcome.steps):
            self._planned(way, source, EXACT)
        if news or outcome.assumed:
            self._planned(way, source, STRICT)
        if news or any(refusal.code in PERMITTED for refusal in outcome.refusals):
            for options in PERMISSIONS:
                self._planned(way, source, options)

    def _planned(self, way: _Way, source: SourceModel, options: dict[str, Any]) -> tuple[Plan | None, bool]:
        """Returns the plan of a way, and whether something is refused on it that was not met before."""
        request = requested(way.aim, **options)
        self.ways += 1
        try:
            outcome = plan(source, resolve(source, request), request.options)
        except OnnxConvertError as error:
            self.dead_ends.setdefault(("error", way.row.name), f"{way} {options}: {error}")
            return None, False
        new = {self._kind(one, way.variant, options) for one in outcome.refusals} - self.seen
        if new:
            self.seen |= new
            self._follow(way, options)
        return outcome, bool(new)

    @staticmethod
    def _kind(refusal: Refusal, variant: str, options: dict[str, Any]) -> object:
        """Returns what makes a refusal distinct."""
        told = re.sub(r"\d+", "#", refusal.remedy)
        facts = variant if refusal.code.startswith("needs-") else ""
        return refusal.code, refusal.domain, refusal.operator, refusal.boundary, told, facts, str(options)

    def _follow(self, way: _Way, options: dict[str, Any]) -> None:
        refusals = refusals_of(way.model, way.aim, **options)
        for which, refusal in enumerate(refusals):
            self.followed += 1
            try:
                wrong = dead_end(way.model, way.row.model, way.aim, refusals, which, options)
            except OnnxConvertError as error:
                wrong = f"following it raises {type(error).__name__}: {error}"
            if wrong:
                told = f"{refusal.code} {refusal.operator}: {refusal.reason} | {refusal.remedy} | {wrong}"
                key = refusal.operator, re.sub(r"\d+", "#", f"{refusal.reason}|{refusal.remedy}|{wrong}")
                self.dead_ends.setdefault(key, f"{way} {options}: {told}")
