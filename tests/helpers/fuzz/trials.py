# SPDX-License-Identifier: Apache-2.0
"""One trial: a random graph, in the shape in which exporters write models, with a target and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper

from boundaries.variants import VARIANTS, Case
from fuzz.growing import Growth
from fuzz.nests import NESTS, nest
from fuzz.recipes import RECIPES, available, history
from oracle import opset_of

MOST_NODES = 7


@cache
def released() -> list[int]:
    """Returns the opsets that came with a release of ONNX: there is no IR version that belongs to the others."""
    newest = onnx.defs.onnx_opset_version()
    return sorted({int(row[2]) for row in helper.VERSION_TABLE if row[2] <= newest})


@dataclass(frozen=True)
class Trial:
    """A flat model with all sizes known, the array of each of its values, what is done to it before it is converted
    (names with a seed each), where it goes, and how."""

    flat: ModelProto
    values: Mapping[str, np.ndarray]
    target: int
    disguises: tuple[tuple[str, int], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> int:
        """Returns the opset that the model has."""
        return opset_of(self.flat)

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        """Returns a value for every input of the flat model."""
        fixed = {tensor.name for tensor in self.flat.graph.initializer}
        return {v.name: self.values[v.name] for v in self.flat.graph.input if v.name not in fixed}

    def disguised(self) -> Case:
        """Returns the model to convert, with a value for every input."""
        case = Case(self.flat, self.feeds, min(self.source, self.target))
        for name, seed in self.disguises:
            if name in NESTS:
                changed = nest(case, self.values, NESTS[name], Random(seed))
            else:
                changed = VARIANTS[name](case)
            case = changed or case
        return case

    def __str__(self) -> str:
        disguises = "".join(f", {name}" for name, _ in self.disguises)
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        return f"{self.source} to {self.target}{disguises}{options}"


@dataclass
class Tally:
    """How many nodes of each operator were made, and how many could not be."""

    made: dict[str, int] = field(default_factory=dict)
    unfit: dict[str, int] = field(default_factory=dict)


def make(seed: int, tally: Tally | None = None) -> Trial | None:
    """Returns the trial of a seed; None where no node grew."""
    random = Random(seed)
    opsets = released()
    source = random.choices(opsets, [1 if opset < 6 else 3 for opset in opsets])[0]
    target = _target(random, source, opsets)
    growth = Growth(source, random, exotic=random.random() < 0.1)
    tally = tally or Tally()
    operators = list(available(source))
    weights = [_interest(operator, source, target) for operator in operators]
    for _ in range(random.randint(1, MOST_NODES)):
        operator = random.choices(operators, weights)[0]
        try:
            growth.try_node(operator, RECIPES[operator])
        except Exception:  # noqa: BLE001 (whatever the checker and the evaluators say, the node does not fit)
            tally.unfit[operator] = tally.unfit.get(operator, 0) + 1
        else:
            tally.made[operator] = tally.made.get(operator, 0) + 1
    if not growth.nodes:
        return None
    flat, _ = growth.model()
    return Trial(flat, growth.values, target, _disguises(random), _options(random))


def _target(random: Random, source: int, opsets: list[int]) -> int:
    index = opsets.index(source)
    if random.random() < 0.3:
        return random.choice([*opsets[max(0, index - 1) : index], *opsets[index + 1 : index + 2]])
    others = [opset for opset in opsets if opset != source]
    return random.choices(others, [1 if opset < 6 else 3 for opset in others])[0]


def _interest(operator: str, source: int, target: int) -> float:
    """Operators that change on the way are tried more often, those that the target does not have less often."""
    changes = sum(min(source, target) < opset <= max(source, target) for opset in history(operator))
    absent = target < history(operator)[0]
    return (0.1 if absent else 1.0) * (3.0 if changes else 1.0)


def _disguises(random: Random) -> tuple[tuple[str, int], ...]:
    chosen = [random.choice(list(NESTS))] if random.random() < 0.3 else []
    variants = [name for name in VARIANTS if name not in ("plain", "float16", "float64")]
    variants += ["dims", "ranks"] * 2  # what models usually do not know
    chosen += dict.fromkeys(random.sample(variants, random.choice([0, 1, 1, 2])))
    return tuple((name, random.getrandbits(32)) for name in chosen)


OPTIONS: list[tuple[int, dict[str, Any]]] = [
    (10, {}),
    (5, {"types": "cast"}),
    (1, {"types": "cast-rounding"}),
    (2, {"exact": True}),
    (1, {"strict": True}),
]


def _options(random: Random) -> dict[str, Any]:
    weights, options = zip(*OPTIONS, strict=True)
    return dict(random.choices(options, weights)[0])
