# SPDX-License-Identifier: Apache-2.0
"""The published cases have to come out right, and what would come out wrong has to be noticed.

The converters of the first half are wrong on purpose: each is a stamp of the target opset, which is all that its
operators need there, and one fault.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from conformance import compare, corpus, results, run, workers
from conformance.converters import Converted, Refused, ours, theirs
from conformance.corpus import Case, make_case
from conformance.evaluators import Measure, difference
from conformance.judge import (
    CORRECT,
    CRASH,
    INVALID,
    MOST_TARGETS,
    REFUSED,
    UNVERIFIABLE,
    WRONG,
    Record,
    Trial,
    released,
    targets_for,
)
from onnx import ModelProto, TensorProto, helper, numpy_helper

from oracle import ONNXRUNTIME, REFERENCE

Mutation = Callable[[ModelProto], None]


def case_of(name: str, opset: int, graph: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Case:
    ir_version = helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    model = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> g {graph}')
    data = [numpy_helper.from_array(np.asarray(v)).SerializeToString() for v in (*inputs, *outputs)]
    return make_case(f"0/test/{name}", model, [(data[: len(inputs)], data[len(inputs) :])])


def stamp(model: ModelProto, domain: str, target: int, mutation: Mutation = lambda model: None) -> Converted:
    converted = ModelProto()
    converted.CopyFrom(model)
    converted.opset_import[0].version = target
    needed = helper.find_min_ir_version_for([helper.make_opsetid(domain, target)])
    converted.ir_version = max(converted.ir_version, needed)
    mutation(converted)
    return Converted(converted)


A, B = np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.array([[1, 1, 1], [2, 2, 2]], np.float32)
BINARY = "(float[2,3] a, float[2,3] b) => (float[2,3] y) {{ y = {}(a, b) }}"
UNARY = "(float[2,3] a) => (float[{}] y) {{ y = {}(a) }}"
SOFTMAX = np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)

ADD = case_of("add", 14, BINARY.format("Add"), [A, B], [A + B])
OLD_ADD = case_of("old_add", 6, BINARY.format("Add"), [A, B], [A + B])
SOFT = case_of("softmax", 13, UNARY.format("2,3", "Softmax<axis=1>"), [A], [SOFTMAX])
TURN = case_of("transpose", 13, UNARY.format("3,2", "Transpose<perm=[1,0]>"), [A], [A.T])
RANDOM = case_of("random", 15, UNARY.format("2,3", "Bernoulli"), [A / 10], [np.zeros_like(A)])
QUANTIZE = "(float[2] a, float s, uint8 z) => (uint8[2] y) {{ y = QuantizeLinear(a, s, z) }}".format()
QUANTIZED = case_of(
    "quantize", 13, QUANTIZE, [np.float32([5, 9]), np.float32(1), np.uint8(0)], [np.array([6, 9], np.uint8)]
)
MISPUBLISHED = case_of("mispublished", 14, BINARY.format("Add"), [A, B], [A - B])


def operator(name: str) -> Mutation:
    def change(model: ModelProto) -> None:
        model.graph.node[0].op_type = name

    return change


def attribute(name: str, value: Any) -> Mutation:
    def change(model: ModelProto) -> None:
        kept = [a for a in model.graph.node[0].attribute if a.name != name]
        del model.graph.node[0].attribute[:]
        model.graph.node[0].attribute.extend([*kept, helper.make_attribute(name, value)])

    return change


def opset(version: int) -> Mutation:
    def change(model: ModelProto) -> None:
        model.opset_import[0].version = version

    return change


def output(name: str) -> Mutation:
    def change(model: ModelProto) -> None:
        model.graph.output[0].name = model.graph.node[0].output[0] = name

    return change


def input_dtype(elem_type: int) -> Mutation:
    def change(model: ModelProto) -> None:
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.elem_type = elem_type

    return change


def swapped(model: ModelProto) -> None:
    one, other = model.graph.node[0].input
    model.graph.node[0].input[:] = [other, one]


def nothing(model: ModelProto) -> None:
    pass


# What is done to the model after it was stamped with the target, and the verdict.
MUTATIONS: list[tuple[str, Case, int, Mutation, str]] = [
    ("nothing, up", ADD, 16, nothing, CORRECT),
    ("nothing, down", ADD, 13, nothing, CORRECT),
    ("nothing, where the reference has to judge", OLD_ADD, 1, nothing, CORRECT),
    ("swapped addends", ADD, 16, swapped, CORRECT),
    ("Add becomes Sub", ADD, 16, operator("Sub"), WRONG),
    ("Add becomes Sub, where the reference has to judge", OLD_ADD, 1, operator("Sub"), WRONG),
    ("another axis", SOFT, 16, attribute("axis", 0), WRONG),
    ("the meaning of axis below 13", SOFT, 12, attribute("axis", 0), WRONG),
    ("an axis out of range", SOFT, 16, attribute("axis", 5), INVALID),
    ("another permutation", TURN, 16, attribute("perm", [0, 1]), INVALID),
    ("an attribute that does not exist", ADD, 16, attribute("axis", 1), INVALID),
    ("an operator that does not exist", ADD, 16, operator("Plus"), INVALID),
    ("an operator of a later opset", SOFT, 16, operator("Gelu"), INVALID),
    ("another opset than asked for", ADD, 16, opset(15), INVALID),
    ("another name of the output", ADD, 16, output("z"), INVALID),
    ("another dtype of the interface", ADD, 16, input_dtype(TensorProto.DOUBLE), INVALID),
    ("random values", RANDOM, 16, nothing, CORRECT),
    ("random values of another dtype", RANDOM, 16, attribute("dtype", TensorProto.DOUBLE), INVALID),
    ("an integer next to the published one", QUANTIZED, 14, nothing, CORRECT),
    ("outputs that no evaluator gives", MISPUBLISHED, 16, nothing, UNVERIFIABLE),
    ("an illegal model for outputs that no evaluator gives", MISPUBLISHED, 16, operator("Plus"), INVALID),
]


@pytest.mark.parametrize(("case", "target", "mutation", "verdict"), [pytest.param(*m[1:], id=m[0]) for m in MUTATIONS])
def test_verdict(case: Case, target: int, mutation: Mutation, verdict: str) -> None:
    record = Trial(case).judge(target, partial(stamp, mutation=mutation))
    assert record["verdict"] == verdict, record


def test_who_judges() -> None:
    assert Trial(ADD).judge(16, stamp)["evaluator"] == ONNXRUNTIME
    assert Trial(OLD_ADD).judge(1, stamp)["evaluator"] == REFERENCE


def test_a_changed_source_is_invalid() -> None:
    def careless(model: ModelProto, domain: str, target: int) -> Converted:
        converted = stamp(model, domain, target)
        model.graph.node[0].name = "changed"
        return converted

    assert Trial(ADD).judge(16, careless)["verdict"] == INVALID


def refuse(model: ModelProto, domain: str, target: int) -> Converted:
    raise Refused([{"operator": "Add", "boundary": target, "reason": "not today"}])


def fail(model: ModelProto, domain: str, target: int) -> Converted:
    raise KeyError(target)


@pytest.mark.parametrize(
    ("case", "convert", "verdict"),
    [
        pytest.param(ADD, refuse, REFUSED, id="refused"),
        pytest.param(MISPUBLISHED, refuse, UNVERIFIABLE, id="refused, but nobody could judge"),
        pytest.param(ADD, fail, CRASH, id="raised"),
        pytest.param(MISPUBLISHED, fail, CRASH, id="raised, where nobody could judge"),
    ],
)
def test_a_converter_that_gives_nothing(case: Case, convert: Any, verdict: str) -> None:
    assert Trial(case).judge(16, convert)["verdict"] == verdict


@pytest.mark.parametrize(
    ("expected", "got", "measure", "agree"),
    [
        (np.float32([1]), np.float32([1.0005]), Measure(), True),
        (np.float32([1]), np.float32([1.002]), Measure(), False),
        (np.float16([1]), np.float16([1.004]), Measure(), True),
        (np.float32([1]), np.float64([1]), Measure(), False),
        (np.float32([1]), np.float32([[1]]), Measure(), False),
        (np.float32([np.nan]), np.float32([np.nan]), Measure(), True),
        (np.float32([np.nan]), np.float32([0]), Measure(), False),
        (np.float32([np.inf]), np.float32([3e38]), Measure(), False),
        (np.uint8([0]), np.uint8([255]), Measure(step=1), False),
        (np.uint8([7]), np.uint8([8]), Measure(step=1), True),
        (np.uint8([7]), np.uint8([9]), Measure(step=1), False),
        (np.uint8([7]), np.uint8([8]), Measure(), False),
        (np.array(["a"], object), np.array(["a"]), Measure(), True),
        (np.array(["a"], object), np.array(["b"]), Measure(), False),
        (np.float32([1]), np.float32([5]), Measure(shape_only=True), True),
        (np.float32([1]), np.float32([5, 5]), Measure(shape_only=True), False),
        ([np.float32([1])], [np.float32([1])], Measure(), True),
        ([np.float32([1])], [np.float32([2])], Measure(), False),
        ([np.float32([1])], np.float32([1]), Measure(), False),
        (None, None, Measure(), True),
        (None, np.float32([1]), Measure(), False),
    ],
)
def test_difference(expected: Any, got: Any, measure: Measure, agree: bool) -> None:
    assert (difference([expected], [got], measure) is None) is agree


# ---- the machinery


def test_targets() -> None:
    for case in (ADD, OLD_ADD, SOFT):
        opsets = released("")
        targets = targets_for(case)
        here = opsets.index(case.opset)
        assert targets == targets_for(case)
        assert {opsets[here - 1], opsets[here + 1]} <= set(targets) <= set(opsets) - {case.opset}
        assert len(targets) == MOST_TARGETS
        assert targets_for(case, one_step=True) == [opsets[here - 1], opsets[here + 1]]
        assert targets_for(case, direction="up") == [t for t in targets if t > case.opset]
        assert targets_for(case, direction="down") == [t for t in targets if t < case.opset]


def test_a_release_is_read() -> None:
    prefix = f"{corpus.DATA}node/test_add/"
    inputs, outputs = ADD.data[0]
    files = {f"{prefix}model.onnx": ADD.model, f"{corpus.DATA}node/test_empty/model.onnx": ADD.model}
    files |= {f"{prefix}test_data_set_0/input_{i}.pb": data for i, data in enumerate(inputs)}
    files |= {f"{prefix}test_data_set_0/output_{i}.pb": data for i, data in enumerate(outputs)}
    (case,) = corpus._from_files("1.0.0", files)
    assert (case.id, case.model, case.data) == ("1.0.0/node/test_add", ADD.model, ADD.data)
    assert (case.operator, case.domain, case.opset) == ("Add", "", 14)


def test_values_survive_their_files() -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    sequence, optional = helper.make_sequence_type_proto(tensor), helper.make_optional_type_proto(tensor)
    (back,) = corpus.deserialized(corpus._serialized([A], sequence), sequence)
    assert (back == A).all()
    assert (corpus.deserialized(corpus._serialized(A, optional), optional) == A).all()
    assert corpus.deserialized(corpus._serialized(None, optional), optional) is None
    bits = numpy_helper.from_array(np.array([16256], np.uint16)).SerializeToString()
    bfloat16 = helper.make_tensor_type_proto(TensorProto.BFLOAT16, None)
    assert corpus.deserialized(bits, bfloat16).astype(np.float32) == 1


def dangerous(model: ModelProto, domain: str, target: int) -> Converted:
    if target == 15:
        os._exit(3)
    if target == 16:
        time.sleep(600)
    return stamp(model, domain, target)


def test_a_process_may_die_or_hang() -> None:
    tasks = [(ADD, [13, 15, 16, 17]), (SOFT, [14, 15])]
    records = list(workers.run(tasks, dangerous, jobs=2, limit=10))
    verdicts = {(r["case"], r["target"]): r["verdict"] for r in records}
    assert verdicts == {
        (ADD.id, 13): CORRECT,
        (ADD.id, 15): CRASH,
        (ADD.id, 16): CRASH,
        (ADD.id, 17): CORRECT,
        (SOFT.id, 14): CORRECT,
        (SOFT.id, 15): CRASH,
    }
    assert {r["target"]: r["why"] for r in records if r["case"] == ADD.id and r["verdict"] == CRASH} == {
        15: "the process died (convert)",
        16: "the process took more than 10 s (convert)",
    }


def test_results(tmp_path: Any) -> None:
    good = Trial(ADD).judge(16, stamp)
    bad = Trial(ADD).judge(16, partial(stamp, mutation=operator("Sub")))
    declined = Trial(SOFT).judge(12, refuse)
    results.write(tmp_path / "a.json", {"seed": 0}, [good, declined])
    header, records = results.read(tmp_path / "a.json")
    assert (header, records) == ({"seed": 0}, [good, declined])
    text = results.summary([bad, declined])
    assert "50.00%" in text
    assert "down Softmax" not in text
    assert "down Add@12" in text
    assert ADD.id in text
    assert results.changes(records, records) == ""
    assert "correct -> wrong" in results.changes([good, declined], [bad, declined])


def test_commands(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(corpus, "collect", lambda wheels: [ADD, SOFT, TURN])
    one, other = str(tmp_path / "one.json"), str(tmp_path / "other.json")
    narrow = ["--only", "Add", "--only", "Softmax", "--direction", "up", "--one-step", "--jobs", "1"]
    assert run.main([*narrow, "--out", one]) == 0
    header, records = results.read(tmp_path / "one.json")
    assert [(r["case"], r["target"], r["verdict"]) for r in records] == [(ADD.id, 15, CORRECT), (SOFT.id, 14, CORRECT)]
    assert header["converter"] == "onnx-convert"
    assert run.main([*narrow, "--converter", "onnx", "--options", "exact=true", "--out", other]) == 0
    assert compare.main([one, one]) == 0
    assert compare.main([one, other]) == 0
    assert "converter: onnx-convert -> onnx" in capsys.readouterr().out
    results.write(tmp_path / "other.json", header, [records[0] | {"verdict": WRONG, "why": "bad"}, records[1]])
    assert compare.main([one, other]) == 1
    assert "correct -> wrong" in capsys.readouterr().out


def test_the_other_converter() -> None:
    assert Trial(OLD_ADD).judge(7, partial(theirs, options={}))["verdict"] == CORRECT
    assert Trial(RANDOM).judge(14, partial(theirs, options={}))["verdict"] == REFUSED


# ---- the cases

BAD = (WRONG, INVALID, CRASH)


def carried(cases: list[Case], options: Mapping[str, Any]) -> list[Record]:
    tasks = [(case, targets_for(case)) for case in cases]
    return list(workers.run(tasks, partial(ours, options=options), jobs=os.cpu_count() or 1))


def expect(records: list[Record], *, up: float, down: float) -> None:
    """Nothing is wrong, and so much of what can be judged is right, the rest refused."""
    counts = Counter((record["direction"], record["verdict"]) for record in records)
    assert not any(record["verdict"] in BAD for record in records), results.summary(records)
    for direction, least in (("up", up), ("down", down)):
        correct, refused = (counts[direction, verdict] for verdict in (CORRECT, REFUSED))
        assert correct >= least * (correct + refused) > 0, results.summary(records)
    assert sum(n for (_, verdict), n in counts.items() if verdict == UNVERIFIABLE) < 0.05 * len(records)


@pytest.mark.parametrize("size", [150, pytest.param(1000, marks=pytest.mark.thorough)])
def test_generated_cases(size: int) -> None:
    expect(carried(corpus.sample(corpus.collect(wheels=False), size, seed=0), {}), up=0.99, down=0.6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "down"), [({}, 0.77), ({"allow": ("conditional",), "types": "cast"}, 0.82)], ids=["usual", "allowed"]
)
def test_all_cases(options: Mapping[str, Any], down: float) -> None:
    """As it is used, and with what may be allowed."""
    try:
        cases = corpus.collect(wheels=True)
    except corpus.WheelsUnavailable as error:
        pytest.skip(str(error))
    assert len(cases) > 5000
    expect(carried(cases, options), up=0.999, down=down)
