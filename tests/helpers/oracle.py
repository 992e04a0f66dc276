# SPDX-License-Identifier: Apache-2.0
"""The oracle: runs a model, compares two sets of results, makes inputs, and tells whether a model is legal.

ONNX Runtime, with all of its optimisations off, has the first word. What it does not run (operators of the opsets
below 7, some dtypes, opsets newer than itself) goes to onnx's reference evaluator, with the meaning of the old
operators put right by `oracle_legacy`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, NotImplemented

from oracle_legacy import LEGACY, legacy_operators

Feeds = Mapping[str, Any]

ONNXRUNTIME = "onnxruntime"
REFERENCE = "reference"


@dataclass(frozen=True)
class Evaluation:
    """The outputs of one run in graph order, who computed them, and why onnxruntime did not (if it did not)."""

    values: list[Any]
    evaluator: str
    why: str = ""


def run(model: ModelProto, feeds: Feeds) -> list[Any]:
    """Returns the outputs of a model, in graph order."""
    return evaluate(model, feeds).values


def evaluate(model: ModelProto, feeds: Feeds) -> Evaluation:
    """Runs a model on onnxruntime, or on the reference where onnxruntime has no kernel for it.

    An error while running is raised: a model that onnxruntime loads must also run there.
    """
    foreign = sorted({str(d) for d in _interface_dtypes(model) if d.kind not in "biufO"} | _foreign(model))
    if foreign:
        return Evaluation(run_reference(model, feeds), REFERENCE, f"numpy has no {', '.join(foreign)}")
    try:
        session = _session(one_spelling(model))  # onnxruntime knows the other one in the main graph only
    except (Fail, InvalidGraph, NotImplemented) as unfit:  # invalid: its own Casts around float16, below opset 6
        return Evaluation(run_reference(model, feeds), REFERENCE, str(unfit))
    own = {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in feeds.items()}
    return Evaluation(list(session.run(None, own)), ONNXRUNTIME)  # BatchNormalization in training writes to its inputs


def _session(model: ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run_reference(model: ModelProto, feeds: Feeds) -> list[Any]:
    """Returns the outputs of a model by onnx's reference evaluator, with the semantics of the model's own opset."""
    model = onnx.inliner.inline_local_functions(one_spelling(model))  # functions would not see our operators
    opset = opset_of(model)
    for node in all_nodes(model):
        _state_for_reference(node, opset)
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model, new_ops=legacy_operators(opset)).run(None, dict(feeds)))


def _state_for_reference(node: NodeProto, opset: int) -> None:
    """The reference knows no memory hints of opset 1, and takes every default from the newest schema."""
    for attribute in list(node.attribute):
        if attribute.name == "consumed_inputs" and node.op_type not in LEGACY:
            node.attribute.remove(attribute)
    if node.op_type == "AveragePool" and opset < 7:  # without the attribute the reference counts the padding
        node.attribute.append(onnx.helper.make_attribute("count_include_pad", 0))
    if node.domain or not (schema := _schema(node, opset)) or not (newest := _schema(node, _newest())):
        return
    present = {a.name for a in node.attribute}
    for name, attribute in schema.attributes.items():
        default = attribute.default_value
        if name in present or name not in newest.attributes or default.type == AttributeProto.UNDEFINED:
            continue
        if default != newest.attributes[name].default_value:
            node.attribute.append(default)


# ---- comparing


TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


def compare(expected: Sequence[Any], got: Sequence[Any], *, exact: bool = False) -> str | None:
    """Returns None if two lists of results agree, else one sentence that says what differs.

    Dtypes and shapes must match. Floats agree within the tolerance of their dtype (absolute and relative), NaN with
    NaN, infinities with the same; everything else must be equal. `exact` demands equal bits, NaN payloads apart.
    """
    if len(expected) != len(got):
        return f"{len(expected)} results were expected, there are {len(got)}"
    for position, (one, other) in enumerate(zip(expected, got, strict=True)):
        if difference := _difference(one, other, exact):
            return f"result {position}: {difference}"
    return None


def _difference(expected: Any, got: Any, exact: bool) -> str | None:
    if expected is None or got is None:
        return None if expected is got else "one of the two is absent"
    if isinstance(expected, list) or isinstance(got, list):
        if not (isinstance(expected, list) and isinstance(got, list)):
            return "one of the two is a sequence"
        return compare(expected, got, exact=exact)
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.dtype != got.dtype and not {expected.dtype.kind, got.dtype.kind} <= set("OUT"):
        return f"dtype {expected.dtype} was expected, it is {got.dtype}"
    if expected.shape != got.shape:
        return f"shape {expected.shape} was expected, it is {got.shape}"
    same = np.asarray(_same_bits(expected, got) if exact else _close(expected, got))
    if same.all():
        return None
    first = tuple(int(i) for i in np.argwhere(~same)[0])
    return (
        f"{same.size - int(same.sum())} of {same.size} elements differ, first at {first}: "
        f"{expected[first]} was expected, it is {got[first]}"
    )


def _is_float(dtype: np.dtype[Any]) -> bool:
    return "float" in dtype.name


def _close(expected: np.ndarray, got: np.ndarray) -> Any:
    if not _is_float(expected.dtype):
        return expected == got
    tolerance = TOLERANCE.get(expected.dtype.name, 0.0)  # float8 and smaller: equal
    return np.isclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def _same_bits(expected: np.ndarray, got: np.ndarray) -> Any:
    if not _is_float(expected.dtype):
        return expected == got
    unsigned = f"u{expected.dtype.itemsize}"
    bits = np.atleast_1d(expected).view(unsigned) == np.atleast_1d(got).view(unsigned)
    return bits.reshape(expected.shape) | (np.isnan(expected) & np.isnan(got))


# ---- inputs


def feeds_for(model: ModelProto, seed: int = 0, dims: Mapping[str, int] | None = None) -> dict[str, np.ndarray]:
    """Returns random values for every graph input that no initializer fills; the same for the same seed.

    `dims` gives symbolic dimensions a size; what is missing is 2, 3, 4 ... by order of appearance. Floats lie around
    0 and hold some exact zeros, integers are small; a divisor is never 0.
    """
    random = np.random.default_rng(seed)
    sizes = dict(dims or {})
    filled = {t.name for t in model.graph.initializer}
    divisors = {n.input[1] for n in all_nodes(model) if n.op_type in ("Div", "Mod")}
    divisors |= {n.input[0] for n in all_nodes(model) if n.op_type == "Reciprocal"}
    feeds = {}
    for value in model.graph.input:
        if value.name in filled:
            continue
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            raise ValueError(f"input {value.name!r} has no rank, so its value has to be given")
        shape = []
        for dim in kind.shape.dim:
            fresh = 2 + len(sizes)
            shape.append(
                dim.dim_value if dim.HasField("dim_value") else sizes.setdefault(dim.dim_param or f"?{fresh}", fresh)
            )
        array = random_array(random, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), tuple(shape))
        if value.name in divisors:
            array = np.where(array == 0, np.ones_like(array), array)
        feeds[value.name] = array
    return feeds


def random_array(random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Values of one dtype that are representable in it: reals within about +-3, integers within -4..4 (0..7)."""
    if dtype.kind == "O":
        return random.choice(np.array(["", "a", "b", "ab"], dtype=object), size=shape)
    if dtype.kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    if _is_float(dtype):
        values = random.standard_normal(shape)
        return np.asarray(np.where(random.random(shape) < 0.1, 0.0, values)).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    low, high = (0, 8) if "uint" in dtype.name else (-4, 5)
    if dtype.name.endswith("int2"):
        low, high = (0, 4) if low == 0 else (-2, 2)
    return np.asarray(random.integers(low, high, size=shape)).astype(dtype)


# ---- legality


def validate(model: ModelProto) -> None:
    """Raises unless the model is legal: onnx's full check passes (where all operators have inference), every node of
    the default domain fits the schema of the opset of its scope (also in subgraphs and functions), and the IR version
    has what the model uses."""
    model = one_spelling(model)
    onnx.checker.check_model(model, full_check=is_inferable(model))
    _validate_ir(model)
    for root, opset in [(model.graph, opset_of(model)), *((f, opset_of(f)) for f in model.functions)]:
        for node in nodes_of(root):
            if not node.domain:
                _validate_node(node, opset)


def is_inferable(model: ModelProto) -> bool:
    """Tells whether every operator has type inference: many of opsets 1 to 5 have none, nor has Compress below 11, and
    what follows them fails strict inference."""
    schemas = (_schema(node, opset_of(model)) for node in all_nodes(model) if node.domain in ("", "ai.onnx"))
    unranked = any(node.op_type == "Upsample" for node in all_nodes(model)) and opset_of(model) < 9  # needs a rank
    return not unranked and all(schema is None or schema.has_type_and_shape_inference_function for schema in schemas)


def _validate_ir(model: ModelProto) -> None:
    if model.ir_version < 4:
        missing = {t.name for t in model.graph.initializer} - {v.name for v in model.graph.input}
        assert not missing, f"IR version {model.ir_version}: the initializers {sorted(missing)} are no graph inputs"
    assert model.ir_version >= 8 or not model.functions, f"IR version {model.ir_version} has no functions"
    opset = opset_of(model)
    least = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)])
    assert model.ir_version >= least, f"opset {opset} came with IR version {least}, the model has {model.ir_version}"


def _validate_node(node: NodeProto, opset: int) -> None:
    name = f"{node.op_type} {node.name or list(node.output)}"
    schema = _schema(node, opset)
    assert schema is not None, f"{name}: there is no such operator at opset {opset}"
    assert not schema.deprecated, f"{name} is deprecated at opset {opset}"
    inputs, outputs = len(node.input), len(node.output)
    assert schema.min_input <= inputs <= schema.max_input, f"{name}: {inputs} inputs at opset {opset}"
    assert schema.min_output <= outputs <= schema.max_output, f"{name}: {outputs} outputs at opset {opset}"
    for attribute in node.attribute:
        known = schema.attributes.get(attribute.name)
        assert known, f"{name}: there is no attribute {attribute.name!r} at opset {opset}"
        assert int(known.type.value) == attribute.type, f"{name}: attribute {attribute.name!r} has the wrong type"
        assert opset >= 11 or not _is_negative_axis(attribute) or _promises(known, attribute), (
            f"{name}: a negative {attribute.name!r} is not promised at opset {opset}"
        )
    present = {a.name for a in node.attribute}
    for attribute_name, known in schema.attributes.items():
        assert not known.required or attribute_name in present, f"{name}: attribute {attribute_name!r} is missing"


def _is_negative_axis(attribute: AttributeProto) -> bool:
    return attribute.name in ("axis", "axes") and min([attribute.i, *attribute.ints]) < 0


def _promises(known: onnx.defs.OpSchema.Attribute, attribute: AttributeProto) -> bool:
    """Tells whether the text lets this axis be negative: runtimes often do so anyway, so numbers alone would not
    tell."""
    return "egative" in known.description or "[-" in known.description or attribute.i == known.default_value.i < 0


# ---- walking


def opset_of(scope: ModelProto | FunctionProto) -> int:
    """Returns the opset of the default domain, however it is spelled."""
    return next(o.version for o in scope.opset_import if o.domain in ("", "ai.onnx"))


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


def scopes(model: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """The main graph, every function, and every subgraph of these."""
    for root in (model.graph, *model.functions):
        yield from nested(root)


def nested(root: GraphProto | FunctionProto) -> Iterator[GraphProto | FunctionProto]:
    """Returns a graph or function and every subgraph of it."""
    yield root
    for node in root.node:
        for attribute in node.attribute:
            for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                yield from nested(graph)


def nodes_of(root: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Returns the nodes of a graph or function with those of its subgraphs."""
    for scope in nested(root):
        yield from scope.node


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Returns every node of a model."""
    for root in (model.graph, *model.functions):
        yield from nodes_of(root)


def _newest() -> int:
    return int(onnx.defs.onnx_opset_version())


def _schema(node: NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
    except onnx.defs.SchemaError:
        return None


def _interface_dtypes(model: ModelProto) -> Iterator[np.dtype[Any]]:
    for value in (*model.graph.input, *model.graph.output):
        if elem_type := value.type.tensor_type.elem_type:
            yield onnx.helper.tensor_dtype_to_np_dtype(elem_type)


def _foreign(model: ModelProto) -> set[str]:
    """Returns the dtypes of the interface that numpy has only through ml_dtypes, some of which call themselves
    integers."""
    return {d.name for d in _interface_dtypes(model) if d.kind in "iuf" and d.type.__module__ != "numpy"}
