# SPDX-License-Identifier: Apache-2.0
"""Judges a node that is about to be rewritten by what inference knows of its inputs: of an invalid one nothing would be
left in the result that anybody could find fault with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onnx_convert.errors import InvalidModelError
from onnx_convert.model import kinds
from onnx_convert.model.graphs import name_of
from onnx_convert.rewrite import legality
from onnx_convert.spec import opsets, signatures
from onnx_convert.validation import shapes, uses

if TYPE_CHECKING:
    from collections.abc import Hashable

    from onnx import NodeProto

    from onnx_convert.model.kinds import Known
    from onnx_convert.rewrite.graph_facts import GraphFacts

_SHORT: Final = 64  # elements
_INTEGERS: Final = ("tensor(int64)", "tensor(int32)")


class Judge:
    """The judge of one conversion. Nodes that no rule can tell apart are judged once."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._faults: dict[Hashable, str] = {}
        self._types: dict[bytes, Known] = {}

    def judge(self, node: NodeProto, opset: int, facts: GraphFacts) -> None:
        """Raises InvalidModelError, which names the node, if it is not valid at an opset given the facts of its
        graph."""
        domain = opsets.canonical_domain(node.domain)
        if not opsets.is_known(domain) or node.op_type == "Constant" or uses.has_references(node):
            return
        known = {name: self._known(name, facts) for name in node.input if name}
        attributes = tuple([kinds.key_of(attribute) for attribute in node.attribute])
        outputs = tuple([bool(name) for name in node.output])
        key = node.op_type, domain, opset, attributes, outputs, *[known.get(name) for name in node.input]
        if key not in self._faults:
            self._faults[key] = _fault(node, domain, opset, known)
        if self._faults[key]:
            why = f"{node.op_type} {name_of(node)!r} is not valid: {self._faults[key]}"
            raise InvalidModelError(why, where=self._where)

    def _known(self, name: str, facts: GraphFacts) -> Known:
        """Returns what is known of a value of the source."""
        kind = facts.type_in_source(name)
        if kind is None:
            return uses.UNKNOWN
        written = kind.SerializeToString()
        known = self._types.get(written)
        if known is None:
            known = self._types[written] = kinds.of_type(kind)
        return known if known.type_str not in _INTEGERS else _with_elements(known, name, facts)


def _with_elements(known: Known, name: str, facts: GraphFacts) -> Known:
    dims = known.dims
    if dims is None or len(dims) > 1 or (dims and (dims[0] or _SHORT) > _SHORT):
        return known
    array: Any = facts.foldable(name)
    if array is None or array.ndim > 1 or array.size > _SHORT:
        return known
    return known._replace(elements=tuple(int(one) for one in array.ravel()))


def _fault(node: NodeProto, domain: str, opset: int, known: dict[str, Known]) -> str:
    signature = signatures.signature_of(node.op_type, opset, domain)
    if signature is None:
        return ""

    def type_str_of(name: str) -> str:
        return known[name].type_str if name in known else ""

    finding = legality.check(node, signature, opset, type_str_of, as_written=True).finding
    if finding is not None:
        return finding.reason
    if not shapes.has_rules(node.op_type, domain):
        return ""
    return shapes.fault(uses.use_of(node, opset, lambda name: known.get(name, uses.UNKNOWN)))
