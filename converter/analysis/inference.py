# SPDX-License-Identifier: Apache-2.0
"""Asks onnx's inference about a whole view, about the body of a function, about a single node that was written."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import onnx
import onnx.shape_inference
from onnx import GraphProto, TensorProto, TypeProto

from onnx_convert.analysis import claims, corrections, partition, propagation, settling, view
from onnx_convert.analysis.onnx_inference import infer
from onnx_convert.spec import opsets, signatures
from onnx_convert.spec.types import tensor_type, type_str

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onnx import FunctionProto, NodeProto

    from onnx_convert.analysis.partition import Found
    from onnx_convert.analysis.view import View
    from onnx_convert.model.source import SourceModel


def in_chunks(seen: View, *, check_type: bool = True, check: Callable[[bytes], None] | None = None) -> Found | None:
    """Returns what inference finds of a long view with a look at elements, chunk by chunk, each of which `check` is
    given too. None if that has to be found of the whole, which also tells what is wrong."""
    return partition.inferred(seen, partial(_infer, check_type=check_type, data_prop=True), check)


def strictly(serialised: bytes, *, check_type: bool = True) -> GraphProto:
    """Returns the main graph of a serialised view, inferred; raises what is wrong, the dtypes that nodes take included.

    Inference takes some integers for shapes that are none, and fails where two of them are added: what passes without
    a look at elements is right.
    """
    try:
        return _infer(serialised, check_type=check_type, data_prop=True)
    except Exception:  # C++ errors come as several unrelated types
        return _infer(serialised, check_type=check_type, data_prop=False)


def _infer(serialised: bytes, *, check_type: bool, data_prop: bool) -> GraphProto:
    return infer(serialised, check_type=check_type, strict=True, data_prop=data_prop)


def of_source(
    source: SourceModel,
    disown: Callable[[set[str]], None] = lambda _: None,
    doubt: Callable[[], None] = lambda: None,
) -> GraphProto:
    """Returns the inferred main graph of a model; it may be without nodes if they are simple.

    What the model states of its values is believed only if nothing contradicts it: `disown` is told the values of
    which it states what is not so, and `doubt` is called if onnx finds fault with the model, or its statements.
    """
    seen = view.of_source(source)
    look = partial(strictly, check_type=False)  # which is for the result's check to see
    what = settling.concern(source.index.operators, source.imports.main, *source.imports.functions)
    states = bool(seen.head.graph.value_info)
    in_parts = in_chunks(seen, check_type=False)
    if in_parts is not None and settling.is_settled(in_parts, what, states=states):
        return in_parts.graph
    found = in_parts.graph if in_parts is not None else None
    serialised = (view.of_source(source) if in_parts is not None else seen).serialised()  # the first is spent then
    if found is None:
        found = _attempt(look, serialised)
    if found is None:
        doubt()
    if found is None or what:
        settled = claims.settle(serialised, found, look)
        disown(settled.false)
        return settled.graph
    return found


def _attempt(look: Callable[[bytes], GraphProto], serialised: bytes) -> GraphProto | None:
    try:
        return look(serialised)
    except Exception:  # C++ errors come as several unrelated types
        return None


def of_function(source: SourceModel, function: FunctionProto, inputs: Mapping[str, TypeProto]) -> GraphProto:
    """Returns the body of a function of a model as an inferred graph, given what is known of its inputs."""
    body = view.function_body(source, function, inputs)
    return settling.settle(body, claims.leniently(body.SerializeToString()), claims.leniently).graph


def of_node(
    node: NodeProto,
    opset: int,
    types: dict[str, TypeProto],
    data: dict[str, TensorProto],
    imports: Mapping[str, int],
) -> dict[str, TypeProto]:
    """Returns the types of the outputs of a node that is written for an opset of its domain, as far as they can be
    inferred.

    `types` holds an entry, at least an empty one, for every value that the node uses, and `data` the tensors behind
    those that are constant; `imports` are the opsets that nodes in its subgraphs are written for.
    """
    domain = opsets.canonical_domain(node.domain)
    schema = opsets.schema_at(node.op_type, opset, domain)
    signature = signatures.signature_of(node.op_type, opset, domain)
    if schema is None or signature is None or not signature.infers:  # onnx would answer, with a scalar
        return {}
    entries = [onnx.OperatorSetIdProto(domain=d, version=v) for d, v in {**imports, domain: opset}.items()]
    strange = _strange(node, signature, types)
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=entries)
    except Exception:  # the C++ side raises many kinds; the check of the whole result reports what is really wrong
        return {}
    for index, output in enumerate(node.output if strange else ()):
        dtype = strange.get(signature.formal_output(index).variable)
        if dtype and output in found:
            found[output].tensor_type.elem_type = dtype
    found = {output: kind for output, kind in found.items() if output and kind.WhichOneof("value")}
    return corrections.of_node(node, opset, found, types.get, _elements(types, data, opset))


def _elements(
    types: Mapping[str, TypeProto], data: Mapping[str, TensorProto], opset: int
) -> Callable[[str], propagation.Vector | None]:
    return propagation.Elements(data.get, types.get, opset).of


def _strange(node: NodeProto, signature: signatures.Signature, types: dict[str, TypeProto]) -> dict[str, int]:
    """Returns the dtypes that a node's version does not take, by type variable. A Cast sandwich may carry them later
    on: until then float stands in for them, so that inference finds the shapes."""
    found = {}
    for index, name in enumerate(node.input):
        formal, kind = signature.formal_input(index), types.get(name)
        if kind is None or not formal.bound or not kind.tensor_type.elem_type or type_str(kind) in formal.types:
            continue
        if "tensor(float)" in formal.types:
            found[formal.variable] = kind.tensor_type.elem_type
            types[name] = tensor_type(TensorProto.FLOAT)
            if kind.tensor_type.HasField("shape"):
                types[name].tensor_type.shape.CopyFrom(kind.tensor_type.shape)
    return found


def lines_of(error: Exception) -> list[str]:
    """Returns what an error of onnx says, a line each."""
    text = re.sub(r"^\[\w+\] Inference error\(s\): ", "", str(error).strip()) or type(error).__name__
    parts = re.split(r"\n(?=\(op_type)", text)
    return [" ".join(part.split()) for part in parts]
