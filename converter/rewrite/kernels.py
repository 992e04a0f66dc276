# SPDX-License-Identifier: Apache-2.0
"""Does a runtime have a kernel for this node? By what it implements of the operator at the target's opset, for the
dtypes that the node has. Asked besides the schema, and only where a runtime was named."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from onnx_convert.rewrite.legality import Finding, check
from onnx_convert.spec import opsets, signatures

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import NodeProto

    from onnx_convert.spec.signatures import Alternatives, Signature


Limit = tuple[tuple[str, str], ...]
Limits = tuple[Limit, ...]
"""Attributes with their values, "" for any and "none" for none, that together keep a node without a kernel."""


class Kernels(Protocol):
    """What one release of a runtime implements."""

    @property
    def runtime(self) -> str:
        """The runtime and its version, for people."""

    def of(self, domain: str, operator: str, opset: int) -> Alternatives | None:
        """Returns the types that an operator's kernels take at an opset; none of them: there is no kernel. None where
        nothing is known."""

    def has(self, domain: str, operator: str, opset: int) -> bool:
        """Returns whether an operator has a kernel at an opset, for some types; true where nothing is known."""

    def limits(self, domain: str, operator: str, opset: int) -> Limits:
        """Returns the attributes with which nodes of an operator do not run at an opset."""

    def remedy(self, domain: str, operator: str, opset: int) -> str:
        """Returns what helps where there is no kernel."""


def signature_of(kernels: Kernels, operator: str, opset: int, domain: str) -> Signature | None:
    """Returns the signature of an operator at an opset with no more than the types that a runtime takes; None where
    that is all or nothing is known, or where there is no kernel at all."""
    found = kernels.of(domain, operator, opset)
    schema = signatures.signature_of(operator, opset, domain)
    if not found or schema is None or {} in found:
        return None
    return _narrowed(operator, opset, domain, tuple(tuple(sorted(one.items())) for one in found))


def is_missing(kernels: Kernels, operator: str, opset: int, domain: str) -> bool:
    """Returns whether it is known that an operator has no kernel at an opset, whatever its dtypes."""
    return not kernels.has(domain, operator, opset)


def decomposition(operator: str, domain: str) -> int:
    """Returns the opset below which an operator does not exist, so that a way down across it takes it apart; 0 if it
    has been there from the first opset on."""
    versions = opsets.history(operator, domain)
    return versions[0] if versions and versions[0] > 1 else 0


def finding(
    kernels: Kernels, node: NodeProto, signature: Signature | None, opset: int, type_str_of: Callable[[str], str]
) -> Finding | None:
    """Returns what keeps a node without a kernel, None if it has one: `signature` is what the kernels take."""
    domain = opsets.canonical_domain(node.domain)
    at = opsets.named(opset, domain)
    if not kernels.has(domain, node.op_type, opset):
        return Finding(f"{kernels.runtime} has no kernel for {node.op_type} at {at}")
    for limit in kernels.limits(domain, node.op_type, opset):
        if all(_is_set(node, name, value) for name, value in limit):
            shown = " and ".join(f"{name}={value}" if value else name for name, value in limit)
            return Finding(f"{kernels.runtime} has no kernel for {node.op_type} with {shown}")
    if signature is None:
        return None
    found = check(node, signature, opset, type_str_of, as_written=True).finding
    if found is None:
        return None
    if found.formal is None:
        kinds = [kind for name in node.input if (kind := type_str_of(name) if name else "")]
        shown = ", ".join(map(_shown, kinds))
        return Finding(f"{kernels.runtime} has no kernel for {node.op_type} at {at} with inputs of {shown}")
    text = f"with {found.formal.name} of {_shown(found.type)}"
    reason = f"{kernels.runtime} has no kernel for {node.op_type} at {at} {text}"
    return Finding(reason, "", found.formal, found.type)


def _is_set(node: NodeProto, name: str, value: str) -> bool:
    """Returns whether a node has an attribute, with this value unless that is ""; or has it not, if that is "none"."""
    for attribute in node.attribute:
        if attribute.name == name:
            return not value or value in (str(attribute.i), attribute.s.decode("utf-8", "replace"))
    return value == "none"


def _shown(kind: str) -> str:
    return kind.removeprefix("tensor(").removesuffix(")") if kind.startswith("tensor(") else kind


@lru_cache(maxsize=4096)
def _narrowed(
    operator: str, opset: int, domain: str, found: tuple[tuple[tuple[str, frozenset[str]], ...], ...]
) -> Signature:
    """Returns a schema's signature with the types that are taken in one of the kernels found."""
    schema = signatures.signature_of(operator, opset, domain)
    assert schema is not None
    kernels = [dict(one) for one in found]

    def narrowed(formal: signatures.Formal) -> signatures.Formal:
        taken = [one.get(formal.name, one.get(formal.variable, formal.types)) for one in kernels]
        return formal._replace(types=formal.types & frozenset().union(*taken))

    return schema._replace(
        inputs=tuple(map(narrowed, schema.inputs)),
        outputs=tuple(map(narrowed, schema.outputs)),
        alternatives=tuple(kernels) if len(kernels) > 1 else (),
    )
