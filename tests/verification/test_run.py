# SPDX-License-Identifier: Apache-2.0
"""Two models against each other: the verdict, who computes, what is left out, and the first node that differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper
from texts import function, model, with_names

import onnx_convert
from onnx_convert.verification import evaluators, first_difference
from onnx_convert.verification.evaluators import ONNXRUNTIME, REFERENCE

SOFTMAX = "(float[N,3,4] x) => (float[N,3,4] y) { a = Relu (x)  y = Softmax <axis = 1> (a) }"


def converted(source: ModelProto, to: int, **options: Any) -> tuple[ModelProto, onnx_convert.Report]:
    conversion = onnx_convert.convert(source, to=to, **options)
    return conversion.model, conversion.report


def test_what_computes_the_same() -> None:
    source = model(SOFTMAX, 13)
    result, report = converted(source, 12)
    found = onnx_convert.verify(source, result, report=report)
    assert isinstance(found, onnx_convert.Verification)
    assert found.same and found.identical and found.verdict == "same" and found.reason == ""
    assert (found.source_evaluator, found.result_evaluator, found.promised) == (ONNXRUNTIME, ONNXRUNTIME, "exact")
    assert [run.inputs for run in found.runs] == [
        "random 0", "random 1", "random 2", "between 0 and 1", "zeros", "negative", "large", "tiny",
    ]  # fmt: skip
    assert found.shapes == {"x": (2, 3, 4)}
    assert report.verified == found.to_dict()


def test_the_outcome_is_plain_data() -> None:
    source = model(SOFTMAX, 13)
    same, wrong = converted(source, 12)[0], model(SOFTMAX, 12)
    for result in (same, wrong):
        plain = onnx_convert.verify(source, result).to_dict()
        assert json.loads(json.dumps(plain)) == plain


def test_the_report_says_nothing_where_nothing_was_verified() -> None:
    assert converted(model(SOFTMAX, 13), 12)[1].to_dict()["verified"] is None


def test_what_is_given_is_what_is_run(tmp_path: Path) -> None:
    source = model(SOFTMAX, 13)
    result, _ = converted(source, 12)
    x = np.ones((5, 3, 4), np.float32)
    np.savez(tmp_path / "given.npz", x=x)
    for inputs in ({"x": x}, tmp_path / "given.npz"):
        found = onnx_convert.verify(source, result, inputs=inputs)
        assert found.same and found.shapes == {"x": (5, 3, 4)} and len(found.runs) == 1
    assert onnx_convert.verify(source, result, input_shapes={"x": (7, 3, 4)}).shapes == {"x": (7, 3, 4)}
    assert len(onnx_convert.verify(source, result, seeds=9).runs) == 14
    for bad in ({"inputs": {"z": x}}, {"input_shapes": {"x": (1,)}}, {"seeds": 0}, {"inputs": tmp_path}):
        with pytest.raises(onnx_convert.UsageError):
            onnx_convert.verify(source, result, **bad)


# The source's graph and opset, the result's, and what is said.
DIFFERENT = [
    ("another axis", SOFTMAX, 13, SOFTMAX, 12, "output 'y', random 0: 24 of 24 elements differ"),
    (
        "another dtype",
        "(float[2] x) => (float[2] y) { y = Relu (x) }",
        13,
        "(float[2] x) => (double[2] y) { y = Cast <to = 11> (x) }",
        13,
        "output 'y', random 0: dtype float32 was expected, it is float64",
    ),
    (
        "another shape",
        "(float[2] x) => (float[2] y) { y = Relu (x) }",
        13,
        "(float[2] x) => (float[4] y) { y = Concat <axis = 0> (x, x) }",
        13,
        "output 'y', random 0: shape (2,) was expected, it is (4,)",
    ),
    (
        "another input",
        "(float[2] x) => (float[2] y) { y = Relu (x) }",
        13,
        "(float[2] z) => (float[2] y) { y = Relu (z) }",
        13,
        "the source has the inputs x, the result z",
    ),
    (
        "another output",
        "(float[2] x) => (float[2] y) { y = Relu (x) }",
        13,
        "(float[2] x) => (float[2] z) { z = Relu (x) }",
        13,
        "the source has the outputs y, the result z",
    ),
    (
        "does not run",
        "(float[2] x) => (float[2] y) { y = Relu (x) }",
        13,
        "(float[2] x) => (float[2] y) <int64[1] s = {3}> { r = Reshape (x, s)  y = Relu (r) }",
        13,
        "random 0: the source runs on them, the result does not: ",
    ),
]


@pytest.mark.parametrize("row", DIFFERENT, ids=[row[0] for row in DIFFERENT])
def test_what_differs(row: tuple[str, str, int, str, int, str]) -> None:
    _, one, before, other, after, says = row
    found = onnx_convert.verify(model(one, before), model(other, after))
    assert found.verdict == "different" and not found.same and not found.identical
    assert found.reason.startswith(says), found.reason


def test_inputs_that_no_longer_are_ones_do_not_count() -> None:
    source = model("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Add (x, w) }", 6)
    result, report = converted(source, 13)
    assert report.inputs_removed == ["w"]
    found = onnx_convert.verify(source, result, report=report)
    assert found.same
    assert (found.source_evaluator, found.result_evaluator) == (REFERENCE, ONNXRUNTIME)
    assert "onnx.reference computes the source, onnxruntime the result" in found.notes


def test_what_has_no_inputs_that_run_is_not_verified() -> None:
    text = """(float[2,3] x, float[5] s) => (float[?] y) <int64[5] m = {7,7,7,7,7}>
        { t = Cast <to = 7> (s)  u = Mul (t, m)  y = Reshape (x, u) }"""
    found = onnx_convert.verify(model(text, 13), model(text, 14))
    assert found.verdict == "unverified" and not found.same and not found.runs
    assert found.reason.startswith("no inputs could be made on which the source runs (")


def test_what_runs_nowhere_is_not_verified() -> None:
    foreign = model("(float[2] x) => (float[2] y) { y = com.acme.Gate (x) }", 13, com_acme=1)
    found = onnx_convert.verify(foreign, foreign)
    assert found.verdict == "unverified" and "Gate" in found.reason


def test_given_inputs_on_which_the_source_does_not_run() -> None:
    source = model("(float[?] x, int64[1] s) => (float[?] y) { y = Reshape (x, s) }", 13)
    found = onnx_convert.verify(source, source, inputs={"x": np.ones(3, np.float32), "s": np.array([7])})
    assert found.verdict == "unverified" and found.reason.startswith("the source does not run on given: ")


def test_random_results_are_not_compared_element_by_element() -> None:
    text = "(float[999] x) => (float[999] y, float[999] z) { y = RandomNormalLike (x)  z = Relu (x) }"
    found = onnx_convert.verify(model(text, 13), model(text, 14))
    assert found.same and not found.identical
    assert [output.random for output in found.outputs] == [True, False]
    assert "random, so only shape, dtype and distribution are compared: y" in found.notes
    wider = text.replace("RandomNormalLike", "RandomNormalLike <scale = 2.0>")
    assert "distributed otherwise" in onnx_convert.verify(model(text, 13), model(wider, 13)).reason


def test_texts_that_are_silent_on_nan_are_not_asked() -> None:
    names = {
        operator: [run.inputs for run in onnx_convert.verify(source, source).runs]
        for operator in ("Abs", "Sign")
        for source in [model(f"(float[9] x) => (float[9] y) {{ y = {operator} (x) }}", 13)]
    }
    assert "NaN" in names["Abs"] and "NaN" not in names["Sign"]


def test_a_choice_on_which_the_source_does_not_run_is_made_again() -> None:
    """One of two rates selects a branch that fails."""
    text = """(int64 rate, float[4] x) => (float[?] y) <int64 k = {8}, int64[1] wrong = {5}> { b = Equal (rate, k)
        y = If (b) <then_branch = g () => (float[?] t) { t = Relu (x) },
                    else_branch = h () => (float[?] e) { e = Reshape (x, wrong) }> }"""
    found = onnx_convert.verify(model(text, 13), model(text, 14))
    assert found.same and len(found.runs) >= 7 and not found.skipped


# ---- the files are run as they are


def big(path: Path, value: float, opset: int = 13) -> Path:
    source = model(
        "(float[2,512] x) => (float[2,512] y, float[2,512] z) { a = Add (x, w)  y = Relu (a)  z = Abs (y) }", opset
    )
    source.graph.initializer.append(numpy_helper.from_array(np.full(512, value, np.float32), "w"))
    onnx.save(source, path, save_as_external_data=True, location=f"{path.stem}.data", size_threshold=0)
    return path


def test_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    create = evaluators.OnnxRuntime.__init__
    monkeypatch.setattr(
        evaluators.OnnxRuntime,
        "__init__",
        lambda self, model, **more: (given.append(model), create(self, model, **more))[1],
    )
    source, same, wrong = big(tmp_path / "a.onnx", 1), big(tmp_path / "b.onnx", 1, 14), big(tmp_path / "c.onnx", 2)
    assert onnx_convert.verify(source, same).identical
    assert given == [str(source), str(same)]
    found = onnx_convert.verify(source, wrong, bundle=tmp_path / "bundle")
    assert not found.same and found.first is not None
    assert (found.first.value, found.first.operator, found.first.became) == ("a", "Add", ())
    assert found.first.why.endswith("; initializer 'w' has other elements")
    again = onnx_convert.verify(
        tmp_path / "bundle/source.onnx", tmp_path / "bundle/result.onnx", inputs=tmp_path / "bundle/test_data_set_0"
    )
    assert not again.same, "the constants went along"


def test_one_model_at_a_time_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    alive, most = 0, 0

    class Counted(evaluators.OnnxRuntime):
        def __init__(self, *given: Any, **more: Any) -> None:
            nonlocal alive, most
            super().__init__(*given, **more)
            alive += 1
            most = max(alive, most)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    monkeypatch.setattr("onnx_convert.verification.subjects.OnnxRuntime", Counted)
    assert not onnx_convert.verify(model(SOFTMAX, 13), model(SOFTMAX, 12)).same
    assert most == 1 and alive == 0


# ---- the first that differs


def test_the_first_node_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a long chain with two places that differ, the first of them is found, in few runs."""
    lines = [f"v{i + 1} = {'Neg' if i % 2 else 'Abs'} (v{i})" for i in range(200)]
    lines[70] = "v71 = Softmax <axis = 1> (v70)"
    lines[150] = "v151 = Softmax <axis = 1> (v150)"
    text = f"(float[2,3,4] v0) => (float[2,3,4] v200) {{ {'  '.join(lines)} }}"
    source, result = with_names(model(text, 13)), with_names(model(text, 12))
    runs = []
    real = first_difference._run
    monkeypatch.setattr(first_difference, "_run", lambda *given: (runs.append(given), real(*given))[1])
    found = onnx_convert.verify(source, result, seeds=1)
    assert found.first is not None
    assert (found.first.value, found.first.node, found.first.operator) == ("v71", "Softmax_70", "Softmax")
    assert len(runs) <= 12


def test_the_adapter_is_named_without_a_report_too() -> None:
    source = with_names(model(SOFTMAX, 13))
    result, report = converted(source, 12)
    next(node for node in result.graph.node if node.op_type == "Softmax").attribute[0].i = 1
    for given in (report, None):
        first = onnx_convert.verify(source, result, report=given).first
        assert first is not None
        assert first.adapter == "Softmax@13 normalise_trailing_axes"
        assert first.became == ("Transpose", "Softmax", "Transpose")
        assert (first.node, first.value) == ("Softmax_1", "y")


def test_what_differs_in_parallel_branches_is_found_in_the_one_that_feeds_the_output() -> None:
    text = """(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z)
        { a = Abs (x)  s = Softmax <axis = 1> (a)  z = Neg (s)
          b = Exp (x)  h = Hardmax <axis = 1> (b)  y = Neg (h) }"""
    first = onnx_convert.verify(model(text, 13), model(text, 12)).first
    assert first is not None and first.value in ("s", "h")


def test_functions_and_branches_go_into_the_bundle(tmp_path: Path) -> None:
    softmax = "y = Softmax <axis = 1> (x)"
    text = """(float[2,3,4] x, bool b) => (float[2,3,4] y) { a = Abs (x)  c = f.F (a)  y = If (b) <
        then_branch = g () => (float[2,3,4] t) { t = Neg (c) },
        else_branch = h () => (float[2,3,4] e) { e = Abs (c) }> }"""
    source, result = (model(text, opset, function(softmax, opset), ir=9, f=1) for opset in (13, 12))
    first = onnx_convert.verify(source, result, bundle=tmp_path / "b").first
    assert first is not None
    assert (first.operator, first.value, first.folder) == ("f.F", "c", str(tmp_path / "b"))
    folder = tmp_path / "b"
    onnx.checker.check_model(onnx.load(folder / "source.onnx"), full_check=True)
    again = onnx_convert.verify(folder / "source.onnx", folder / "result.onnx", inputs=folder / "test_data_set_0")
    assert not again.same
    with pytest.raises(onnx_convert.UsageError, match="exists already"):
        onnx_convert.verify(source, result, bundle=folder)


def test_kernels_that_round_otherwise_are_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the same bits are promised, but the first value that has others has but another last one."""
    text = "(float[9] x) => (float[9] y) { a = Exp (x)  y = Tanh (a) }"
    source, result = model(text, 13), model(text, 12)
    report = converted(source, 12)[1]
    assert report.form == "exact"
    real = evaluators.OnnxRuntime.run

    def rounded(self: evaluators.OnnxRuntime, feeds: Any) -> list[Any]:
        values = real(self, feeds)
        if id(self) in late:
            values = [np.nextafter(value, np.float32(9)) if value.dtype == np.float32 else value for value in values]
        return values

    late: set[int] = set()
    create = evaluators.OnnxRuntime.__init__

    def noted(self: evaluators.OnnxRuntime, model: Any, **more: Any) -> None:
        create(self, model, **more)
        late.discard(id(self))
        if ModelProto.FromString(model).opset_import[0].version == 12:
            late.add(id(self))

    monkeypatch.setattr(evaluators.OnnxRuntime, "__init__", noted)
    monkeypatch.setattr(evaluators.OnnxRuntime, "run", rounded)
    found = onnx_convert.verify(source, result, report=report)
    assert found.same and not found.identical
    assert found.notes == ["the same bits were promised; kernels round otherwise, first at Exp 'a'"]


def test_what_becomes_of_nan_is_noted_but_not_counted() -> None:
    weights = "<float[3] w = {1,2,3}, float z = {0}>"
    source = model(f"(float[3] x) => (float[3] y) {weights} {{ y = Abs (w) }}", 13)
    result = model(f"(float[3] x) => (float[3] y) {weights} {{ m = Mul (x, z)  y = Add (w, m) }}", 13)
    found = onnx_convert.verify(source, result, seeds=8)
    assert found.same and "NaN" not in [run.inputs for run in found.runs]
    given = {"x": np.full(3, np.nan, np.float32)}
    assert not onnx_convert.verify(source, result, inputs=given).same
    assert found.notes == ["on inputs of the kind 'NaN' they differ, first at a kernel of Abs; that is not counted"]


def test_a_result_that_onnxruntime_does_not_take_is_told() -> None:
    graph = "(float[2] a, float[2] b) => (float[2] y) { y = Add (a, b) }"
    found = onnx_convert.verify(model(graph, 13), model(graph, 6))
    assert found.same and found.result_evaluator == REFERENCE
    assert found.notes[0] == "onnxruntime computes the source, onnx.reference the result"
    assert found.notes[1].startswith("onnxruntime takes the source, but not the result: NotImplemented: ")


def test_kernels_that_differ_at_the_edges_are_noted_but_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is as it was, and one that was rewritten: only the second counts."""
    real = evaluators.OnnxRuntime.run

    def overflowing(self: evaluators.OnnxRuntime, feeds: Any) -> list[Any]:
        values = real(self, feeds)
        late, large = id(self) in calls, np.abs(feeds["x"]).max() > 50
        return [value * np.float32("inf") if late and large else value for value in values]

    calls: set[int] = set()
    create = evaluators.OnnxRuntime.__init__

    def noted(self: evaluators.OnnxRuntime, model: Any, **more: Any) -> None:
        create(self, model, **more)
        calls.discard(id(self))
        if ModelProto.FromString(model).opset_import[0].version == 12:
            calls.add(id(self))

    monkeypatch.setattr(evaluators.OnnxRuntime, "__init__", noted)
    monkeypatch.setattr(evaluators.OnnxRuntime, "run", overflowing)
    text = "(float[2,9] x) => (float[2,9] y) { y = Tanh (x) }"
    found = onnx_convert.verify(model(text, 13), model(text, 12))
    assert found.same and "large" not in [run.inputs for run in found.runs]
    assert found.notes == ["on inputs of the kind 'large' they differ, first at a kernel of Tanh; that is not counted"]
    other = "(float[2,9] x) => (float[2,9] y) { t = Identity (x)  y = Tanh (t) }"
    assert not onnx_convert.verify(model(text, 13), model(other, 12)).same


def test_a_weight_that_shows_at_the_edges_alone_counts() -> None:
    """Behind a Relu that is closed for most inputs."""
    text = """(float[4] x) => (float[4] y) <float[4] w = {%s}, float b = {-9}>
        { m = Mul (x, w)  s = Add (m, b)  y = Relu (s) }"""
    one, other = (model(text % weights, 13) for weights in ("1,1,1,1", "1,1,1,2"))
    found = onnx_convert.verify(one, other)
    assert not found.same and found.reason.startswith("output 'y', large: ")


def test_a_weight_that_is_hardly_another_one_is_no_matter_of_kernels() -> None:
    text = "(float[2,3] x) => (float[2,3] y) <float[3] w = {1,1,%s}> { y = Mul (x, w) }"
    source, result = model(text % "1", 13), model(text % "1.000001", 12)
    report = converted(source, 12)[1]
    found = onnx_convert.verify(source, result, report=report)
    assert report.form == "exact" and not found.same
    assert found.first is not None and found.first.why.endswith("; initializer 'w' has other elements")


def test_a_kernel_of_the_source_that_does_not_do_what_the_text_says() -> None:
    """Masked scores of Attention are -inf; onnxruntime has the least number in their place."""
    text = """(float[1,1,3,2] q, float[1,1,4,2] k, float[1,1,4,2] v) => (float[1,1,3,2] y, float[1,1,3,4] s)
        { y, , , s = Attention <qk_matmul_output_mode = 2, is_causal = 1> (q, k, v) }"""
    source = model(text, 23)
    result, report = converted(source, 22)
    found = onnx_convert.verify(source, result, report=report)
    assert found.same, found.reason
    if any(note.startswith("onnxruntime computes the source otherwise on ") for note in found.notes):
        assert all(run.agrees for run in found.runs)
    for node in result.graph.node:
        if node.op_type == "Softmax":
            node.attribute[0].i = 2
    assert not onnx_convert.verify(source, result, report=report).same


def test_roundings_that_a_node_makes_large_are_not_counted() -> None:
    """Of values that hardly differ from their mean, where the inputs are tiny."""
    text = """(float[2,8,6,4] x) => (float[2,8,6,4] y) <float[4] g = {1,1,1,1}>
        { b = Softmax <axis = 1> (x)  c = HardSwish (b)  y = LayerNormalization (c, g) }"""
    source = model(text, 17)
    result, report = converted(source, 11)
    found = onnx_convert.verify(source, result, report=report)
    assert found.same, found.reason
    for node in result.graph.node:
        if node.op_type == "ReduceMean":
            node.attribute[0].ints[0] = -2
    assert not onnx_convert.verify(source, result, report=report).same
