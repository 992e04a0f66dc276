# SPDX-License-Identifier: Apache-2.0
"""Builds the Cast sandwich around a node whose dtypes the target does not take (see `casts` for what is exact)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import TensorProto

from onnx_convert import casts, legality, opsets, registry
from onnx_convert.emitter import Emitter
from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT, FORMS
from onnx_convert.types import dtype_name, tensor_type

if TYPE_CHECKING:
    from onnx import NodeProto

    from onnx_convert.legality import Finding, Rule
    from onnx_convert.site import Node, Value


@dataclass(slots=True)
class Sandwich:
    """The nodes that stand for the node, and what they promise."""

    nodes: list[NodeProto]
    name: str
    form: str = EXACT
    condition: str = ""
    bearer: NodeProto | None = None

    @property
    def remedy(self) -> str:
        """What the user can say to get it."""
        through = self.name.removeprefix("cast through ")
        if self.form == EQUIVALENT:
            return f"--types cast-rounding computes it in {through}, up to rounding"
        option = "--types cast --allow conditional" if self.form == CONDITIONAL else "--types cast"
        promise = f"right if {self.condition}" if self.condition else "exact"
        return f"{option} carries it through {through} ({promise})"


def wrap(node: Node, rule: Rule, opset: int, finding: Finding) -> Sandwich | None:
    """The sandwich that makes a node legal at an opset, None if no carrier does."""
    op = Emitter(node, opset, opset)
    kind = registry.kind_of(node.operator, node.domain)
    filled = _is_filled(node) if kind == casts.EXTREMUM else None
    by_sign = kind == casts.EXTREMUM and opset >= 9  # Greater takes integers: booleans come right out of nothing, too
    made = Sandwich([], "")
    through: list[str] = []
    inputs: list[Value | None] = node.inputs
    carried: dict[str, tuple[int, int]] = {}  # type variable -> its dtype, and the carrier's
    problem: Finding | None = finding
    while problem is not None and problem.formal is not None:
        variable = problem.formal.variable
        dtype = _dtype_of(problem.type)
        safe = True if by_sign and dtype == TensorProto.BOOL else filled
        choice = casts.carrier(dtype, problem.formal, kind, safe) if dtype else None
        if choice is None or variable in carried:
            return None
        carried[variable] = (dtype, choice.dtype)
        through.append(dtype_name(choice.dtype))
        if FORMS.index(choice.form) > FORMS.index(made.form):
            made.form, made.condition = choice.form, choice.condition
        inputs = [_cast_in(op, value, rule.formal_input(i).variable, carried, opset) for i, value in enumerate(inputs)]
        problem = _still_wrong(node, rule, opset, inputs, carried)
    if problem is not None:
        return None
    for index, value in enumerate(op.sames(*inputs)):
        dtype, carrier = carried.get(rule.formal_output(index).variable, (0, 0))
        name = node.proto.output[index]
        if not name:
            continue
        if dtype:
            node.scope.declare(value.name, tensor_type(carrier))
            if by_sign and dtype == TensorProto.BOOL:
                op.Greater(value, op.const(0, carrier))
            else:
                _cast(op, value, dtype, opset)
            op.emitted[-1][0].output[0] = name
        else:
            _rename(op, value.name, name)
    made.nodes = [new for new, _ in op.emitted]
    made.bearer = op.meaning
    made.name = f"cast through {' and '.join(dict.fromkeys(through))}"
    for new in made.nodes:
        casting = legality.rule_of(new.op_type, opset, opsets.normalise(new.domain))
        if new.op_type == "Cast" and (casting is None or legality.check(new, casting, opset, node.scope.spelled)):
            return None
    return made


def _is_filled(node: Node) -> bool | None:
    """Whether the first input has elements; None if that is not known."""
    first = node.optional_input(0)
    shape = first.shape if first is not None else None
    if shape is None or 0 in shape:
        return None if shape is None else False
    return True if all(isinstance(size, int) for size in shape) else None


def _dtype_of(spelled: str) -> int:
    """The element type of "tensor(float)"; 0 for a sequence, an optional or a map, which cannot be cast."""
    if not spelled.startswith("tensor("):
        return 0
    return int(TensorProto.DataType.Value(spelled[7:-1].upper()))


def _cast_in(
    op: Emitter, value: Value | None, variable: str, carried: dict[str, tuple[int, int]], opset: int
) -> Value | None:
    dtype, carrier = carried.get(variable, (0, 0))
    if value is None or not dtype or _dtype_of(op.scope.spelled(value.name)) != dtype:
        return value
    return _cast(op, value, carrier, opset)


def _cast(op: Emitter, value: Value, dtype: int, opset: int) -> Value:
    """A Cast; below opset 6 it names the dtype, and onnx cannot infer what it makes."""
    known = value.type
    result = op.Cast(value, to=dtype if opset >= 6 else dtype_name(dtype).upper())
    kind = tensor_type(dtype)
    if known is not None and known.tensor_type.HasField("shape"):
        kind.tensor_type.shape.CopyFrom(known.tensor_type.shape)
    op.scope.declare(result.name, kind)
    return result


def _still_wrong(
    node: Node, rule: Rule, opset: int, inputs: list[Value | None], carried: dict[str, tuple[int, int]]
) -> Finding | None:
    """What is still illegal about the node once these inputs are cast and its outputs are of the carrier's dtype."""
    types: dict[str, str] = {}
    trial = type(node.proto)()
    trial.CopyFrom(node.proto)
    del trial.input[:]
    for value in inputs:
        trial.input.append(value.name if value is not None else "")
        if value is not None:
            types[value.name] = node.scope.spelled(value.name)
    for index, name in enumerate(node.proto.output):
        _, carrier = carried.get(rule.formal_output(index).variable, (0, 0))
        types[name] = f"tensor({dtype_name(carrier)})" if carrier else node.scope.spelled(name)
    return legality.check(trial, rule, opset, lambda name: types.get(name, ""))


def _rename(op: Emitter, old: str, new: str) -> None:
    for node, _ in op.emitted:
        for index, name in enumerate(node.output):
            if name == old:
                node.output[index] = new
