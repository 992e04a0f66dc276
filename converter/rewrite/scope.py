# SPDX-License-Identifier: Apache-2.0
"""What is known of the values of one graph: types, constants, producers, and the graph around it.

Facts of the source model come from one inference on a view, made when the first question is asked. Facts of values that
adapters write come from inferring just the nodes asked about. A constant may sit in this graph, in an outer one, or be
the outcome of a few nodes on constants, which are then run once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, numpy_helper

from onnx_convert.analysis import folding, inference
from onnx_convert.model import tensors
from onnx_convert.model.graphs import used_names
from onnx_convert.model.patch import GraphPatch
from onnx_convert.model.tensors import elements_of
from onnx_convert.rewrite.draft import Written
from onnx_convert.spec import opsets, signatures
from onnx_convert.spec.types import has_shape, is_complete, is_vaguer, nameless, tensor_type, type_of_elements, type_str

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy
    from onnx import FunctionProto

    from onnx_convert.analysis.facts import Facts
    from onnx_convert.rewrite.context import Session
    from onnx_convert.rewrite.recorder import Recorder

    Array = numpy.ndarray[Any, Any]

_DEPTH: Final = 64  # constants are made of constants in short chains; a long one is a computation
_DATA_ELEMENTS: Final = 1024  # inference is shown the elements of axes and shapes, not those of weights


class Scope:
    """One graph, subgraph or function body of the model, at the opsets it was written for."""

    def __init__(
        self,
        graph: GraphProto | FunctionProto,
        session: Session,
        facts: Facts,
        imports: dict[str, int],
        parent: Scope | None = None,
        path: str = "",
    ) -> None:
        self.graph = graph
        self.session = session
        self.facts = facts
        self.imports = imports  # the opset of each domain that the source nodes of this scope are written for
        self.parent = parent
        self.path = path
        self.is_function = not isinstance(graph, GraphProto)
        self.patch = GraphPatch(graph, [])
        self._types: dict[str, TypeProto | None] = {}
        self._written = Written()
        self._sources: dict[str, NodeProto | TensorProto | None] | None = None
        self._constants: dict[str, Array | None] = {}
        self._shared: dict[tuple[int, tuple[int, ...], bytes | tuple[Any, ...]], str] = {}
        self.new_constants: dict[str, TensorProto] = {}
        self.recorder: Recorder | None = None
        self._said: set[str] | None = None
        self._type_strs: dict[str, str] = {}
        self._earlier: dict[str, tuple[NodeProto, int]] = {}  # what a value was first written as
        self._depth = 0

    # ---- what adapters write

    def wrote_alike(
        self, nodes: Sequence[NodeProto | bytes], values: Sequence[str], versions: Mapping[str, int]
    ) -> None:
        """Takes note of nodes that were written by a replay, and of the values that they make."""
        self._written.take(nodes, values, versions)

    def wrote(self, node: NodeProto, opset: int) -> None:
        """Takes note of a node that an adapter wrote; its outputs are inferred when somebody asks."""
        entry = (node, opset)
        for name in node.output:
            if name:
                self._written[name] = entry
                self._types.pop(name, None)
        if self.recorder is not None:
            self.recorder.own.update(node.output)

    def settled(self, node: NodeProto, opset: int) -> None:
        """Takes note that a node which an adapter wrote has come to the target. If that is up, inference finds more
        there: what is asked from now on is answered as after a replay, which goes there at once."""
        for name in node.output:
            if name in self._written:
                made, before = self._written[name]
                if made is node and before < opset:
                    self._written[name] = (node, opset)

    def renamed(self, old: str, new: str) -> None:
        """Takes note that an adapter's value takes over the name of a source value."""
        if new in self._written:
            self._earlier.setdefault(new, self._written[new])
        self._written[new] = self._written.pop(old)
        self._types.pop(new, None)
        known = self._types.pop(old, None)
        if has_shape(known) and not self.facts.type_of(new):
            self._types[new] = known

    def declare(self, name: str, kind: TypeProto) -> None:
        """States the type of a new value where inference need not be asked."""
        self._types[name] = kind
        if self.recorder is not None:
            self.recorder.general = False  # a replay would not state it

    def share(self, array: Array, hint: str) -> str:
        """The name of a constant with these elements in the scope where new constants go, made if there is none."""
        home = self.constant_home
        key = (array.dtype.num, array.shape, _content(array))
        name = home._shared.get(key)
        if name is None:
            name = self.session.names.fresh(hint)
            home._shared[key] = name
            home.new_constants[name] = numpy_helper.from_array(array, name)
            home._constants[name] = array
        if self.recorder is not None:
            self.recorder.shared(name, array, hint)
        return name

    @property
    def constant_home(self) -> Scope:
        """The graph that holds new constants: this one; the main graph where IR < 4 makes initializers inputs."""
        scope = self
        while self.session.ir_after < 4 and scope.parent is not None:
            scope = scope.parent
        return scope

    # ---- questions

    def type_of(self, name: str) -> TypeProto | None:
        """Everything known of a value's type, None if nothing is."""
        answer = self._type_of(name)
        if self.recorder is not None:
            self.recorder.heard("type", name, answer)
        return answer

    def type_str(self, name: str) -> str:
        """A value's type as schemas spell it, "tensor(float)"; "" if it is not known.

        That of a value which an adapter wrote mostly follows from the schema: no need to infer its shape as well.
        """
        answer = self._type_str(name)
        if self.recorder is not None:
            self.recorder.heard("type_str", name, answer)
        return answer

    def constant(self, name: str) -> Array | None:
        """The elements of a value that is the same at every run, None for any other."""
        answer = self._constant(name)
        if self.recorder is not None:
            self.recorder.heard("elements", name, _elements(answer))
        return answer

    def is_read(self, name: str) -> bool:
        """Whether a value is used by any node, or is an output of a graph; always true of one that is not the source's
        own."""
        answer: bool = self.ask("read", name)
        if self.recorder is not None:
            self.recorder.heard("read", name, answer)
        return answer

    def ask(self, what: str, name: str) -> Any:
        """One of these questions, by name."""
        if what == "read":
            return name in self.session.read_names or not self.defines(name)
        if what == "type":
            return self._type_of(name)
        return self._type_str(name) if what == "type_str" else _elements(self._constant(name))

    # ---- types

    def _type_of(self, name: str) -> TypeProto | None:
        if name in self._types:
            return self._types[name]
        known = self.facts.type_of(name)
        if has_shape(known):
            return known  # which is not kept: facts are at hand
        if name in self._written:
            self._types[name] = known  # a question about itself, through a captured name, ends here
            known = self._infer(name) or known
            if name in self._earlier and not is_complete(known):  # a value keeps its type, whatever makes it now
                self._written[name], made_now = self._earlier[name], self._written[name]
                before = self._infer(name)
                known = before if before is not None and is_vaguer(known, before) else known
                self._written[name] = made_now
        if known is None and (tensor := self._new_constant(name)) is not None:
            known = tensor_type(tensor.data_type, tensor.dims)
        if known is None and self.parent is not None:
            return self.parent.type_of(name)
        self._types[name] = known
        return known

    def _type_str(self, name: str) -> str:
        path = [name]
        while (answer := self._type_str_at_once(path[-1])) is None:
            path.append(self._source_of_type(path[-1]))
        for passed in path:
            if answer:
                self._type_strs[passed] = answer
            if self.recorder is not None and passed != name:
                self.recorder.heard("type_str", passed, answer)
        return answer

    def _type_str_at_once(self, name: str) -> str | None:
        """A type as far as it is known without looking at other values; None if it is that of another value."""
        if name in self._type_strs:
            return self._type_strs[name]
        stated = self.facts.type_of(name)
        if stated is not None and (answer := type_str(stated)):
            return answer
        if name in self._written and name not in self._types:
            if self._source_of_type(name):
                return None
            node, opset = self._written[name]
            signature = signatures.signature_of(node.op_type, opset, opsets.canonical_domain(node.domain))
            formal = signature.formal_output(list(node.output).index(name)) if signature is not None else None
            if formal is not None and len(formal.types) == 1:
                return next(iter(formal.types))
        known = self.type_of(name)
        return type_str(known) if known is not None else ""

    def _source_of_type(self, name: str) -> str:
        """The value whose type a written one has by its schema, "" if there is none."""
        node, opset = self._written[name]
        signature = signatures.signature_of(node.op_type, opset, opsets.canonical_domain(node.domain))
        source = signature.source_of(list(node.output).index(name)) if signature is not None else -1
        return node.input[source] if 0 <= source < len(node.input) else ""

    def _new_constant(self, name: str) -> TensorProto | None:
        return self.constant_home.new_constants.get(name)

    def _infer(self, name: str) -> TypeProto | None:
        """Infers the node that was written for a value; first those that it depends on, which may be a long chain."""
        waiting, seen = [name], {name}
        while waiting:
            node, _ = self._written[waiting[-1]]
            before = [n for n in used_names(node) if n in self._written and n not in self._types and n not in seen]
            if before:
                seen.update(before)
                waiting += before
            elif (ready := waiting.pop()) != name:
                self.type_of(ready)
        return self._infer_node(name)

    def _infer_node(self, name: str) -> TypeProto | None:
        node, opset = self._written[name]
        types: dict[str, TypeProto] = {}
        data: dict[str, TensorProto] = {}
        for used in used_names(node):
            types[used] = self.type_of(used) or TypeProto()
            tensor = self.constant_tensor(used)
            if tensor is not None and tensors.elements(tensor) <= _DATA_ELEMENTS:
                data[used] = self.session.read(tensor)
                if self.recorder is not None:
                    self.recorder.heard("elements", used, _elements(self._constant(used)))
        found = inference.of_node(node, opset, types, data, self.imports)
        self._types.update(found)
        return found.get(name)

    # ---- constants

    def become_constant(self, name: str, array: Array) -> bool:
        """Makes a new constant of a source value in its own graph, if the graph may hold one: not of an output."""
        home = self.constant_home
        if home is not self or any(value.name == name for value in self.graph.output):
            return False
        home._constants[name] = array
        home.patch.constants.append(numpy_helper.from_array(array, name))
        return True

    def keep_types(self, node: NodeProto) -> None:
        """Writes down the types of a node's outputs, because inference cannot find them at the target."""
        for name in node.output:
            if name and name not in self._stated:
                self._stated.add(name)
                known = self.type_of(name)
                if known is None or not type_str(known):
                    known = type_of_elements(self.type_str(name))
                if known is not None:
                    self.patch.value_info.append(ValueInfoProto(name=name, type=nameless(known)))

    def keep_output_types(self) -> None:
        """Spells out the types of a subgraph's outputs: what holds it may need them more than inference finds now."""
        for value in self.graph.output:
            known = self.facts.type_of(value.name)
            if known is not None and is_vaguer(value.type, known):
                self.patch.refined.append(ValueInfoProto(name=value.name, type=nameless(known)))

    @property
    def _stated(self) -> set[str]:
        """The values whose types the graph states itself."""
        if self._said is None:
            graph = self.graph
            self._said = {value.name for value in graph.value_info}
            if isinstance(graph, GraphProto):
                self._said.update(value.name for values in (graph.input, graph.output) for value in values)
        return self._said

    def _constant(self, name: str) -> Array | None:
        if name in self._constants:
            return self._constants[name]
        tensor = self.constant_tensor(name)
        if tensor is not None:
            tensor = self.session.read(tensor)
            known = tensor.data_location != TensorProto.EXTERNAL  # an in-memory model does not say where its data are
            found: Array | None = elements_of(tensor) if known else None
        else:
            producer, imports = self.producer(name), self.imports
            if name in self._written:
                producer, opset = self._written[name]
                imports = {**imports, opsets.canonical_domain(producer.domain): opset}
            if producer is None:
                local = name in self._find_sources()
                return self.parent.constant(name) if self.parent is not None and not local else None
            self._constants[name] = None  # a cycle of names ends here
            self._depth += 1
            deep = self._depth > _DEPTH
            found = None if deep else folding.fold(producer, self._small_constant, self.type_of, imports)
            self._depth -= 1
        self._constants[name] = found
        return found

    def _small_constant(self, name: str) -> Array | None:
        """The elements of a constant as far as they may be folded; a tensor of more is not even read."""
        tensor = self.constant_tensor(name)
        if tensor is not None and tensors.elements(tensor) > folding.FOLDED_ELEMENTS:
            return None
        return self.constant(name)

    def constant_tensor(self, name: str) -> TensorProto | None:
        """The tensor behind a constant that is spelled out in the model, without reading its elements."""
        new = self._new_constant(name)
        if new is not None:
            return new
        source = self._written[name][0] if name in self._written else self._find_sources().get(name)
        if isinstance(source, TensorProto):
            return source
        if source is not None and source.op_type == "Constant":
            return tensors.tensor_of(source)
        if source is None and name not in self._find_sources() and self.parent is not None:
            return self.parent.constant_tensor(name)
        return None

    def defines(self, name: str) -> bool:
        """Whether a name is an input, an initializer or a node's output of this very graph."""
        return name in self._find_sources()

    def looked_around(self, name: str = "") -> None:
        """Takes note that what becomes of the node at hand depends on other nodes too: on who makes a value,
        unless that is one which is being written."""
        if self.recorder is not None and name not in self.recorder.own:
            self.recorder.general = False

    def producer(self, name: str) -> NodeProto | None:
        """The source node of this graph that makes a value."""
        source = self._find_sources().get(name)
        return source if isinstance(source, NodeProto) else None

    def _find_sources(self) -> dict[str, NodeProto | TensorProto | None]:
        """What each name of this graph comes from: a node, an initializer, or (None) an input."""
        if self._sources is None:
            sources: dict[str, NodeProto | TensorProto | None] = {}
            graph = self.graph
            if isinstance(graph, GraphProto):
                sources.update((value.name, None) for value in graph.input)
                overridable = self.session.ir_before >= 4
                for tensor in graph.initializer:
                    if tensor.name not in sources:
                        sources[tensor.name] = tensor
                    elif not overridable:
                        sources[tensor.name] = tensor
                        self.session.took_ir3_initializer = True
            else:
                sources.update((value, None) for value in graph.input)
            for node in graph.node:
                sources.update((output, node) for output in node.output if output)
            self._sources = sources
        return self._sources


def _elements(array: Array | None) -> tuple[str, tuple[int, ...], bytes | tuple[Any, ...]] | None:
    return None if array is None else (array.dtype.str, array.shape, _content(array))


def _content(array: Array) -> bytes | tuple[Any, ...]:
    """The elements as something to compare; the bytes of strings would be their addresses."""
    return tuple(array.ravel()) if array.dtype.hasobject else array.tobytes()
