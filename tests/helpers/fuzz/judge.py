# SPDX-License-Identifier: Apache-2.0
"""Carries a trial to its target, back, and step by step, and says what is wrong. A refusal never is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from conformance.evaluators import FAILED as RAISED
from conformance.evaluators import RAN, Outcome, execute
from onnx import ModelProto, NodeProto, TensorProto

import onnx_convert
from boundaries.variants import Case
from fuzz import apart
from fuzz.trials import Trial, released
from oracle import ONNXRUNTIME, REFERENCE, Feeds, all_nodes, compare, one_spelling, opset_of, validate

OUTCOMES = CONVERTED, REFUSED, FAILED, DISCARDED, UNVERIFIABLE, UNSTEADY = (
    "converted",
    "refused",
    "failed",
    "discarded",  # the source is not legal, or no evaluator runs it
    "unverifiable",  # no evaluator that can be trusted runs the result
    "unsteady",  # the source's own results change as much when its inputs change by one rounding
)

# What the reference evaluator does not know in all of its versions; onnxruntime alone is asked about these.
BEYOND_REFERENCE = set(
    """
    AveragePool BatchNormalization ConvTranspose DequantizeLinear GRU GlobalMaxPool GridSample LRN LSTM
    LpNormalization LpPool MaxPool MeanVarianceNormalization QuantizeLinear RNN Resize RoiAlign Upsample
    """.split()
)

# What both evaluators compute with constants of float, also in double.
SINGLE = {"Attention", "Gelu"}

# What onnxruntime does not run at an opset, at least in float16, though it does at the next one.
BROKEN = {("AffineGrid", 20)}


@dataclass(frozen=True)
class Verdict:
    """What became of a trial: the outcome, the kind of failure in one word, and what was seen."""

    outcome: str
    kind: str = ""
    why: str = ""
    nodes: frozenset[str] = frozenset()  # those that were refused


class _Fault(Exception):
    def __init__(self, kind: str, why: str) -> None:
        super().__init__(kind, why)
        self.kind, self.why = kind, why


@dataclass(frozen=True)
class _Runs:
    """What the evaluators make of a model: results by evaluator, and why onnxruntime broke off, if it did."""

    results: Mapping[str, list[Any]]
    broke: str = ""

    @property
    def disputed(self) -> bool:
        """Tells whether the evaluators disagree."""
        return len(self.results) == 2 and bool(compare(self.results[ONNXRUNTIME], self.results[REFERENCE]))


def _run(model: ModelProto, feeds: Feeds) -> _Runs:
    if _is_too_precise(model):
        return _Runs({})
    results, broke = {}, ""
    for evaluator in (ONNXRUNTIME, REFERENCE):
        if evaluator == REFERENCE and any(_is_beyond_reference(node) for node in all_nodes(model)):
            continue
        try:
            outcome = apart.call(execute, evaluator, model, feeds)
        except apart.Broke as error:
            outcome = Outcome(RAISED, why=str(error))
        if outcome.state == RAN:
            results[evaluator] = list(outcome.values)
        elif outcome.state == RAISED and evaluator == ONNXRUNTIME:
            broke = outcome.why
    return _Runs(results, broke)


def _is_beyond_reference(node: NodeProto) -> bool:
    """Of scalars, the reference stacks the scan outputs of a Loop to columns."""
    collects = node.op_type == "Loop" and len(node.output) > len(node.input) - 2
    return collects or node.op_type in BEYOND_REFERENCE


def _is_too_precise(model: ModelProto) -> bool:
    values = (*model.graph.input, *model.graph.output)
    double = any(value.type.tensor_type.elem_type == TensorProto.DOUBLE for value in values)
    return double and any(node.op_type in SINGLE for node in all_nodes(model))


def judge(trial: Trial) -> Verdict:
    """The verdict; raises nothing."""
    try:
        case = trial.disguised()
        validate(case.model)
    except Exception as error:  # noqa: BLE001 (the source is to blame, whatever it is)
        return Verdict(DISCARDED, why=f"{type(error).__name__}: {error}")
    expected = _run(case.model, case.feeds)
    if expected.broke:
        return Verdict(DISCARDED, why=expected.broke)
    for output, *results in zip(case.model.graph.output, *expected.results.values(), strict=True):
        known = trial.values.get(output.name)
        if known is not None and any(known.shape != np.shape(result) for result in results):
            return Verdict(DISCARDED, why=f"the shape of {output.name!r} is not what it says")
        if known is not None and any(known.dtype != np.asarray(result).dtype for result in results):
            return Verdict(DISCARDED, why=f"the dtype of {output.name!r} is not what it says")
    try:
        return _judge(trial, case, expected)
    except _Fault as fault:
        if fault.kind.startswith("numbers") and _is_unsteady(case, expected):
            return Verdict(UNSTEADY, fault.kind, fault.why)
        return Verdict(FAILED, fault.kind, fault.why)


def _judge(trial: Trial, case: Case, expected: _Runs) -> Verdict:
    before = case.model.SerializeToString(deterministic=True)
    conversion = _convert(case.model, trial.target, trial.options, "convert")
    if case.model.SerializeToString(deterministic=True) != before:
        raise _Fault("mutated", "the source was changed")
    if isinstance(conversion, onnx_convert.RefusedError):
        nodes = frozenset(refusal.node for refusal in conversion.refusals)
        return Verdict(REFUSED, why=str(conversion), nodes=nodes)
    result = conversion.model
    from_bytes = _convert(case.model.SerializeToString(), trial.target, trial.options, "bytes")
    if isinstance(from_bytes, onnx_convert.RefusedError) or from_bytes.model != result:
        raise _Fault("bytes", "the bytes of a file do not become the same as the message")
    compared = _check(case, result, trial.target, expected, "convert")
    again = _convert(result, trial.target, trial.options, "again")
    if isinstance(again, onnx_convert.RefusedError) or again.changed or again.model != result:
        raise _Fault("again", f"converting to the same opset is not the identity: {again}")
    back = _convert(result, trial.source, trial.options, "back")
    if not isinstance(back, onnx_convert.RefusedError):
        _check(case, back.model, trial.source, expected, "back")
    _step_by_step(trial, case, expected)
    return Verdict(CONVERTED if compared else UNVERIFIABLE)


def _step_by_step(trial: Trial, case: Case, expected: _Runs) -> None:
    opsets = released()
    here, there = opsets.index(trial.source), opsets.index(trial.target)
    way = opsets[here + 1 : there + 1] or opsets[there:here][::-1]
    if len(way) == 1:
        return
    model = case.model
    for opset in way:
        conversion = _convert(model, opset, trial.options, "steps")
        if isinstance(conversion, onnx_convert.RefusedError):
            return
        model = conversion.model
    _check(case, model, trial.target, expected, "steps")


def _convert(model: ModelProto | bytes, target: int, options: Mapping[str, Any], stage: str) -> Any:
    try:
        return onnx_convert.convert(model, to=target, **options)
    except onnx_convert.RefusedError as refused:
        return refused
    except Exception as error:
        raise _Fault(f"crash-{stage}", f"{type(error).__name__}: {error}") from error


def _check(case: Case, result: ModelProto, target: int, expected: _Runs, stage: str) -> bool:
    """Tells whether the numbers could be compared; raises _Fault if anything is wrong."""
    try:
        validate(result)
    except Exception as error:
        if _complains_alike(case.model, str(error)):
            return False
        raise _Fault(f"invalid-{stage}", f"{type(error).__name__}: {error}") from error
    if opset_of(result) != target:
        raise _Fault(f"invalid-{stage}", f"it is at opset {opset_of(result)}")
    if _interface(result) != _interface(case.model):
        raise _Fault(f"invalid-{stage}", f"the interface was {_interface(case.model)} and is {_interface(result)}")
    got = _run(result, case.feeds)
    broken = any((node.op_type, target) in BROKEN for node in all_nodes(result))
    if got.broke and ONNXRUNTIME in expected.results and not broken:
        raise _Fault(f"unrunnable-{stage}", got.broke)
    for one, other in ((ONNXRUNTIME,) * 2, (REFERENCE,) * 2, (ONNXRUNTIME, REFERENCE), (REFERENCE, ONNXRUNTIME)):
        if one not in expected.results or other not in got.results:
            continue
        if REFERENCE in (one, other) and (expected.disputed or got.disputed):
            continue
        if difference := compare(expected.results[one], got.results[other]):
            raise _Fault(f"numbers-{stage}", f"{difference} ({one}, then {other})")
        return True
    return False


def _complains_alike(model: ModelProto, complaint: str) -> bool:
    """Tells whether onnx finds the same fault in the source, where `validate` skips inference if an operator has
    none."""
    try:
        onnx.checker.check_model(one_spelling(model), full_check=True)
    except Exception as error:  # noqa: BLE001 (C++ errors come as several unrelated types)
        return all(line in str(error) for line in complaint.splitlines())
    return False


def _interface(model: ModelProto) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the inputs that have to be given and the outputs, with their dtypes."""
    filled = {t.name for t in model.graph.initializer}
    inputs = {v.name: v.type.tensor_type.elem_type for v in model.graph.input if v.name not in filled}
    return inputs, {v.name: v.type.tensor_type.elem_type for v in model.graph.output}


# ---- models whose results hang on the last bit


NUDGE = {"float64": 1e-14, "float32": 3e-7, "float16": 1e-3, "bfloat16": 8e-3}


def _is_unsteady(case: Case, expected: _Runs) -> bool:
    """Tells whether the source itself gives other results when its inputs change by about one rounding."""
    for seed in range(3):
        random = np.random.default_rng(seed)
        nudged = _run(case.model, {name: _nudged(array, random) for name, array in case.feeds.items()})
        if any(compare(expected.results[e], nudged.results.get(e, [])) for e in expected.results):
            return True
    return False


def _nudged(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    step = NUDGE.get(array.dtype.name)
    if step is None:
        return array
    signs = random.choice([-1.0, 1.0], size=array.shape)
    return np.asarray(array.astype(np.float64) * (1 + step * signs)).astype(array.dtype)
