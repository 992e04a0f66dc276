# SPDX-License-Identifier: Apache-2.0
"""The cases that there are to judge in a source: its kinds of nodes, each with what the judges ask about it. Kinds that
no judge can tell apart are one case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from onnx_convert.spec import opsets
from onnx_convert.validation import shapes, uses

if TYPE_CHECKING:
    from onnx import NodeProto

    from onnx_convert.model.kinds import Kind, Known
    from onnx_convert.model.source import SourceModel


class Case(NamedTuple):
    """The first node of some kinds, with what is certain of its inputs by name, of a Constant also of its output."""

    node: NodeProto
    domain: str
    opset: int
    known: dict[str, Known]
    kinds: list[Kind]

    def type_str_of(self, name: str) -> str:
        """Returns the type of a value as schemas spell it, "" if it is not certain."""
        known = self.known.get(name)
        return known.type_str if known is not None else ""

    @property
    def use(self) -> uses.Use:
        """The known facts about ranks and lengths."""
        node = self.node
        return uses.use_of(node, self.opset, lambda name: self.known.get(name, uses.UNKNOWN))


def cases_of(source: SourceModel) -> list[Case]:
    """Returns all cases of a source, in the order of their first nodes."""
    kinds, imports = source.index.kinds, source.imports
    bodies = [imports.main] * (1 + 2 * len(source.proto.training_info)) + imports.functions
    cases: dict[tuple[Any, ...], Case] = {}
    for kind, node in kinds.first.items():
        number, (domain, operator), attributes, outputs, places = kind
        facts = [kinds.known[place] if place is not None else None for place in places]
        domain = opsets.canonical_domain(domain)
        told: list[object] = [*facts]
        if not shapes.has_rules(operator, domain):
            told = [known.type_str if known is not None else "" for known in facts]
        key = number, domain, operator, attributes, outputs, *told
        if key not in cases:
            values = zip((*node.input, *node.output), facts, strict=False)
            known = {name: fact for name, fact in values if fact is not None and name}
            cases[key] = Case(node, domain, bodies[number - 1].get(domain, 0), known, [])
        cases[key].kinds.append(kind)
    return list(cases.values())
