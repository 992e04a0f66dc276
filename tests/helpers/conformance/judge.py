# SPDX-License-Identifier: Apache-2.0
"""One case, carried to one opset: the verdict.

correct       legal at the target, and some evaluator gives the published outputs
wrong         the evaluator that decides gives something else, or fails
invalid       not legal, another opset or interface than asked for, or the source was changed
crash         the converter raised what it must not raise, or died
refused       the converter declined what an evaluator can judge
unverifiable  no evaluator reproduces the published outputs from the source, or none runs the result

An evaluator that gets the source wrong is not asked about the result. Of the others, onnxruntime decides if it takes
the result, else the reference. Illegal results and crashes need no evaluator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import onnx
from onnx import ModelProto

from conformance.converters import Converter, Refused
from conformance.corpus import Case, deserialized
from conformance.evaluators import (
    EVALUATORS,
    FAILED,
    RAN,
    UNABLE,
    Outcome,
    default_opset,
    difference,
    execute,
    fault,
    measure_for,
)
from oracle import validate

CORRECT, WRONG, INVALID, CRASH, REFUSED, UNVERIFIABLE = VERDICTS = (
    "correct",
    "wrong",
    "invalid",
    "crash",
    "refused",
    "unverifiable",
)
Record = dict[str, Any]

LANDMARKS = (9, 11, 13, 17)  # opsets at which many runtimes stopped
MOST_TARGETS = 8


def released(domain: str) -> list[int]:
    """Returns the opsets of a domain that came with a release of ONNX: there is no IR version that belongs to the
    others."""
    known = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain}
    column = {"": 2, "ai.onnx.ml": 3}.get(domain)
    carried = {int(row[column]) for row in onnx.helper.VERSION_TABLE} if column else known
    return sorted(opset for opset in carried if opset <= max(known))


def targets_for(case: Case, *, direction: str | None = None, one_step: bool = False) -> list[int]:
    """Both neighbours, and others that a hash picks: thirds of the way, both ends, landmarks; the same in every run.

    None if the installed onnx is too old for the case.
    """
    opsets, here = released(case.domain), case.opset
    if here > opsets[-1]:
        return []
    lower, higher = [o for o in opsets if o < here], [o for o in opsets if o > here]
    neighbours = {*lower[-1:], *higher[:1]}
    thirds = {side[len(side) * k // 3] for side in (lower, higher) if side for k in (1, 2)}
    others = (thirds | {opsets[0], opsets[-1]} | set(LANDMARKS) & set(opsets)) - neighbours - {here}
    ranked = sorted(others, key=lambda t: hashlib.sha256(f"{case.id} {t}".encode()).hexdigest())
    chosen = neighbours | set(() if one_step else ranked[: MOST_TARGETS - len(neighbours)])
    return sorted(t for t in chosen if direction is None or (t > here) == (direction == "up"))


# Published outputs that contradict the text of the specification: a part of the case's id, and why.
DISPUTED = [
    (
        "test_resize_downsample_scales_linear_align_corners",
        "they divide by a fractional length_resized, but that is the length of the resized tensor",
    ),
    ("test_resize_downsample_scales_cubic_align_corners", "as for linear"),
]


class Trial:
    """A case made ready: its source is checked and run once, for all targets."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.source = case.load()
        self.measure = measure_for(self.source)
        self.illegal = _finding(self.source)
        disputed = next((why for part, why in DISPUTED if part in case.id), None)
        try:
            self.data = [_decode(self.source, *one_set) for one_set in case.data]
        except ValueError as error:  # some strings were published as something else
            self.standing = dict.fromkeys(EVALUATORS, (FAILED, f"the published data cannot be read: {error}"))
        else:
            self.standing = {e: (FAILED, disputed) if disputed else self._standing(e) for e in EVALUATORS}

    @property
    def verifiable(self) -> bool:
        """Tells whether some evaluator gives the published outputs for the source."""
        return any(state == RAN for state, _ in self.standing.values())

    def judge(self, target: int, convert: Converter, at: Callable[[str], None] = lambda phase: None) -> Record:
        """The record of one target; `at` is told what is about to happen, for who has to explain a dead process."""
        case = self.case
        record: Record = {
            "case": case.id,
            "operator": case.operator,
            "opset": case.opset,
            "target": target,
            "direction": "up" if target > case.opset else "down",
        }
        source = ModelProto()
        source.CopyFrom(self.source)
        at("convert")
        try:
            converted = convert(source, case.domain, target)
        except Refused as error:
            if not self.verifiable:
                return record | {"verdict": UNVERIFIABLE, "why": self._why_not()}
            return record | {"verdict": REFUSED, "refusals": error.refusals}
        except Exception as error:  # noqa: BLE001 (whatever else it raises is the verdict)
            return record | {"verdict": CRASH, "why": f"{type(error).__name__}: {error}"}
        record |= {"form": converted.form, "rewrites": converted.rewrites}
        at("check")
        if source != self.source:
            return record | {"verdict": INVALID, "why": "the source was changed"}
        if why := self._illegal(converted.model, target):
            return record | {"verdict": INVALID, "why": why}
        if not self.verifiable:
            return record | {"verdict": UNVERIFIABLE, "why": self._why_not()}
        at("evaluate")
        return record | self._numbers(converted.model)

    def _standing(self, evaluator: str) -> tuple[str, str]:
        """RAN if an evaluator reproduces the published outputs, else UNABLE or FAILED and why."""
        if known := fault(evaluator, self.source):
            return UNABLE, known.because
        outcome = self._run(evaluator, self.source)
        return outcome.state, outcome.why

    def _run(self, evaluator: str, model: ModelProto) -> Outcome:
        """RAN if the results are right, FAILED with the difference if not."""
        for feeds, expected in self.data:
            outcome = execute(evaluator, model, feeds)
            if outcome.state != RAN:
                return outcome
            if why := difference(expected, outcome.values, self.measure):
                return Outcome(FAILED, why=why)
        return Outcome(RAN)

    def _why_not(self) -> str:
        return "source: " + "; ".join(f"{evaluator}: {why}" for evaluator, (_, why) in self.standing.items())

    def _illegal(self, model: ModelProto, target: int) -> str | None:
        before, after = self.source.graph, model.graph
        if not self.case.domain and default_opset(model) != target:
            return f"it is at opset {default_opset(model)}"
        if [(o.name, _kind(o)) for o in before.output] != [(o.name, _kind(o)) for o in after.output]:
            return "its outputs are not those of the source"
        held = {
            tensor.name for tensor in before.initializer
        }  # which IR version 3 makes inputs, and later ones need not
        there = {value.name for value in after.input}
        asked = [(i.name, _kind(i)) for i in before.input if i.name in there or i.name not in held]
        if asked != [(i.name, _kind(i)) for i in after.input][: len(asked)]:
            return "its inputs are not those of the source"
        return None if self.illegal else _finding(model)

    def _numbers(self, model: ModelProto) -> Record:
        verdicts: list[tuple[str, Outcome]] = []
        passed = []
        for evaluator in EVALUATORS:
            state, why = self.standing[evaluator]
            if known := fault(evaluator, model):
                passed.append(f"{evaluator}: {known.because}")
            elif state == FAILED:
                passed.append(f"{evaluator} gets the source wrong: {why}")
            elif (outcome := self._run(evaluator, model)).state == UNABLE:
                passed.append(f"{evaluator}: {outcome.why}")
            else:
                verdicts.append((evaluator, outcome))
                if outcome.state == RAN:
                    break
        if not verdicts:
            return {"verdict": UNVERIFIABLE, "why": "; ".join(passed)}
        evaluator, outcome = verdicts[0]
        if outcome.state == RAN:
            return {"verdict": CORRECT, "evaluator": evaluator, "passed": passed}
        second = (
            f"; {verdicts[1][0]} {'agrees' if verdicts[1][1].state == RAN else 'differs, too'}" if verdicts[1:] else ""
        )
        return {"verdict": WRONG, "evaluator": evaluator, "why": f"{outcome.why}{second}", "passed": passed}


def _decode(
    model: ModelProto, inputs: tuple[bytes, ...], outputs: tuple[bytes, ...]
) -> tuple[dict[str, Any], list[Any]]:
    initialized = {t.name for t in model.graph.initializer}
    free = [value for value in model.graph.input if value.name not in initialized]
    feeds = {v.name: deserialized(data, v.type) for v, data in zip(free, inputs, strict=True)}
    return feeds, [deserialized(data, v.type) for v, data in zip(model.graph.output, outputs, strict=True)]


def _kind(value: onnx.ValueInfoProto) -> tuple[str | None, int]:
    return value.type.WhichOneof("value"), value.type.tensor_type.elem_type


# Complaints that are none: a part of what is said, and why it is wrong.
NO_FINDINGS = [
    ("LpNormalization ['y']: a negative 'axis'", "from opset 1 on its text says that -1 is the last axis"),
]


def _finding(model: ModelProto) -> str | None:
    try:
        validate(model)
    except Exception as error:  # noqa: BLE001 (the checker, inference and assertions have no common base)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return None if any(part in text for part, _ in NO_FINDINGS) else text[:400]
    return None
