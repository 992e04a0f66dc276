# SPDX-License-Identifier: Apache-2.0
"""Reports and refusals as people see them: the text line by line, and that a terminal loses none of it."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.console import Console

from onnx_convert.cli import tables
from onnx_convert.report import Change, Refusal, Report, Step

RESIZE = Step("Resize", "", 19, "down", "drop_policy", "conditional", "every image has the same size")
REPORT = Report(
    opsets_before={"ai.onnx": 21, "ai.onnx.ml": 5, "com.microsoft": 1},
    opsets_after={"ai.onnx": 13, "ai.onnx.ml": 3, "com.microsoft": 1},
    ir_version_before=10,
    ir_version_after=7,
    source="net.onnx",
    runtime="rknn-toolkit2 1.5.2",
    nodes_changed=5,
    nodes_kept=115,
    changes=[
        Change("Split", "ai.onnx", ("Split",), (18, 13), ("/s0", "/s1")),
        Change("Softmax", "ai.onnx", ("Transpose", "Softmax", "Transpose"), (13,), ("/soft",)),
        Change("Constant", "ai.onnx", (), (), ("/axes",)),
        Change("Constant", "ai.onnx", ("initializer",), (), ("/shape",)),
    ],
    inexact={RESIZE: ["/up"]},
    nodes_before=120,
    nodes_after=163,
    steps=Counter(
        {
            Step("Softmax", "", 13, "down", "normalise_trailing_axes", "equivalent"): 4,
            Step("Softmax", "", 13, "down", "keep_last_axis", "equivalent"): 2,
            RESIZE: 1,
        }
    ),
    inlined=["pkg.Gelu"],
    assumed=["a", "b", "c", "d", "e"],
    warnings=["the shape of [bold]x[/bold] was wrong before"],
    notes=["an initializer counts as constant"],
    shared_data=["weights.bin"],
)


REFUSALS = [
    *(
        Refusal("GridSample", "", f"/head/sample_{n}", 16, "down", "does not exist below opset 16", "stay at opset 16")
        for n in range(14)
    ),
    Refusal("TreeEnsemble", "ai.onnx.ml", "", 5, "down", "has a [set] membership", path="then_branch"),
    Refusal("GridSample", "", "/tail/sample", 16, "down", "does not exist below opset 16", "use Resize instead"),
    Refusal("Loop", "", "scan", 0, "down", "an output of it is a sequence of sequences, which no opset can hold"),
]


def test_report_as_text() -> None:
    assert tables.plain(tables.report_tables(REPORT)).splitlines() == [
        "net.onnx   opset 21 -> 13   ai.onnx.ml 5 -> 3   IR version 10 -> 7   for rknn-toolkit2 1.5.2",
        "",
        "inlined  pkg.Gelu",
        "data     weights.bin (there already, the output points to it)",
        "",
        "Changed   Nodes  Became                         At opset",
        "Split         2  Split                          18, 13",
        "Softmax       1  Transpose, Softmax, Transpose  13",
        "Constant      1  (gone, nothing uses it)",
        "Constant      1  an initializer",
        "5 of 120 nodes changed, 115 are as they were",
        "",
        "condition:  Resize '/up': every image has the same size",
        "warning:    the shape of [bold]x[/bold] was wrong before",
        "assumed:    a, b, c, and 2 more",
        "note:       an initializer counts as constant",
    ]


def test_what_may_round_is_no_condition() -> None:
    step = Step("Gelu", "ai.onnx", 20, "down", "write_out", "equivalent", "the operator may round in another order")
    text = tables.plain(tables.report_tables(Report(steps=Counter({step: 1}))))
    assert "may differ:  Gelu (1 node): the operator may round in another order" in text
    assert "condition" not in text


def test_names_do_nothing_to_a_terminal() -> None:
    name = "a\x1b[31m\nb\u202e"
    told = [tables.refusal_table([Refusal("Op", "", name, 16, "down", f"no {name!r}", path=name)]), f"Wrote {name}."]
    shown = io.StringIO()
    Console(file=shown, width=200, color_system=None).print(tables.rich(told))
    for text in (tables.plain(told), shown.getvalue()):
        assert r"a\x1b[31m\nb\u202e/a\x1b[31m\nb\u202e" in text
        assert "\x1b" not in text and "\u202e" not in text


def test_verbose_report_tells_each_rewrite() -> None:
    text = tables.plain(tables.report_tables(REPORT, verbose=True))
    for told in ("com.microsoft 1", "normalise trailing axes", "keep last axis", "a, b, c, d, e", "note:"):
        assert told in text


def test_equal_refusals_are_one_row() -> None:
    assert tables.plain([tables.refusal_table(REFUSALS)]).splitlines() == [
        "Refused                    Nodes  Why",
        "GridSample@16                 14  does not exist below opset 16",
        "                                  remedy: stay at opset 16",
        "                                  nodes: /head/sample_0, /head/sample_1, /head/sample_2, and 11 more",
        "ai.onnx.ml.TreeEnsemble@5      1  has a [set] membership",
        "                                  node: then_branch/(unnamed)",
        "GridSample@16                  1  does not exist below opset 16",
        "                                  remedy: use Resize instead",
        "                                  node: /tail/sample",
        "Loop                           1  an output of it is a sequence of sequences, which no opset can hold",
        "                                  node: scan",
    ]


def test_a_report_of_nothing_is_empty() -> None:
    assert tables.report_tables(Report(opsets_before={"ai.onnx": 9}, opsets_after={"ai.onnx": 9})) == []


@pytest.mark.parametrize("table", [*tables.report_tables(REPORT, verbose=True), tables.refusal_table(REFUSALS)])
def test_a_terminal_shows_every_word_within_its_width(table: tables.Table) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=True, color_system=None, highlight=False)
    console.print(tables.rich([table, "The [last] line."]))
    shown = stream.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    assert sorted(shown.split()) == sorted(f"{tables.plain([table])} The [last] line.".split())
