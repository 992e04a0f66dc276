# SPDX-License-Identifier: Apache-2.0
"""Puts the nodes of a function in place of a call: a model-local function, an ONNX Script function, a schema body.

The nodes keep the opset that the function imports; the legalizer takes them on from there, so that a body written for
another opset than the model is no special case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import AttributeProto, GraphProto, NodeProto

from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from onnx import FunctionProto

    from onnx_convert.model.names import Names


def inline(function: FunctionProto, call: NodeProto, names: Names) -> Iterator[tuple[NodeProto, int]]:
    """Yields the nodes of a function's body, with the opset of each: inputs, outputs and attributes are those of the
    call, the other names are fresh. An output that the body hands through from an input becomes an Identity."""
    imports = {opsets.canonical_domain(entry.domain): entry.version for entry in function.opset_import}
    prefix = call.name or next((name for name in call.output if name), function.name)
    attributes = {attribute.name: attribute for attribute in function.attribute_proto}
    attributes.update((attribute.name, attribute) for attribute in call.attribute)
    renamed = dict(zip(function.input, call.input, strict=False))
    renamed.update((formal, "") for formal in function.input[len(call.input) :])
    produced = {name for node in function.node for name in node.output}
    identities = []
    for formal, actual in zip(function.output, call.output, strict=False):
        if not actual:
            continue
        if formal in produced and formal not in renamed:
            renamed[formal] = actual
        else:
            identities.append((formal, actual))
    renaming = _Renaming(renamed, attributes, names, prefix)
    renaming.define_all(function.node)
    for node in function.node:
        yield renaming.node(node), imports.get(opsets.canonical_domain(node.domain), 1)
    for formal, actual in identities:
        source = renaming.use(formal)
        yield NodeProto(op_type="Identity", input=[source], output=[actual]), imports.get(opsets.AI_ONNX, 1)


class _Renaming:
    """One expansion: what the names of the body are called now, and what its attribute references stand for."""

    def __init__(
        self, renamed: dict[str, str], attributes: dict[str, AttributeProto], names: Names, prefix: str
    ) -> None:
        self.renamed = renamed
        self.attributes = attributes
        self.names = names
        self.prefix = prefix

    def use(self, name: str) -> str:
        return self.renamed.get(name, name)

    def define(self, name: str) -> str:
        if name and name not in self.renamed:
            self.renamed[name] = self.names.fresh(f"{self.prefix}/{name}")
        return self.renamed.get(name, "")

    def define_all(self, nodes: Iterable[NodeProto]) -> None:
        """Names all results before the first is used: a body need not be in order."""
        for node in nodes:
            for name in node.output:
                self.define(name)

    def node(self, source: NodeProto) -> NodeProto:
        """Returns a copy of a node of the body with the names and attributes of the call."""
        new = NodeProto()
        new.CopyFrom(source)
        if new.name:
            new.name = self.names.fresh(f"{self.prefix}/{new.name}")
        del new.input[:]
        new.input.extend(self.use(name) for name in source.input)
        del new.attribute[:]
        for attribute in source.attribute:
            resolved = self._resolve(attribute)
            if resolved is not None:
                new.attribute.append(resolved)
        for attribute in new.attribute:
            for graph in (attribute.g,) if attribute.type == AttributeProto.GRAPH else attribute.graphs:
                self._graph(graph)
        del new.output[:]
        new.output.extend(self.define(name) for name in source.output)
        return new

    def _resolve(self, attribute: AttributeProto) -> AttributeProto | None:
        """Returns what an attribute stands for at this call; None if it refers to one that the call leaves out."""
        if not attribute.ref_attr_name:
            return attribute
        given = self.attributes.get(attribute.ref_attr_name)
        if given is None:
            return None
        resolved = AttributeProto()
        resolved.CopyFrom(given)
        resolved.name = attribute.name
        return resolved

    def _graph(self, graph: GraphProto) -> None:
        """Renames what a subgraph defines and uses, in place."""
        for value in graph.input:
            value.name = self.define(value.name)
        for tensor in graph.initializer:
            tensor.name = self.define(tensor.name)
        for sparse in graph.sparse_initializer:
            sparse.values.name = self.define(sparse.values.name)
        self.define_all(graph.node)
        nodes = [self.node(node) for node in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        for value in (*graph.output, *graph.value_info):
            value.name = self.use(value.name)
