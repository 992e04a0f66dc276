# SPDX-License-Identifier: Apache-2.0
"""One graph on its way to the target: what is known of its values, and what is planned to change in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import GraphProto, ValueInfoProto, numpy_helper

from onnx_convert.model.node_list import NodeList
from onnx_convert.model.patch import GraphPatch
from onnx_convert.rewrite.constants import Constants
from onnx_convert.rewrite.draft import Draft
from onnx_convert.rewrite.graph_facts import GraphFacts
from onnx_convert.spec.types import is_vaguer, nameless, type_of_elements, type_str

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    import numpy
    from onnx import FunctionProto, NodeProto, TypeProto

    from onnx_convert.analysis.facts import Facts
    from onnx_convert.model.node_list import Chunk
    from onnx_convert.rewrite.context import Session
    from onnx_convert.rewrite.values import ValueFacts
    from onnx_convert.spec.opsets import Imports

    Array = numpy.ndarray[Any, Any]

    # Brings the subgraphs of a new node to the target, in place: the node, the opsets that its subgraphs are written
    # for, the rewrite that wrote it, and the values of subgraphs that are at the target already.
    BringSubgraphs = Callable[[NodeProto, Imports, Draft, AbstractSet[str]], None]


class Scope:
    """One graph, subgraph or function body of the model, at the opsets it was written for.

    `inferred` holds the types that inference found in it, `imports` the opset of each domain that its nodes are written
    for. `outer` is what it stands in: a scope, or the rewrite that wrote it. `chunks` divide a main graph all of whose
    nodes are simple. `bring_subgraphs` is called for the subgraphs of nodes that a rewrite of this graph wrote.
    `finished` are values of subgraphs that are at the target already, although the node that holds
    them is not: an adapter may put such a subgraph into a graph of its own making.
    """

    def __init__(
        self,
        graph: GraphProto | FunctionProto,
        session: Session,
        inferred: Facts,
        imports: Imports,
        bring_subgraphs: BringSubgraphs,
        outer: Scope | Draft | None = None,
        path: str = "",
        *,
        chunks: Sequence[Chunk] = (),
        compact: bool = False,
        finished: AbstractSet[str] = frozenset(),
    ) -> None:
        self.graph = graph
        self.session = session
        self.imports = imports
        self.path = path
        self.bring_subgraphs = bring_subgraphs
        self.finished = finished
        self.is_function = not isinstance(graph, GraphProto)
        self.is_subgraph = outer is not None
        self.constants: Constants = (
            session.constants_inside(outer.constants) if outer is not None else Constants(session.names)
        )
        self._owns_constants = outer is None or self.constants is not outer.constants
        around: ValueFacts | None = outer.facts if isinstance(outer, Scope) else outer
        self.facts: GraphFacts = GraphFacts(graph, session, inferred, imports, self.constants, around)
        self.patch = GraphPatch(graph, NodeList(graph, chunks, compact=compact))
        self._stated_names: set[str] | None = None

    # ---- rewrites

    def draft(self, surroundings: ValueFacts, node: NodeProto) -> Draft:
        """Returns an empty draft for the rewrite of a node, which asks `surroundings` about this graph."""
        constants = Constants(self.session.names, self.constants)
        subject = frozenset((*node.input, *node.output))
        return Draft(
            surroundings, self.session, self.imports, constants, subject, self.path, in_function=self.is_function
        )

    def commit(self, draft: Draft) -> None:
        """Adds what a successful rewrite wrote."""
        self.facts.take(draft)
        draft.constants.commit()
        self.patch.stale_value_info |= draft.stale_value_info
        for domain, opset in draft.domains.items():
            self.patch.domains.setdefault(domain, opset)

    # ---- the patch

    def become_constant(self, name: str, array: Array) -> bool:
        """Makes a new constant of a source value in its own graph, if the graph may hold one: not of an output."""
        if not self._owns_constants or any(value.name == name for value in self.graph.output):
            return False
        self.constants.place(numpy_helper.from_array(array, name))
        return True

    def keep_types(self, node: NodeProto) -> None:
        """Writes down the types of a node's outputs, because inference cannot find them at the target."""
        for name in node.output:
            if name and name not in self._stated:
                self._stated.add(name)
                known = self.facts.type_of(name)
                if known is None or not type_str(known):
                    known = type_of_elements(self.facts.type_str(name))
                if known is not None:
                    self.patch.value_info.append(ValueInfoProto(name=name, type=nameless(known)))

    def finish(self) -> None:
        """Completes the patch when all nodes have been passed: a subgraph says what its holder may need to know, and
        gets the new constants that it has to hold."""
        if self.is_subgraph and self.patch.nodes.changed:
            self._keep_output_types(self.facts.inferred.type_of)
        if self._owns_constants:
            self.patch.constants += self.constants.tensors()

    def keep_new_output_types(self) -> None:
        """Spells out the types of the outputs of a new subgraph, of which no inference of the source knows."""
        self._keep_output_types(self.facts.type_as_made)

    def _keep_output_types(self, type_of: Callable[[str], TypeProto | None]) -> None:
        """Spells out the types of a subgraph's outputs: what holds it may need them more than inference finds now."""
        for value in self.graph.output:
            known = type_of(value.name)
            if known is not None and is_vaguer(value.type, known):
                self.patch.refined.append(ValueInfoProto(name=value.name, type=nameless(known)))

    @property
    def _stated(self) -> set[str]:
        """The values whose types the graph states itself."""
        if self._stated_names is None:
            graph = self.graph
            self._stated_names = {value.name for value in graph.value_info}
            if isinstance(graph, GraphProto):
                self._stated_names.update(value.name for values in (graph.input, graph.output) for value in values)
        return self._stated_names
