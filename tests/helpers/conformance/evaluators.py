# SPDX-License-Identifier: Apache-2.0
"""Runs a model on one evaluator of two, and compares what comes out with what was published.

Neither is always right: onnxruntime lacks kernels for old opsets and odd dtypes, onnx's reference evaluator often knows
only the newest meaning of an operator. `FAULTS` lists where a model proved one of them wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from onnx_convert.verification.evaluators import LacksError, OnnxRuntime, RunError, foreign_dtypes
from onnx_convert.verification.judging import RANDOM_OPERATORS, ROUNDING
from oracle import ONNXRUNTIME, REFERENCE, Feeds, all_nodes, run_reference

EVALUATORS = (ONNXRUNTIME, REFERENCE)  # the first that can run a model decides

RAN = "ran"
UNABLE = "unable"  # it does not take the model: says nothing about it
LACKS = ("No implementation for operator", "No registered implementation for operator")  # says the reference
FAILED = "failed"  # it takes the model and then raises


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    state: str
    values: Sequence[Any] = ()
    why: str = ""


@dataclass(frozen=True)
class Fault:
    """An evaluator is wrong about an operator at the opsets `first` to `last`, by the text of the specification."""

    evaluator: str
    operator: str
    first: int
    last: int
    because: str


FAULTS = [
    Fault(
        REFERENCE,
        "FlexAttention",
        1,
        8,
        "it hides the outer graph from score_mod and prob_mod, but at IR version 3 an initializer can only be there",
    ),
    Fault(
        REFERENCE,
        "AveragePool",
        1,
        6,
        "it counts pads, the text does not",
    ),
    Fault(
        REFERENCE, "Loop", 1, 99, "it stacks scalars to (k, 1) and matrices to one, and fails where there is no step"
    ),
    Fault(REFERENCE, "RNN", 1, 6, "it does not take output_sequence"),
    Fault(REFERENCE, "GRU", 1, 6, "it does not take output_sequence"),
    Fault(REFERENCE, "LSTM", 1, 6, "it does not take output_sequence"),
]


def default_opset(model: ModelProto) -> int:
    """Returns the opset of ai.onnx; 0 if the model does not import it."""
    return max((o.version for o in model.opset_import if not o.domain), default=0)


def fault(evaluator: str, model: ModelProto) -> Fault | None:
    """A fault of an evaluator that this model can run into."""
    operators = {node.op_type for node in all_nodes(model)}
    opset = default_opset(model)
    for row in FAULTS:
        if row.evaluator == evaluator and row.operator in operators and row.first <= opset <= row.last:
            return row
    return None


def execute(evaluator: str, model: ModelProto, feeds: Feeds) -> Outcome:
    """Runs a model on one evaluator; never raises for what the model does."""
    return _on_onnxruntime(model, feeds) if evaluator == ONNXRUNTIME else _on_reference(model, feeds)


def _on_onnxruntime(model: ModelProto, feeds: Feeds) -> Outcome:
    if foreign := foreign_dtypes(model):
        return Outcome(UNABLE, why=foreign)
    try:
        session = OnnxRuntime(model.SerializeToString(), threads=1)
    except Exception as error:  # noqa: BLE001 (its exceptions have no common base but this)
        return Outcome(UNABLE, why=_first_line(error))
    wanted = {value.name for value in model.graph.input}
    try:
        return Outcome(RAN, session.run({name: value for name, value in feeds.items() if name in wanted}))
    except LacksError as error:
        return Outcome(UNABLE, why=_first_line(error))
    except RunError as error:
        return Outcome(FAILED, why=_first_line(error))


def _on_reference(model: ModelProto, feeds: Feeds) -> Outcome:
    try:
        return Outcome(RAN, run_reference(model, feeds))
    except NotImplementedError as error:
        return Outcome(UNABLE, why=_first_line(error))
    except Exception as error:  # noqa: BLE001 (whatever it raises is the outcome)
        return Outcome(UNABLE if str(error).startswith(LACKS) else FAILED, why=_first_line(error))


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:300]


# ---- comparing

# dtype: (relative, absolute). The tolerances of onnx's own runner, and what the shorter floats can hold.
TOLERANCE = {
    "float64": (1e-3, 1e-6),
    "float32": (1e-3, 1e-5),
    "float16": (5e-3, 1e-3),
    "bfloat16": (2e-2, 1e-2),
    "complex64": (1e-3, 1e-5),
    "complex128": (1e-3, 1e-6),
}


@dataclass(frozen=True)
class Measure:
    """How results are compared: `shape_only` where they are random, integers within `step` where they are rounded."""

    shape_only: bool = False
    step: int = 0


def measure_for(model: ModelProto) -> Measure:
    """How the results of a model, and of whatever it is converted to, are compared."""
    nodes = list(all_nodes(model))
    opset = default_opset(model)
    training = any(n.op_type == "Dropout" and opset >= 12 and len(n.input) > 2 for n in nodes)
    rounds = any(word in n.op_type for n in nodes for word in ROUNDING)
    return Measure(training or any(n.op_type in RANDOM_OPERATORS for n in nodes), 1 if rounds else 0)


def difference(expected: Sequence[Any], got: Sequence[Any], measure: Measure) -> str | None:
    """None if the results agree, else one sentence that says what differs."""
    if len(expected) != len(got):
        return f"{len(expected)} results were expected, there are {len(got)}"
    for position, (one, other) in enumerate(zip(expected, got, strict=True)):
        if why := _difference(one, other, measure):
            return f"result {position}: {why}"
    return None


def _difference(expected: Any, got: Any, measure: Measure) -> str | None:
    if expected is None or got is None:
        return None if expected is got else "one of the two is absent"
    if isinstance(expected, list) or isinstance(got, list):
        if not (isinstance(expected, list) and isinstance(got, list)):
            return "one of the two is a sequence"
        return difference(expected, got, measure)
    expected, got = np.asarray(expected), np.asarray(got)
    strings = {expected.dtype.kind, got.dtype.kind} <= set("OUT")
    if expected.dtype != got.dtype and not strings:
        return f"dtype {expected.dtype} was expected, it is {got.dtype}"
    if expected.shape != got.shape:
        return f"shape {expected.shape} was expected, it is {got.shape}"
    if measure.shape_only:
        return None
    same = np.asarray(expected == got if strings else _close(expected, got, measure.step))
    if same.all():
        return None
    first = tuple(int(i) for i in np.argwhere(~same)[0])
    wrong = same.size - int(same.sum())
    return f"{wrong} of {same.size} elements differ, at {first} {expected[first]} was expected, it is {got[first]}"


def _close(expected: np.ndarray, got: np.ndarray, step: int) -> Any:
    name = expected.dtype.name
    if name in TOLERANCE:
        wide = np.complex128 if name.startswith("complex") else np.float64
        relative, absolute = TOLERANCE[name]
        return np.isclose(got.astype(wide), expected.astype(wide), rtol=relative, atol=absolute, equal_nan=True)
    if "int" in name and step:
        return np.abs(got.astype(np.float64) - expected.astype(np.float64)) <= step
    if "float" in name:  # eight bits and less: equal, or both NaN
        wide_got, wide_expected = got.astype(np.float32), expected.astype(np.float32)
        return (wide_got == wide_expected) | (np.isnan(wide_got) & np.isnan(wide_expected))
    return expected == got
