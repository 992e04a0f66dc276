# SPDX-License-Identifier: Apache-2.0
"""Has a view inferred until what is found agrees with `corrections`: so that no type derives from a wrong one.

A node of which inference says what is not so is cut: in the view a node of no known operator takes its place, whose
outputs have the types that our own function finds. Where inference is merely silent, the type is stated beside the
node. Then all is inferred anew, since more may follow. Most models need no second round, and those without any of
these operators not even a look.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from onnx_convert.analysis import bindings, corrections
from onnx_convert.analysis.frames import Frame
from onnx_convert.analysis.propagation import dims_of
from onnx_convert.model.graphs import subgraphs
from onnx_convert.spec import opsets
from onnx_convert.spec.types import MADE_UP, has_shape, type_of_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from onnx_convert.analysis.corrections import Entry
    from onnx_convert.analysis.operator_call import Dims
    from onnx_convert.analysis.partition import Found

CUT: Final = "onnx_convert.cut"  # a domain and an operator that nobody knows
_ROUNDS: Final = 8  # each of which settles at least the nodes that depend on none that is not settled


@dataclass
class Settled:
    """The knowledge of a view's values: the inferred main graph; the values that nodes make which were cut; those of
    the main graph of which the model states what is not so; and what onnx's inference says by itself, None where that
    is the same, or nothing."""

    graph: GraphProto
    cut: set[str] = field(default_factory=set)
    false: set[str] = field(default_factory=set)
    raw: GraphProto | None = None


class Concern(IntEnum):
    """The matters to settle in a model: nothing, ranks that inference may not find, or types that may be wrong."""

    NOTHING = 0
    RANKS = 1
    TYPES = 2


def concern(operators: Collection[tuple[str, str]], *imports: Mapping[str, int]) -> Concern:
    """Returns what there is to settle in a model of these operators (domain and name) at these opsets. Of an operator
    that onnx does not know anything may have to be."""
    found = Concern.NOTHING
    for versions in imports:
        for domain, operator in operators:
            home = opsets.canonical_domain(domain)
            entry = corrections.entry_of(operator, home, versions.get(opsets.AI_ONNX, 0))
            if not opsets.is_known(home) or (entry is not None and entry.wrong):
                return Concern.TYPES
            if entry is not None:
                found = Concern.RANKS
    return found


def is_settled(found: Found, what: Concern, *, states: bool) -> bool:
    """Returns whether inference needs no help with what it found of a long view in chunks. `states` says that the model
    states types of inner values, which may be false."""
    if what is Concern.RANKS:
        return not states and found.is_ranked
    return what is Concern.NOTHING


def settle(model: ModelProto, found: GraphProto | None, infer: Callable[[bytes], GraphProto]) -> Settled:
    """Returns what is known of a view, which is spent. `found` is what inference says of it as it is, None if it fails;
    `infer` is asked for the rest, and what it raises is passed on."""
    desk, raw = _Desk(model, found), found
    if found is None:
        desk.cut_all()
        found = infer(model.SerializeToString())
    for _ in range(_ROUNDS):
        if not desk.revise(found):
            break
        found = infer(model.SerializeToString())
    else:
        if desk.give_up(found):
            found = infer(model.SerializeToString())
    return Settled(found, desk.cut_values, desk.false, raw if raw is not found else None)


@dataclass
class _Suspect:
    """A node that is looked at, and its place in the graph."""

    frame: Frame
    index: int
    node: NodeProto  # as it was
    entry: Entry
    cut: bool = False
    done: bool = False  # nothing more will be found
    said: dict[str, bytes] = field(default_factory=dict)  # what we stated of its outputs
    claimed: dict[str, Dims] = field(default_factory=dict)  # what the model states of them


class _Desk:
    """The nodes of a view that have to be looked at."""

    def __init__(self, model: ModelProto, found: GraphProto | None) -> None:
        self.model = model
        self.found = found
        self.frames: list[Frame] = []
        self.suspects: list[_Suspect] = []
        self.false: set[str] = set()
        self.cut_values: set[str] = set()
        self.imports = {opsets.canonical_domain(entry.domain): entry.version for entry in model.opset_import}
        self.is_foreign = False  # whether any node is of an operator that onnx does not know
        opset = self.imports.get(opsets.AI_ONNX, 0)
        self._walk(model.graph, opset, None, (0, 0, 0))
        for function in model.functions:
            self._cut_in_function(function.node, function)

    def _walk(self, graph: GraphProto, opset: int, parent: Frame | None, place: tuple[int, int, int]) -> Frame:
        frame = Frame(graph, opset, parent, place)
        self.frames.append(frame)
        if self.found is not None:
            frame.look_at(self.found)
        entries: dict[tuple[str, str], tuple[Entry | None, bool]] = {}
        for index, node in enumerate(graph.node):
            operator = node.domain, node.op_type
            if operator not in entries:
                domain = opsets.canonical_domain(node.domain)
                entries[operator] = (
                    corrections.entry_of(node.op_type, domain, opset),
                    opsets.may_hold_graphs(node.op_type, domain),
                )
                if not opsets.is_known(domain):
                    self.is_foreign = frame.is_foreign = True
            entry, holds = entries[operator]
            if self.found is not None:
                entry = corrections.entry_for(entry, node, frame.type_of)
            if entry is not None and (entry.may_be_wrong(node) if entry.wrong else self._is_vague(frame, node)):
                self.suspects.append(_Suspect(frame, index, node, entry))
            if holds:
                unknown = not opsets.is_known(opsets.canonical_domain(node.domain))
                for attribute, position, inner in subgraphs(node):
                    child = self._walk(inner, opset, frame, (index, attribute, position))
                    child.is_alone = unknown
        return frame

    def _is_vague(self, frame: Frame, node: NodeProto) -> bool:
        """Returns whether more might be said of a node's outputs than was found, or what is stated of them might be
        false."""
        if self.found is None:
            return True
        return any(
            name and (frame.stated(name) is not None or not has_shape(frame.type_of(name))) for name in node.output
        )

    def _cut_in_function(self, nodes: Iterable[NodeProto], function: object) -> None:
        """Cuts what may be wrong in a function, of which each call has its own types: there it is unknown."""
        imports = {opsets.canonical_domain(entry.domain): entry.version for entry in function.opset_import}  # type: ignore[attr-defined]
        before = len(self.cut_values)
        for node in nodes:
            domain = opsets.canonical_domain(node.domain)
            entry = corrections.entry_of(node.op_type, domain, imports.get(domain, 0))
            doubted = entry is not None and (entry.wrong or (entry.fails and self.found is None))
            if entry is not None and doubted and entry.may_be_wrong(node):
                self.cut_values.update(node.output)
                _blank(node)
            for _, _, inner in subgraphs(node):
                self._cut_in_function(inner.node, function)
        if len(self.cut_values) > before:
            _import_cut(function.opset_import)  # type: ignore[attr-defined]

    def cut_all(self) -> None:
        """Cuts all nodes of which inference may say what is not so, or may fail; what the model states of them is
        kept."""
        for suspect in self.suspects:
            if suspect.entry.wrong or (suspect.entry.fails and suspect.entry.may_be_wrong(suspect.node)):
                self._cut(suspect)
            if suspect.entry.elements:
                dtype = next(attribute.i for attribute in suspect.node.attribute if attribute.name == "to")
                self._state(suspect, suspect.node.output[0], TypeProto(tensor_type=TypeProto.Tensor(elem_type=dtype)))

    def give_up(self, found: GraphProto) -> bool:
        """Cuts what is still not settled, without saying anything of its outputs; whether there was anything."""
        for frame in self.frames:
            frame.look_at(found)
        changed = False
        for suspect in self.suspects:
            if not suspect.entry.wrong or not self._revise(suspect, dry=True):
                continue
            changed = True
            self._cut(suspect)
            for name in suspect.node.output:
                if name:
                    kind = suspect.frame.type_of(name) or TypeProto()
                    self._state(suspect, name, corrections.with_dims(kind, None))
        return changed

    def revise(self, found: GraphProto) -> bool:
        """Goes through all nodes with what inference found of their inputs; whether anything is stated that it did
        not know."""
        for frame in self.frames:
            frame.look_at(found)
        news = [self._revise(suspect) for suspect in self.suspects]
        if self.is_foreign:
            news += [self._look_aside(frame) for frame in self.frames]
        return any(news)

    def _look_aside(self, frame: Frame) -> bool:
        """States what inference does not look for: dtypes behind operators that it does not know, and the types in
        the graphs that those hold; whether anything is new."""
        changed = False
        if frame.is_alone:
            for value in frame.alone(self.model):
                changed |= frame.learn(value.name, value.type)
        if frame.is_foreign:
            for name, kind in bindings.dtypes(frame.graph, self.imports, frame.type_of).items():
                known = type_of_elements(kind)
                changed |= known is not None and frame.learn(name, known)
        return changed

    def _revise(self, suspect: _Suspect, *, dry: bool = False) -> bool:
        frame, node, entry = suspect.frame, suspect.node, suspect.entry
        kinds = [frame.type_of(name) if name else None for name in node.output]
        if suspect.done:
            return False
        call = corrections.call_of(node, frame.opset, frame.type_of, frame.elements.of)
        shapes = corrections.shapes_of(entry, call)
        if entry.elements and not suspect.cut:
            if not _may_be_a_shape(frame.type_of(node.input[0])):
                return False
            if not dry:
                self._cut(suspect)
        elif entry.wrong and not suspect.cut:
            used = {size for name in node.input if name for size in dims_of(frame.type_of(name)) or ()}
            for index, (kind, true) in enumerate(zip(kinds, shapes, strict=True)):
                dims = dims_of(kind)
                dtype = corrections.dtype_of(node, index, frame.opset, frame.type_of)
                if kind is not None and dtype and kind.tensor_type.elem_type not in (0, dtype):
                    if dry:
                        return True
                    self._cut(suspect)
                    break
                own = {size for size in dims or () if isinstance(size, str) and size.startswith(MADE_UP)} - used
                if kind is not None and corrections.claims_more(dims, true, own):
                    if dry:
                        return True
                    self._cut(suspect)
                    break
        changed = False
        for index, (name, kind, true) in enumerate(zip(node.output, kinds, shapes, strict=True)):
            if name and self._tell(suspect, index, kind, true, dry=dry):
                changed = True
        suspect.done = not entry.wrong and None not in shapes  # its rank is all that matters
        return changed

    def _tell(self, suspect: _Suspect, index: int, kind: TypeProto | None, true: Dims, *, dry: bool) -> bool:
        """States what is known of an output, unless that is no more than what was found; whether it does."""
        frame, name = suspect.frame, suspect.node.output[index]
        found = kind.tensor_type.elem_type if kind is not None else 0
        bound = corrections.dtype_of(suspect.node, index, frame.opset, frame.type_of)
        dtype = (bound or found) if suspect.cut else (found or bound)
        if not dtype or (kind is not None and not kind.HasField("tensor_type")):
            return False
        dims = dims_of(kind)
        if name not in suspect.claimed:
            suspect.claimed[name] = dims_of(frame.stated(name))
        claimed = suspect.claimed[name]
        if _contradicts(claimed, true):
            if frame.parent is None:
                self.false.add(name)
            claimed = dims = None
        if suspect.cut:
            wanted = corrections.combined(_without_symbols(claimed, true), true)
        else:
            wanted = corrections.combined(true, dims)
        made = corrections.with_dims(TypeProto(tensor_type=TypeProto.Tensor(elem_type=dtype)), wanted)
        data = made.SerializeToString()
        if suspect.said.get(name) == data or (not suspect.cut and not _says_more(wanted, dims_of(kind))):
            return False
        if not dry:
            self._state(suspect, name, made)
        return True

    def _state(self, suspect: _Suspect, name: str, kind: TypeProto) -> None:
        suspect.said[name] = kind.SerializeToString()
        if kind.tensor_type.elem_type:
            suspect.frame.state(name, kind)

    def _cut(self, suspect: _Suspect) -> None:
        if suspect.cut:
            return
        suspect.cut = True
        self.cut_values.update(suspect.node.output)
        original = NodeProto()
        original.CopyFrom(suspect.node)
        held = suspect.frame.graph.node[suspect.index]
        suspect.node = suspect.frame.originals[suspect.index] = original
        _blank(held)
        _import_cut(self.model.opset_import)


def _blank(node: NodeProto) -> None:
    """Makes a node one of which inference says nothing."""
    node.op_type, node.domain = "Cut", CUT
    del node.attribute[:]


def _import_cut(imports: object) -> None:
    if all(entry.domain != CUT for entry in imports):  # type: ignore[attr-defined]
        imports.add(domain=CUT, version=1)  # type: ignore[attr-defined]


def _may_be_a_shape(kind: TypeProto | None) -> bool:
    """Returns whether inference may know elements of a value of that type."""
    dims = dims_of(kind)
    integers = kind is None or kind.tensor_type.elem_type in (0, TensorProto.INT32, TensorProto.INT64)
    return integers and (dims is None or len(dims) < 2)


def _contradicts(stated: Dims, true: Dims) -> bool:
    if stated is None or true is None:
        return False
    if len(stated) != len(true):
        return True
    return any(isinstance(s, int) and isinstance(t, int) and s != t for s, t in zip(stated, true, strict=True))


def _without_symbols(claimed: Dims, true: Dims) -> Dims:
    """Returns what the model states of a node that was cut: symbols may come from the very inference that is wrong."""
    if claimed is None or true is None:
        return claimed
    return [size if isinstance(size, int) else None for size in claimed]


def _says_more(wanted: Dims, dims: Dims) -> bool:
    if wanted is None:
        return False
    if dims is None or len(dims) != len(wanted):
        return True
    return any(
        w != d and (d is None or isinstance(w, int) or (d.startswith(MADE_UP) and w is not None))
        for w, d in zip(wanted, dims, strict=True)
        if not isinstance(d, int)
    )
