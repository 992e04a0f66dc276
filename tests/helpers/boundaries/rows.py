# SPDX-License-Identifier: Apache-2.0
"""One row of a table: a small model, two opsets, and what the conversion must do with it.

    keeps("Size", 1, 13, "(float[2,3] x) => (int64 y) { y = Size(x) }")
    rewrites("Squeeze", 11, 13, "(float[1,3] x) => (float[3] y) { y = Squeeze<axes=[0]>(x) }", into=["Squeeze"])
    refuses("bfloat16 Size", 13, 12, "(bfloat16[2] x) => (int64 y) { y = Size(x) }", because="bfloat16")

The graph is ONNX text without the name of the graph: `(inputs) => (outputs) <initializers> { nodes }`, where `float`
is a scalar, `float[]` has no known rank and `float[N,?]` no known sizes. Where the IR version of the opset is 3, the
initializers become graph inputs too, as that version demands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import ModelProto

from oracle import feeds_for, ir_version_of

KEEPS = "keeps"
REWRITES = "rewrites"
REFUSES = "refuses"

EVERY = "*"


@dataclass(frozen=True)
class Row:
    """See `keeps`, `rewrites` and `refuses`, which make rows."""

    name: str
    source: int
    target: int
    graph: str
    outcome: str
    into: Sequence[str] | None = None
    nodes: int | None = None
    because: str = ""
    may_refuse: Mapping[str, str] = field(default_factory=dict)
    feeds: Mapping[str, Any] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    unjudged: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} {self.source}->{self.target}"

    @cached_property
    def model(self) -> ModelProto:
        """Returns the model of the row at its source opset, at the IR version of that opset."""
        graph = onnx.parser.parse_graph(f"g {self.graph}")
        opset = onnx.helper.make_opsetid("", self.source)
        ir_version = ir_version_of(self.source)
        if ir_version < 4:
            graph.input.extend(
                onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in graph.initializer
            )
        return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=ir_version)

    @cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        """Returns a value for every input: those that the row gives, random ones for the rest."""
        types = {v.name: v.type.tensor_type.elem_type for v in self.model.graph.input}
        given = {
            name: np.asarray(value, dtype=onnx.helper.tensor_dtype_to_np_dtype(types[name]))
            for name, value in self.feeds.items()
        }
        return {**feeds_for(self.model, dims=self.dims), **given}

    def refusal_allowed(self, variant: str) -> str | None:
        """Returns what a refusal of this variant must say; None where the variant must convert."""
        return self.may_refuse.get(variant, self.may_refuse.get(EVERY))


def keeps(name: str, source: int, target: int, graph: str, **more: Any) -> Row:
    """Expects that the nodes come out equal, as messages."""
    return Row(name, source, target, graph, KEEPS, **more)


def rewrites(name: str, source: int, target: int, graph: str, **more: Any) -> Row:
    """Expects that the model computes the same at the target. The columns that may follow:

    into        the operators of the result, in order, where there is one right answer (checked for the plain model)
    nodes       how many nodes the result has at most, constants apart, where the answer is long (the same)
    may_refuse  variant -> a word of the reason, for each variant that may be refused instead ("*": every variant)
    feeds       values for inputs that random ones do not fit
    dims        sizes for symbolic dimensions
    options     further arguments of `convert`; with exact=True the numbers must agree to the bit
    unjudged    variant -> why it is left out: there is no evaluator that runs it
    """
    return Row(name, source, target, graph, REWRITES, **more)


def refuses(name: str, source: int, target: int, graph: str, *, because: str, **more: Any) -> Row:
    """Expects that the conversion is refused, with a reason that contains `because`."""
    return Row(name, source, target, graph, REFUSES, because=because, **more)
