# SPDX-License-Identifier: Apache-2.0
"""The outcome of a verification, as data: which inputs were run where, and how each output differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

SAME: Final = "same"
DIFFERENT: Final = "different"
UNVERIFIED: Final = "unverified"


class Output(NamedTuple):
    """How one output of source and result differ in one run, or at most in several.

    `agrees` says whether that is within what was promised, and `why` what does not. `differing` elements are not the
    same bits (NaN payloads and the signs of zeros apart), `beyond` are further apart than the tolerance; the distances
    are over all that differ, `max_ulp` in numbers of the dtype that lie between (None where that says nothing).
    `random`: only shape, dtype and distribution are compared.
    """

    name: str
    agrees: bool
    dtype: str = ""
    shape: tuple[int, ...] = ()
    elements: int = 0
    differing: int = 0
    beyond: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: int | None = 0
    tolerance: float = 0.0
    random: bool = False
    why: str = ""

    @property
    def identical(self) -> bool:
        """Whether all elements are the same bits."""
        return self.agrees and not self.differing and not self.random

    def together(self, other: Output) -> Output:
        """Returns what is true of both, which agree: all elements, and the largest distances."""
        known = None not in (self.max_ulp, other.max_ulp)
        return self._replace(
            elements=self.elements + other.elements,
            differing=self.differing + other.differing,
            beyond=self.beyond + other.beyond,
            max_abs=max(self.max_abs, other.max_abs),
            max_rel=max(self.max_rel, other.max_rel),
            max_ulp=max(self.max_ulp or 0, other.max_ulp or 0) if known else None,
            tolerance=max(self.tolerance, other.tolerance),
            random=self.random or other.random,
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data, fit for JSON: an infinite distance is the text "inf"."""
        plain = self._asdict()
        for name in ("max_abs", "max_rel"):
            plain[name] = plain[name] if plain[name] != float("inf") else "inf"
        return {**plain, "shape": [*self.shape], "identical": self.identical}


class Run(NamedTuple):
    """One set of inputs, and what came of it. `inputs` is what it is called: "random 0", "zeros", a file."""

    inputs: str
    outputs: tuple[Output, ...] = ()
    why: str = ""  # the result does not run on them, although the source does

    @property
    def agrees(self) -> bool:
        """Whether all outputs do."""
        return not self.why and all(output.agrees for output in self.outputs)


class FirstDifference(NamedTuple):
    """The first value that both models compute and that differs: the node of the source that makes it, the adapters
    that rewrote it ("" if it is as it was), and where the small models around it are."""

    value: str
    operator: str
    node: str
    adapter: str = ""
    became: tuple[str, ...] = ()
    why: str = ""
    folder: str = ""


class Within(NamedTuple):
    """What was compared besides outputs: `nodes` of the source are the same messages in the result, and `rewritten` are
    not; `weights` have the same bytes, `bytes` in all; `values` that rewritten nodes make were compared as outputs
    are."""

    nodes: int = 0
    rewritten: int = 0
    weights: int = 0
    bytes: int = 0
    values: int = 0


@dataclass
class Verification:
    """Whether source and result compute the same: on which inputs, on what, and how far apart they are.

    `verdict` is "same", "different", or "unverified" if nothing could be compared; `reason` says why. `promised` is
    what the conversion promised, "" if that is not known.
    """

    source: str = ""
    result: str = ""
    verdict: str = UNVERIFIED
    reason: str = ""
    promised: str = ""
    source_evaluator: str = ""
    result_evaluator: str = ""
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of the inputs of the first run
    runs: list[Run] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # inputs on which the source does not run, and why
    notes: list[str] = field(default_factory=list)
    within: Within = field(default_factory=Within)  # what was compared besides outputs
    first: FirstDifference | None = None
    kept: str = ""  # where a result lies that differs
    seconds: float = 0.0

    @property
    def same(self) -> bool:
        """Whether source and result were compared and compute the same."""
        return self.verdict == SAME

    @property
    def identical(self) -> bool:
        """Whether every output of every run is the same to the bit."""
        return self.same and all(output.identical for run in self.runs for output in run.outputs)

    @property
    def outputs(self) -> list[Output]:
        """How each output differs, over all runs: in the first in which it does not agree, or at most."""
        names = dict.fromkeys(output.name for run in self.runs for output in run.outputs)
        return [_worst(o for run in self.runs for o in run.outputs if o.name == name) for name in names]

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data, fit for JSON."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain["shapes"] = {name: [*shape] for name, shape in self.shapes.items()}
        plain["runs"] = [
            {"inputs": run.inputs, "agrees": run.agrees, "why": run.why, "outputs": [o.to_dict() for o in run.outputs]}
            for run in self.runs
        ]
        plain["outputs"] = [output.to_dict() for output in self.outputs]
        plain["within"] = self.within._asdict()
        plain["first"] = {**self.first._asdict(), "became": [*self.first.became]} if self.first is not None else None
        plain["same"] = self.same
        plain["identical"] = self.identical
        return plain


def _worst(several: Iterable[Output]) -> Output:
    worst, *rest = several
    for output in rest:
        if worst.agrees and not output.agrees:
            worst = output
        elif worst.agrees:
            worst = worst.together(output)
    return worst
