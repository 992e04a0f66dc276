# SPDX-License-Identifier: Apache-2.0
"""The signature of an operator: what its schema demands of a node, laid out for look-ups."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import onnx.defs

from onnx_convert.spec import opsets

Alternatives = tuple[Mapping[str, frozenset[str]], ...]
"""Types that go together, by type variable or by the name of an input or output; what is not named takes all."""


class Formal(NamedTuple):
    """A formal input or output: its name, its type variable ("T", or a type), and the types that it takes.

    `bound` says that everything of the variable has one type.
    """

    name: str
    variable: str
    types: frozenset[str]
    bound: bool


class Signature(NamedTuple):
    """The demands of a schema on a node, laid out for quick checks; of a runtime's kernels, if it has alternatives:
    types of several variables that go together."""

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    min_input: int
    max_input: int
    min_output: int
    max_output: int
    attributes: frozenset[str]
    required: frozenset[str]
    deprecated: bool
    infers: bool  # whether onnx can infer the types of the outputs
    alternatives: Alternatives = ()

    def formal_input(self, index: int) -> Formal:
        """Returns the formal parameter of an actual input; the last one stands for all that follow."""
        return self.inputs[min(index, len(self.inputs) - 1)]

    def formal_output(self, index: int) -> Formal:
        """Returns the formal parameter of an actual output."""
        return self.outputs[min(index, len(self.outputs) - 1)]

    def source_of(self, index: int) -> int:
        """Returns the input whose type an output has, -1 if none is bound to it."""
        formal = self.formal_output(index)
        return next((i for i, f in enumerate(self.inputs) if f.variable == formal.variable and formal.bound), -1)


def _formal(parameter: onnx.defs.OpSchema.FormalParameter, constraints: dict[str, frozenset[str]]) -> Formal:
    variable = parameter.type_str
    bound = variable in constraints and parameter.is_homogeneous
    return Formal(parameter.name, variable, constraints.get(variable, frozenset((variable,))), bound)


@lru_cache(maxsize=None)
def signature_of(operator: str, opset: int, domain: str) -> Signature | None:
    """Returns the signature for an operator at an opset, None if it does not exist there."""
    schema = opsets.schema_at(operator, opset, domain)
    if schema is None:
        return None
    # FormalParameter.types raises in onnx 1.20; the constraints say the same
    constraints = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    return Signature(
        inputs=tuple(_formal(p, constraints) for p in schema.inputs),
        outputs=tuple(_formal(p, constraints) for p in schema.outputs),
        min_input=schema.min_input,
        max_input=schema.max_input,
        min_output=schema.min_output,
        max_output=schema.max_output,
        attributes=frozenset(schema.attributes),
        required=frozenset(name for name, formal in schema.attributes.items() if formal.required),
        deprecated=schema.deprecated,
        infers=schema.has_type_and_shape_inference_function or bool(getattr(schema, "has_function", False)),
    )


@lru_cache(maxsize=None)
def is_narrower(operator: str, start: int, stop: int, domain: str) -> bool:
    """Returns whether the target's version of an operator takes fewer types than the source's somewhere."""
    before, after = signature_of(operator, start, domain), signature_of(operator, stop, domain)
    if before is None or after is None:
        return True
    return any(
        not b.types <= a.types or (a.bound and not b.bound)
        for old, new in ((before.inputs, after.inputs), (before.outputs, after.outputs))
        for b, a in zip(old, new, strict=False)
    )


def takes_from(operator: str, domain: str, formal: str, side: str, type_str: str) -> int:
    """Returns the first opset at which an operator takes a type at an input or output of that name, 0 if none does."""
    for version in opsets.history(operator, domain):
        signature = signature_of(operator, version, domain)
        assert signature is not None
        for parameter in signature.inputs if side == "input" else signature.outputs:
            if parameter.name == formal and type_str in parameter.types:
                return version
    return 0


@lru_cache(maxsize=None)
def first_opset_of(type_str: str, domain: str = opsets.AI_ONNX) -> int:
    """Returns the lowest opset in which any operator of a domain knows a type; beyond the newest one if none does."""
    versions = [
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == domain and any(type_str in c.allowed_type_strs for c in schema.type_constraints)
    ]
    return min(versions, default=opsets.latest(domain) + 1)
