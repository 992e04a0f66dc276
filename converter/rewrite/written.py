# SPDX-License-Identifier: Apache-2.0
"""Infers what follows from nodes that rewrites wrote: types of the values that they make, and constants among these.

Nothing is inferred before somebody asks, and then just the nodes asked about. A constant may be the outcome of a few
nodes on constants, which are then run once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx import NodeProto, TensorProto, TypeProto

from onnx_convert.analysis import folding, inference
from onnx_convert.model import tensors
from onnx_convert.model.graphs import used_names
from onnx_convert.model.tensors import elements_of
from onnx_convert.spec import opsets, signatures
from onnx_convert.spec.types import has_shape, is_complete, is_vaguer, type_str

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy

    from onnx_convert.spec.opsets import Imports

    Array = numpy.ndarray[Any, Any]
    Entry = tuple[NodeProto, int]  # a node, and the opset of its domain for which it is written

_DEPTH: Final = 64  # constants are made of constants in short chains; a long one is a computation
_LITERAL_ELEMENTS: Final = 1024  # inference is shown the elements of axes and shapes, not those of weights


class WrittenNodes:
    """A node and the opset of its domain that it is written for, by each value that it makes.

    What replays write is not looked into until somebody asks about one of its values, and hardly anybody does. None of
    it is a Constant node.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._batches: list[_Batch] = []
        self._places: dict[str, _Batch] = {}

    def take(self, nodes: Sequence[NodeProto], values: Sequence[str], versions: Mapping[str, int]) -> None:
        """Adds nodes that a replay wrote, given the values that they make, and the opset of each domain."""
        self._batches.append(_Batch(nodes, values, versions))

    def __contains__(self, name: str) -> bool:
        return name in self._entries or name in self._unopened

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            self._open(self._unopened[name])
        return self._entries[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def pop(self, name: str) -> Entry:
        """Returns the entry of a value that is no more, and removes it."""
        entry = self[name]
        del self._entries[name]
        return entry

    def node_not_replayed(self, name: str) -> NodeProto | None:
        """Returns the node that makes a value, None if that is for a replay to say, or if nobody wrote it."""
        entry = self._entries.get(name)
        return entry[0] if entry is not None else None

    def entries(self) -> Mapping[str, Entry]:
        """Returns the entries of all values that no replay made."""
        return self._entries

    @property
    def _unopened(self) -> dict[str, _Batch]:
        """The places of the values that were not asked about."""
        while self._batches:
            batch = self._batches.pop()
            self._places.update(dict.fromkeys(batch.values, batch))
        return self._places

    def _open(self, batch: _Batch) -> None:
        for node in batch.nodes:
            entry = node, batch.versions.get(opsets.canonical_domain(node.domain), 1)
            for name in node.output:
                if self._places.pop(name, None) is not None:
                    self._entries[name] = entry


class _Batch(NamedTuple):
    nodes: Sequence[NodeProto]
    values: Sequence[str]
    versions: Mapping[str, int]


class WrittenValues(ABC):
    """Answers questions about values that written nodes make. The `_known...` methods answer what does not follow from
    these nodes.

    `imports` are the opsets that nodes in their subgraphs are written for; `read` gives a tensor its elements.
    """

    def __init__(self, imports: Imports, read: Callable[[TensorProto], TensorProto]) -> None:
        self.imports = imports
        self._read = read
        self.written = WrittenNodes()
        self.earlier: dict[str, Entry] = {}  # what a value was first written as
        self.types: dict[str, TypeProto | None] = {}  # where not even the rank is known otherwise
        self.type_strs: dict[str, str] = {}
        self.elements: dict[str, Array | None] = {}  # of constants
        self._depth = 0

    @abstractmethod
    def _known_type(self, name: str) -> TypeProto | None:
        """Returns what is known of a value's type anyhow."""

    @abstractmethod
    def _known_type_str(self, name: str) -> str:
        """Returns what is known of a value's type anyhow, as schemas spell it."""

    @abstractmethod
    def _known_constant(self, name: str) -> Array | None:
        """Returns the elements of a value that no written node makes."""

    @abstractmethod
    def _known_foldable(self, name: str) -> Array | None:
        """Returns the elements of a value that no written node makes, if they are few."""

    @abstractmethod
    def _known_literal(self, name: str) -> TensorProto | None:
        """Returns the tensor of a value that no written node makes, if it is spelled out and small."""

    def write(self, node: NodeProto, opset: int) -> None:
        """Takes note of a node; its outputs are inferred when somebody asks."""
        entry = (node, opset)
        for name in node.output:
            if name:
                self.written[name] = entry
                self.types.pop(name, None)

    # ---- types

    def type_of(self, name: str) -> TypeProto | None:
        known = self._known_type(name)
        if has_shape(known):
            return known
        if name in self.types:
            return self.types[name]
        self.types[name] = known  # a question about itself, through a captured name, ends here
        if name not in self.written:
            return known
        made = self._infer(name) or known
        if name in self.earlier and not is_complete(made):  # a value keeps its type, whatever makes it now
            self.written[name], now = self.earlier[name], self.written[name]
            before = self._infer(name)
            made = before if before is not None and is_vaguer(made, before) else made
            self.written[name] = now
        self.types[name] = made
        return made

    def type_as_made(self, name: str) -> TypeProto | None:
        """Returns the type of a value, from the node that makes it where less is known otherwise."""
        known = self.type_of(name)
        if name not in self.written or is_complete(known):
            return known
        made = self._infer(name)
        return made if made is not None and is_vaguer(known, made) else known

    def type_str(self, name: str) -> str:
        path = [name]
        while (answer := self._type_str_at_once(path[-1])) is None:
            path.append(self._source_of_type(path[-1]))
        if answer:
            for passed in path:
                self.type_strs[passed] = answer
        return answer

    def _type_str_at_once(self, name: str) -> str | None:
        """Returns a type as far as it is known without looking at other values; None if it is that of another value."""
        if name in self.type_strs:
            return self.type_strs[name]
        answer = self._known_type_str(name)
        if answer:
            return answer
        if name in self.written and name not in self.types:
            if self._source_of_type(name):
                return None
            node, opset = self.written[name]
            signature = signatures.signature_of(node.op_type, opset, opsets.canonical_domain(node.domain))
            formal = signature.formal_output(list(node.output).index(name)) if signature is not None else None
            if formal is not None and len(formal.types) == 1:
                return next(iter(formal.types))
        known = self.type_of(name)
        return type_str(known) if known is not None else ""

    def _source_of_type(self, name: str) -> str:
        """Returns the value whose type a written one has by its schema, "" if there is none."""
        node, opset = self.written[name]
        signature = signatures.signature_of(node.op_type, opset, opsets.canonical_domain(node.domain))
        source = signature.source_of(list(node.output).index(name)) if signature is not None else -1
        return node.input[source] if 0 <= source < len(node.input) else ""

    def _infer(self, name: str) -> TypeProto | None:
        """Infers the node that was written for a value; first those that it depends on, which may be a long chain."""
        waiting, seen = [name], {name}
        while waiting:
            node, _ = self.written[waiting[-1]]
            before = [n for n in used_names(node) if n in self.written and n not in self.types and n not in seen]
            if before:
                seen.update(before)
                waiting += before
            elif (ready := waiting.pop()) != name:
                self.type_of(ready)
        return self._infer_node(name)

    def _infer_node(self, name: str) -> TypeProto | None:
        node, opset = self.written[name]
        types: dict[str, TypeProto] = {}
        data: dict[str, TensorProto] = {}
        for used in used_names(node):
            types[used] = self.type_of(used) or TypeProto()
            tensor = self.literal(used)
            if tensor is not None:
                data[used] = tensor
        found = inference.of_node(node, opset, types, data, self.imports)
        self.types.update(found)
        return found.get(name)

    # ---- constants

    def constant(self, name: str) -> Array | None:
        if name in self.elements:
            return self.elements[name]
        if name not in self.written:
            return self._known_constant(name)
        node, opset = self.written[name]
        tensor = tensors.tensor_of(node) if node.op_type == "Constant" else None
        if tensor is not None:
            found = self._elements(tensor)
        else:
            found = self._fold(name, node, {**self.imports, opsets.canonical_domain(node.domain): opset})
        self.elements[name] = found
        return found

    def _elements(self, tensor: TensorProto) -> Array | None:
        tensor = self._read(tensor)
        known = tensor.data_location != TensorProto.EXTERNAL  # an in-memory model does not say where its data are
        return elements_of(tensor) if known else None

    def _fold(self, name: str, node: NodeProto, imports: Imports) -> Array | None:
        self.elements[name] = None  # a cycle of names ends here
        self._depth += 1
        deep = self._depth > _DEPTH
        found = None if deep else folding.fold(node, self.foldable, self.type_of, imports)
        self._depth -= 1
        return found

    def foldable(self, name: str) -> Array | None:
        """Returns the elements of a constant that is small enough to be folded."""
        return self.constant(name) if name in self.written or name in self.elements else self._known_foldable(name)

    def literal(self, name: str) -> TensorProto | None:
        node = self.written.node_not_replayed(name)
        if node is not None:
            tensor = tensors.tensor_of(node) if node.op_type == "Constant" else None
            return self._small(tensor) if tensor is not None else None
        return self._known_literal(name) if name not in self.written else None

    def _small(self, tensor: TensorProto) -> TensorProto | None:
        return self._read(tensor) if tensors.elements(tensor) <= _LITERAL_ELEMENTS else None
