# SPDX-License-Identifier: Apache-2.0
"""Carries a case over a boundary and back, and says what is wrong. A refusal never is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from conformance.evaluators import FAILED as RAISED
from conformance.evaluators import RAN, execute, fault
from fuzz import apart
from fuzz.growing import value_info
from fuzz.trials import released
from onnx import ModelProto

import onnx_convert
from boundaries.variants import VARIANTS
from boundaries.variants import Case as Variant
from exhaust import domains
from exhaust.choices import Choices, Outside, again
from exhaust.faults import is_wrong
from exhaust.making import Made, Making
from exhaust.texts import evaluator as text
from exhaust.texts.evaluator import meaning
from onnx_convert.report import CONDITIONAL, EXACT
from oracle import ONNXRUNTIME, REFERENCE, compare, validate

onnxruntime.set_default_logger_severity(4)

OUTCOMES = CONVERTED, REFUSED, UNJUDGED, INVALID, FAILED = "converted", "refused", "not judged", "invalid", "failed"
EVALUATORS = (ONNXRUNTIME, REFERENCE)
TEXT = "the text"
DISGUISES = ("plain", "dims", "ranks", "computed", "captured", "function", "constant-ints")


class Crossing(NamedTuple):
    """A boundary of an operator that an adapter crosses in a direction."""

    operator: str
    domain: str
    boundary: int
    direction: str

    def __str__(self) -> str:
        return f"{self.operator}@{self.boundary} {self.direction}"

    @property
    def source(self) -> int:
        """The opset that a case has."""
        if self.direction == "down":
            return self._least(self.boundary)
        return self.boundary - 1 if self.domain else max(one for one in released() if one < self.boundary)

    @property
    def targets(self) -> list[int]:
        """The opsets that it is carried to: just across, and far."""
        if self.domain:
            return [self.boundary - (self.direction == "down")]
        if self.direction == "up":
            return [self._least(self.boundary), released()[-1]]
        return [max(one for one in released() if one < self.boundary), *(low for low in (7, 1) if low < self.boundary)]

    def _least(self, opset: int) -> int:
        """Returns the first opset from there on that came with a release: there is no IR version for the others."""
        return opset if self.domain else next(one for one in released() if one >= opset)


@dataclass(frozen=True)
class Verdict:
    """What became of a case: the outcome, its kind in a word (the code of a refusal), and what was seen."""

    outcome: str
    kind: str = ""
    why: str = ""


class _Fault(Exception):
    def __init__(self, kind: str, why: str) -> None:
        super().__init__(kind, why)
        self.kind, self.why = kind, why


@dataclass
class _Run:
    """What the evaluators make of a model, by evaluator, and why one broke off."""

    results: dict[str, list[Any]] = field(default_factory=dict)
    broke: dict[str, str] = field(default_factory=dict)


def made(crossing: Crossing, choices: Choices) -> tuple[Made, int]:
    """Returns a case of a crossing, and the opset that it is carried to."""
    target = choices.pick("target", list(dict.fromkeys(crossing.targets)), rare=True)
    making = Making(crossing.operator, crossing.domain, crossing.source, choices)
    domains.DOMAINS[crossing.operator](making)
    return making.finish(DISGUISES), target


def judged(crossing: Crossing, picked: Sequence[int]) -> Verdict:
    """Returns the verdict about the case of these picks, made in a process of its own."""
    try:
        return apart.call(verdict, crossing, list(picked))
    except apart.Broke as broke:
        if "process" not in str(broke) and "took" not in str(broke):
            return Verdict(FAILED, "exception", f"of the harness: {broke}")
        why = str(broke)
    try:
        apart.call(source_alone, crossing, list(picked))
    except apart.Broke:
        return Verdict(UNJUDGED, "evaluators", f"the source: {why}")
    return Verdict(FAILED, "died", why)


def source_alone(crossing: Crossing, picked: Sequence[int]) -> None:
    """Runs the source, for seeing whether that alone is deadly."""
    case, _ = again(picked, lambda choices: made(crossing, choices))[0]
    stated(case)


def verdict(crossing: Crossing, picked: Sequence[int]) -> Verdict:
    """Returns the verdict about the case of these picks; raises nothing that the converter does."""
    try:
        case, target = again(picked, lambda choices: made(crossing, choices))[0]
    except Outside:
        return Verdict(INVALID, "picks")
    source = stated(case)
    if isinstance(source, Verdict):
        return source
    model, expected = source
    lowest = min(case.opset, target) if not case.domain else 13
    try:
        variant = VARIANTS[case.disguise](Variant(model, case.free, lowest)) or Variant(model, case.free, lowest)
        validate(variant.model)
    except Exception as error:
        return Verdict(INVALID, "disguise", f"{type(error).__name__}: {error}")
    try:
        return _carried(case, variant, target, expected)
    except _Fault as fault:
        return Verdict(FAILED, fault.kind, fault.why)


def stated_model(case: Made, target: int) -> ModelProto | None:
    """Returns the model that is converted in a case, by inference alone; None if it is none."""
    try:
        inferred = onnx.shape_inference.infer_shapes(case.model({}), check_type=True, strict_mode=True, data_prop=True)
        types = {value.name: value.type for value in inferred.graph.output if value.type.WhichOneof("value")}
        if any(name not in types for name in case.outputs):
            return None
        plain = Variant(case.model(types), case.free, min(case.opset, target) if not case.domain else 13)
        return (VARIANTS[case.disguise](plain) or plain).model
    except Exception:
        return None


def stated(case: Made) -> Verdict | tuple[ModelProto, _Run]:
    """Returns the model with the types of its outputs, and its results; or why it is no case."""
    bare = case.model({})
    try:
        inferred = onnx.shape_inference.infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True).graph
    except Exception as error:
        runs = execute(REFERENCE, bare, dict(case.free)).state == RAN  # then the text may allow it: see `corrections`
        return Verdict(INVALID, "inference alone" if runs else "inference", str(error))
    types = {value.name: value.type for value in inferred.output if value.type.WhichOneof("value")}
    run = _ran(case.model(types), case.free)
    for evaluator, results in list(run.results.items()):
        infos = {n: value_info(n, np.asarray(r)).type for n, r in zip(case.outputs, results, strict=False)
                 if isinstance(r, (np.ndarray, np.generic))}  # fmt: skip
        false = [name for name in types.keys() & infos.keys() if _contradicts(types[name], infos[name])]
        if false and evaluator == ONNXRUNTIME and all(_has_dtype(types[name], infos[name]) for name in false):
            for name in false:  # it is inference that is wrong about sizes, so none are stated
                for dim in infos[name].tensor_type.shape.dim:
                    dim.Clear()
                types[name] = infos[name]
        elif false:
            del run.results[evaluator]
            continue
        types |= {n: info for n, info in infos.items() if n not in types or not types[n].tensor_type.HasField("shape")}
    if any(name not in types for name in case.outputs):
        return Verdict(INVALID, "untyped")
    model = case.model(types)
    try:
        validate(model)
    except Exception as error:
        return Verdict(INVALID, "checker", f"{type(error).__name__}: {error}")
    if not run.results and len(run.broke) == len(EVALUATORS):
        return Verdict(INVALID, "evaluators", " / ".join(run.broke.values()))
    return model, run


def _has_dtype(inferred: onnx.TypeProto, info: onnx.TypeProto) -> bool:
    return inferred.tensor_type.elem_type == info.tensor_type.elem_type


def _contradicts(inferred: onnx.TypeProto, info: onnx.TypeProto) -> bool:
    """Tells whether a result is not of the dtype, the rank or the sizes that inference promises: one is wrong."""
    said, found = inferred.tensor_type, info.tensor_type
    if said.elem_type and said.elem_type != found.elem_type:
        return True
    if not said.HasField("shape"):
        return False
    if len(said.shape.dim) != len(found.shape.dim):
        return True
    pairs = zip(said.shape.dim, found.shape.dim, strict=True)
    return any(one.HasField("dim_value") and one.dim_value != other.dim_value for one, other in pairs)


def _ran(model: ModelProto, feeds: dict[str, Any]) -> _Run:
    run = _Run()
    for evaluator in EVALUATORS:
        if fault(evaluator, model) or is_wrong(evaluator, model):
            continue
        own = {name: np.copy(value) for name, value in feeds.items()}
        outcome = execute(evaluator, model, own)
        if outcome.state == RAN:
            run.results[evaluator] = list(outcome.values)
        elif outcome.state == RAISED:
            run.broke[evaluator] = outcome.why
    return run


def _carried(case: Made, variant: Variant, target: int, expected: _Run) -> Verdict:
    before = variant.model.SerializeToString(deterministic=True)
    there = _convert(case, variant.model, target)
    if variant.model.SerializeToString(deterministic=True) != before:
        raise _Fault("mutated", "the source was changed")
    if isinstance(there, onnx_convert.RefusedError):
        return Verdict(REFUSED, there.refusals[0].code, str(there))
    exact = there.report.form == EXACT
    if there.report.form == CONDITIONAL:
        case.conditional = True
    compared = _compared(case, variant, there.model, expected, "", exact=exact)
    back = _convert(case, there.model, case.opset) if case.returns else None
    if back is not None and not isinstance(back, onnx_convert.RefusedError):
        exact = exact and back.report.form == EXACT
        case.conditional |= back.report.form == CONDITIONAL
        compared = max(compared, _compared(case, variant, back.model, expected, "back ", exact=exact))
    return Verdict(CONVERTED, compared) if compared else Verdict(UNJUDGED, "result")


def _convert(case: Made, model: ModelProto, target: int) -> Any:
    to = {case.domain: target} if case.domain else target
    try:
        return onnx_convert.convert(model, to=to, **case.options)
    except onnx_convert.RefusedError as refused:
        return refused
    except Exception as error:
        raise _Fault(f"exception {type(error).__name__}", str(error)) from error


def _compared(case: Made, variant: Variant, result: ModelProto, expected: _Run, way: str, *, exact: bool) -> str:
    """Returns who found the result right, "" if there was nothing to compare; raises _Fault."""
    try:
        validate(result)
    except Exception as error:
        raise _Fault(f"{way}illegal", f"{type(error).__name__}: {error}") from error
    got = _ran(result, dict(variant.feeds))
    seen: dict[tuple[str, str], str | None] = {}
    for one, results in expected.results.items():
        for other, found in got.results.items():
            pair = (results, found[: len(results)])
            pair = pair if one == other else (_single(pair[0]), _single(pair[1]))
            seen[one, other] = _difference(case, *pair, exact=False)
    if not seen or any(seen.values()):
        seen |= _by_the_text(case, got, dict(variant.feeds), result)
    decisive = {pair: why for pair, why in seen.items() if pair[0] == TEXT} or seen
    if decisive and all(decisive.values()):
        pair = next(iter(decisive))
        raise _Fault(f"{way}numbers", f"{decisive[pair]} ({pair[0]}, then {pair[1]})")
    alike = [one for one in EVALUATORS if (one, one) in seen and not seen[one, one]]
    if exact and alike and not _same_bits(case, variant, result, expected, got):
        one = alike[0]
        bits = _difference(case, expected.results[one], got.results[one][: len(expected.results[one])], exact=True)
        raise _Fault(f"{way}bits", f"{bits} ({one})")
    if ONNXRUNTIME in got.broke and ONNXRUNTIME in expected.results:
        raise _Fault(f"{way}unrunnable", got.broke[ONNXRUNTIME])
    if decisive is not seen:
        return TEXT
    for pair, why in seen.items():
        if why and not _in_single(case, expected, got, pair):
            raise _Fault(f"{way}disputed", f"{why} ({pair[0]}, then {pair[1]}); nobody wrote down what the text says")
    return "the evaluators" if seen else ""


def _same_bits(case: Made, variant: Variant, result: ModelProto, expected: _Run, got: _Run) -> bool:
    """Tells whether a run of the source and one of the result agree to the bit, by the texts if not elsewhere: the
    evaluators do not compute each version of an operator in the same way."""

    def same(before: list[Any], after: list[Any]) -> bool:
        return _difference(case, before, after[: len(before)], exact=True) is None

    if any(same(before, after) for before in expected.results.values() for after in got.results.values()):
        return True
    told, found = _told(case), _told(case, result, dict(variant.feeds))
    return told is not None and found is not None and same(told, found)


def _told(case: Made, result: ModelProto | None = None, feeds: dict[str, Any] | None = None) -> list[Any] | None:
    """Returns what the texts say of a case, or of its result; None if nobody wrote its operator down in numpy."""
    if case.domain or all(meaning(node.op_type, case.opset) is None for node in case.nodes):
        return None
    try:
        return text.run(case.model({}) if result is None else result, case.free if feeds is None else feeds)
    except Exception:
        return None


def _by_the_text(case: Made, got: _Run, feeds: dict[str, Any], result: ModelProto) -> dict[tuple[str, str], str | None]:
    """Returns how the results differ from what the text of the operator says, if somebody wrote that down in numpy.

    One of them has to be right about the result: an evaluator, or the texts again.
    """
    told, again_told = _told(case), _told(case, result, feeds)
    if told is None:
        return {}
    runs = got.results if again_told is None else {**got.results, TEXT: again_told}
    return {(TEXT, one): _difference(case, _single(told), _single(found[: len(told)]), exact=False)
            for one, found in runs.items()}  # fmt: skip


def _in_single(case: Made, expected: _Run, got: _Run, pair: tuple[str, str]) -> bool:
    """Tells whether results are the same in float: then one of the evaluators computes doubles so."""
    one, other = expected.results[pair[0]], got.results[pair[1]]
    return _difference(case, _single(one), _single(other[: len(one)]), exact=False) is None


def _difference(case: Made, expected: list[Any], got: list[Any], *, exact: bool) -> str | None:
    if not exact and _in_halves(expected, got):
        return None  # who rounds at each step and who does so once are far apart
    # of MaxUnpool the condition is on `output_shape`, so that the very shape may differ
    if case.conditional and case.nodes[-1].op_type == "MaxUnpool":
        expected, got = ([np.zeros(0, np.asarray(value).dtype) for value in values] for values in (expected, got))
    elif case.loose or case.conditional:
        expected, got = ([np.zeros_like(value) for value in values] for values in (expected, got))
    with np.errstate(all="ignore"):
        if exact:  # of a zero few texts tell the sign
            expected, got = ([_unsigned(value) for value in values] for values in (expected, got))
        return compare(expected, got, exact=exact)


def _unsigned(value: Any) -> Any:
    if not isinstance(value, (np.ndarray, np.generic)) or "float" not in value.dtype.name:
        return value
    return np.where(value == 0, np.zeros_like(value), value)


def _single(results: list[Any]) -> list[Any]:
    """Of doubles no more than a float has: one evaluator computes them so, the other does not."""
    with np.errstate(all="ignore"):
        return [
            np.asarray(one).astype(np.float32) if getattr(one, "dtype", None) == np.float64 else one for one in results
        ]


def _in_halves(expected: list[Any], got: list[Any]) -> bool:
    """Tells whether results in 16 bits are as near as different orders of rounding leave them."""
    pairs = [(np.asarray(one), np.asarray(other)) for one, other in zip(expected, got, strict=True)]
    if not all(one.dtype.name in ("float16", "bfloat16") and one.dtype == other.dtype and one.shape == other.shape
               for one, other in pairs):  # fmt: skip
        return False
    wide = [(one.astype(np.float64), other.astype(np.float64)) for one, other in pairs]
    return all(
        np.allclose(
            one, other, rtol=0.05, atol=0.2 * float(np.max(np.abs(one[np.isfinite(one)]), initial=0)), equal_nan=True
        )
        for one, other in wide
    )
