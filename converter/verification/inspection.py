# SPDX-License-Identifier: Apache-2.0
"""Looks for what no output shows: nodes and weights that are others than promised, and values in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_convert.model.graphs import name_of, plain
from onnx_convert.verification.judging import Judge
from onnx_convert.verification.outcome import DIFFERENT, FirstDifference, Within
from onnx_convert.verification.probing import probe
from onnx_convert.verification.structure import compare_structure, makes_all_values
from onnx_convert.verification.within import compare_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx_convert.report import Report
    from onnx_convert.verification.outcome import Verification
    from onnx_convert.verification.subjects import Subject

    Feeds = Mapping[str, Any]

_UNSEEN = "no output shows it on these inputs"


class Inspection:
    """Source and result of a verification whose outputs agree, or could not be compared.

    Without a report there is no promise but that of the names: a result that makes every value of the source is a
    conversion of it, and each of these values is compared; any other result is judged by its outputs alone.
    """

    def __init__(self, source: Subject, result: Subject, found: Verification, report: Report | None) -> None:
        self._source, self._result = source, result
        self._found = found
        self._comparable = report is not None or makes_all_values(source, result)
        self._structure = compare_structure(source, result, report) if self._comparable else None
        if self._structure is not None:
            found.within = Within(*self._structure[:4])

    def breaks_a_promise(self) -> bool:
        """Returns whether a node or a weight is another one than it has to be, and says so."""
        if self._structure is None or not self._structure.broken:
            return False
        found, count = self._found, len(self._structure.broken)
        first = self._structure.broken[0]
        more = f"; so are {count - 1} more" if count > 1 else ""
        unseen = f"; {_UNSEEN}" if found.runs else ""
        found.verdict, found.reason = DIFFERENT, f"{first.why}{more}{unseen}"
        if first.node is not None:
            value = next((name for name in first.node.output if name), "")
            operator = f"{first.node.domain}.{first.node.op_type}" if first.node.domain else first.node.op_type
            found.first = FirstDifference(value, operator, plain(name_of(first.node)), why=first.why)
        return True

    def differing_value(self, sets: Mapping[str, Feeds]) -> tuple[Feeds, str] | None:
        """Compares what rewritten nodes make. Returns the inputs on which a value differs, and that."""
        if self._structure is None:
            return None
        found = self._found
        judge = Judge(self._source.proto, self._result.proto, "")
        inside = compare_values(self._source, self._result, judge, sets, self._structure.suspects)
        found.within = found.within._replace(values=inside.values)
        if inside.found is None:
            count, told = probe(self._source, self._result, judge, self._structure.inner)
            found.within = found.within._replace(values=inside.values + count)
            if told:
                found.verdict, found.reason = DIFFERENT, f"{told}; {_UNSEEN}"
            return None
        one = inside.found
        found.verdict = DIFFERENT
        found.reason = f"value {plain(one.value)!r}, {inside.inputs}: {one.why}; {_UNSEEN}"
        return sets[inside.inputs], one.value
