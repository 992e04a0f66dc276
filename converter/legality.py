# SPDX-License-Identifier: Apache-2.0
"""Is this node legal at the target? Operator, attributes, arity and dtypes, by the schema of the target's opset.

Dtypes are decided here, once, for the final nodes: a boundary that only narrows types does nothing itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import onnx.defs

from onnx_convert import opsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import NodeProto


class Formal(NamedTuple):
    """A formal input or output: its name, its type variable ("T", or a type), and the types that it takes.

    `bound` says that everything of the variable has one type.
    """

    name: str
    variable: str
    types: frozenset[str]
    bound: bool


class Rule(NamedTuple):
    """What a schema demands of a node, laid out for quick checks."""

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

    def formal_input(self, index: int) -> Formal:
        """The formal parameter of an actual input; the last one stands for all that follow."""
        return self.inputs[min(index, len(self.inputs) - 1)]

    def formal_output(self, index: int) -> Formal:
        """The formal parameter of an actual output."""
        return self.outputs[min(index, len(self.outputs) - 1)]

    def source_of(self, index: int) -> int:
        """The input whose type an output has, -1 if none is bound to it."""
        formal = self.formal_output(index)
        return next((i for i, f in enumerate(self.inputs) if f.variable == formal.variable and formal.bound), -1)


def _formal(parameter: onnx.defs.OpSchema.FormalParameter, constraints: dict[str, frozenset[str]]) -> Formal:
    variable = parameter.type_str
    bound = variable in constraints and parameter.is_homogeneous
    return Formal(parameter.name, variable, constraints.get(variable, frozenset((variable,))), bound)


@lru_cache(maxsize=None)
def rule_of(operator: str, opset: int, domain: str) -> Rule | None:
    """The rule for an operator at an opset, None if it does not exist there."""
    schema = opsets.schema_at(operator, opset, domain)
    if schema is None:
        return None
    # FormalParameter.types raises in onnx 1.20; the constraints say the same
    constraints = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    return Rule(
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
    """Whether the target's version of an operator takes fewer types than the source's somewhere."""
    before, after = rule_of(operator, start, domain), rule_of(operator, stop, domain)
    if before is None or after is None:
        return True
    return any(
        not b.types <= a.types or (a.bound and not b.bound)
        for old, new in ((before.inputs, after.inputs), (before.outputs, after.outputs))
        for b, a in zip(old, new, strict=False)
    )


class Finding(NamedTuple):
    """Why a node is not legal. `formal` and `type` are set if the type of an input or output is the matter, `since` is
    the first opset at which the operator takes it."""

    reason: str
    remedy: str = ""
    formal: Formal | None = None
    type: str = ""
    since: int = 0


def check(
    node: NodeProto,
    rule: Rule,
    opset: int,
    spelled_of: Callable[[str], str],
    unknown: list[str] | None = None,
    *,
    as_written: bool = False,
) -> Finding | None:
    """The first thing that makes a node illegal at an opset, None if it is legal.

    `spelled_of` gives the type of a value as schemas spell it. Inputs and outputs whose type nobody knows are taken to
    be legal; their names are appended to `unknown`. Only the types of a node that is `as_written` for this version are
    looked at.
    """
    if as_written:
        return _check_types(node, rule, opset, spelled_of, unknown)
    if rule.deprecated:
        return Finding(f"deprecated at opset {opset}, and no longer legal there")
    for attribute in node.attribute:
        if attribute.name not in rule.attributes:
            return Finding(f"attribute {attribute.name} does not exist at opset {opset}")
    if rule.required:
        missing = rule.required - {attribute.name for attribute in node.attribute}
        if missing:
            return Finding(f"attribute {min(missing)} is required at opset {opset}")
    if not rule.min_input <= len(node.input) <= rule.max_input:
        return Finding(f"{len(node.input)} inputs where opset {opset} takes {_range(rule.min_input, rule.max_input)}")
    if not rule.min_output <= len(node.output) <= rule.max_output:
        return Finding(f"{len(node.output)} outputs where opset {opset} has {_range(rule.min_output, rule.max_output)}")
    return _check_types(node, rule, opset, spelled_of, unknown)


def _check_types(
    node: NodeProto,
    rule: Rule,
    opset: int,
    spelled_of: Callable[[str], str],
    unknown: list[str] | None,
) -> Finding | None:
    bound: dict[str, tuple[str, str]] = {}
    for index, name in enumerate(node.input):
        spelled = spelled_of(name) if name else ""
        if not spelled:
            if unknown is not None and name:
                unknown.append(name)
            continue
        formal = rule.formal_input(index)
        if spelled not in formal.types:
            return _wrong_type(node, opset, formal, "input", spelled)
        if formal.bound:
            other, kind = bound.setdefault(formal.variable, (formal.name, spelled))
            if kind != spelled:
                return Finding(f"{other} is {kind} and {formal.name} {spelled}; at opset {opset} they have one type")
    for index, name in enumerate(node.output):
        formal = rule.formal_output(index)
        if not name or formal.variable in bound or len(formal.types) == 1:
            continue  # the inputs have settled it
        spelled = spelled_of(name)
        if spelled and spelled not in formal.types:
            return _wrong_type(node, opset, formal, "output", spelled)
    return None


def _wrong_type(node: NodeProto, opset: int, formal: Formal, side: str, spelled: str) -> Finding:
    domain = opsets.normalise(node.domain)
    shown = spelled.removeprefix("tensor(").removesuffix(")") if spelled.startswith("tensor(") else spelled
    reason = f"{side} {formal.name} is {shown}, which {node.op_type} does not take at opset {opset}"
    floor = first_opset_of(spelled, domain)
    if floor > opset:
        return Finding(
            f"{reason}: no operator of {opsets.shown(domain)} takes {shown} below opset {floor}",
            f"go no lower than opset {floor}, or change the dtype in the model",
            formal,
            spelled,
            max(floor, _takes_from(node.op_type, domain, formal.name, side, spelled)),
        )
    since = _takes_from(node.op_type, domain, formal.name, side, spelled)
    text = f"{reason}; opset {since} is the first that does" if since else reason
    return Finding(text, "", formal, spelled, since)


def _takes_from(operator: str, domain: str, formal: str, side: str, spelled: str) -> int:
    """The first opset at which an operator takes a type at an input or output of that name, 0 if none does."""
    for version in opsets.history(operator, domain):
        rule = rule_of(operator, version, domain)
        assert rule is not None
        for parameter in rule.inputs if side == "input" else rule.outputs:
            if parameter.name == formal and spelled in parameter.types:
                return version
    return 0


@lru_cache(maxsize=None)
def first_opset_of(spelled: str, domain: str = opsets.AI_ONNX) -> int:
    """The lowest opset in which any operator of a domain knows a type; beyond the newest one if none does."""
    versions = [
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == domain and any(spelled in c.allowed_type_strs for c in schema.type_constraints)
    ]
    return min(versions, default=opsets.latest(domain) + 1)


def _range(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"at least {low}" if high > 1_000_000 else f"{low} to {high}"
