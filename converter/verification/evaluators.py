# SPDX-License-Identifier: Apache-2.0
"""Who computes: ONNX Runtime with its optimisations off; where it has no kernel, onnx's reference evaluator.

The reference gets the meaning of old operators from `legacy`. ONNX Runtime is imported when a model is to run.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy
import onnx
import onnx.inliner
from onnx import AttributeProto, ModelProto
from onnx.reference import ReferenceEvaluator

from onnx_convert.model.graphs import every_node
from onnx_convert.spec import opsets
from onnx_convert.verification.legacy import LEGACY, legacy_operators

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import NodeProto, TypeProto

    Feeds = Mapping[str, Any]

ONNXRUNTIME: Final = "onnxruntime"
REFERENCE: Final = "onnx.reference"

MISSING: Final = 'onnxruntime is not installed (pip install "onnx-convert[verify]")'
_UNABLE: Final = ("NotImplemented", "Fail", "InvalidGraph")  # its errors for a model that it cannot load
_LIMIT: Final = "Subgraph must have the shape set for all outputs"  # of a Scan: its own inference did not find them


class LacksError(Exception):
    """An evaluator does not take a model, which says nothing about the model."""


class RunError(Exception):
    """An evaluator takes the model, and fails on these inputs."""


@dataclass(frozen=True)
class Evaluation:
    """The outputs of one run in graph order, who computed them, and why onnxruntime did not (if it did not)."""

    values: list[Any]
    evaluator: str
    why: str = ""


class OnnxRuntime:
    """A model in a session of onnxruntime. Raises LacksError if it does not load there."""

    name = ONNXRUNTIME

    def __init__(self, model: bytes | str, *, folder: str = "", threads: int = 0) -> None:
        try:
            self._session = session_of(model, folder=folder, threads=threads)
        except Exception as error:
            if type(error).__name__ not in _UNABLE:  # LacksError among others
                raise
            raise LacksError(first_line(error)) from error

    def run(self, feeds: Feeds) -> list[Any]:
        """Returns the outputs in graph order. Raises RunError, LacksError if a kernel is missing after all."""
        own = {name: numpy.copy(value) if isinstance(value, numpy.ndarray) else value for name, value in feeds.items()}
        try:
            return list(self._session.run(None, own))  # BatchNormalization in training writes to its inputs
        except Exception as error:
            if type(error).__name__ == "NotImplemented" or _LIMIT in str(error):
                raise LacksError(first_line(error)) from error
            raise RunError(first_line(error)) from error


class Reference:
    """A model, with its weights, on onnx's reference evaluator."""

    name = REFERENCE

    def __init__(self, model: ModelProto) -> None:
        try:
            self._evaluator = reference(model)
        except Exception as error:
            raise LacksError(first_line(error)) from error

    def run(self, feeds: Feeds) -> list[Any]:
        """Returns the outputs in graph order. Raises RunError."""
        try:
            with numpy.errstate(all="ignore"):
                return list(self._evaluator.run(None, dict(feeds)))
        except Exception as error:
            raise RunError(first_line(error)) from error


def session_of(model: bytes | str, *, folder: str = "", threads: int = 0) -> Any:
    """Returns a session of onnxruntime without optimisations; external data of bytes lie in `folder`. LacksError if
    there is no onnxruntime."""
    onnxruntime = _onnxruntime()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if folder:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def installed() -> bool:
    """Returns whether there is an onnxruntime."""
    with suppress(LacksError):
        return _onnxruntime() is not None
    return False


def version_of(evaluator: str) -> str:
    """Returns an evaluator with its version, for people."""
    return (
        f"onnxruntime {_onnxruntime().__version__}" if evaluator == ONNXRUNTIME else f"{REFERENCE} {onnx.__version__}"
    )


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise LacksError(MISSING) from error
    return onnxruntime


def evaluate(model: ModelProto, feeds: Feeds) -> Evaluation:
    """Runs a model on onnxruntime, or on the reference where onnxruntime has no kernel for it.

    An error while running is raised: a model that onnxruntime loads must also run there.
    """
    if foreign := foreign_dtypes(model):
        return Evaluation(run_reference(model, feeds), REFERENCE, foreign)
    try:  # onnxruntime knows the long name of the domain in the main graph only
        session = OnnxRuntime(one_spelling(model).SerializeToString(), threads=1)
    except LacksError as unfit:
        return Evaluation(run_reference(model, feeds), REFERENCE, str(unfit))
    try:
        return Evaluation(session.run(feeds), ONNXRUNTIME)
    except (RunError, LacksError) as error:
        raise error.__cause__ or error from None


def run_reference(model: ModelProto, feeds: Feeds) -> list[Any]:
    """Returns the outputs of a model by onnx's reference evaluator, with the semantics of the model's own opset."""
    with numpy.errstate(all="ignore"):
        return list(reference(model).run(None, dict(feeds)))


def reference(model: ModelProto) -> ReferenceEvaluator:
    """Returns onnx's reference evaluator for a model, with the semantics of the model's own opset."""
    model = onnx.inliner.inline_local_functions(one_spelling(model))  # functions would not see our operators
    opset = opset_of(model)
    for node in all_nodes(model):
        _state_for_reference(node, opset)
    return ReferenceEvaluator(model, new_ops=legacy_operators(opset))


def _state_for_reference(node: NodeProto, opset: int) -> None:
    """States a node for the reference, which knows no memory hints and takes every default from the newest schema."""
    for attribute in list(node.attribute):
        if attribute.name == "consumed_inputs" and node.op_type not in LEGACY:
            node.attribute.remove(attribute)
    if node.op_type == "AveragePool" and opset < 7:  # without the attribute the reference counts the padding
        node.attribute.append(onnx.helper.make_attribute("count_include_pad", 0))
    if node.domain or not (schema := _schema(node, opset)) or not (newest := _schema(node, opsets.latest())):
        return
    present = {a.name for a in node.attribute}
    for name, attribute in schema.attributes.items():
        default = attribute.default_value
        if name in present or name not in newest.attributes or default.type == AttributeProto.UNDEFINED:
            continue
        if default != newest.attributes[name].default_value:
            node.attribute.append(default)


def _schema(node: NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    return opsets.schema_at(node.op_type, opset, opsets.canonical_domain(node.domain))


def foreign_dtypes(model: ModelProto) -> str:
    """Returns why onnxruntime cannot be given the inputs and outputs of a model: numpy has some dtypes only through
    ml_dtypes; "" if it can."""
    found = set()
    for value in (*model.graph.input, *model.graph.output):
        for number in _element_types(value.type):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
            if dtype.kind not in "biufcO" or (dtype.kind in "iuf" and dtype.type.__module__ != "numpy"):
                found.add(str(dtype))
    return f"numpy has no {', '.join(sorted(found))}" if found else ""


def _element_types(kind: TypeProto) -> Iterator[int]:
    which = kind.WhichOneof("value")
    if which == "sequence_type":
        yield from _element_types(kind.sequence_type.elem_type)
    elif which == "optional_type":
        yield from _element_types(kind.optional_type.elem_type)
    elif which == "tensor_type" and kind.tensor_type.elem_type:
        yield kind.tensor_type.elem_type


def opset_of(model: ModelProto) -> int:
    """Returns the opset of the default domain, however it is spelled; 0 if the model has none."""
    return max((entry.version for entry in model.opset_import if not opsets.canonical_domain(entry.domain)), default=0)


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Yields every node of a model, those of subgraphs and functions included."""
    for body in (model.graph, *model.functions):
        yield from every_node(body)


def one_spelling(model: ModelProto) -> ModelProto:
    """Returns a copy in which the default domain is spelled "", which is the only spelling that onnx's tools know in
    nodes."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for node in all_nodes(copy):
        if node.domain == "ai.onnx":
            node.domain = ""
    for scope in (copy, *copy.functions):
        for opset in scope.opset_import:
            if opset.domain == "ai.onnx":
                opset.domain = ""
    return copy


def first_line(error: BaseException) -> str:
    """Returns an error as one line that is not too long."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]
