# SPDX-License-Identifier: Apache-2.0
"""Hunts for what onnx's inference says although it is not so, and tells whether `corrections` puts it right.

usage: PYTHONPATH=tests/helpers python -m hunt.run [--seconds 600] [--seed 0] [--only Operator ...] [-v]

Nodes are taken from onnx's own test cases and from the rows of the boundaries, at every version of their operators,
with attributes and optional inputs less, sizes of 0 and 1, and with the types of their inputs stated in several ways.
Each is run in onnxruntime without optimisations, or else in the reference; what inference says of the outputs has to
be true of what came out: dtype, rank and sizes, the sizes of symbols, and the elements of shapes. Who is wrong where
they differ, inference or whoever ran it, only the text of the operator can tell.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import resource
import signal
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.printer
import onnx.shape_inference
from onnx import GraphProto, ModelProto, TensorProto, helper

from hunt import vectors
from hunt.typing import TYPINGS, Single, Typed, fits, opsets_of, resized, singles, stated, varied
from onnx_convert.analysis import settling
from onnx_convert.spec.types import MADE_UP
from oracle import evaluate

RAW, OURS = "onnx", "ours"


@dataclass
class Finding:
    """What is said of a kind of node although it is not so."""

    operator: str
    who: str
    what: str
    example: str
    evaluator: str
    count: int = 1


@dataclass
class Hunt:
    """What was found, by operator with version, who said it, and in what way it is wrong."""

    findings: dict[tuple[str, str, str], Finding] = field(default_factory=dict)
    runs: int = 0
    statements: int = 0

    def add(self, other: Hunt) -> None:
        """Takes over what another hunt found."""
        self.runs += other.runs
        self.statements += other.statements
        for key, finding in other.findings.items():
            if key in self.findings:
                self.findings[key].count += finding.count
            else:
                self.findings[key] = finding

    def judge(self, single: Single, chance: random.Random, typings: Iterable[str] = TYPINGS) -> None:
        """Runs a node and holds everything that is said of it against what came out."""
        typed = {typing: stated(single, typing, chance) for typing in typings}
        first = next(iter(typed.values()))
        feeds = {name: array for name, array in single.feeds.items() if name not in single.constant}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                evaluation = evaluate(_runnable(first.model, single), feeds)
        except Exception:
            return  # it is not valid, or nobody runs it
        self.runs += 1
        names = [name for name in single.node.output if name]
        values = dict(zip(names, evaluation.values, strict=True))
        for typing, model in typed.items():
            for probe in (False, True):
                self._compare(single, typing, model, values, evaluation.evaluator, probe=probe)

    def _compare(
        self, single: Single, typing: str, typed: Typed, values: dict[str, Any], evaluator: str, *, probe: bool
    ) -> None:
        model = ModelProto()
        model.CopyFrom(typed.model)
        if probe and not _probe(model, values):
            return
        try:
            raw = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=True, data_prop=True).graph
        except Exception as error:
            if not probe:
                text = " ".join(str(error).split())[-110:]
                self.note(single, RAW, f"fails: {text}", typing, evaluator)
            raw = None
        graphs = [(RAW, raw)] if raw is not None else []
        try:
            ours = settling.settle(model, raw, _strictly).graph
            graphs.append((OURS, ours))
        except Exception as error:
            if raw is not None:
                self.note(single, OURS, f"fails: {' '.join(str(error).split())[-110:]}", typing, evaluator)
        for who, graph in graphs:
            for what in _false(graph, values, typed.sizes):
                self.note(single, who, what, typing, evaluator)
            self.statements += 1

    def judge_vector(self, chance: random.Random) -> None:
        """Runs a model that computes a shape, and holds what is said of it against what came out."""
        typed, feeds = vectors.model(chance)
        try:
            evaluation = evaluate(typed.model, feeds)
        except Exception:
            return  # a size below zero, mostly
        self.runs += 1
        source = ModelProto()
        source.CopyFrom(typed.model)
        chain = " ".join(f"{n.op_type}-{typed.model.opset_import[0].version}" for n in source.graph.node[1:-1])
        single = Single(source.graph.node[-1], source.opset_import[0].version, feeds)
        try:
            raw = _strictly(source.SerializeToString())
        except Exception as error:
            self.note(single, RAW, f"fails: {error}", str(source), evaluation.evaluator)
            raw = None
        graphs = [(RAW, raw)] if raw is not None else []
        try:
            graphs.append((OURS, settling.settle(typed.model, raw, _strictly).graph))
        except Exception as error:
            self.note(single, OURS, f"fails {chain}: {error}", str(source), evaluation.evaluator)
        for who, graph in graphs:
            self.statements += 1
            for what in _false(graph, {"y": evaluation.values[0]}, typed.sizes):
                kind, _, text = what.partition(":")
                self.note(single, who, f"{kind} {chain}:{text}", onnx.printer.to_text(source), evaluation.evaluator)

    def note(self, single: Single, who: str, what: str, typing: str, evaluator: str) -> None:
        """Takes note of something false."""
        kind = what.split(":", maxsplit=1)[0]
        key = single.operator, who, kind
        if key in self.findings:
            self.findings[key].count += 1
            return
        shapes = {name: (str(array.dtype), array.shape) for name, array in single.feeds.items()}
        constant = {name: single.feeds[name].tolist() for name in single.constant if single.feeds[name].size < 20}
        attributes = {a.name: helper.get_attribute_value(a) for a in single.node.attribute if not a.HasField("g")}
        example = f"{typing} {list(single.node.input)} {shapes} {attributes} constant {constant}: {what}"
        self.findings[key] = Finding(single.operator, who, kind, example[:900], evaluator)


def _strictly(serialised: bytes) -> GraphProto:
    return onnx.shape_inference.infer_shapes(serialised, strict_mode=True, data_prop=True).graph


def _runnable(model: ModelProto, single: Single) -> ModelProto:
    """Returns the model as onnxruntime loads it: at the IR version of its opset, nothing stated of sizes."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    return copy


def _probe(model: ModelProto, values: dict[str, Any]) -> bool:
    """Has something of a shape made for each output that may be one; whether there is any."""
    found = False
    opset = model.opset_import[0].version
    for name, value in values.items():
        if opset < 9 or not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim > 1:
            continue
        if value.size > 12 or (value.size and (value.min() < 0 or value.max() > 1000)):
            continue
        source = name
        if value.ndim == 0:
            axes = {"axes": [0]} if opset < 13 else {}
            inputs = [name]
            if opset >= 13:
                model.graph.node.append(helper.make_node("Constant", [], ["probe axes"], value_ints=[0]))
                inputs.append("probe axes")
            source = f"row of {name}"
            model.graph.node.append(helper.make_node("Unsqueeze", inputs, [source], **axes))
        model.graph.node.append(helper.make_node("ConstantOfShape", [source], [f"probe of {name}"]))
        model.graph.output.add(name=f"probe of {name}")
        found = True
    return found


def _false(graph: GraphProto, values: dict[str, Any], sizes: dict[str, int]) -> Iterator[str]:
    """Returns what a graph says of its outputs although it is not so."""
    bound: dict[str, int] = dict(sizes)
    for value in graph.output:
        probe = value.name.startswith("probe of ")
        made = values[value.name.removeprefix("probe of ")]
        if not value.type.HasField("tensor_type") or not isinstance(made, np.ndarray):
            continue
        kind = value.type.tensor_type
        shape = tuple(int(one) for one in made.ravel()) if probe else made.shape
        what = "elements" if probe else "dims"
        plain = made.dtype.kind in "biufOU" and kind.elem_type < TensorProto.BFLOAT16  # of others numpy knows no names
        if not probe and kind.elem_type and plain and helper.np_dtype_to_tensor_dtype(made.dtype) != kind.elem_type:
            yield f"dtype: {kind.elem_type} of {value.name}, {made.dtype} it is"
        if not kind.HasField("shape"):
            continue
        said = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim]
        if len(said) != len(shape):
            yield f"{what} rank: {said} of {value.name}, {shape} it is"
            continue
        for one, true in zip(said, shape, strict=True):
            if isinstance(one, int):
                if one != true:
                    yield f"{what} number: {said} of {value.name}, {shape} it is"
            elif one is not None and bound.setdefault(one, true) != true:
                kind_of = "made up symbol" if one.startswith(MADE_UP) else "symbol"
                yield f"{what} {kind_of}: {said} of {value.name}, {shape} it is, where {one} is {bound[one]}"


def seeds(only: Iterable[str] = (), *, cases: bool = True) -> list[Single]:
    """Returns the nodes of the boundaries' rows, and of onnx's own cases."""
    from conformance import corpus

    from boundaries import tables

    found: list[Single] = []
    for row in tables.rows():
        if row.source <= onnx.defs.onnx_opset_version():
            found += singles(row.model, row.inputs)
    for case in corpus.collect(wheels=False) if cases else ():
        model = case.load()
        filled = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in filled]
        for given, _ in case.data[:1]:
            try:
                pairs = zip(inputs, given, strict=True)
                feeds = {value.name: corpus.deserialized(data, value.type) for value, data in pairs}
            except Exception:
                continue
            if all(isinstance(array, np.ndarray) for array in feeds.values()):
                found += singles(model, feeds)
    wanted = set(only)
    unique = {}
    for single in found:
        if single.node.op_type != "Constant" and (not wanted or single.node.op_type in wanted):
            shapes = [(single.feeds[name].shape, str(single.feeds[name].dtype)) for name in single.node.input if name]
            unique.setdefault((single.node.SerializeToString(), str(shapes)), single)
    return list(unique.values())


def trials(single: Single, chance: random.Random, *, resizes: bool) -> Iterator[Single]:
    """Returns the node at every version of its operator, and nodes like it, also of other sizes if asked for."""
    for opset in opsets_of(single):
        schema = onnx.defs.get_schema(single.node.op_type, opset)
        here = Single(single.node, opset, single.feeds, single.constant)
        for one in varied(here, schema):
            if fits(one.node, schema):
                yield one
                if resizes:
                    yield resized(one, chance)


def hunt(found: list[Single], seconds: float, seed: int, *, resizes: bool = True) -> Hunt:
    """Judges nodes, each operator in turn, until the time is up."""
    chance = random.Random(seed)
    result = Hunt()
    by_operator = defaultdict(list)
    for single in found:
        by_operator[single.node.op_type].append(single)
    for group in by_operator.values():
        chance.shuffle(group)
    until = time.monotonic() + seconds
    while by_operator:
        for operator in sorted(by_operator):
            group = by_operator[operator]
            single = group.pop()
            if not group:
                del by_operator[operator]
            result.add(_apart(single, chance.random(), resizes=resizes))
            if time.monotonic() > until:
                return result
    return result


def hunt_vectors(seconds: float, seed: int, most: int = 1_000_000) -> Hunt:
    """Judges models that compute a shape until the time is up, at most so many."""
    result = Hunt()
    until = time.monotonic() + seconds
    for number in range(most):
        if time.monotonic() > until:
            break
        result.judge_vector(random.Random(f"{seed} {number}"))
    return result


def _apart(single: Single, seed: float, *, resizes: bool) -> Hunt:
    """Judges a node in a process of its own: inference divides by zero, too."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(20)  # some never end
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        chance, result = random.Random(seed), Hunt()
        try:
            for trial in trials(single, chance, resizes=resizes):
                result.judge(trial, chance)
        finally:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(result, pipe)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if not data:
        result = Hunt()
        result.note(single, RAW, f"crash: signal {os.WTERMSIG(status)}", "", "")
        return result
    return pickle.loads(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--as-they-are", action="store_true", help="no other sizes: few invalid nodes get through")
    parser.add_argument("-v", "--verbose", action="store_true", help="also what corrections puts right")
    parser.add_argument("--vectors", action="store_true", help="models that compute shapes, instead of single nodes")
    given = parser.parse_args()
    result = (
        hunt_vectors(given.seconds, given.seed)
        if given.vectors
        else hunt(seeds(given.only), given.seconds, given.seed, resizes=not given.as_they_are)
    )
    print(f"{result.runs} runs, {result.statements} statements")
    for (operator, who, kind), finding in sorted(result.findings.items()):
        mended = who == RAW and (operator, OURS, kind) not in result.findings
        if mended and not given.verbose:
            continue
        print(f"{'mended' if mended else who:8}{operator} x{finding.count} ({finding.evaluator}) {finding.example}")


if __name__ == "__main__":
    main()
