# SPDX-License-Identifier: Apache-2.0
"""Names the operators whose types onnx infers otherwise than their texts say, and says what is true of their outputs.

An entry is *wrong* if inference says what is not so: then the types of the outputs are those that our own function and
the schema find, and what they do not know is unknown. Or inference is only *silent*: what our function finds is added.
Of some nodes that the text allows it says nothing at all, but *fails*: where that happens they are taken out of its
sight. A test for each wrong or failing entry shows onnx's fault, so that it goes when onnx mends it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import TensorProto, TensorShapeProto, TypeProto

from onnx_convert.analysis import axis_shapes, operator_shapes
from onnx_convert.analysis.operator_call import Call
from onnx_convert.analysis.propagation import Size, dims_of
from onnx_convert.spec import opsets, signatures
from onnx_convert.spec.types import MADE_UP, has_shape, type_of_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from onnx import NodeProto

    from onnx_convert.analysis.operator_call import Dims
    from onnx_convert.analysis.propagation import Vector

ALWAYS: Final = range(1, 1000)


def _any(_: NodeProto) -> bool:
    return True


def _rounds_up(node: NodeProto) -> bool:
    return any(attribute.name == "ceil_mode" and attribute.i for attribute in node.attribute)


def _has_negative_axes(node: NodeProto) -> bool:
    return any(attribute.name == "axes" and min(attribute.ints, default=0) < 0 for attribute in node.attribute)


def _lacks(name: str) -> Callable[[NodeProto], bool]:
    return lambda node: all(attribute.name != name for attribute in node.attribute)


def _gives(name: str) -> Callable[[NodeProto], bool]:
    return lambda node: any(attribute.name == name for attribute in node.attribute)


def _may_be_of_none(node: NodeProto) -> bool:
    return len(node.input) > 1 or any(attribute.name == "k" and attribute.i == 0 for attribute in node.attribute)


def _has_input(index: int) -> Callable[[NodeProto], bool]:
    return lambda node: len(node.input) > index and bool(node.input[index])


def _narrows(node: NodeProto) -> bool:
    return any(attribute.name == "to" and attribute.i not in _WIDE for attribute in node.attribute)


_WINDOWS: Final = ("BlackmanWindow", "HammingWindow", "HannWindow")
_WIDE: Final = (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE)


class Entry(NamedTuple):
    """The truth about the outputs of an operator at some of its versions. `may_be_wrong` says of which nodes inference
    may be wrong, or may fail. If it is wrong of `elements`, the types are right, but not what inference takes the
    elements of a shape for."""

    versions: Container[int]
    shapes: Callable[[Call], list[Dims]]
    wrong: bool = False
    may_be_wrong: Callable[[NodeProto], bool] = _any
    elements: bool = False
    fails: bool = False


_WRONG: Final = {
    # a window that begins in the pads at the end is counted
    # (before 22), or one that is larger than all of the input
    "AveragePool": Entry(range(10, 1000), operator_shapes.pool, True, _rounds_up),
    "LpPool": Entry(range(18, 1000), operator_shapes.pool, True, _rounds_up),
    "MaxPool": Entry(range(10, 1000), operator_shapes.pool, True, _rounds_up),
    # negative axes, which runtimes take long before the text does, are passed over
    "Squeeze": Entry((1,), axis_shapes.squeeze, True, _has_negative_axes),
    "Unsqueeze": Entry((1,), axis_shapes.unsqueeze, True, _has_negative_axes),
    # `onesided` is taken to be 0 where it is left out
    "STFT": Entry(ALWAYS, operator_shapes.stft, True, _lacks("onesided")),
    # sizes that are not known are 0, and the last two outputs are scalars
    "Attention": Entry(ALWAYS, operator_shapes.attention, True),
    # the symbol of an axis stays, whatever is left of the axis
    "Slice": Entry((10,), axis_shapes.slice_, True),
    "DFT": Entry(ALWAYS, operator_shapes.dft, True),
    # stops behind the channels where `output_shape` asks for less than the input has, fails where it has them too
    "ConvTranspose": Entry(ALWAYS, operator_shapes.conv_transpose, True, _gives("output_shape")),
    # a label has the size that it has in the first operand, though another one stretches it
    "Einsum": Entry(ALWAYS, operator_shapes.einsum, True),
    # the elements of a shape stay what they are, also as booleans
    "Cast": Entry(range(6, 1000), operator_shapes.as_input, True, _narrows, elements=True),
    # fails where `axes` is left out, for its body has no default of it
    "MeanVarianceNormalization": Entry(ALWAYS, operator_shapes.as_input, True, _lacks("axes")),
    # the output is said to have the dtype of the input, not that of the scale
    "RMSNormalization": Entry(ALWAYS, operator_shapes.as_input, True),
}

_SILENT: Final = {
    "AffineGrid": Entry(ALWAYS, operator_shapes.affine_grid),
    "Reshape": Entry(ALWAYS, axis_shapes.reshape),
    "Transpose": Entry(ALWAYS, axis_shapes.transpose),
    "GatherND": Entry(ALWAYS, axis_shapes.gather_nd),
    "ConstantOfShape": Entry(ALWAYS, axis_shapes.constant_of_shape),
    "Expand": Entry(ALWAYS, axis_shapes.expand),
    "Tile": Entry(range(6, 1000), axis_shapes.tile),
    "Slice": Entry(ALWAYS, axis_shapes.slice_),
    "Unsqueeze": Entry(range(13, 1000), axis_shapes.unsqueeze),
    "Squeeze": Entry(range(13, 1000), axis_shapes.squeeze),
    # fails on axes of int32
    "Pad": Entry(ALWAYS, axis_shapes.pad, may_be_wrong=_has_input(3), fails=True),
    # fails on a single index, and below 11 on one below 0
    "OneHot": Entry(ALWAYS, axis_shapes.one_hot, fails=True),
    # fails where nothing is asked for: of `k` as an attribute, and in the onnx to come as an input
    "TopK": Entry(ALWAYS, axis_shapes.top_k, may_be_wrong=_may_be_of_none, fails=True),
    **dict.fromkeys(_WINDOWS, Entry(ALWAYS, operator_shapes.window, fails=True)),
    # fails on `sizes` of unknown length
    "Resize": Entry(ALWAYS, axis_shapes.same_rank, may_be_wrong=_has_input(3), fails=True),
    "Upsample": Entry(ALWAYS, axis_shapes.same_rank),
    "ReduceSum": Entry(range(13, 1000), axis_shapes.reduce),
    **dict.fromkeys(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd"
        " ReduceSumSquare".split(),
        Entry(range(18, 1000), axis_shapes.reduce),
    ),
}


_UNRANKED: Final = {
    # axes and steps of unknown rank are taken to be left out
    "Slice": Entry((11, 13), axis_shapes.slice_, True),
}


def entry_for(entry: Entry | None, node: NodeProto, type_of: Callable[[str], TypeProto | None]) -> Entry | None:
    """Returns the entry of an operator for one of its nodes: some are only wrong where the rank of an input is not
    known."""
    if entry is None or entry.wrong or node.op_type not in _UNRANKED:
        return entry
    unranked = any(name and not has_shape(type_of(name)) for name in node.input[1:])
    return _UNRANKED[node.op_type] if unranked else entry


@lru_cache(maxsize=None)
def entry_of(operator: str, domain: str, opset: int) -> Entry | None:
    """Returns the entry for an operator at an opset, None if onnx's inference is to be believed."""
    if domain != opsets.AI_ONNX:
        return None
    schema = opsets.schema_at(operator, opset, domain)
    if schema is None:
        return None
    for table in (_WRONG, _SILENT):
        entry = table.get(operator)
        if entry is not None and schema.since_version in entry.versions:
            return entry
    return None


def call_of(
    node: NodeProto,
    opset: int,
    type_of: Callable[[str], TypeProto | None],
    elements: Callable[[str], Vector | None],
) -> Call:
    """Returns what an entry is asked with."""
    schema = opsets.schema_at(node.op_type, opset, opsets.canonical_domain(node.domain))
    assert schema is not None
    return Call(node, schema.since_version, type_of, elements)


def shapes_of(entry: Entry, call: Call) -> list[Dims]:
    """Returns the dimensions of the outputs as the text of the operator gives them, None for an unknown rank."""
    if any(attribute.ref_attr_name for attribute in call.node.attribute):
        return [None] * call.outputs
    try:
        found = entry.shapes(call)
    except (IndexError, TypeError, ValueError, ZeroDivisionError):  # the node is not valid, as others will say
        found = []
    return [*found, *[None] * (call.outputs - len(found))][: call.outputs]


def dtype_of(node: NodeProto, index: int, opset: int, type_of: Callable[[str], TypeProto | None]) -> int:
    """Returns the dtype of an output as the schema binds it to an input, or as an attribute says; 0 if neither does."""
    if node.op_type in _WINDOWS:
        return next((one.i for one in node.attribute if one.name == "output_datatype"), TensorProto.FLOAT)
    signature = signatures.signature_of(node.op_type, opset, opsets.canonical_domain(node.domain))
    if signature is None:
        return 0
    source = signature.source_of(index)
    if 0 <= source < len(node.input) and (kind := type_of(node.input[source])) is not None:
        return int(kind.tensor_type.elem_type)
    formal = signature.formal_output(index)
    only = type_of_elements(next(iter(formal.types))) if len(formal.types) == 1 else None
    return only.tensor_type.elem_type if only is not None else 0


def with_dims(kind: TypeProto, dims: Dims) -> TypeProto:
    """Returns a tensor type of the same dtype with other dimensions."""
    made = TypeProto(tensor_type=TypeProto.Tensor(elem_type=kind.tensor_type.elem_type))
    if dims is not None:
        made.tensor_type.shape.SetInParent()
        made.tensor_type.shape.dim.extend(_dim(size) for size in dims)
    return made


def _dim(size: Size) -> TensorShapeProto.Dimension:
    if isinstance(size, int):
        return TensorShapeProto.Dimension(dim_value=size)
    return TensorShapeProto.Dimension(dim_param=size) if size else TensorShapeProto.Dimension()


def claims_more(found: Dims, true: Dims, made_up: Container[str]) -> bool:
    """Tells whether inference says what is not known to be so: a rank, a number, or a symbol. `made_up` are the symbols
    that inference made up for this very value."""
    if found is None:
        return False
    if true is None or len(found) != len(true):
        return True
    return any(f is not None and f not in made_up and f != t for f, t in zip(found, true, strict=True))


def combined(found: Dims, true: Dims) -> Dims:
    """Returns all that two statements about one value say; where they contradict, what the second says."""
    if found is None or true is None or len(found) != len(true):
        return found if true is None else true
    return [_clearer(f, t) for f, t in zip(found, true, strict=True)]


def _clearer(found: Size, true: Size) -> Size:
    if isinstance(true, int) or found is None:
        return true
    return found if true is None or isinstance(found, int) or true.startswith(MADE_UP) else true


def of_node(
    node: NodeProto,
    opset: int,
    found: dict[str, TypeProto],
    type_of: Callable[[str], TypeProto | None],
    elements: Callable[[str], Vector | None],
) -> dict[str, TypeProto]:
    """Returns the types of the outputs of a single node, of which `found` is what inference says."""
    entry = entry_for(entry_of(node.op_type, opsets.canonical_domain(node.domain), opset), node, type_of)
    if entry is None or (entry.wrong and not entry.may_be_wrong(node)):
        return found
    corrected = dict(found)
    for index, (name, dims) in enumerate(
        zip(node.output, shapes_of(entry, call_of(node, opset, type_of, elements)), strict=True)
    ):
        if not name:
            continue
        kind = found.get(name)
        if kind is None:
            dtype = dtype_of(node, index, opset, type_of)
            kind = TypeProto(tensor_type=TypeProto.Tensor(elem_type=dtype))
            if not dtype:
                continue
        if kind.HasField("tensor_type"):
            corrected[name] = with_dims(kind, dims if entry.wrong else combined(dims, dims_of(kind)))
    return corrected
