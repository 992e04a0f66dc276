# SPDX-License-Identifier: Apache-2.0
"""The report counts what changed: text, -v and JSON tell which nodes differ, what they became and at which opsets."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import ModelProto
from texts import model, with_names

import onnx_convert
from onnx_convert.cli.main import main
from onnx_convert.report import Change

# Of these, Relu never changes, one Softmax looks at the last axis, and Split loses an attribute and an input.
DETECTOR = """(float[2, 6, 4] x) => (float[2, 2, 4] y, float[2, 6, 4] z) <int64[3] sizes = {2, 2, 2}> {
    a, b, c = Split <axis = 1> (x, sizes)
    d = Relu (a)
    e = HardSwish (d)
    y = Softmax <axis = 1> (e)
    f = Softmax <axis = 2> (x)
    z = Identity (f)
}"""


def run(*line: str) -> list[str]:
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture
def detector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelProto:
    monkeypatch.chdir(tmp_path)
    source = with_names(model(DETECTOR, 19), "/split", "/relu", "/hs", "/soft", "/last", "/out")
    onnx.save(source, "det19.onnx")
    return source


def test_the_text(detector: ModelProto) -> None:
    *lines, last = run("det19.onnx", "--for", "rknn-toolkit2@1.5.2")
    limits = "rknn-toolkit2 1.5.2 loads opset 12 and IR version 7 at most"
    assert lines == [
        "det19.onnx   opset 19 -> 12   IR version 9 -> 7   for rknn-toolkit2 1.5.2",
        "",
        "Changed    Nodes  Became                         At opset",
        "Split          1  Split                          18, 13",
        "HardSwish      1  HardSigmoid, Mul               14",
        "Softmax        1  Transpose, Softmax, Transpose  13",
        "3 of 6 nodes changed, 3 are as they were",
        "",
        "may differ:  HardSwish '/hs': the operator may round in another order",
        "warning:     what is known of rknn-toolkit2 1.5.2 is reported, not documented: tiwater/arcface#1",
        f"note:        {limits}: the opset (19) and the IR version (9) were too new",
        "note:        the IR version that rknn-toolkit2 1.5.2 loads is not documented; 7 goes with opset 12",
        "",
    ]
    assert last.startswith("wrote det19.opset12.onnx (") and last.endswith(" s") and " in 0." in last


def test_nodes_that_come_out_equal_are_not_listed(detector: ModelProto) -> None:
    conversion = onnx_convert.convert(detector, to=12)
    report, result = conversion.report, conversion.model
    before = {node.name: node for node in detector.graph.node}
    after = {node.name: node for node in result.graph.node}
    differing = {name for name, node in before.items() if after.get(name) != node}
    assert {name for change in report.changes for name in change.nodes} == differing == {"/split", "/hs", "/soft"}
    assert (report.nodes_changed, report.nodes_kept) == (3, 3)


def test_verbose_tells_names_and_rewrites(detector: ModelProto) -> None:
    text = "\n".join(run("det19.onnx", "--to", "12", "-v"))
    assert "Changed    Nodes  Became                         At opset  Names\n" in text
    assert "HardSwish      1  HardSigmoid, Mul               14        /hs\n" in text
    assert "Rewrite" in text and "HardSwish@14" in text and "normalise trailing axes" in text
    assert text.splitlines()[0].startswith("det19.onnx (") and "may differ" not in text.splitlines()[0]


def test_json_tells_the_same(detector: ModelProto) -> None:
    told = json.loads("\n".join(run("det19.onnx", "--to", "12", "--json")))
    assert (told["nodes_changed"], told["nodes_kept"]) == (3, 3)
    assert [
        (one["operator"], one["count"], one["became"], one["boundaries"], one["nodes"]) for one in told["changes"]
    ] == [
        ("Split", 1, ["Split"], [18, 13], ["/split"]),
        ("HardSwish", 1, ["HardSigmoid", "Mul"], [14], ["/hs"]),
        ("Softmax", 1, ["Transpose", "Softmax", "Transpose"], [13], ["/soft"]),
    ]
    assert (told["source"], told["destination"]) == ("det19.onnx", "det19.opset12.onnx")
    assert told["source_bytes"] == Path("det19.onnx").stat().st_size
    assert told["destination_bytes"] == Path("det19.opset12.onnx").stat().st_size
    assert told["seconds"] > 0


def test_success_without_changes_looks_like_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(model("(float[2] x) => (float[2] y) { y = Relu (x) }", 17), "m.onnx")
    *lines, last = run("m.onnx", "--to", "14")
    assert lines == ["m.onnx   opset 17 -> 14   IR version 8 -> 7", "", "no node changed", ""]
    assert last.startswith("wrote m.opset14.onnx (") and last.endswith(" s")


def changes(source: ModelProto, to: int, **options: object) -> list[Change]:
    return onnx_convert.plan(source, to=to, **options).changes


def test_many_nodes_are_one_row() -> None:
    """Replays of a rewrite count like the first one."""
    nodes = " ".join(f"v{n} = Softmax <axis = 1> (x)" for n in range(50))
    source = model(f"(float[2, 3, 4] x) => (float[2, 3, 4] v49) {{ {nodes} }}", 13)
    (change,) = changes(source, 12)
    assert change[:4] == ("Softmax", "ai.onnx", ("Transpose", "Softmax", "Transpose"), (13,))
    assert change.nodes == tuple(f"v{n}" for n in range(50))


def test_a_constant_that_becomes_an_initializer_is_a_change() -> None:
    graph = "(float[2, 3] x) => (float[3, 2] y) { s = Constant <value = int64[2] {3, 2}> ()  y = Reshape (x, s) }"
    assert changes(model(graph, 13), 8) == [Change("Constant", "ai.onnx", ("initializer",), (), ("s",))]


def test_a_constant_that_goes_is_a_change() -> None:
    graph = "(float[2] x) => (float[1, 2] y) { a = Constant <value = int64[1] {0}> ()  y = Unsqueeze (x, a) }"
    assert changes(model(graph, 13), 12) == [
        Change("Unsqueeze", "ai.onnx", ("Unsqueeze",), (13,), ("y",)),
        Change("Constant", "ai.onnx", (), (), ("a",)),
    ]
    report = onnx_convert.plan(model(graph, 13), to=12)
    assert (report.nodes_changed, report.nodes_kept, report.nodes_before) == (2, 0, 2)


def test_nodes_of_branches_are_counted_where_they_stand() -> None:
    source = model(
        """(bool c, float[2, 3, 4] x) => (float[2, 3, 4] y) { y = If (c) <
        then_branch = t () => (float[2, 3, 4] p) { p = Softmax <axis = 1> (x) },
        else_branch = e () => (float[2, 3, 4] q) { q = Relu (x) }> }""",
        13,
    )
    report = onnx_convert.plan(source, to=10)
    assert [(change.operator, change.nodes) for change in report.changes] == [("Softmax", ("p",))]
    assert (report.nodes_changed, report.nodes_kept) == (1, 2)


FUNCTION = '<domain: "f", opset_import: ["" : 17]> Twice (a) => (b) { b = Add (a, a) }'


def test_inlined_functions_are_told() -> None:
    source = model("(float[2] x) => (float[2] y) { z = Relu (x)  y = f.Twice (z) }", 17, FUNCTION, f=1)
    report = onnx_convert.plan(source, to=14)
    assert report.inlined == ["f.Twice"]
    assert report.changes == [Change("Twice", "f", ("Add",), (), ("y",))]
    assert (report.nodes_changed, report.nodes_kept) == (1, 1)


def test_a_function_that_stays_is_counted_once() -> None:
    body = '<domain: "f", opset_import: ["" : 17]> Soft (a) => (b) { b = Softmax <axis = 1> (a) }'
    source = model("(float[2, 3, 4] x) => (float[2, 3, 4] y) { z = f.Soft (x)  y = f.Soft (z) }", 17, body, f=1)
    report = onnx_convert.plan(source, to=12, ir_version=8)
    assert [(change.operator, len(change.nodes)) for change in report.changes] == [("Softmax", 1)]
    assert (report.nodes_changed, report.nodes_kept) == (1, 2)


def test_inputs_that_come_and_go_are_told() -> None:
    graph = "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }"
    report = onnx_convert.plan(model(graph, 9, ir=4), to=8)
    assert (report.inputs_added, report.inputs_removed) == (["w"], [])
    graph = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }"
    report = onnx_convert.plan(model(graph, 8, ir=3), to=13)
    assert (report.inputs_added, report.inputs_removed) == ([], ["w"])


def test_a_condition_on_a_node_that_stays_equal_is_not_lost() -> None:
    """What is right only under a condition is said even where the node is as it was."""
    source = model("(float[2, n] x) => (float[2, n] y) { y = Gelu (x) }", 20)
    report = onnx_convert.plan(source, to=19)
    assert report.form == "equivalent"
    assert list(report.inexact.values()) == [["y"]]


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    source = model("(float[2, 3] x) => (float[3, 2] y) { a = Transpose <perm = [1, 0]> (x)  y = Relu (a) }", 17)
    wrong = source.graph.value_info.add(name="a")
    wrong.type.CopyFrom(source.graph.input[0].type)
    warnings = onnx_convert.plan(source, to=12).warnings
    assert len(warnings) == 1 and "left out" in warnings[0]
