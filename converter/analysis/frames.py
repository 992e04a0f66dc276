# SPDX-License-Identifier: Apache-2.0
"""A graph of a view with what inference found of its values, and what is stated of them so that it finds more."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from onnx_convert.analysis import onnx_inference
from onnx_convert.analysis.facts import Facts
from onnx_convert.analysis.propagation import Elements, Vector
from onnx_convert.model.graphs import captured
from onnx_convert.spec.types import is_vaguer


class Frame:
    """A graph of a view, what inference found of it, and the graph around it. `place` is where it is held there: the
    indices of the node, of the attribute, and of the graph in that."""

    def __init__(self, graph: GraphProto, opset: int, parent: Frame | None, place: tuple[int, int, int]) -> None:
        self.graph = graph
        self.opset = opset
        self.parent = parent
        self.place = place
        self.facts = Facts(lambda: None)
        self.elements = Elements(self._source, self.type_of, opset)
        self._sources: dict[str, NodeProto | TensorProto | None] | None = None
        self._statements: dict[str, ValueInfoProto] = {}
        self.is_foreign = False  # whether it has nodes of operators that onnx does not know
        self.is_alone = False  # whether such a node holds it: then nobody infers it
        self.originals: dict[int, NodeProto] = {}  # of nodes that were cut, by the place

    def look_at(self, found: GraphProto) -> None:
        """Takes note of what inference found of the main graph; frames around this one come first."""
        if self.parent is None:
            self.facts = Facts(lambda: found, len(found.node))
        else:
            index, attribute, position = self.place
            self.facts = self.parent.facts.child(index, attribute, position, len(self.graph.node))
        outer = self.parent.elements.of if self.parent is not None else _nothing
        self.elements = Elements(self._source, self.type_of, self.opset, outer)

    def type_of(self, name: str) -> TypeProto | None:
        """Returns the type of a value that this graph can use."""
        known = self.facts.type_of(name)
        return self.parent.type_of(name) if known is None and self.parent is not None else known

    def _source(self, name: str) -> NodeProto | TensorProto | None:
        if self._sources is None:
            self._sources = {tensor.name: tensor for tensor in self.graph.initializer}
            for index, node in enumerate(self.graph.node):
                self._sources.update(dict.fromkeys(node.output, self.originals.get(index, node)))
        return self._sources.get(name)

    def state(self, name: str, kind: TypeProto) -> None:
        """States the type of a value in the view, instead of what was stated before."""
        value = self._statement(name)
        if value is None:
            self.graph.value_info.append(ValueInfoProto(name=name, type=kind))
            self._statements[name] = self.graph.value_info[-1]
        else:
            value.type.CopyFrom(kind)

    def learn(self, name: str, kind: TypeProto) -> bool:
        """States a type, unless as much is stated already; whether it does."""
        before = self.stated(name)
        if before is not None and not is_vaguer(before, kind) and before.WhichOneof("value"):
            return False
        self.state(name, kind)
        return True

    def stated(self, name: str) -> TypeProto | None:
        """Returns the type that the view states of a value."""
        value = self._statement(name)
        return value.type if value is not None else None

    def _statement(self, name: str) -> ValueInfoProto | None:
        if not self._statements:
            for values in (self.graph.value_info, self.graph.output):
                self._statements.update((value.name, value) for value in values)
        return self._statements.get(name)

    def alone(self, model: ModelProto) -> list[ValueInfoProto]:
        """Returns what inference finds of this graph of a view if it stands alone, but for what it captures."""
        view = ModelProto(
            domain=model.domain, ir_version=model.ir_version, opset_import=model.opset_import, graph=self.graph
        )
        for name in sorted(captured(self.graph)):
            kind = self.parent.type_of(name) if self.parent is not None else None
            view.graph.input.append(ValueInfoProto(name=name, type=kind))
        try:
            found = onnx_inference.infer(view.SerializeToString(), check_type=False, strict=False, data_prop=True)
        except Exception:  # C++ errors come as several unrelated types
            return []
        values = (*found.value_info, *found.output)
        return [value for value in values if value.type.WhichOneof("value")]


def _nothing(_: str) -> Vector | None:
    return None
