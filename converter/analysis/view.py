# SPDX-License-Identifier: Apache-2.0
"""A throw-away copy of a model for inference and checks, in which no weight takes part.

Inference serialises what it is given, the checker rejects external tensors whose file is absent, and strict inference
fails on sparse ones. So in a view each large initializer, dense or sparse, is a typed input of the main graph; in
subgraphs and Constant nodes an Identity of such an input takes its place, in function bodies a ConstantOfShape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from onnx_convert.analysis.onnx_inference import HEAVY, LARGE
from onnx_convert.model import tensor_validation, tensors, trailing
from onnx_convert.model.functions import function_key
from onnx_convert.model.graphs import subgraphs
from onnx_convert.model.node_list import pack
from onnx_convert.model.patch import stamp
from onnx_convert.model.wire import BYTES, prefix
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from onnx import FunctionProto

    from onnx_convert.model.node_list import Chunk
    from onnx_convert.model.patch import GraphPatch, ModelPatch
    from onnx_convert.model.source import SourceModel
    from onnx_convert.model.validation import ModelIndex

    Body = GraphProto | FunctionProto

SMALL: Final = 256  # tensors of fewer elements stay: axes, shapes and scales tell inference something
_MANY: Final = 1 << 22  # elements of a weight, which seldom becomes a list
_ENDS: Final = 2**31 - 1  # this number and larger ones are ends of slices
_REALS: Final = frozenset((TensorProto.FLOAT, TensorProto.DOUBLE))
_MAKERS: Final = frozenset(
    (opsets.AI_ONNX, operator)
    for operator in (
        "BlackmanWindow CenterCropPad Col2Im ConstantOfShape Expand HammingWindow HannWindow MaxUnpool MelWeightMatrix"
        " OneHot Pad Range Resize Tile Upsample"
    ).split()
)
"""Operators that make as many elements as numbers among their inputs say."""
_WINDOWS: Final = frozenset((opsets.AI_ONNX, f"{name}Window") for name in ("Blackman", "Hamming", "Hann"))
_FOREVER: Final = 2**63 - 2**33  # numbers from here on are ends of slices, even beside operators that make elements
_DRAWN: Final = frozenset((opsets.AI_ONNX, operator) for operator in ("Multinomial", "RandomNormal", "RandomUniform"))
"""Operators that make as many elements as an attribute says."""
LIFTED: Final = "onnx_convert.analysis.view.{}"
_GRAPH: Final = ModelProto.DESCRIPTOR.fields_by_name["graph"].number << 3 | BYTES


class View(NamedTuple):
    """A view of a whole model. If all its nodes are simple (see `opsets.is_simple`), they stand beside the message that
    holds the rest, as serialised graphs, one for each chunk."""

    head: ModelProto
    nodes: Sequence[bytes] = ()
    chunks: Sequence[Chunk] = ()

    def serialised(self) -> bytes:
        """Returns all of it as one message."""
        return with_nodes(self.head, *self.nodes)


class _Builder:
    def __init__(self, source: SourceModel) -> None:
        operators = source.index.operators
        self.read = source.elements
        self.lifted: list[ValueInfoProto] = []
        self.is_heavy = source.index.largest >= LARGE or not _DRAWN.isdisjoint(operators)  # see `onnx_inference.HEAVY`
        self.makes = not _MAKERS.isdisjoint(operators)  # whether any operator makes as many elements as a number says
        self.most = _FOREVER if _WINDOWS.isdisjoint(operators) else 2**63  # the largest number that may say so
        self.forgets = source.index.has_negative_sizes  # whether a stated type may have a dimension below 0
        self.overridable = False  # whether an initializer that is also an input is only a default (IR version 4 and up)
        self.lifts = True  # whether the graphs at hand can see the inputs of the main graph; a function cannot

    def lift(self, dtype: int, dims: Iterable[int]) -> str:
        """Returns a new input of the main graph in place of a large tensor."""
        name = LIFTED.format(len(self.lifted))
        self.lifted.append(typed(name, dtype, dims))
        return name

    def graph(self, target: GraphProto, source: GraphProto, patch: GraphPatch | None, *, main: bool) -> None:
        """Copies a graph, the main one without its nodes, which may stand beside it."""
        target.name = source.name
        gone = patch.dropped_inputs if patch else set()
        target.input.extend(value for value in source.input if value.name not in gone)
        refined = {value.name: value for value in patch.refined} if patch else {}
        target.output.extend(refined.get(value.name, value) for value in source.output)
        self._initializers(target, source, patch, main=main)
        stale_value_info = patch.stale_value_info if patch else set()
        target.value_info.extend(value for value in source.value_info if value.name not in stale_value_info)
        if patch:
            target.input.extend(patch.inputs)
            target.value_info.extend(patch.value_info)
        if patch and patch.dropped:
            for index in reversed(range(len(target.input))):
                if target.input[index].name in patch.dropped:
                    del target.input[index]
        if self.forgets:
            for values in (target.input, target.output, target.value_info):
                for value in values:
                    tensor_validation.forget_negatives(value.type)
        if not main:
            self.nodes(target, source, patch)

    def _initializers(self, target: GraphProto, source: GraphProto, patch: GraphPatch | None, *, main: bool) -> None:
        """Adds those that are small, and what stands in for the others."""
        dropped = patch.dropped if patch else set()
        gone = patch.dropped_inputs if patch else set()
        inputs = (*source.input, *patch.inputs) if patch else source.input
        replaceable = {value.name for value in source.input} - gone if main and self.overridable else set()
        given = {value.name for value in inputs} - gone if main else set()
        for tensor in (*source.initializer, *patch.constants) if patch else source.initializer:
            if tensor.name in dropped or tensor.name in replaceable:
                continue  # what a caller may replace tells nothing
            small = self._small(tensor)
            if small is not None:
                target.initializer.append(small)
            elif tensor.name not in given:
                self._initializer(target, tensor.name, tensor.data_type, tensor.dims, main=main)
        for sparse in source.sparse_initializer:
            if sparse.values.name not in given:
                self._initializer(target, sparse.values.name, sparse.values.data_type, sparse.dims, main=main)

    def _small(self, tensor: TensorProto) -> TensorProto | None:
        """Returns the tensor with its elements if they are few, None if it has to be stood in for."""
        count = tensors.elements(tensor)
        if count >= SMALL:
            self.is_heavy |= count >= _MANY
            return None
        if tensor.data_type == TensorProto.STRING and tensor.data_location == TensorProto.EXTERNAL:
            return None  # a few texts may be long, and inference reads none
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor = self.read(tensor)
        if tensor.data_location == TensorProto.EXTERNAL:
            return None
        if not self.is_heavy:
            self.is_heavy = self._may_be_sizes(tensor)
        return tensor

    def _may_be_sizes(self, tensor: TensorProto) -> bool:
        """Returns whether a small tensor may say that there are many elements somewhere."""
        if not self.makes:
            of_sizes = tensor.data_type == TensorProto.INT64
            return of_sizes and max(map(int, tensors.elements_of(tensor).ravel()), default=0) in range(LARGE, _ENDS)
        if tensor.data_type in _REALS:  # a bound or a step of a Range
            number = abs(float(tensors.elements_of(tensor).ravel()[0])) if tensors.elements(tensor) == 1 else 1
            return number >= LARGE or 0 < number < 1 / LARGE
        if tensor.data_type not in (TensorProto.INT64, TensorProto.INT32):
            return False
        return any(LARGE <= abs(int(number)) <= self.most for number in tensors.elements_of(tensor).ravel())

    def _initializer(self, target: GraphProto, name: str, dtype: int, dims: Iterable[int], *, main: bool) -> None:
        if main:
            target.input.append(typed(name, dtype, dims))
        else:
            target.node.extend(self._stand_in(name, dtype, dims))

    def _stand_in(self, name: str, dtype: int, dims: Iterable[int]) -> list[NodeProto]:
        """Returns nodes in place of a large tensor; the last one makes the value."""
        if self.lifts:
            return [helper.make_node("Identity", [self.lift(dtype, dims)], [name])]
        return _filled(name, dtype, list(dims))

    def nodes(self, target: Body, source: Body, patch: GraphPatch | None) -> None:
        """Copies nodes in runs; only those with subgraphs or a large constant are looked into.

        Each node of the source keeps its place, counted from the end: what it takes more stands in front of all.
        """
        children = {id(child.graph): child for child in patch.children} if patch else {}
        run: list[NodeProto] = []
        front: list[NodeProto] = []
        for node in patch.nodes if patch else source.node:
            domain = opsets.canonical_domain(node.domain)
            if node.op_type == "Constant" and (tensor := tensors.tensor_of(node)) is not None:
                if self._small(tensor) is tensor:
                    run.append(_renamed(node))
                else:
                    *before, stand_in = self._constant(node, tensor)
                    front += before
                    run.append(stand_in)
            elif opsets.may_hold_graphs(node.op_type, domain) and any(subgraphs(node)):
                target.node.extend(run)
                run = []
                self._holder(target.node.add(), node, children)
            else:
                run.append(_renamed(node))
        target.node.extend(run)
        if front:
            behind = list(target.node)
            del target.node[:]
            target.node.extend([*front, *behind])

    def _constant(self, node: NodeProto, tensor: TensorProto) -> list[NodeProto]:
        small = self._small(tensor)
        if small is not None:
            return [helper.make_node("Constant", [], list(node.output), node.name, value=small)]
        return self._stand_in(node.output[0], tensor.data_type, tensor.dims)

    def _holder(self, target: NodeProto, source: NodeProto, children: Mapping[int, GraphPatch]) -> None:
        target.op_type, target.domain, target.name = source.op_type, opsets.canonical_domain(source.domain), source.name
        target.input.extend(source.input)
        target.output.extend(source.output)
        for attribute in source.attribute:
            if attribute.type not in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
                target.attribute.append(attribute)
                continue
            new = target.attribute.add(name=attribute.name, type=attribute.type)
            if attribute.type == AttributeProto.GRAPH:
                self.graph(new.g, attribute.g, children.get(id(attribute.g)), main=False)
            for graph in attribute.graphs:
                self.graph(new.graphs.add(), graph, children.get(id(graph)), main=False)

    def function(self, target: FunctionProto, source: FunctionProto, patch: GraphPatch | None) -> None:
        target.name, target.domain = source.name, source.domain
        if getattr(source, "overload", ""):
            target.overload = source.overload
        target.input.extend(source.input)
        target.output.extend(source.output)
        target.attribute.extend(source.attribute)
        target.attribute_proto.extend(source.attribute_proto)
        _import(target, source)
        self.lifts = False
        self.nodes(target, source, patch)
        self.lifts = True


def _renamed(node: NodeProto) -> NodeProto:
    """Returns the node, in the default domain by its short name, the only one that inference and checker know, and
    without what is left out at its end, which some inference counts."""
    ended = trailing.without(node)
    if node.domain != "ai.onnx":
        return ended
    copy = NodeProto()
    copy.CopyFrom(ended)
    copy.domain = ""
    return copy


def _import(view: ModelProto | FunctionProto, source: ModelProto | FunctionProto) -> None:
    for entry in source.opset_import:
        view.opset_import.add(domain=opsets.canonical_domain(entry.domain), version=entry.version)


_FRAGILE: Final = frozenset(
    (
        *(("", operator) for operator in ("EyeLike", "RegexFullMatch")),
        *(("ai.onnx.ml", operator) for operator in ("DictVectorizer", "LabelEncoder", "TreeEnsemble")),
    )
)
"""Operators whose inference dies where an input has no type, not even an empty one."""


_COUNTED: Final = frozenset((("", "SplitToSequence"), ("", "BatchNormalization"), ("", "Slice")))
"""Operators of which onnx's inference takes an empty name at the end for a part that is there."""


def _may_stay(index: ModelIndex) -> bool:
    """Returns whether inference may be given the nodes of a model as they are."""
    return _FRAGILE.isdisjoint(index.operators) and _COUNTED.isdisjoint(index.kinds.trailing())


def shield(graph: GraphProto, *, nested: bool = False, typed: bool = True) -> set[str]:
    """States an empty type of each input of such an operator that has none: in the graph that makes it, for within a
    nested one it would hide what is known of a captured value. `typed` says whether an initializer tells its type, as
    from IR version 4 on. Returns the inputs that a nested graph captures."""
    values = [value for held in (graph.input, graph.output, graph.value_info) for value in held]
    constants = {tensor.name for tensor in graph.initializer}
    known = {value.name for value in values} | (constants if typed else set())
    wanted: set[str] = set()
    for node in graph.node:
        for _, _, inner in subgraphs(node):
            wanted |= shield(inner, nested=True, typed=typed)
        if (opsets.canonical_domain(node.domain), node.op_type) in _FRAGILE:
            wanted.update(node.input)
    for value in values if wanted else ():
        if value.name in wanted and not value.HasField("type"):
            value.type.SetInParent()
    missing = wanted - known
    made = constants.union(*(node.output for node in graph.node)) if nested and missing else missing
    own = missing & made
    graph.value_info.extend(ValueInfoProto(name=name, type=TypeProto()) for name in sorted(own))
    return missing - own


def typed(name: str, dtype: int, dims: Iterable[int]) -> ValueInfoProto:
    """Returns a value of a known tensor type."""
    return helper.make_tensor_value_info(name, dtype, list(dims))


def _filled(output: str, dtype: int, dims: list[int]) -> list[NodeProto]:
    """Returns nodes that make a tensor of zeros: 0 bytes of payload, and inference knows the type."""
    shape = helper.make_tensor("", TensorProto.INT64, [len(dims)], dims)
    names = [f"{output}.view.shape", f"{output}.view.zeros"]
    return [
        helper.make_node("Constant", [], names[:1], value=shape),
        helper.make_node("ConstantOfShape", names[:1], names[1:]),
        helper.make_node("Cast", names[1:], [output], to=dtype),
    ]


def with_nodes(head: ModelProto, *nodes: bytes) -> bytes:
    """Returns a serialised model with more nodes than its message has: a graph that is given in several parts is
    one."""
    parts = [head.SerializeToString()]
    for part in nodes:
        parts += (prefix(_GRAPH, len(part)), part)
    return b"".join(parts)


def of_source(source: SourceModel) -> View:
    """Returns the view of a model as it is."""
    index, graph = source.index, source.proto.graph
    simple = index.simple and _may_stay(index)
    head = _head(source, None, simple=simple)
    return View(head, pack(graph, index.chunks), index.chunks) if simple else View(head)


def of_result(source: SourceModel, patch: ModelPatch) -> View:
    """Returns the view of a model as it will be after a patch."""
    simple = patch.simple and _may_stay(source.index)
    head = _head(source, patch, simple=simple)
    nodes = patch.graph.nodes
    return View(head, nodes.packed(), nodes.chunks) if simple else View(head)


def _head(source: SourceModel, patch: ModelPatch | None, *, simple: bool) -> ModelProto:
    """Returns a view's message, of a main graph without nodes if these are simple."""
    model = source.proto
    builder = _Builder(source)
    builder.overridable = model.ir_version > 3
    view = ModelProto(ir_version=patch.ir_version if patch else model.ir_version or 3)
    _import(view, model)
    graph = patch.graph if patch else None
    builder.graph(view.graph, model.graph, graph, main=True)
    if not simple:
        builder.nodes(view.graph, model.graph, graph)
    view.graph.input.extend(builder.lifted)
    if not simple:
        shield(view.graph, typed=view.ir_version > opsets.INPUTS_ONLY)
    patches = {id(item.graph): item for item in patch.functions} if patch else {}
    for function in model.functions:
        if patch and function_key(function) in patch.removed_functions:
            continue
        target = view.functions.add()
        body = patches.get(id(function))
        builder.function(target, function, body)
        if patch:
            stamp(target, patch.opsets, body)
    if patch:
        stamp(view, patch.opsets, patch.graph)
    if builder.is_heavy:
        view.domain = HEAVY
    if not view.opset_import:
        view.opset_import.add(domain="", version=1)  # IR versions 1 and 2 have no imports
    return view


def function_body(source: SourceModel, function: FunctionProto, inputs: Mapping[str, TypeProto]) -> ModelProto:
    """Returns the body of a function as the main graph of a view, given what is known of its inputs."""
    model = source.proto
    builder = _Builder(source)
    view = ModelProto(ir_version=max(model.ir_version, 8))
    _import(view, function)
    graph = view.graph
    graph.name = function.name
    for name in function.input:
        graph.input.add(name=name, type=inputs.get(name))
    graph.output.extend(ValueInfoProto(name=name) for name in function.output)
    builder.lifts = False
    builder.nodes(graph, function, None)
    for other in model.functions:
        if other is not function:
            builder.function(view.functions.add(), other, None)
    if builder.is_heavy:
        view.domain = HEAVY
    shield(view.graph)
    return view
