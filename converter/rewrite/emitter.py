# SPDX-License-Identifier: Apache-2.0
"""The emitter, with which an adapter writes: `op.Reshape(x, shape, allowzero=0)` is a new node, and returns its value.

What the adapter returns takes over the outputs of the node that it rewrites. `op.same(...)` is the node itself with
something changed: it keeps name, doc string, metadata and whatever else the message holds; if an adapter does not call
it, the node that makes the first output gets them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy
from onnx import (
    AttributeProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    helper,
    numpy_helper,
)

from onnx_convert.errors import InternalError
from onnx_convert.model import tensors
from onnx_convert.model.attributes import attribute, set_attributes
from onnx_convert.model.graphs import copy_own, used_names
from onnx_convert.model.tensors import elements_of
from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT
from onnx_convert.rewrite.node import LARGEST, Node, Value
from onnx_convert.spec import opsets
from onnx_convert.spec.types import type_of_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from onnx import FunctionProto

    from onnx_convert.rewrite.draft import Draft

Outcome = Value | tuple["Value | None", ...]
Emitted = tuple[NodeProto, int]  # a node, and the opset of its domain for which it is written
Constant = tuple[numpy.ndarray[Any, Any], int]  # elements and their dtype

# Below opset 9 a Constant makes only these.
_FLOATS: Final = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)

_MOST_NODES: Final = 10_000  # that one rewrite writes

# What numpy converts as Cast does: float8 and its like saturate.
_NUMBERS: Final = frozenset(
    (
        *_FLOATS,
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
        TensorProto.BFLOAT16,
    )
)


class Emitter:
    """Collects the nodes that one adapter call writes, all for one opset."""

    def __init__(self, node: Node, opset: int, opset_of_ai_onnx: int) -> None:
        self.subject = node
        self.draft: Draft = node.draft
        self._opset = opset
        self._ai_onnx = opset_of_ai_onnx
        self._base = node.proto.name or next((name for name in node.proto.output if name), node.operator)
        self.emitted: list[Emitted] = []
        self.meaning: NodeProto | None = None
        self.form = EXACT
        self.condition = ""
        self.size = ""

    # ---- writing nodes

    def __getattr__(self, operator: str) -> Callable[..., Value]:
        """Returns what writes a node of ai.onnx with one output: `op.Relu(x, ...)`, attributes as keywords."""
        if not operator[:1].isupper():
            raise AttributeError(operator)

        def write(*inputs: Value | None, **attributes: Any) -> Value:
            return self.node(operator, *inputs, **attributes)[0]

        return write

    def at(self, opset: int) -> At:
        """Writes for another opset of ai.onnx: `op.at(9).Slice(x, axes=[0], starts=[1], ends=[2])`. From there the
        node is carried to the target, up or down, like any other."""
        return At(self, opset)

    def node(
        self, operator: str, *inputs: Value | None, outputs: int = 1, at: int = 0, domain: str = "", **attributes: Any
    ) -> tuple[Value, ...]:
        """Writes a node and returns the values of its outputs, of which it may have any number.

        It is written for opset `at` if that is given. Attributes that are None are left out.
        """
        opset = at or (self._ai_onnx if domain == opsets.AI_ONNX else self._opset)
        base = f"{self._base}/{operator}"
        fresh = self.draft.fresh
        new = NodeProto(
            op_type=operator,
            domain=domain or None,
            name=fresh(base) if self.subject.proto.name else None,
            input=[value.name if value is not None else "" for value in inputs],
            output=[fresh(f"{base}_output") for _ in range(outputs)],
        )
        set_attributes(new, attributes, opset)
        return self._record(new, opset)

    def same(
        self,
        *inputs: Value | None,
        drop: Collection[str] = (),
        operator: str = "",
        outputs: int = 0,
        **attributes: Any,
    ) -> Value:
        """Writes the node itself, a version on: with other inputs if any are given, without the attributes in `drop`,
        with the given ones set (None: dropped). `operator` renames it, `outputs` changes how many outputs it has.

        Returns the value of its first output, which stands for all of them when an adapter returns it.
        """
        return self.sames(*inputs, drop=drop, operator=operator, outputs=outputs, **attributes)[0]

    def sames(
        self,
        *inputs: Value | None,
        drop: Collection[str] = (),
        operator: str = "",
        outputs: int = 0,
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Does as `same` does, and returns the values of all outputs."""
        old = self.subject.proto
        new = NodeProto()
        new.CopyFrom(old)
        if self.meaning is None:
            self.meaning = new
        if operator:
            new.op_type = operator
        if inputs:
            del new.input[:]
            new.input.extend(value.name if value is not None else "" for value in inputs)
            while new.input and not new.input[-1]:
                del new.input[-1]
        gone = {*drop, *attributes}
        if gone:
            for index in reversed(range(len(new.attribute))):
                if new.attribute[index].name in gone:
                    del new.attribute[index]
        set_attributes(new, attributes, self._opset)
        count = outputs or len(old.output)
        del new.output[:]
        fresh = self.draft.fresh
        names = [*old.output][:count] + ["+"] * (count - len(old.output))
        new.output.extend(fresh(f"{self._base}/{new.op_type}_output") if name else "" for name in names)
        return self._record(new, self._opset)

    def call(self, function: FunctionProto | Any, *inputs: Value | None, **attributes: Any) -> Any:
        """Writes the nodes of a function, a FunctionProto or one of ONNX Script, each at the opset that the function
        imports. Returns one value, or a tuple if the function has several outputs.

        Its constants are written as `const` does, in the dtype of the value that a CastLike names if that is known.
        """
        from onnx_convert.model.inlining import inline

        proto: FunctionProto = function.to_function_proto() if hasattr(function, "to_function_proto") else function
        names = self.draft.session.names
        caller = NodeProto(op_type=proto.name, name=self._base)
        caller.input.extend(value.name if value is not None else "" for value in inputs)
        caller.output.extend(names.fresh(f"{self._base}/{name}") for name in proto.output)
        for name, value in attributes.items():
            if value is not None:
                caller.attribute.append(attribute(name, value, None))
        known: dict[str, Constant] = {}
        for new, opset in inline(proto, caller, names):
            constant = self._constant_of(new, known) if new.output[0] not in caller.output else None
            if constant is not None:
                known[new.output[0]] = constant
                continue
            for index, name in enumerate(new.input):
                if name in known:
                    new.input[index] = self.const(*known[name]).name
            for name in sorted(used_names(new) & known.keys()):  # those that a subgraph of the node uses
                held = attribute("value", numpy_helper.from_array(known.pop(name)[0]), None)
                self._record(NodeProto(op_type="Constant", output=[name], attribute=[held]), self._ai_onnx)
            if self.subject.proto.name:
                new.name = names.fresh(f"{self._base}/{new.op_type}")
            if not new.domain:
                new.ClearField("domain")  # which ONNX text always states
            self._record(new, opset)
        values = tuple(Value(name, self.draft) for name in caller.output)
        return values[0] if len(values) == 1 else values

    def _constant_of(self, node: NodeProto, known: dict[str, Constant]) -> Constant | None:
        """Returns elements and dtype of a node if it is a constant, or brings one to a dtype that is known."""
        if node.op_type == "Constant":
            tensor = tensors.tensor_of(node)
            if tensor is None or tensor.data_type not in _NUMBERS:
                return None
            return elements_of(tensor), tensor.data_type
        if node.op_type != "CastLike" or node.input[0] not in known:
            return None
        like = node.input[1]
        kind = type_of_elements(self.draft.type_str(like)) if like not in known else None
        dtype = known[like][1] if like in known else kind.tensor_type.elem_type if kind is not None else 0
        if dtype not in _NUMBERS:
            return None
        with numpy.errstate(all="ignore"):
            return known[node.input[0]][0].astype(helper.tensor_dtype_to_np_dtype(dtype)), dtype

    def graph(
        self, name: str, inputs: Sequence[TypeProto | int | None], build: Callable[..., Sequence[Value]]
    ) -> GraphProto:
        """Returns a subgraph for an attribute of Loop, If or Scan. `build(op, *inputs)` writes its nodes with an
        emitter of its own, for the adapter's opset, and returns its outputs; values of the graph around may be used.

        An input is given as its type, None if it is not known; a number is the dtype of a scalar.
        """
        graph = GraphProto(name=f"{self._base}/{name}")
        inner = self.draft.inner({**self.draft.imports, opsets.AI_ONNX: self._ai_onnx})
        op = Emitter(Node(self.subject.proto, inner, self.subject.opset), self._opset, self._ai_onnx)
        given = []
        for number, kind in enumerate(inputs):
            value = Value(self.draft.fresh(f"{graph.name}/input_{number}"), inner)
            graph.input.add(name=value.name, type=_scalar(kind) if isinstance(kind, int) else kind)
            inner.state_type(value.name, graph.input[-1].type)
            given.append(value)
        outputs = build(op, *given)
        made = {name for new, _ in op.emitted for name in new.output}
        for value in outputs:
            own = value if value.name in made else op.Identity(value)
            graph.output.add(name=own.name, type=own.type)
        if any(opset != self._ai_onnx for _, opset in op.emitted):
            raise InternalError("the nodes of a subgraph are all written for one opset", node=self._base)
        graph.node.extend(new for new, _ in op.emitted)
        graph.initializer.extend(inner.own_constants())
        if op.form == CONDITIONAL:
            self.conditional(op.condition)
        elif op.form == EQUIVALENT:
            self.equivalent(op.condition)
        return graph

    def _record(self, new: NodeProto, opset: int) -> tuple[Value, ...]:
        if opsets.canonical_domain(new.domain) == opsets.AI_ONNX and opsets.schema_at(new.op_type, opset) is None:
            raise InternalError(f"there is no {new.op_type} at opset {opset}")
        self.emitted.append((new, opset))
        if len(self.emitted) > _MOST_NODES:
            self.subject.refuse(f"what replaces it is too large: more than {_MOST_NODES} nodes", code="too-large")
        self.draft.write(new, opset)
        return tuple(Value(name, self.draft) for name in new.output)

    # ---- constants

    def const(self, elements: Any, dtype: int = TensorProto.INT64) -> Value:
        """Returns a constant tensor of elements, as numbers, nested lists or an array, and their TensorProto.DataType.

        Equal constants of a graph are one initializer; in a function body, which has none, a Constant node.
        """
        if isinstance(elements, range | list):
            self.subject.limit(len(elements))
        elif isinstance(elements, numpy.ndarray):
            self.subject.limit(elements.size, most=LARGEST)
        array = numpy.asarray(elements, dtype=helper.tensor_dtype_to_np_dtype(dtype))
        if dtype == TensorProto.BFLOAT16 and array.dtype == numpy.float32:  # as onnx holds it in numpy before 1.19
            return self.at(max(self._ai_onnx, 13)).Cast(self.const(array, TensorProto.FLOAT), to=dtype)
        if not self.draft.in_function:
            return Value(self.draft.share(array, f"{self._base}/constant"), self.draft)
        tensor = numpy_helper.from_array(array)
        if self._ai_onnx >= 9 or dtype in _FLOATS:
            return self.node("Constant", value=tensor)[0]
        wide = numpy_helper.from_array(array.astype(numpy.float64))
        return self.at(max(self._ai_onnx, 6)).Cast(self.node("Constant", value=wide)[0], to=dtype)

    def attribute_as_input(self, name: str) -> Value | None:
        """Returns an INTS or INT attribute of the node as a constant int64 input, None if the node does not have it.

        Inside a function a reference to the function's attribute stays one: Constant holds it (from opset 12).
        """
        held = self.subject.attribute(name)
        if held is None:
            return None
        if not self.subject.refers(name):
            return self.const(self.subject.attr(name))
        if self._ai_onnx < 12:
            self.subject.attr(name)  # refuses, with the reason
        kind = "value_int" if held.type == AttributeProto.INT else "value_ints"
        reference = AttributeProto(name=kind, type=held.type, ref_attr_name=held.ref_attr_name)
        return self.node("Constant", **{kind: reference})[0]

    # ---- what becomes of the node

    def take_over(self, outcome: Outcome) -> None:
        """Gives the values that an adapter returned the output names of the node that it rewrote."""
        node = self.subject.proto
        made = {name: new for new, _ in self.emitted for name in new.output}
        values: Sequence[Value | None] = outcome if isinstance(outcome, tuple) else (outcome,)
        if len(node.output) > 1 and isinstance(outcome, Value) and outcome.name in made:
            values = [Value(name, self.draft) if name else None for name in made[outcome.name].output]
        renamed: dict[str, str] = {}
        for index, name in enumerate(node.output):
            if not name:
                continue
            value = values[index] if index < len(values) else None
            if value is None and not self.draft.is_read(name):
                self.draft.stale_value_info.add(name)
                continue
            if value is None:
                raise InternalError(f"no value for output {name!r}")
            if value.name in renamed or value.name not in made:
                value = self.Identity(value)
                made[value.name] = self.emitted[-1][0]
            renamed[value.name] = name
        if self.meaning is None and renamed:
            self.meaning = bearer = made[next(iter(renamed))]
            copy_own(node, bearer)
        for new, _ in self.emitted:
            for names in (new.input, new.output):
                for index, name in enumerate(names):
                    if name in renamed:
                        names[index] = renamed[name]
        for temporary, name in renamed.items():
            self.draft.rename(temporary, name)

    def fresh(self, wanted: str) -> str:
        """Returns a name that is nowhere in the model yet, for a graph that the adapter makes itself."""
        return self.draft.fresh(wanted)

    # ---- what the rewrite promises

    def equivalent(self, because: str) -> None:
        """Declares that the rewrite is the same mathematics, but that rounding may differ, or what is not specified."""
        if self.form == EXACT:
            self.form, self.condition = EQUIVALENT, because

    def large(self, size: str) -> None:
        """Declares that the rewrite is so large that nobody gets it without asking: says how large."""
        self.size = size

    def conditional(self, condition: str) -> None:
        """Declares that the rewrite is right only if a condition holds that the data decides."""
        known = self.condition if self.form == CONDITIONAL else ""
        self.form, self.condition = CONDITIONAL, f"{known}, and {condition}" if known else condition


def _scalar(dtype: int) -> TypeProto:
    return TypeProto(tensor_type=TypeProto.Tensor(elem_type=dtype, shape=TensorShapeProto()))


class At:
    """An emitter that writes for another opset."""

    def __init__(self, op: Emitter, opset: int) -> None:
        self._op = op
        self._opset = opset

    def __getattr__(self, operator: str) -> Callable[..., Value]:
        """Returns what writes a node of ai.onnx with one output."""

        def write(*inputs: Value | None, **attributes: Any) -> Value:
            return self._op.node(operator, *inputs, at=self._opset, **attributes)[0]

        return write
