# SPDX-License-Identifier: Apache-2.0
"""Writes what shows a difference into a folder that can be sent: the nodes around it as two small models, and inputs.

The folder has the layout of onnx's test data, so that `onnx-convert source.onnx --verify-against result.onnx
--inputs test_data_set_0` shows the difference again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, numpy_helper

from onnx_convert.errors import UsageError
from onnx_convert.model.graphs import used_names
from onnx_convert.spec.types import tensor_type
from onnx_convert.storage import test_data

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from onnx_convert.verification.first_difference import Found
    from onnx_convert.verification.outcome import FirstDifference
    from onnx_convert.verification.subjects import Subject

_SET = "test_data_set_0"


def check_place(folder: str | os.PathLike[str]) -> None:
    """Raises UsageError if there is something at the place of the folder."""
    if Path(folder).exists():
        raise UsageError(f"{folder}: exists already; the report of a difference needs a folder of its own")


def write(
    folder: str | os.PathLike[str], found: Found, told: FirstDifference, source: Subject, result: Subject
) -> None:
    """Writes the models, the inputs, what both computed, and a page that says what is what."""
    inputs = {name: value for name, value in found.known.items() if is_tensor(value)}
    files = {
        "source.onnx": around(source, found.source, inputs, found.value).SerializeToString(),
        "result.onnx": around(result, found.result, inputs, found.value).SerializeToString(),
        "README.md": _page(told).encode(),
    }
    for number, (name, value) in enumerate(inputs.items()):
        files[f"{_SET}/input_{number}.pb"] = _tensor(name, value)
    if is_tensor(found.expected) and is_tensor(found.got):
        files[f"{_SET}/output_0.pb"] = _tensor(found.value, found.expected)
        files["output_of_result.pb"] = _tensor(found.value, found.got)
    test_data.write(Path(folder), files)


def around(subject: Subject, nodes: Sequence[NodeProto], inputs: Mapping[str, Any], value: str) -> ModelProto:
    """Returns some nodes of a model as a model of their own, with the constants that they use."""
    source = subject.proto
    model = ModelProto(ir_version=source.ir_version, opset_import=source.opset_import, functions=source.functions)
    graph = model.graph
    graph.name = source.graph.name or "around"
    graph.node.extend(nodes)
    used = {name for node in nodes for name in used_names(node)}
    for tensor in source.graph.initializer:
        if tensor.name in used:
            graph.initializer.append(_loaded(subject, tensor))
    graph.sparse_initializer.extend(t for t in source.graph.sparse_initializer if t.values.name in used)
    kinds = {v.name: v.type for v in (*source.graph.input, *source.graph.value_info, *source.graph.output)}
    for name, array in inputs.items():
        graph.input.append(ValueInfoProto(name=name, type=_type(numpy.asarray(array))))
    if source.ir_version < 4:  # where each initializer is an input
        for tensor in graph.initializer:
            graph.input.append(ValueInfoProto(name=tensor.name, type=tensor_type(tensor.data_type, tensor.dims)))
    graph.output.append(ValueInfoProto(name=value, type=kinds.get(value) or _inferred(model, value)))
    return model


def _loaded(subject: Subject, tensor: TensorProto) -> TensorProto:
    """Returns a tensor with its elements."""
    if not tensor.external_data:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(subject.source.elements(tensor)), tensor.name)


def _inferred(model: ModelProto, value: str) -> TypeProto | None:
    trial = ModelProto()
    trial.CopyFrom(model)
    trial.graph.output.append(ValueInfoProto(name=value))
    try:
        graph: GraphProto = onnx.shape_inference.infer_shapes(trial).graph
    except onnx.shape_inference.InferenceError:
        return None
    kind = next((known.type for known in graph.output if known.name == value), TypeProto())
    return kind if kind.WhichOneof("value") else None


def _type(array: numpy.ndarray[Any, Any]) -> TypeProto:
    return tensor_type(_number(array), array.shape)


def _number(array: numpy.ndarray[Any, Any]) -> int:
    if array.dtype.kind in "OUT":
        return TensorProto.STRING
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def is_tensor(value: Any) -> bool:
    """Returns whether a value is a tensor."""
    return isinstance(value, numpy.ndarray | numpy.generic)


def _tensor(name: str, value: Any) -> bytes:
    data: bytes = numpy_helper.from_array(numpy.asarray(value), name).SerializeToString()
    return data


def _page(told: FirstDifference) -> str:
    became = f" became {', '.join(told.became)}" if told.became else " is as it was"
    by = f" (adapter {told.adapter})" if told.adapter else ""
    return (
        f"# {told.operator} {told.node!r} computes something else\n\n"
        f"It{became}{by}. Value {told.value!r}: {told.why}.\n\n"
        "- `source.onnx`: the node, with the constants that it uses; `result.onnx`: what it became\n"
        f"- `{_SET}`: the inputs on which they differ, and what the source computes; `output_of_result.pb`: what the "
        "result computes\n\n"
        "To see it again, in this folder:\n\n"
        f"    onnx-convert source.onnx --verify-against result.onnx --inputs {_SET}\n"
    )
