# SPDX-License-Identifier: Apache-2.0
"""Promotion: a dtype that the target's operator does not take goes through it in a wider one.

Inputs are cast to the wider dtype, the operator works on that, outputs are cast back. In which wider dtypes that is
exact depends on what the operator does to values, its kind (declared by `registry.promotable`):

- `movement` only moves elements, `order` only compares them: exact in any dtype that holds every value;
- `arithmetic` is one correctly rounded operation: a wider integer wraps to the same bits when it is cast back, a wider
  float has at least 2p+2 bits of precision and rounds to the same result;
- `extremum` reduces to the largest or smallest element, whose value over no element at all depends on the dtype;
- any other operator that works on floats gives the same up to rounding, one on integers if nothing overflows;
- `none` must not be promoted: its outcome depends on the dtype itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import TensorProto

from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT, FORMS
from onnx_convert.rewrite import legality, registry
from onnx_convert.rewrite.emitter import Emitter
from onnx_convert.spec import opsets, signatures
from onnx_convert.spec.types import dtype_name, tensor_type

if TYPE_CHECKING:
    from onnx import NodeProto

    from onnx_convert.rewrite.legality import Finding
    from onnx_convert.rewrite.node import Node, Value
    from onnx_convert.spec.signatures import Formal, Signature

MOVEMENT: Final = "movement"
ORDER: Final = "order"
ARITHMETIC: Final = "arithmetic"
EXTREMUM: Final = "extremum"
NONE: Final = "none"

_T = TensorProto
_INTEGERS: Final = frozenset(
    (_T.BOOL, _T.INT8, _T.INT16, _T.INT32, _T.INT64, _T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64)
)

# Wider dtypes that hold every value, in the order of preference. The second number of a pair says that only integers of
# that many bits are held exactly.
_WIDER: Final[dict[int, tuple[int, ...]]] = {
    _T.BOOL: (_T.UINT8, _T.INT32, _T.FLOAT),
    _T.INT8: (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.UINT8: (_T.INT32, _T.UINT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.INT16: (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.UINT16: (_T.UINT32, _T.INT64, _T.INT32, _T.FLOAT, _T.DOUBLE),
    _T.INT32: (_T.INT64, _T.DOUBLE),
    _T.UINT32: (_T.UINT64, _T.INT64, _T.DOUBLE),
    _T.INT64: (_T.DOUBLE,),
    _T.UINT64: (_T.DOUBLE,),
    _T.FLOAT16: (_T.FLOAT, _T.DOUBLE),
    _T.BFLOAT16: (_T.FLOAT, _T.DOUBLE),
    _T.FLOAT: (_T.DOUBLE,),
}
_SMALL_FLOATS: Final = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1", "FLOAT8E8M0")


class Wider(NamedTuple):
    """A wider dtype in which an operator can work, and what that promises."""

    dtype: int
    form: str
    condition: str = ""


def wider_dtype(dtype: int, formal: Formal, kind: str, filled: bool | None = None) -> Wider | None:
    """Returns the best wider dtype that an operator's type variable takes, None if there is none.

    `filled` says whether what the operator looks at has elements, None if that is not known.
    """
    if kind == NONE or (kind == EXTREMUM and dtype in _INTEGERS and filled is False):
        return None
    choices = _WIDER.get(dtype, ())
    if not choices and _T.DataType.Name(dtype) in _SMALL_FLOATS:
        choices = (_T.FLOAT,)
    for choice in choices:
        if f"tensor({dtype_name(choice)})" in formal.types:
            if kind in (ARITHMETIC, "") and dtype == _T.UINT16 and choice == _T.INT32:
                continue  # 65535 * 65535 does not fit
            return Wider(choice, *_promise(dtype, choice, kind, filled))
    return None


def _promise(dtype: int, choice: int, kind: str, filled: bool | None) -> tuple[str, str]:
    whole = dtype in _INTEGERS
    into_float = whole and choice not in _INTEGERS
    if into_float and dtype in (_T.INT64, _T.UINT64):
        return CONDITIONAL, "every integer, results included, is at most 2**53 in magnitude"
    if kind in (MOVEMENT, ORDER):
        return EXACT, ""
    if kind == EXTREMUM:
        if whole and not filled and choice != _T.UINT8:  # of nothing it is the least or greatest of the dtype
            return CONDITIONAL, "no maximum or minimum is taken over an empty axis"
        return EXACT, ""
    if into_float:
        return CONDITIONAL, "no integer result overflows its type"
    if kind == ARITHMETIC:
        return EXACT, ""
    if whole:
        return CONDITIONAL, "no intermediate result overflows the wider type"
    return EQUIVALENT, "computed in a wider float, rounded once"


@dataclass(slots=True)
class Promotion:
    """The nodes that stand for the node, and what they promise."""

    nodes: list[NodeProto]
    name: str
    form: str = EXACT
    condition: str = ""
    bearer: NodeProto | None = None

    @property
    def remedy(self) -> str:
        """The option that the user can give to get it."""
        through = self.name.removeprefix("cast through ")
        if self.form == EQUIVALENT:
            return f"--types cast-rounding computes it in {through}, up to rounding"
        option = "--types cast --allow conditional" if self.form == CONDITIONAL else "--types cast"
        promise = f"right if {self.condition}" if self.condition else "exact"
        return f"{option} carries it through {through} ({promise})"


def promote(node: Node, signature: Signature, opset: int, finding: Finding) -> Promotion | None:
    """Returns the promotion that makes a node legal at an opset, None if no wider dtype does."""
    op = Emitter(node, opset, opset)
    kind = registry.kind_of(node.operator, node.domain)
    filled = _is_filled(node) if kind == EXTREMUM else None
    by_sign = kind == EXTREMUM and opset >= 9  # Greater takes integers: booleans come right out of nothing, too
    made = Promotion([], "")
    through: list[str] = []
    inputs: list[Value | None] = node.inputs
    promoted: dict[str, tuple[int, int]] = {}  # type variable -> its dtype, and the wider one
    problem: Finding | None = finding
    while problem is not None and problem.formal is not None:
        variable = problem.formal.variable
        dtype = _dtype_of(problem.type)
        safe = True if by_sign and dtype == TensorProto.BOOL else filled
        choice = wider_dtype(dtype, problem.formal, kind, safe) if dtype else None
        if choice is None or variable in promoted:
            return None
        promoted[variable] = (dtype, choice.dtype)
        through.append(dtype_name(choice.dtype))
        if FORMS.index(choice.form) > FORMS.index(made.form):
            made.form, made.condition = choice.form, choice.condition
        inputs = [
            _cast_in(op, value, signature.formal_input(i).variable, promoted, opset) for i, value in enumerate(inputs)
        ]
        problem = _still_wrong(node, signature, opset, inputs, promoted)
    if problem is not None:
        return None
    for index, value in enumerate(op.sames(*inputs)):
        dtype, wider = promoted.get(signature.formal_output(index).variable, (0, 0))
        name = node.proto.output[index]
        if not name:
            continue
        if dtype:
            node.draft.state_type(value.name, tensor_type(wider))
            if by_sign and dtype == TensorProto.BOOL:
                op.Greater(value, op.const(0, wider))
            else:
                _cast(op, value, dtype, opset)
            op.emitted[-1][0].output[0] = name
        else:
            _rename(op, value.name, name)
    made.nodes = [new for new, _ in op.emitted]
    made.bearer = op.meaning
    made.name = f"cast through {' and '.join(dict.fromkeys(through))}"
    for new in made.nodes:
        casting = signatures.signature_of(new.op_type, opset, opsets.canonical_domain(new.domain))
        if new.op_type == "Cast" and (
            casting is None or legality.check(new, casting, opset, node.draft.type_str).finding is not None
        ):
            return None
    return made


def _is_filled(node: Node) -> bool | None:
    """Returns whether the first input has elements; None if that is not known."""
    first = node.optional_input(0)
    shape = first.shape if first is not None else None
    if shape is None or 0 in shape:
        return None if shape is None else False
    return True if all(isinstance(size, int) for size in shape) else None


def _dtype_of(type_str: str) -> int:
    """Returns the element type of "tensor(float)"; 0 for a sequence, an optional or a map, which cannot be cast."""
    if not type_str.startswith("tensor("):
        return 0
    return int(TensorProto.DataType.Value(type_str[7:-1].upper()))


def _cast_in(
    op: Emitter, value: Value | None, variable: str, promoted: dict[str, tuple[int, int]], opset: int
) -> Value | None:
    dtype, wider = promoted.get(variable, (0, 0))
    if value is None or not dtype or _dtype_of(op.draft.type_str(value.name)) != dtype:
        return value
    return _cast(op, value, wider, opset)


def _cast(op: Emitter, value: Value, dtype: int, opset: int) -> Value:
    """Writes a Cast; below opset 6 it names the dtype, and onnx cannot infer what it makes."""
    known = value.type
    result = op.Cast(value, to=dtype if opset >= 6 else dtype_name(dtype).upper())
    kind = tensor_type(dtype)
    if known is not None and known.tensor_type.HasField("shape"):
        kind.tensor_type.shape.CopyFrom(known.tensor_type.shape)
    op.draft.state_type(result.name, kind)
    return result


def _still_wrong(
    node: Node, signature: Signature, opset: int, inputs: list[Value | None], promoted: dict[str, tuple[int, int]]
) -> Finding | None:
    """Returns what is illegal about the node with these inputs, and with its outputs in the wider dtypes."""
    types: dict[str, str] = {}
    trial = type(node.proto)()
    trial.CopyFrom(node.proto)
    del trial.input[:]
    for value in inputs:
        trial.input.append(value.name if value is not None else "")
        if value is not None:
            types[value.name] = node.draft.type_str(value.name)
    for index, name in enumerate(node.proto.output):
        _, wider = promoted.get(signature.formal_output(index).variable, (0, 0))
        types[name] = f"tensor({dtype_name(wider)})" if wider else node.draft.type_str(name)
    return legality.check(trial, signature, opset, lambda name: types.get(name, "")).finding


def _rename(op: Emitter, old: str, new: str) -> None:
    for node, _ in op.emitted:
        for index, name in enumerate(node.output):
            if name == old:
                node.output[index] = new
