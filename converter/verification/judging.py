# SPDX-License-Identifier: Apache-2.0
"""Judges two results of one run: what was promised decides how far apart they may be.

Where the promise is *exact*, bits have to be the same, NaN payloads and the signs of zeros apart; `strict` is off where
two evaluators, or two kernels, round the same mathematics. What depends on randomness is compared by shape, dtype and
distribution.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.report import EXACT
from onnx_convert.spec import opsets
from onnx_convert.verification.comparison import is_float, measure, unlike
from onnx_convert.verification.evaluators import all_nodes, opset_of
from onnx_convert.verification.outcome import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import GraphProto, ModelProto, NodeProto

RANDOM_OPERATORS: Final = frozenset(
    "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split()
)
ROUNDING: Final = ("Quantize", "QLinear")
"""Words in the names of operators that round to integers, to which neighbour may depend on the last bit."""

_CERTAIN: Final = 2.7  # of Kolmogorov and Smirnov: equal distributions are this far apart once in a million
_ENOUGH: Final = 32  # elements that make a distribution


class Judge:
    """Judges results of a model and of whatever it was converted to, by what was `promised` ("" if nobody knows)."""

    def __init__(self, source: ModelProto, result: ModelProto, promised: str) -> None:
        self.strict = promised == EXACT
        self.random = random_outputs(source) | random_outputs(result)
        nodes = [*all_nodes(source), *all_nodes(result)]
        rounds = any(word in node.op_type for node in nodes for word in ROUNDING)
        self._step = 1 if rounds and promised != EXACT else 0
        self._names = [value.name for value in source.graph.output]

    def outputs(
        self, expected: Sequence[Any], got: Sequence[Any], again: Sequence[Any] | None = None, *, edge: bool = False
    ) -> tuple[Output, ...]:
        """Returns how the outputs of one run differ; `again` is what the source computes a second time, where some are
        random. `edge` says that the inputs are of the edges."""
        repeated = again if again is not None else [None] * len(expected)
        return tuple(
            self.output(name, one, other, more, edge=edge)
            for name, one, other, more in zip(self._names, expected, got, repeated, strict=True)
        )

    def output(self, name: str, expected: Any, got: Any, again: Any = None, *, edge: bool = False) -> Output:
        """Returns how one value differs."""
        if why := unlike(expected, got):
            return Output(name, agrees=False, why=why, max_ulp=None)
        if isinstance(expected, list):
            return self._sequence(name, expected, got)
        if expected is None or isinstance(expected, dict):
            return Output(name, agrees=True, dtype="map" if expected is not None else "absent")
        expected, got = numpy.asarray(expected), numpy.asarray(got)
        dtype = "string" if expected.dtype.kind in "OUT" else expected.dtype.name
        base = Output(name, agrees=True, dtype=dtype, shape=expected.shape, elements=expected.size)
        if name in self.random:
            return base._replace(random=True, **_distribution(expected, got, again))
        found = measure(expected, got, step=self._step, edge=edge)
        wrong, why = found.differing if self.strict else found.beyond, ""
        if wrong:
            within = f" (tolerance {found.tolerance:g})" if found.tolerance else ""
            allowed = " (the same bits were promised)" if self.strict else within
            why = (
                f"{wrong} of {found.elements} elements differ{allowed}, first at {_place(found.first)}: "
                f"{found.expected} in the source, {found.got} in the result"
            )
        return base._replace(
            agrees=not wrong,
            differing=found.differing,
            beyond=found.beyond,
            max_abs=found.max_abs,
            max_rel=found.max_rel,
            max_ulp=found.max_ulp,
            tolerance=found.tolerance,
            why=why,
        )

    def _sequence(self, name: str, expected: list[Any], got: list[Any]) -> Output:
        if len(expected) != len(got):
            why = f"a sequence of {len(expected)} in the source, of {len(got)} in the result"
            return Output(name, agrees=False, dtype="sequence", why=why, max_ulp=None)
        whole = Output(name, agrees=True, dtype="sequence", shape=(len(expected),))
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            part = self.output(name, one, other)
            if not part.agrees:
                return part._replace(why=f"element {index}: {part.why}")
            whole = whole.together(part)
        return whole


def _place(index: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, index))}]"


# ---- randomness


def random_outputs(model: ModelProto) -> set[str]:
    """Returns the values of the main graph that depend on what is random."""
    functions = {(f.domain, f.name): f.node for f in model.functions}
    opset = opset_of(model)
    found: set[str] = set()
    for node in model.graph.node:
        if not found.isdisjoint(node.input) or _is_random(node, opset, functions, found, 0):
            found.update(node.output)
    return found


def _is_random(node: NodeProto, opset: int, functions: Any, found: set[str], depth: int) -> bool:
    if not opsets.canonical_domain(node.domain):
        if node.op_type in RANDOM_OPERATORS:
            return True
        if node.op_type == "Dropout":  # in training: by an input since 12, by an attribute below 7
            training = len(node.input) > 2 and bool(node.input[2])
            return training or (opset < 7 and not any(a.name == "is_test" and a.i for a in node.attribute))
    inner: list[Any] = []
    for attribute in node.attribute:
        graphs: list[GraphProto] = [attribute.g, *attribute.graphs]
        inner += [nested for graph in graphs for nested in graph.node]
    if depth < 16:
        inner += functions.get((node.domain, node.op_type), ())
    return any(
        not found.isdisjoint(nested.input) or _is_random(nested, opset, functions, found, depth + 1) for nested in inner
    )


def _distribution(expected: Any, got: Any, again: Any) -> dict[str, Any]:
    """Returns whether random results are distributed alike, as far as elements tell; two runs of the source show
    whether they do."""
    if expected.size < _ENOUGH or not (is_float(expected.dtype) or expected.dtype.kind in "iub"):
        return {}
    if again is None or numpy.shape(again) != expected.shape or _apart(expected, numpy.asarray(again)) > _CERTAIN:
        return {}
    if (apart := _apart(expected, got)) > _CERTAIN:
        mean, other = (float(numpy.nanmean(value.astype(numpy.float64))) for value in (expected, got))
        return {"agrees": False, "why": f"it is random, and distributed otherwise (mean {mean:.4g} in the source, "
                f"{other:.4g} in the result; distance {apart:.3g})"}  # fmt: skip
    return {}


def _apart(one: Any, other: Any) -> float:
    """Returns the distance of two distributions after Kolmogorov and Smirnov, in the unit in which chance has it."""
    first, second = (numpy.sort(value.astype(numpy.float64).ravel()) for value in (one, other))
    values = numpy.concatenate([first, second])
    below = [numpy.searchsorted(array, values, side="right") / array.size for array in (first, second)]
    return float(numpy.abs(below[0] - below[1]).max()) * math.sqrt(
        first.size * second.size / (first.size + second.size)
    )
