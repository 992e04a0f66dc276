# SPDX-License-Identifier: Apache-2.0
"""The same model in the shapes in which exporters write it: each variant is a function that takes a case and returns
another one with the same outputs (perhaps twice), or None where it does not apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from oracle import all_nodes, nested, opset_of, scopes

SMALL = 8  # elements: beyond that a constant is no axes, shape or the like
LOCAL = "local"


@dataclass(frozen=True)
class Case:
    """A model with values for its inputs, and the lowest opset that it will see."""

    model: ModelProto
    feeds: Mapping[str, np.ndarray]
    lowest: int

    def with_model(self, model: ModelProto, **feeds: np.ndarray) -> Case:
        """Returns the case with another model, and values for its further inputs."""
        return Case(model, {**self.feeds, **feeds}, self.lowest)


Message = TypeVar("Message", ModelProto, NodeProto, ValueInfoProto)
Variant = Callable[[Case], Case | None]


def plain(case: Case) -> Case:
    """As the row says."""
    return case


# ---- what is known of shapes


def dims(case: Case) -> Case | None:
    """Ranks are known, sizes are not."""
    model = _copy(case.model)
    _forget_sizes(model)
    return case.with_model(model)


def _forget_sizes(model: ModelProto) -> None:
    del model.graph.value_info[:]
    for value in (*_free_inputs(model), *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()


def ranks(case: Case) -> Case | None:
    """Only dtypes are known: the checker wants a rank for every input, so a Reshape at run time takes it away."""
    if case.lowest < 5:
        return None  # Reshape has a constant shape there
    model, shapes = _copy(case.model), {}
    _forget_sizes(model)
    before = []
    body = _renamed(helper.make_graph(model.graph.node, "g", [], model.graph.output), "inner_")
    for value in _free_inputs(model):
        shape = f"shape_of_{value.name}"
        shapes[shape] = np.array(case.feeds[value.name].shape, dtype=np.int64)
        model.graph.input.append(helper.make_tensor_value_info(shape, TensorProto.INT64, [None]))
        before.append(helper.make_node("Reshape", [value.name, shape], [f"unranked_{value.name}"]))
        for node in body.node:
            node.input[:] = [f"unranked_{name}" if name == value.name else name for name in node.input]
    after = [helper.make_node("Identity", [f"inner_{v.name}"], [v.name]) for v in model.graph.output]
    _replace_nodes(model.graph, [*before, *body.node, *after])
    return case.with_model(model, **shapes)


def _free_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Returns the inputs that no initializer fills."""
    filled = {t.name for t in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in filled]


# ---- how a constant is written


def constant_value(case: Case) -> Case | None:
    """Small integer constants are Constant nodes with a tensor."""
    return _with_constants(case, 9, lambda t: [helper.make_node("Constant", [], [t.name], value=t)])


def constant_ints(case: Case) -> Case | None:
    """Small integer constants are Constant nodes with `value_int` or `value_ints`."""

    def write(tensor: TensorProto) -> list[NodeProto]:
        values = numpy_helper.to_array(tensor).tolist()
        attribute = {"value_ints": values} if tensor.dims else {"value_int": values}
        if tensor.dims and not values:  # an empty list has to be told its type
            node = helper.make_node("Constant", [], [tensor.name])
            node.attribute.append(helper.make_attribute("value_ints", [], attr_type=onnx.AttributeProto.INTS))
            return [node]
        return [helper.make_node("Constant", [], [tensor.name], **attribute)]

    return _with_constants(case, 12, write, {TensorProto.INT64}, most=1)


def computed(case: Case) -> Case | None:
    """Small integer constants are computed from other constants: a Concat where they have parts, else a sum."""

    def write(tensor: TensorProto) -> list[NodeProto]:
        value = numpy_helper.to_array(tensor)
        if value.ndim == 1 and value.size > 1:
            parts, combine = [value[:1], value[1:]], helper.make_node("Concat", [], [tensor.name], axis=0)
        else:
            parts, combine = [value - 1, np.ones_like(value)], helper.make_node("Add", [], [tensor.name])
        nodes = []
        for number, part in enumerate(parts):
            name = f"{tensor.name}_part_{number}"
            combine.input.append(name)
            nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(part, name)))
        return [*nodes, combine]

    return _with_constants(case, 9, write, {TensorProto.INT64, TensorProto.INT32})


def _with_constants(
    case: Case,
    least: int,
    write: Callable[[TensorProto], list[NodeProto]],
    dtypes: set[int] | None = None,
    most: int = 64,  # dimensions
) -> Case | None:
    if opset_of(case.model) < least:
        return None
    model = _copy(case.model)
    chosen = [t for t in model.graph.initializer if _small_integer(t) and len(t.dims) <= most]
    chosen = [t for t in chosen if not dtypes or t.data_type in dtypes]
    if not chosen:
        return None
    for tensor in chosen:
        model.graph.initializer.remove(tensor)
    written = [node for tensor in chosen for node in write(tensor)]
    _replace_nodes(model.graph, [*written, *model.graph.node])
    return case.with_model(model)


def _small_integer(tensor: TensorProto) -> bool:
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return dtype.kind in "iu" and int(np.prod(tensor.dims, dtype=np.int64)) <= SMALL


# ---- where a node stands


def branch(case: Case) -> Case | None:
    """All nodes and initializers stand in the branches of an If, which capture the inputs."""
    if case.model.ir_version < 4 and case.model.graph.initializer:
        return None  # an initializer has to be a graph input there, and a branch has none
    return _in_branches(case, capture_constants=False)


def captured(case: Case) -> Case | None:
    """All nodes stand in the branches of an If, which capture the inputs and the initializers."""
    return _in_branches(case, capture_constants=True) if case.model.graph.initializer else None


def _in_branches(case: Case, *, capture_constants: bool) -> Case | None:
    model = _copy(case.model)
    graph = model.graph
    types = onnx.defs.get_schema("If", opset_of(model), "").outputs[0].types
    if not all(_spelled(v.type.tensor_type.elem_type) in types for v in graph.output):
        return None
    outputs = [v.name for v in graph.output]
    node = helper.make_node("If", ["variant_cond"], outputs, name="variant_if")
    inner = [] if capture_constants else list(graph.initializer)
    for name in ("then_branch", "else_branch"):
        body = helper.make_graph(graph.node, name, [], graph.output, inner)
        node.attribute.append(helper.make_attribute(name, _renamed(body, f"{name}_")))
    if not capture_constants:
        del graph.initializer[:]
    del graph.value_info[:]
    _replace_nodes(graph, [node])
    graph.input.append(helper.make_tensor_value_info("variant_cond", TensorProto.BOOL, []))
    return case.with_model(model, variant_cond=np.array(True))


def _renamed(graph: GraphProto, prefix: str) -> GraphProto:
    """Gives every name that a graph and its subgraphs define a prefix."""
    scopes = [scope for scope in nested(graph) if isinstance(scope, GraphProto)]
    defined = {name for scope in scopes for node in scope.node for name in node.output if name}
    defined |= {value.name for scope in scopes for value in (*scope.initializer, *scope.input)}
    for scope in scopes:
        for value in (*scope.initializer, *scope.input, *scope.output, *scope.value_info):
            value.name = prefix + value.name if value.name in defined else value.name
        for node in scope.node:
            for names in (node.input, node.output):
                names[:] = [prefix + name if name in defined else name for name in names]
            node.name = node.name and prefix + node.name
    return graph


def function(case: Case) -> Case | None:
    """All nodes stand in a local function that is called twice; the constants that its opset can write stand in it."""
    model = _copy(case.model)
    graph, opset = model.graph, opset_of(model)
    model.ir_version = max(model.ir_version, 8)
    initializers = list(graph.initializer)
    moved = [t for t in initializers if opset >= 9 or t.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE)]
    passed = [t for t in initializers if t not in moved]
    constants = [helper.make_node("Constant", [], [t.name], value=t) for t in moved]
    free = [_copy(v) for v in graph.input if v.name not in {t.name for t in initializers}]
    inputs = [v.name for v in (*free, *passed)]
    del graph.initializer[:]
    graph.initializer.extend(passed)
    del graph.input[:]
    graph.input.extend(free)
    outputs = [v.name for v in graph.output]
    body = helper.make_function(LOCAL, "Twice", inputs, outputs, [*constants, *graph.node], list(model.opset_import))
    model.functions.append(body)
    if all(opset.domain != LOCAL for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(LOCAL, 1))
    del graph.value_info[:]
    again = [f"{name}_again" for name in outputs]
    calls = [
        helper.make_node("Twice", inputs, results, domain=LOCAL, name=f"call_{i}")
        for i, results in enumerate([outputs, again])
    ]
    _replace_nodes(graph, calls)
    for value, name in zip(list(graph.output), again, strict=True):
        graph.output.add(name=name, type=value.type)
    return case.with_model(model)


# ---- spelling and dtypes


def ai_onnx(case: Case) -> Case | None:
    """The default domain is spelled out everywhere."""
    model = _copy(case.model)
    for opset in model.opset_import:
        opset.domain = opset.domain or "ai.onnx"
    for node in all_nodes(model):
        node.domain = node.domain or "ai.onnx"
    return case.with_model(model)


def float16(case: Case) -> Case | None:
    """Every float32 is a float16."""
    return _retyped(case, TensorProto.FLOAT16)


def float64(case: Case) -> Case | None:
    """Every float32 is a float64."""
    return _retyped(case, TensorProto.DOUBLE)


def _retyped(case: Case, elem_type: int) -> Case | None:
    model, dtype = _copy(case.model), helper.tensor_dtype_to_np_dtype(elem_type)
    opset, found = opset_of(model), False
    for scope in scopes(model):
        assert isinstance(scope, GraphProto), "the dtype of a function is that of its calls"
        for value in (*scope.input, *scope.output, *scope.value_info):
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = elem_type
                found = True
        for tensor in scope.initializer:
            if tensor.data_type == TensorProto.FLOAT:
                with np.errstate(over="ignore"):  # becomes an infinity, before and after
                    values = numpy_helper.to_array(tensor).astype(dtype)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    legal = all(_allows(node, opset, elem_type) for node in all_nodes(model))
    with np.errstate(over="ignore"):
        feeds = {k: v.astype(dtype) if v.dtype == np.float32 else v for k, v in case.feeds.items()}
    return Case(model, feeds, case.lowest) if found and legal else None


def _allows(node: NodeProto, opset: int, elem_type: int) -> bool:
    """Tells whether each input of an operator that takes floats takes this dtype, too."""
    formals = onnx.defs.get_schema(node.op_type, opset, "").inputs
    return all(_spelled(elem_type) in formal.types for formal in formals if "tensor(float)" in formal.types)


def _spelled(elem_type: int) -> str:
    return f"tensor({TensorProto.DataType.Name(elem_type).lower()})"


def _replace_nodes(graph: GraphProto, nodes: list[NodeProto]) -> None:
    kept = [_copy(node) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)


def _copy(message: Message) -> Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


VARIANTS: dict[str, Variant] = {
    "plain": plain,
    "dims": dims,
    "ranks": ranks,
    "constant": constant_value,
    "constant-ints": constant_ints,
    "computed": computed,
    "branch": branch,
    "captured": captured,
    "function": function,
    "ai.onnx": ai_onnx,
    "float16": float16,
    "float64": float64,
}
