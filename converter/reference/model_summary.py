# SPDX-License-Identifier: Apache-2.0
"""Describes a file: who made it, what is in it, how far it can go, and which runtimes load it as it is.

Goes through the graph once; no weight is read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto, GraphProto, TensorProto

from onnx_convert.model.graphs import subgraphs
from onnx_convert.planning.node_kinds import kinds_of, named, reasons_of
from onnx_convert.planning.reach import Reach
from onnx_convert.planning.remedies import way_around
from onnx_convert.spec import opsets
from onnx_convert.storage import tensor_data
from onnx_convert.target import kernels, runtimes
from onnx_convert.validation.validate import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from onnx import FunctionProto, TypeProto

    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.node_kinds import Kind
    from onnx_convert.report import Refusal
    from onnx_convert.target.kernels import Table
    from onnx_convert.target.request import Request
    from onnx_convert.target.runtimes import Runtime


@dataclass(slots=True)
class Description:
    """The contents of a model, nodes and weights of subgraphs and functions included; sizes are in bytes.

    `lowest` and `highest` are the ai.onnx opsets within reach (0 without ai.onnx), `below` and `above` what is refused
    one opset further.
    """

    source: str = ""
    producer: str = ""
    ir_version: int = 0
    opsets: dict[str, int] = field(default_factory=dict)  # by domain; the default domain is "ai.onnx"
    stamped: dict[str, int] = field(default_factory=dict)  # what the stamp says of opsets that were declared otherwise
    notes: list[str] = field(default_factory=list)
    nodes: int = 0
    operators: Counter[str] = field(default_factory=Counter)  # by name, with the domain unless it is ai.onnx
    functions: list[str] = field(default_factory=list)  # as domain.name
    subgraphs: int = 0
    weights: int = 0  # tensors: initializers, and attributes as those of Constant
    weight_bytes: int = 0
    data_files: dict[str, int] = field(default_factory=dict)  # bytes of weights by location
    dtypes: Counter[str] = field(default_factory=Counter)  # of weights, graph inputs and outputs
    lowest: int = 0
    highest: int = 0
    below: Sequence[Refusal] = ()
    above: Sequence[Refusal] = ()
    inputs: dict[str, str] = field(default_factory=dict)  # type by name: "float[n, 3, 224, 224]"; initializers apart
    outputs: dict[str, str] = field(default_factory=dict)
    missing_data: dict[str, str] = field(default_factory=dict)  # data files that cannot be used: what is wrong, by name
    runtimes: list[Runtime] = field(default_factory=list)  # that load it as it is
    kernels: dict[str, list[str]] = field(default_factory=dict)  # what those have no kernel for of which that is known
    on_cpu: dict[str, list[str]] = field(default_factory=dict)  # what the CPU runs for those that have a provider
    unknown: list[str] = field(default_factory=list)  # operators that ONNX does not have at the model's opset
    foreign: dict[str, Counter[str]] = field(default_factory=dict)  # nodes of neither ONNX nor the model, by domain
    taught: list[Runtime] = field(default_factory=list)  # that load it once they are taught operators among `foreign`
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Returns the description as plain data, fit for JSON."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain["below"] = [refusal.to_dict() for refusal in self.below]
        plain["above"] = [refusal.to_dict() for refusal in self.above]
        plain["runtimes"] = [runtime.to_dict() for runtime in self.runtimes]
        plain["taught"] = [runtime.to_dict() for runtime in self.taught]
        return plain


def describe(source: SourceModel, request: Request) -> Description:
    """Describes a model, and how far it can be brought with what the request allows."""
    model, reach = source.proto, Reach(source, request)
    validate(source)
    told = Description(source=source.name, ir_version=model.ir_version)
    told.producer = f"{model.producer_name} {model.producer_version}".strip()
    told.opsets = source.imports.shown
    if source.restamping is not None:
        told.stamped, told.notes = source.restamping.shown, source.restamping.told
    initializers = {tensor.name for tensor in model.graph.initializer}
    told.inputs = {value.name: type_text(value.type) for value in model.graph.input if value.name not in initializers}
    told.outputs = {value.name: type_text(value.type) for value in model.graph.output}
    told.functions = [f"{opsets.shown(function.domain)}.{function.name}" for function in model.functions]
    for values in (model.graph.input, model.graph.output):
        told.dtypes.update(dtype for value in values if (dtype := _dtype(value.type)))
    _count(model.graph, told)
    for training in model.training_info:
        _count(training.initialization, told)
        _count(training.algorithm, told)
    for function in model.functions:
        _count(function, told)
    told.nodes = told.operators.total()
    if opsets.AI_ONNX in source.imports.main:
        told.lowest, told.below = reach.limit(1)
        told.highest, told.above = reach.limit(opsets.latest())
    told.below, told.above = (
        [refusal._replace(remedy=refusal.remedy or way_around(refusal)) for refusal in refusals]
        for refusals in (told.below, told.above)
    )
    told.missing_data = source.missing
    told.foreign = source.foreign
    as_it_is = told.opsets | told.stamped
    refused = [refusal for refusal in (*told.below, *told.above) if refusal.code == "unknown-operator"]
    told.unknown = sorted({refusal.operator for refusal in refused})
    loading = (
        [] if told.unknown else [runtime for runtime in runtimes.listed() if runtime.loads(as_it_is, told.ir_version)]
    )
    told.runtimes = [runtime for runtime in loading if not runtime.lacks(told.foreign)]
    told.taught = [runtime for runtime in loading if runtime.lacks(told.foreign)]
    kinds = kinds_of(source) if any(runtime.kernels for runtime in loading) else {}
    told.kernels = _without_kernels(kinds, loading, kernels.of_runtime)
    told.on_cpu = _without_kernels(kinds, loading, kernels.of_provider)
    return told


def _without_kernels(
    kinds: Mapping[Kind, list[str]], loading: Sequence[Runtime], table_of: Callable[[Runtime], Table | None]
) -> dict[str, list[str]]:
    """Returns what each runtime has no kernel for in a table, by its name and version; for those that have one."""
    tables = {str(runtime): table for runtime in loading if (table := table_of(runtime)) is not None}
    found: dict[tuple[str, str], list[str]] = {}  # one onnxruntime is in many
    for table in tables.values():
        if (table.name, table.release) not in found:
            reasons = reasons_of(kinds, table)
            found[table.name, table.release] = [f"{reason} ({named(names)})" for reason, names in reasons.items()]
    return {name: found[table.name, table.release] for name, table in tables.items()}


def type_text(kind: TypeProto) -> str:
    """Returns a type for people: `float[n, 3]`, `float scalar`, `float of unknown rank`, `sequence of int64[?]`."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(kind, which)
        dtype = ("sparse " if which == "sparse_tensor_type" else "") + (_name(tensor.elem_type) or "unknown dtype")
        if not tensor.HasField("shape"):
            return f"{dtype} of unknown rank"
        dims = [str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]
        return f"{dtype}[{', '.join(dims)}]" if dims else f"{dtype} scalar"
    if which in ("sequence_type", "optional_type"):
        return f"{which.removesuffix('_type')} of {type_text(getattr(kind, which).elem_type)}"
    if which == "map_type":
        return f"map of {_name(kind.map_type.key_type)} to {type_text(kind.map_type.value_type)}"
    return "unknown type"


def _count(body: GraphProto | FunctionProto, told: Description) -> None:
    """Adds the nodes and weights of a graph or function body, and of what is nested in it."""
    for tensor in _weights(body):
        size = tensor_data.bytes_needed(tensor) or 0
        told.weights += 1
        told.weight_bytes += size
        told.dtypes[_name(tensor.data_type)] += 1
        location = tensor_data.external_data(tensor).get("location", "") if tensor.external_data else ""
        if isinstance(location, str) and location and not location.startswith("\0"):  # else it is in the file itself
            told.data_files[location] = told.data_files.get(location, 0) + size
    for node in body.node:
        domain = opsets.canonical_domain(node.domain)
        told.operators[f"{domain}.{node.op_type}" if domain else node.op_type] += 1
        for _, _, graph in subgraphs(node):
            told.subgraphs += 1
            _count(graph, told)


def _weights(body: GraphProto | FunctionProto) -> Iterator[TensorProto]:
    if isinstance(body, GraphProto):
        yield from body.initializer
        yield from (sparse.values for sparse in body.sparse_initializer)
    for node in body.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == AttributeProto.SPARSE_TENSOR:
                yield attribute.sparse_tensor.values


def _dtype(kind: TypeProto) -> str:
    """Returns the dtype of the elements of a tensor, sparse tensor, sequence or optional; "" if it is not stated."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        return _name(getattr(kind, which).elem_type)
    return _dtype(getattr(kind, which).elem_type) if which in ("sequence_type", "optional_type") else ""


def _name(dtype: int) -> str:
    known = dtype and dtype in TensorProto.DataType.values()
    return TensorProto.DataType.Name(dtype).lower() if known else f"dtype {dtype}" if dtype else ""
