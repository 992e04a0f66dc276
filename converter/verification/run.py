# SPDX-License-Identifier: Apache-2.0
"""Verifies: makes or takes inputs, runs the source on all of them, then the result, and judges.

One model is in memory at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy

from onnx_convert.errors import UsageError
from onnx_convert.model.graphs import name_of
from onnx_convert.storage import test_data
from onnx_convert.verification import signature
from onnx_convert.verification.bundle import check_place, write
from onnx_convert.verification.comparison import only_last_bits
from onnx_convert.verification.evaluators import MISSING, ONNXRUNTIME, REFERENCE, LacksError, RunError, installed
from onnx_convert.verification.first_difference import first_difference, identified
from onnx_convert.verification.inputs import CannotError, Maker
from onnx_convert.verification.inspection import Inspection
from onnx_convert.verification.judging import Judge
from onnx_convert.verification.outcome import DIFFERENT, SAME, UNVERIFIED, Run, Verification
from onnx_convert.verification.subjects import EVALUATORS, Subject
from onnx_convert.verification.values import EDGES, RANDOM
from onnx_convert.verification.within import is_ill_conditioned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from onnx_convert.report import Report
    from onnx_convert.verification.inputs import Plan
    from onnx_convert.verification.subjects import Program

    Feeds = Mapping[str, Any]

SEEDS: Final = 3
_ATTEMPTS: Final = 4  # at a seed, if the source does not run on what it makes
_OTHER: Final = 1000  # seeds that follow for another attempt

# On NaN, and on numbers that no integer holds, the texts of these operators are silent.
_SILENT_ON_NAN: Final = frozenset(
    """ArgMax ArgMin Cast CastLike Clip DynamicQuantizeLinear GlobalMaxPool Hardmax Max MaxPool MaxRoiPool Min
    NonMaxSuppression QuantizeLinear ReduceMax ReduceMin Relu RoiAlign TopK Unique LeakyRelu PRelu ThresholdedRelu
    HardSigmoid HardSwish Sign NonZero Where ConstantOfShape Resize GridSample Compress""".split()
)
_SILENT_ON_LARGE: Final = frozenset("Cast CastLike GridSample Range Tile Resize RoiAlign".split())


class Prepared(NamedTuple):
    """The inputs of a verification as far as they are known before anything runs: sets that were given, by name, or
    shapes."""

    sets: dict[str, dict[str, Any]]
    shapes: dict[str, tuple[int, ...]]
    sizes: dict[str, int]
    seeds: int = SEEDS


class _Runs(NamedTuple):
    """What the source computed: the inputs by what they are called, its outputs, and what it was run on."""

    feeds: dict[str, Feeds]
    values: dict[str, list[Any]]
    again: list[Any] | None
    program: tuple[str, str]  # evaluator, why not onnxruntime
    skipped: dict[str, str]


def prepare(
    subject: Subject,
    inputs: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    seeds: int = SEEDS,
) -> Prepared:
    """Reads and checks what was given. UsageError if it does not fit the model, InvalidModelError if it cannot be
    read."""
    if seeds < 1:
        raise UsageError(f"at least one seed is needed, not {seeds}")
    if inputs is not None and shapes:
        raise UsageError("inputs that are given have shapes already")
    sets: dict[str, dict[str, Any]] = {}
    if isinstance(inputs, Mapping):
        sets["given"] = {name: _array(value) for name, value in inputs.items()}
    elif isinstance(inputs, str | os.PathLike):
        sets = test_data.read(inputs, signature.needed(subject.proto))
    for where, feeds in sets.items():
        signature.check(subject.proto, feeds, where)
    return Prepared(sets, dict(shapes or {}), signature.bound_by(subject.proto, shapes or {}), seeds)


def prepared(
    model: Any,
    stamps: Mapping[str, int] | None = None,
    inputs: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Prepared:
    """Reads and checks what was given for a model that is not open, as `prepare` does."""
    with Subject(model, stamps) as subject:
        return prepare(subject, inputs, shapes)


def _array(value: Any) -> Any:
    return value if value is None or isinstance(value, list | dict) else numpy.asarray(value)


def verify(
    source: Subject,
    result: Subject,
    prepared: Prepared,
    report: Report | None = None,
    bundle: str | os.PathLike[str] | None = None,
) -> Verification:
    """Runs source and result on the same inputs, and compares."""
    started = time.perf_counter()
    if bundle is not None:
        check_place(bundle)
    found = Verification(source.name, result.name, promised=report.form if report is not None else "")
    outcome = Session(source, result, prepared, found, report)
    outcome.compare()
    if outcome.failing is not None:
        locate(outcome, report, bundle)
    found.seconds = time.perf_counter() - started
    if report is not None:
        report.verified = found.to_dict()
    return found


class Session:
    """One verification on its way."""

    def __init__(
        self, source: Subject, result: Subject, prepared: Prepared, found: Verification, report: Report | None
    ) -> None:
        self._report = report
        self.source = source
        self.result = result
        self._prepared = prepared
        self.found = found
        self.judge = Judge(source.proto, result.proto, found.promised)
        self._excused: dict[str, str] = {}  # runs that differ and do not count, and where they first do
        self._evaluators: Sequence[str] = EVALUATORS
        self._why = ""  # onnxruntime does not run the result
        self.failing: tuple[Feeds, str] | None = None  # the first inputs on which a value differs, and that

    def compare(self) -> None:
        """Fills in what was found: first whether the outputs agree, then what no output shows."""
        runs = self._outputs()
        if self.found.verdict == DIFFERENT:
            return
        inside = Inspection(self.source, self.result, self.found, self._report)
        if not inside.breaks_a_promise() and runs is not None and self.found.verdict == SAME:
            sets = {run.inputs: runs.feeds[run.inputs] for run in self.found.runs if run.inputs not in EDGES}
            self.failing = inside.differing_value(sets)

    def _outputs(self) -> _Runs | None:
        """Compares the outputs, and says what there is to say of that; returns what the source computed."""
        found = self.found
        if not installed():
            found.notes.append(f"{MISSING}: {REFERENCE} computes both, which is slow")
        if why := _unlike_signatures(self.source, self.result):
            found.verdict, found.reason = DIFFERENT, why
            return None
        try:
            runs = self._run_source()
        except (CannotError, LacksError) as error:
            found.verdict, found.reason = UNVERIFIED, str(error)
            return None
        found.skipped = runs.skipped
        found.shapes = {name: value.shape for name, value in _first(runs.feeds).items() if hasattr(value, "shape")}
        found.source_evaluator = runs.program[0]
        try:
            results = self._run_result(self._evaluators, runs)
        except LacksError as error:
            found.verdict, found.reason = UNVERIFIED, f"the result runs nowhere: {error}"
            return None
        self.judge.strict &= found.source_evaluator == found.result_evaluator
        self._judge(runs, results)
        if self.judge.strict and found.verdict == DIFFERENT and self._is_a_matter_of_kernels():
            self.judge.strict = False
            self._judge(runs, results)
        if found.verdict == DIFFERENT and found.source_evaluator == ONNXRUNTIME:
            self._ask_another(runs, results)
        self._remark()
        return runs

    def _ask_another(self, runs: _Runs, results: Mapping[str, list[Any] | str]) -> None:
        """Lets the reference compute the source where its outputs differ: if the result agrees with that on every set,
        it is a kernel of the source that does not do what the text says."""
        found, wrong = self.found, [run.inputs for run in self.found.runs if not run.agrees]
        if not self.source.is_small or self.judge.random or any(isinstance(results[name], str) for name in wrong):
            return
        if not any(output.beyond for run in found.runs for output in run.outputs):
            return  # they differ in last bits alone, as two evaluators do
        judge = Judge(self.source.proto, self.result.proto, "")
        try:
            program = self.source.program((REFERENCE,))
            several = {name: program.run(runs.feeds[name]) for name in wrong}
        except (LacksError, RunError):
            return
        told = {name: judge.outputs(values, results[name]) for name, values in several.items()}
        if all(output.agrees for outputs in told.values() for output in outputs):
            found.runs = [Run(run.inputs, told.get(run.inputs, run.outputs)) for run in found.runs]
            found.verdict, found.reason, self.failing = SAME, "", None
            sets = ", ".join(wrong)
            found.notes.append(
                f"onnxruntime computes the source otherwise on {sets}; the result agrees with {REFERENCE}"
            )

    def _judge(self, runs: _Runs, results: Mapping[str, list[Any] | str]) -> None:
        """Compares what source and result computed."""
        found, again = self.found, runs.again
        found.runs, self.failing, self._excused = [], None, {}
        for name, got in results.items():
            if isinstance(got, str):
                found.runs.append(Run(name, why=f"the source runs on them, the result does not: {got}"))
            else:
                edge = name in EDGES and not self._prepared.sets
                found.runs.append(Run(name, self.judge.outputs(runs.values[name], got, again, edge=edge)))
            again = None  # which is of the first inputs
        self._excuse_edges(runs)
        wrong = next((run for run in found.runs if not run.agrees), None)
        found.verdict = SAME if wrong is None else DIFFERENT
        found.reason = "" if wrong is None else _reason(wrong)
        if wrong is not None and not wrong.why:
            output = next(output.name for output in wrong.outputs if not output.agrees)
            self.failing = runs.feeds[wrong.inputs], output

    def _excuse_edges(self, runs: _Runs) -> None:
        """Leaves out runs of the edges that alone differ: on NaN, of which hardly any text says what becomes; where the
        first node that differs is as it was, so that it is its kernels that do; and where roundings of what goes into
        that node move its value as far."""
        found = self.found
        wrong = [run for run in found.runs if not run.agrees]
        if self._prepared.sets or any(run.inputs not in EDGES for run in wrong):
            return
        for run in wrong:
            output = next((output.name for output in run.outputs if not output.agrees), None)
            first = None
            if output is not None:
                feeds = runs.feeds[run.inputs]
                first = first_difference(self.source, self.result, self.judge, feeds, output, edge=True)
            excused = first is not None and (first.untouched or is_ill_conditioned(first, self.source))
            if run.inputs == "NaN" or excused:
                found.runs.remove(run)
                self._excused[run.inputs] = first.node.op_type if first is not None else ""

    def _is_a_matter_of_kernels(self) -> bool:
        """Returns whether the first value with other bits has but other last ones: a kernel of another version."""
        if self.failing is None or any(output.beyond for run in self.found.runs for output in run.outputs):
            return False
        first = first_difference(self.source, self.result, self.judge, *self.failing)
        if first is None:
            return False
        if not first.other_weight and only_last_bits(first.expected, first.got):
            node = f"{first.node.op_type} {name_of(first.node)!r}"
            self.found.notes.append(f"the same bits were promised; kernels round otherwise, first at {node}")
            return True
        return False

    def _run_result(self, evaluators: Sequence[str], runs: _Runs, why: str = "") -> dict[str, list[Any] | str]:
        """Returns what the result computes, or why it does not. LacksError if it runs nowhere."""
        program = self.result.program(evaluators)
        self.found.result_evaluator, self._why = program.evaluator, program.why or why
        results: dict[str, list[Any] | str] = {}
        for name, feeds in runs.feeds.items():
            try:
                results[name] = program.run(feeds)
            except RunError as error:
                results[name] = str(error)
            except LacksError as error:
                if program.evaluator == REFERENCE:
                    raise
                return self._run_result((REFERENCE,), runs, str(error))
        return results

    # ---- the source

    def _run_source(self) -> _Runs:
        """Runs the source on what was given, or on what was made. CannotError if it runs on nothing, LacksError if it
        runs nowhere."""
        why = ""
        tried = False
        for evaluator in EVALUATORS:
            try:
                program = self.source.program((evaluator,))
                tried = True
                return self._on(program, why)
            except LacksError as error:
                why = f"{why}; {error}" if why else str(error)
            except CannotError as error:
                if evaluator == REFERENCE or self._prepared.sets:
                    raise
                why, self._evaluators = str(error), (REFERENCE,)  # which may be laxer: then it is so with both
        raise (CannotError if tried else LacksError)(f"the source runs nowhere: {why}")

    def _on(self, program: Program, why: str) -> _Runs:
        program.why = why
        given = self._prepared.sets
        if given:
            runs = self._computed(program, ((name, [feeds]) for name, feeds in given.items()))
            if not runs.values:
                name, said = next(iter(runs.skipped.items()))
                raise CannotError(f"the source does not run on {name}: {said}")
            return runs
        maker = Maker(self.source.source, self._prepared.shapes, self._prepared.sizes)
        return self._computed(program, self._made(maker, _plan(program, maker)))

    def _made(self, maker: Maker, plan: Plan) -> Iterator[tuple[str, Iterable[Feeds]]]:
        """Yields what inputs are called, and several of the kind: what is made need not run."""
        for seed in range(self._prepared.seeds):
            yield f"{RANDOM} {seed}", _candidates(maker, plan, seed)
        if maker.floats_freely:
            operators = {operator for _, operator in self.source.source.index.operators}
            for kind in EDGES:
                if _told(kind, operators):
                    yield kind, (maker.make(plan, _OTHER * i, kind) for i in range(_ATTEMPTS))

    def _computed(self, program: Program, several: Iterable[tuple[str, Iterable[Feeds]]]) -> _Runs:
        """Runs the source on the first of each kind on which it runs."""
        feeds: dict[str, Feeds] = {}
        values: dict[str, list[Any]] = {}
        skipped: dict[str, str] = {}
        for name, candidates in several:
            for given in candidates:
                try:
                    values[name], feeds[name] = program.run(given), given
                except RunError as error:
                    skipped.setdefault(name, str(error))
                    continue
                skipped.pop(name, None)
                break
        again = program.run(_first(feeds)) if self.judge.random and feeds else None
        return _Runs(feeds, values, again, (program.evaluator, program.why), skipped)

    # ---- what remains to be said

    def _remark(self) -> None:
        found = self.found
        if found.result_evaluator and found.source_evaluator != found.result_evaluator:
            found.notes.append(f"{found.source_evaluator} computes the source, {found.result_evaluator} the result")
        if found.source_evaluator == ONNXRUNTIME and self._why:
            found.notes.append(f"onnxruntime takes the source, but not the result: {self._why}")
        for kind, operator in self._excused.items():
            first = f", first at a kernel of {operator}" if operator else ""
            found.notes.append(f"on inputs of the kind {kind!r} they differ{first}; that is not counted")
        if self.judge.random:
            names = sorted(self.judge.random & {value.name for value in self.source.proto.graph.output})
            if names:
                found.notes.append(f"random, so only shape, dtype and distribution are compared: {', '.join(names)}")


def _candidates(maker: Maker, plan: Plan, seed: int) -> Iterator[Feeds]:
    """Yields inputs of a seed: the first on which the source runs are taken."""
    if (grown := maker.grown(plan, seed)) is not None:
        yield maker.make(grown, seed)
    yield from (maker.make(plan, seed + _OTHER * i) for i in range(_ATTEMPTS))


def _told(kind: str, operators: set[str]) -> bool:
    """Returns whether the texts of all operators tell what becomes of such values."""
    silent = {"NaN": _SILENT_ON_NAN, "large": _SILENT_ON_LARGE}.get(kind, frozenset())
    return silent.isdisjoint(operators)


def _plan(program: Program, maker: Maker) -> Plan:
    """Returns the first plan with which the model runs. CannotError if there is none."""
    said = ""
    for seed, plan in product((0, _OTHER), maker.plans()):
        try:
            program.run(maker.make(plan, seed))
        except (RunError, CannotError) as error:
            said = said or str(error)
            continue
        return plan
    raise CannotError(f"no inputs could be made on which the source runs ({said}): give some with --inputs")


def _first(several: Mapping[str, Feeds]) -> Feeds:
    return next(iter(several.values()))


def _reason(run: Run) -> str:
    if run.why:
        return f"{run.inputs}: {run.why}"
    wrong = next(output for output in run.outputs if not output.agrees)
    return f"output {wrong.name!r}, {run.inputs}: {wrong.why}"


def _unlike_signatures(source: Subject, result: Subject) -> str:
    """Returns what differs in what two models take and give back; "" if nothing does."""
    for what, (one, other) in {
        "inputs": ([v.name for v in signature.needed(m.proto)] for m in (source, result)),
        "outputs": ([v.name for v in m.proto.graph.output] for m in (source, result)),
    }.items():
        if one != other:
            return f"the source has the {what} {', '.join(one)}, the result {', '.join(other)}"
    return ""


def locate(session: Session, report: Report | None, bundle: str | os.PathLike[str] | None) -> None:
    """Finds the first node whose value differs, and writes the small models around it into the folder `bundle`."""
    assert session.failing is not None
    feeds, output = session.failing
    found = first_difference(session.source, session.result, session.judge, feeds, output)
    if found is None:
        return
    told = identified(found, session.source.proto, session.result.proto, report)
    if bundle is not None:
        write(bundle, found, told, session.source, session.result)
        told = told._replace(folder=str(bundle))
    session.found.first = told
