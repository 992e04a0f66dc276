# SPDX-License-Identifier: Apache-2.0
"""Is this node legal at the target? Operator, attributes, arity and dtypes, by the schema of the target's opset.

Dtypes are decided here, once, for the final nodes: a boundary that only narrows types does nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from onnx_convert.spec import opsets
from onnx_convert.spec.signatures import first_opset_of, takes_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import NodeProto

    from onnx_convert.spec.signatures import Formal, Signature


class Finding(NamedTuple):
    """The reason why a node is not legal. `formal` and `type` are set if the type of an input or output is the matter,
    `since` is the first opset at which the operator takes it."""

    reason: str
    remedy: str = ""
    formal: Formal | None = None
    type: str = ""
    since: int = 0


class Judgement(NamedTuple):
    """The first thing that makes a node illegal, None if it is legal; and the inputs seen until then whose type is not
    known, which are taken to be legal."""

    finding: Finding | None = None
    unknown: tuple[str, ...] = ()


_LEGAL: Final = Judgement()


def check(
    node: NodeProto,
    signature: Signature,
    opset: int,
    type_str_of: Callable[[str], str],
    *,
    as_written: bool = False,
) -> Judgement:
    """Returns whether a node is legal at an opset.

    `type_str_of` gives the type of a value as schemas spell it, "" if it is not known. Only the types of a node that is
    `as_written` for this version are looked at.
    """
    if as_written:
        return _check_types(node, signature, opset, type_str_of)
    if signature.deprecated:
        return Judgement(Finding(f"deprecated at {_named(opset, node)}, and no longer legal there"))
    for attribute in node.attribute:
        if attribute.name not in signature.attributes:
            return Judgement(Finding(f"attribute {attribute.name} does not exist at {_named(opset, node)}"))
    if signature.required:
        missing = signature.required - {attribute.name for attribute in node.attribute}
        if missing:
            return Judgement(Finding(f"attribute {min(missing)} is required at {_named(opset, node)}"))
    if not signature.min_input <= len(node.input) <= signature.max_input:
        takes = _range(signature.min_input, signature.max_input)
        return Judgement(Finding(f"{len(node.input)} inputs where {_named(opset, node)} takes {takes}"))
    if not signature.min_output <= len(node.output) <= signature.max_output:
        has = _range(signature.min_output, signature.max_output)
        return Judgement(Finding(f"{len(node.output)} outputs where {_named(opset, node)} has {has}"))
    return _check_types(node, signature, opset, type_str_of)


def _named(opset: int, node: NodeProto) -> str:
    return opsets.named(opset, opsets.canonical_domain(node.domain))


def _check_types(node: NodeProto, signature: Signature, opset: int, type_str_of: Callable[[str], str]) -> Judgement:
    bound: dict[str, tuple[str, str]] = {}
    unknown: tuple[str, ...] = ()
    for index, name in enumerate(node.input):
        type_str = type_str_of(name) if name else ""
        if not type_str:
            if name:
                unknown = (*unknown, name)
            continue
        formal = signature.formal_input(index)
        if type_str not in formal.types:
            return Judgement(_wrong_type(node, opset, formal, "input", type_str), unknown)
        if formal.bound:
            other, kind = bound.setdefault(formal.variable, (formal.name, type_str))
            if kind != type_str:
                text = f"{other} is {kind} and {formal.name} {type_str}; at {_named(opset, node)} they have one type"
                return Judgement(Finding(text), unknown)
    for index, name in enumerate(node.output):
        formal = signature.formal_output(index)
        if not name or formal.variable in bound or len(formal.types) == 1:
            continue  # the inputs have settled it
        type_str = type_str_of(name)
        if type_str and type_str not in formal.types:
            return Judgement(_wrong_type(node, opset, formal, "output", type_str), unknown)
    if signature.alternatives and not _goes_together(node, signature, type_str_of):
        return Judgement(Finding(f"these types do not go together at {_named(opset, node)}"), unknown)
    return Judgement(None, unknown) if unknown else _LEGAL


def _goes_together(node: NodeProto, signature: Signature, type_str_of: Callable[[str], str]) -> bool:
    """Returns whether one of the alternatives takes all types that are known."""
    placed = [(signature.formal_input(i), name) for i, name in enumerate(node.input)]
    placed += [(signature.formal_output(i), name) for i, name in enumerate(node.output)]
    known = [(formal, kind) for formal, name in placed if name and (kind := type_str_of(name))]
    return any(
        all(kind in one.get(formal.name, one.get(formal.variable, formal.types)) for formal, kind in known)
        for one in signature.alternatives
    )


def _wrong_type(node: NodeProto, opset: int, formal: Formal, side: str, type_str: str) -> Finding:
    domain = opsets.canonical_domain(node.domain)
    shown = type_str.removeprefix("tensor(").removesuffix(")") if type_str.startswith("tensor(") else type_str
    reason = f"{side} {formal.name} is {shown}, which {node.op_type} does not take at {opsets.named(opset, domain)}"
    floor = first_opset_of(type_str, domain)
    if floor > opset:
        return Finding(
            f"{reason}: no operator of {opsets.shown(domain)} takes {shown} below opset {floor}",
            f"go no lower than {opsets.named(floor, domain)}, or change the dtype in the model",
            formal,
            type_str,
            max(floor, takes_from(node.op_type, domain, formal.name, side, type_str)),
        )
    since = takes_from(node.op_type, domain, formal.name, side, type_str)
    text = f"{reason}; opset {since} is the first that does" if since else reason
    return Finding(text, "", formal, type_str, since)


def _range(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"at least {low}" if high > 1_000_000 else f"{low} to {high}"
