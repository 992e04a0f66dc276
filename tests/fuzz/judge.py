# SPDX-License-Identifier: Apache-2.0
"""Carries a trial to its target, back, and step by step, and says what is wrong. A refusal never is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_convert
from onnx import ModelProto

from boundaries.variants import Case
from fuzz.trials import Trial, released
from oracle import Evaluation, Feeds, compare, evaluate, opset_of, validate

CONVERTED, REFUSED, FAILED, DISCARDED, UNSTEADY = "converted", "refused", "failed", "discarded", "unsteady"


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


def judge(trial: Trial) -> Verdict:
    """The verdict; raises nothing."""
    try:
        case = trial.disguised()
        validate(case.model)
        plain = evaluate(trial.flat, trial.feeds)
        expected = evaluate(case.model, case.feeds)
    except Exception as error:  # noqa: BLE001 (the source is to blame, whatever it is)
        return Verdict(DISCARDED, why=f"{type(error).__name__}: {error}")
    wanted = [v.name for v in trial.flat.graph.output]
    given = dict(zip([v.name for v in case.model.graph.output], expected.values, strict=True))
    if difference := compare(plain.values, [given[name] for name in wanted]):
        return Verdict(DISCARDED, why=f"the evaluators disagree about the source: {difference}")
    try:
        return _judge(trial, case, expected)
    except _Fault as fault:
        if fault.kind.startswith("numbers") and _is_unsteady(case, expected.values):
            return Verdict(UNSTEADY, fault.kind, fault.why)
        return Verdict(FAILED, fault.kind, fault.why)


def _judge(trial: Trial, case: Case, expected: Evaluation) -> Verdict:
    before = case.model.SerializeToString(deterministic=True)
    conversion = _convert(case.model, trial.target, trial.options, "convert")
    if case.model.SerializeToString(deterministic=True) != before:
        raise _Fault("mutated", "the source was changed")
    if isinstance(conversion, onnx_convert.RefusedError):
        nodes = frozenset(refusal.node for refusal in conversion.refusals)
        return Verdict(REFUSED, why=str(conversion), nodes=nodes)
    result = conversion.model
    _check(case, result, trial.target, expected, "convert", exact=bool(trial.options.get("exact")))
    again = _convert(result, trial.target, trial.options, "again")
    if isinstance(again, onnx_convert.RefusedError) or again.changed or again.model != result:
        raise _Fault("again", f"converting to the same opset is not the identity: {again}")
    back = _convert(result, trial.source, trial.options, "back")
    if not isinstance(back, onnx_convert.RefusedError):
        _check(case, back.model, trial.source, expected, "back")
    _step_by_step(trial, case, expected)
    return Verdict(CONVERTED)


def _step_by_step(trial: Trial, case: Case, expected: Evaluation) -> None:
    opsets = released()
    here, there = opsets.index(trial.source), opsets.index(trial.target)
    stride = 1 if there > here else -1
    model = case.model
    for opset in opsets[here + stride : (there + stride if there + stride >= 0 else None) : stride]:
        conversion = _convert(model, opset, trial.options, "steps")
        if isinstance(conversion, onnx_convert.RefusedError):
            return
        model = conversion.model
    _check(case, model, trial.target, expected, "steps")


def _convert(model: ModelProto, target: int, options: Mapping[str, Any], stage: str) -> Any:
    try:
        return onnx_convert.convert(model, to=target, **options)
    except onnx_convert.RefusedError as refused:
        return refused
    except Exception as error:  # noqa: BLE001 (that is what is looked for)
        raise _Fault(f"crash-{stage}", f"{type(error).__name__}: {error}") from error


def _check(
    case: Case, result: ModelProto, target: int, expected: Evaluation, stage: str, *, exact: bool = False
) -> None:
    try:
        validate(result)
    except Exception as error:  # noqa: BLE001 (the checker, inference and assertions have no common base)
        raise _Fault(f"invalid-{stage}", f"{type(error).__name__}: {error}") from error
    if opset_of(result) != target:
        raise _Fault(f"invalid-{stage}", f"it is at opset {opset_of(result)}")
    if _interface(result) != _interface(case.model):
        raise _Fault(f"invalid-{stage}", f"the interface was {_interface(case.model)} and is {_interface(result)}")
    try:
        got = evaluate(result, case.feeds)
    except Exception as error:  # noqa: BLE001 (whatever the evaluators raise)
        raise _Fault(f"unrunnable-{stage}", f"{type(error).__name__}: {error}") from error
    exact = exact and expected.evaluator == got.evaluator
    if difference := compare(expected.values, got.values, exact=exact):
        raise _Fault(f"numbers-{stage}", f"{difference} ({expected.evaluator}, then {got.evaluator})")


def _interface(model: ModelProto) -> tuple[dict[str, int], dict[str, int]]:
    """The inputs that have to be given and the outputs, with their dtypes."""
    filled = {t.name for t in model.graph.initializer}
    inputs = {v.name: v.type.tensor_type.elem_type for v in model.graph.input if v.name not in filled}
    return inputs, {v.name: v.type.tensor_type.elem_type for v in model.graph.output}


# ---- models whose results hang on the last bit


NUDGE = {"float64": 1e-14, "float32": 3e-7, "float16": 1e-3, "bfloat16": 8e-3}


def _is_unsteady(case: Case, values: list[Any]) -> bool:
    """Whether the source itself gives other results when its inputs change by about one rounding."""
    for seed in range(3):
        random = np.random.default_rng(seed)
        nudged: Feeds = {name: _nudged(array, random) for name, array in case.feeds.items()}
        try:
            if compare(values, evaluate(case.model, nudged).values):
                return True
        except Exception:  # noqa: BLE001 (a nudged value may be out of bounds)
            return True
    return False


def _nudged(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    step = NUDGE.get(array.dtype.name)
    if step is None:
        return array
    signs = random.choice([-1.0, 1.0], size=array.shape)
    return np.asarray(array.astype(np.float64) * (1 + step * signs)).astype(array.dtype)
