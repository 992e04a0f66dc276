# SPDX-License-Identifier: Apache-2.0
"""Facts that a graph has about the values that it can see: its own, new ones, and those of the graphs around it.

Types come from one inference on a view of the source, made when the first question is asked, or follow from the nodes
that earlier rewrites wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import GraphProto, NodeProto, TensorProto

from onnx_convert.analysis import folding
from onnx_convert.analysis.facts import nothing_known
from onnx_convert.model import tensors
from onnx_convert.rewrite.values import Producer
from onnx_convert.rewrite.written import WrittenValues
from onnx_convert.spec import opsets
from onnx_convert.spec.types import tensor_type, type_str

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy
    from onnx import FunctionProto, TypeProto

    from onnx_convert.analysis.facts import Facts
    from onnx_convert.rewrite.constants import Constants
    from onnx_convert.rewrite.context import Session
    from onnx_convert.rewrite.values import ValueFacts
    from onnx_convert.spec.opsets import Imports

    Array = numpy.ndarray[Any, Any]
    Body = GraphProto | FunctionProto


class GraphFacts(WrittenValues):
    """The facts of one graph, subgraph or function body of the model, and of what rewrites have made of it so far.

    `inferred` holds the types that inference found in it; `imports` the opset of each domain that its nodes are written
    for; `constants` the new ones that it can see; `outer` the facts of the graph around it, None if there is none.
    """

    def __init__(
        self,
        graph: Body,
        session: Session,
        inferred: Facts,
        imports: Imports,
        constants: Constants,
        outer: ValueFacts | None = None,
    ) -> None:
        super().__init__(imports, session.read)
        self.inferred = inferred
        self._graph = graph
        self._session = session
        self._new_constants = constants
        self._outer = outer
        self._found_sources: dict[str, NodeProto | TensorProto | None] | None = None

    # ---- what rewrites wrote

    def take(self, rewrite: WrittenValues) -> None:
        """Adds what a rewrite wrote and found out about it."""
        for name, entry in rewrite.written.entries().items():
            first = self.written[name] if name in self.written else rewrite.earlier.get(name)
            if first is not None:
                self.earlier.setdefault(name, first)
            self.written[name] = entry
            self.types.pop(name, None)
        self.types |= rewrite.types
        self.type_strs |= rewrite.type_strs  # which may be known from a form on the way, and not from the last one
        self.elements |= rewrite.elements

    def take_replayed(self, nodes: Sequence[NodeProto], values: Sequence[str], versions: Mapping[str, int]) -> None:
        """Adds nodes that a replay wrote, given the values that they make, and the opset of each domain."""
        self.written.take(nodes, values, versions)

    # ---- questions about values

    def type_in_source(self, name: str) -> TypeProto | None:
        """Returns what is known of the type that a value has in the source, whoever makes it now."""
        return self._known_type(name)

    def _known_type(self, name: str) -> TypeProto | None:
        known = self.inferred.type_of(name)
        if known is None and (tensor := self._new_constants.tensor(name)) is not None:
            return tensor_type(tensor.data_type, tensor.dims)
        if known is None and self._outer is not None:
            return self._outer.type_of(name)
        return known

    def _known_type_str(self, name: str) -> str:
        known = self.inferred.type_of(name)
        return type_str(known) if known is not None else ""

    def _known_constant(self, name: str) -> Array | None:
        tensor = self._spelled_out(name)
        if tensor is not None:
            found = self._elements(tensor)
        elif isinstance(source := self._sources.get(name), NodeProto):
            found = self._fold(name, source, self.imports)
        else:
            return self._outer.constant(name) if self._outer is not None and name not in self._sources else None
        self.elements[name] = found
        return found

    def constant(self, name: str) -> Array | None:
        """Returns the elements of a value that is the same at every run. A value keeps them, whatever makes it now."""
        asked = name in self.elements
        found = super().constant(name)
        if found is None and not asked and name in self.written and isinstance(self._sources.get(name), NodeProto):
            found = self._known_constant(name)
        return found

    def _known_foldable(self, name: str) -> Array | None:
        tensor = self._spelled_out(name)
        if tensor is not None and tensors.elements(tensor) > folding.FOLDED_ELEMENTS:
            return None
        if tensor is None and name not in self._sources:
            return self._outer.foldable(name) if self._outer is not None else None
        return self._known_constant(name)

    def _known_literal(self, name: str) -> TensorProto | None:
        tensor = self._spelled_out(name)
        if tensor is not None:
            return self._small(tensor)
        return self._outer.literal(name) if self._outer is not None and name not in self._sources else None

    def _spelled_out(self, name: str) -> TensorProto | None:
        """Returns the tensor behind a constant of this graph that is not computed, without its elements."""
        new = self._new_constants.tensor(name)
        if new is not None:
            return new
        source = self._sources.get(name)
        if isinstance(source, NodeProto):
            return tensors.tensor_of(source) if source.op_type == "Constant" else None
        return source

    def is_read(self, name: str) -> bool:
        return name in self._session.read_names or name not in self._sources

    # ---- questions about the graph

    def is_of_model(self, name: str) -> bool:
        return name in self._sources or (self._outer is not None and self._outer.is_of_model(name))

    def producer(self, name: str) -> Producer | None:
        source = self._sources.get(name)
        if isinstance(source, NodeProto):
            return Producer(source, self.imports.get(opsets.canonical_domain(source.domain), 0))
        return self._outer.producer(name) if self._outer is not None and name not in self._sources else None

    def graph(self) -> Body:
        return self._graph

    def types_within(self, node: NodeProto, attribute: str) -> Facts:
        place = next(index for index, held in enumerate(node.attribute) if held.name == attribute)
        for index, other in enumerate(self._graph.node):
            if other.op_type == node.op_type and other.output == node.output:
                return self.inferred.child(index, place, 0, 0)
        return nothing_known()

    @property
    def _sources(self) -> dict[str, NodeProto | TensorProto | None]:
        """The origin of each name of this graph: a node, an initializer, or (None) an input."""
        if self._found_sources is None:
            sources: dict[str, NodeProto | TensorProto | None] = {}
            graph = self._graph
            if isinstance(graph, GraphProto):
                sources.update((value.name, None) for value in graph.input)
                overridable = self._session.ir_before > opsets.INPUTS_ONLY
                for tensor in graph.initializer:
                    if tensor.name not in sources:
                        sources[tensor.name] = tensor
                    elif not overridable:
                        sources[tensor.name] = tensor
                        self._session.took_ir3_initializer = True
            else:
                sources.update((value, None) for value in graph.input)
            for node in graph.node:
                sources.update((output, node) for output in node.output if output)
            self._found_sources = sources
        return self._found_sources
