# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU, LSTM: 3: the spelling of a direction; 7: `output_sequence` goes; 14: `layout` comes.

No evaluator knows the versions below 7; they say the same as 7 with other words, in which `as_of_7` puts them.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_convert
from boundaries import VARIANTS, Case
from oracle import compare, feeds_for, opset_of, run, validate

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FAMILY = tuple(GATES)
# layout -> the sizes of X, of a state and of Y, for D directions
SIZES = {0: ("5,2,3", "D,2,4", "5,D,2,4"), 1: ("2,5,3", "2,D,4", "2,5,D,4")}


@dataclass(frozen=True)
class Recurrent:
    """One node of 5 steps, a batch of 2, 3 features and 4 hidden ones. `outputs` names y, h, c, or - for none."""

    operator: str
    source: int
    target: int
    outputs: str = "y h"
    attributes: str = ""
    layout: int = 0
    states: bool = True
    directions: int = 1
    into: tuple[str, ...] | None = None
    stated: str | None = None
    because: str = ""

    def __str__(self) -> str:
        shape = f"layout {self.layout} D{self.directions} {'state' if self.states else ''}"
        return f"{self.operator} {self.source}->{self.target} {self.outputs} {shape} {self.attributes}"

    @property
    def model(self) -> ModelProto:
        """Returns the model of the row."""
        x, h, y = (size.replace("D", str(self.directions)) for size in SIZES[self.layout])
        gates = GATES[self.operator] * 4
        head = f"float[{x}] x, float[{self.directions},{gates},3] w, float[{self.directions},{gates},4] r"
        inputs = 'x, w, r, "", ""'
        if self.states:
            head, inputs = f"{head}, float[{h}] h0", f"{inputs}, h0"
        if self.states and self.operator == "LSTM":
            head, inputs = f"{head}, float[{h}] c0", f"{inputs}, c0"
        made = ", ".join(f"float[{y if o == 'y' else h}] {o}" for o in self.outputs.split() if o != "-")
        left = ", ".join('""' if o == "-" else o for o in self.outputs.split())
        attributes = ["hidden_size=4", f"layout={self.layout}" if self.layout else "", self.attributes]
        node = f"{left} = {self.operator}<{','.join(filter(None, attributes))}>({inputs})"
        graph = onnx.parser.parse_graph(f"g ({head}) => ({made}) {{ {node} }}")
        opset = helper.make_opsetid("", self.source)
        ir_version = max(4, helper.find_min_ir_version_for([opset]))
        return helper.make_model(graph, opset_imports=[opset], ir_version=ir_version)


def _family(*rows: tuple[int, int, dict[str, object]]) -> list[Recurrent]:
    return [Recurrent(op, source, target, **more) for op in FAMILY for source, target, more in rows]  # type: ignore[arg-type]


BATCH_FIRST = {"layout": 1}
ALONE = {"layout": 1, "states": False}
CASES = [
    *_family(
        (6, 7, {"attributes": "output_sequence=1", "stated": ""}),
        (6, 14, {"attributes": "output_sequence=0", "outputs": "- h", "stated": ""}),
        (6, 7, {"outputs": "- h", "stated": ""}),
        (7, 6, {"stated": "output_sequence"}),
        (7, 6, {"outputs": "y", "stated": "output_sequence"}),
        (7, 6, {"outputs": "- h", "stated": ""}),
        (7, 22, {"stated": ""}),
        (22, 7, {"stated": ""}),
        (14, 13, BATCH_FIRST),
        (14, 7, {"layout": 1, "attributes": 'direction="bidirectional"', "directions": 2}),
        (22, 13, {"outputs": "y", **ALONE, "into": ("Transpose", "", "Transpose")}),
        (14, 11, {"outputs": "- h", **ALONE, "into": ("Transpose", "", "Transpose")}),
        (14, 6, BATCH_FIRST),
    ),
    Recurrent("LSTM", 14, 13, "- - c", layout=1),
    Recurrent("LSTM", 14, 13, "y h c", layout=1),
    Recurrent("LSTM", 14, 13, "y - c", layout=1),
    Recurrent("GRU", 14, 13, attributes="linear_before_reset=1", layout=1),
    Recurrent("GRU", 1, 5, stated="direction"),
    Recurrent("GRU", 1, 5, attributes='direction="foward"', stated="direction"),
    Recurrent("GRU", 1, 7, attributes='direction="reverse",output_sequence=1', stated="direction"),
    Recurrent("GRU", 5, 1, stated="direction"),
    Recurrent("GRU", 7, 1, "y", stated="direction output_sequence"),
    Recurrent("GRU", 7, 1, "y -", stated="direction output_sequence"),
    Recurrent("GRU", 7, 1, attributes="linear_before_reset=0", stated="direction output_sequence"),
    Recurrent("GRU", 7, 1, attributes="linear_before_reset=1", because="linear_before_reset"),
]


def as_of_7(model: ModelProto) -> ModelProto:
    """Returns the same model in the words of opset 7, if it is older."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    if opset_of(model) >= 7:
        return model
    for node in model.graph.node:
        kept = [a for a in node.attribute if a.name != "output_sequence" and a.s != b"foward"]
        del node.attribute[:]
        node.attribute.extend(kept)
    model.opset_import[0].version = 7
    return model


@pytest.mark.parametrize("row", CASES, ids=str)
@pytest.mark.parametrize("variant", ["plain", "dims"])
def test_same_numbers(row: Recurrent, variant: str) -> None:
    case = VARIANTS[variant](Case(row.model, feeds_for(row.model), row.target))
    assert case is not None
    try:
        result = onnx_convert.convert(case.model, to=row.target).model
    except onnx_convert.RefusedError as refused:
        assert row.because, refused
        assert row.because in refused.refusals[0].reason
        return
    assert not row.because
    validate(result)
    (node,) = (node for node in result.graph.node if node.op_type == row.operator)
    if row.stated is not None:
        given = {"hidden_size", "direction"} if "direction" in row.attributes else {"hidden_size"}
        assert {a.name for a in node.attribute} - given == {*row.stated.split()} - given
        assert all(a.s != b"foward" for a in node.attribute)
    if row.into is not None:
        assert [n.op_type for n in result.graph.node] == [part or row.operator for part in row.into]
    difference = compare(run(as_of_7(case.model), case.feeds), run(as_of_7(result), case.feeds))
    assert difference is None, difference
