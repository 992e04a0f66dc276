# SPDX-License-Identifier: Apache-2.0
"""Chooses the IR version that a model is stamped with: it follows the opset, as far as the content allows.

Going up it rises to what the opset's ONNX release had; going down it drops to that, unless the model holds something
that older formats do not know. Metadata is no such thing: parsers pass over fields that they do not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx import TensorProto

from onnx_convert.errors import UsageError
from onnx_convert.report import Refusal
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from onnx import FunctionProto, GraphProto, ModelProto, TypeProto

FUNCTIONS: Final = 8

# The IR version that brought each dtype; what is not listed was always there.
_DTYPES: Final = {
    "BFLOAT16": 4,
    "FLOAT8E4M3FN": 9,
    "FLOAT8E4M3FNUZ": 9,
    "FLOAT8E5M2": 9,
    "FLOAT8E5M2FNUZ": 9,
    "INT4": 10,
    "UINT4": 10,
    "FLOAT4E2M1": 11,
    "FLOAT8E8M0": 12,
    "INT2": 13,
    "UINT2": 13,
    "FLOAT6E2M3": 14,
    "FLOAT6E3M2": 14,
}
_BY_NUMBER: Final = {number: _DTYPES[name] for name, number in TensorProto.DataType.items() if name in _DTYPES}


def of_function(function: FunctionProto) -> int:
    """Returns the IR version that a model-local function needs: 8, with attribute defaults 9, with an overload name
    10."""
    if getattr(function, "overload", ""):
        return 10
    return 9 if function.attribute_proto else FUNCTIONS


def _needs(model: ModelProto, graphs: Iterable[GraphProto]) -> Iterator[tuple[int, str]]:
    """Yields what needs which IR version, functions aside."""
    for value in (*model.graph.input, *model.graph.output):
        version = _of_type(value.type)
        if version:
            yield version, f"the type of {value.name!r}"
    for graph in graphs:
        for tensor in graph.initializer:
            if tensor.data_type in _BY_NUMBER:
                yield _BY_NUMBER[tensor.data_type], f"initializer {tensor.name!r}"
        if graph.quantization_annotation:
            yield 5, "quantization annotations"
        if graph.sparse_initializer:
            yield 6, "a sparse initializer"
    if model.training_info:
        yield 7, "training information"


def _of_type(kind: TypeProto) -> int:
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return _BY_NUMBER.get(kind.tensor_type.elem_type, 0)
    if which == "sequence_type":
        return _of_type(kind.sequence_type.elem_type)
    return 8 if which in ("optional_type", "sparse_tensor_type") else 0


def needed(model: ModelProto, graphs: Iterable[GraphProto], *, keep_functions: bool) -> tuple[int, str]:
    """Returns the lowest IR version that can hold the model, and what asks for it. `graphs` are all of the model;
    functions count only if they are kept."""
    floor, reason = max(_needs(model, graphs), default=(0, ""), key=lambda need: need[0])
    if keep_functions:
        for function in model.functions:
            if of_function(function) > floor:
                floor, reason = of_function(function), f"function {function.name!r}"
    return floor, reason


def within(
    model: ModelProto,
    graphs: Iterable[GraphProto],
    opset: int,
    most: int | None,
    wanted: int | None,
    *,
    raised: bool,
    keep_functions: bool,
) -> int:
    """Returns the IR version of the model for a runtime that loads `most` (None: any): its own, or `most` where that is
    lower.

    It exceeds `most` where the content does. With a `raised` opset it rises as far as it may. UsageError if `wanted` is
    higher or not possible.
    """
    present = max(model.ir_version, opsets.INPUTS_ONLY)
    own = max(present, opsets.ir_version_of(opset)) if raised else present
    best = own if most is None else min(own, most)
    if wanted is not None and wanted > best:
        raise UsageError(f"IR version {wanted} is higher than {best}: for a runtime it can only be lowered")
    if wanted is not None:
        return choose(model, graphs, opset, wanted, rising=False, keep_functions=keep_functions)
    return max(best, needed(model, graphs, keep_functions=keep_functions)[0])


def excess(
    model: ModelProto, graphs: Iterable[GraphProto], most: int | None, runtime: str, *, keep_functions: bool
) -> list[Refusal]:
    """Returns what in the model needs a higher IR version than the most that a runtime loads (None: any)."""
    floor, reason = needed(model, graphs, keep_functions=keep_functions)
    if most is None or floor <= most:
        return []
    why = f"needs IR version {floor}, and {runtime} loads {most} at most"
    remedy = "a newer runtime, or a model without it"
    return [Refusal("model", "", reason, 0, opsets.DOWN, why, remedy, code="runtime-ir-version")]


def choose(
    model: ModelProto,
    graphs: Iterable[GraphProto],
    opset: int,
    wanted: int | None,
    *,
    rising: bool,
    keep_functions: bool,
) -> int:
    """Returns the IR version of the model at an ai.onnx opset. Functions that need a higher one will be inlined unless
    they are kept. Raises UsageError if `wanted` is not possible."""
    floor, reason = needed(model, graphs, keep_functions=keep_functions)
    if wanted is not None:
        newest = opsets.newest_ir_version()
        if not opsets.INPUTS_ONLY <= wanted <= newest:
            raise UsageError(f"IR version {wanted} is not one of {opsets.INPUTS_ONLY} to {newest}")
        if wanted < floor:
            raise UsageError(f"IR version {wanted} is not enough: {reason} needs {floor}")
        return wanted
    usual = opsets.ir_version_of(opset)
    present = max(model.ir_version, opsets.INPUTS_ONLY)
    return max(floor, max(present, usual) if rising else min(present, usual))
