# SPDX-License-Identifier: Apache-2.0
"""The layout of the report as data: every field is described, and what is printed and written is as described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from texts import model

from onnx_convert import report
from onnx_convert.batch.job import STATUSES
from onnx_convert.cli import main
from onnx_convert.cli.page.data import SCHEMA
from onnx_convert.reference import operators
from onnx_convert.reference.model_summary import Description
from onnx_convert.verification.outcome import FirstDifference, Output, Run, Verification, Within

TEXT = resources.files("onnx_convert").joinpath("report.schema.json").read_text(encoding="utf-8")
LAYOUT = json.loads(TEXT)
DEFS = LAYOUT["$defs"]
REPORT = "#/$defs/report"


def closed(schema: Any) -> Any:
    """Returns a schema that takes no field it does not describe; as published it does, since fields may be added."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(one) if schema is not DEFS or name != "report" else _inside(one)
            for name, one in schema.items()}  # fmt: skip
    is_object = "required" in schema and schema.get("type") == "object"
    return {**made, "unevaluatedProperties": False} if is_object or schema.get("$ref") == REPORT else made


def _inside(schema: dict[str, Any]) -> dict[str, Any]:
    """The report is closed where it is referred to: a page adds to its fields."""
    return {name: closed(one) for name, one in schema.items()}


CLOSED = closed(LAYOUT)


def faults(data: Any, part: str = "ending") -> list[str]:
    """Returns what of plain data is not as a part of the layout says."""
    schema = {"$schema": CLOSED["$schema"], "$ref": f"#/$defs/{part}", "$defs": CLOSED["$defs"]}
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(data)]


def objects(schema: Any, at: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields where the objects of a schema are described, and what their fields are."""
    if isinstance(schema, dict):
        if "required" in schema and "properties" in schema:
            yield at, schema
        for name, one in schema.items():
            yield from objects(one, f"{at}/{name}")


def test_it_is_a_schema_whose_every_field_is_told() -> None:
    Draft202012Validator.check_schema(LAYOUT)
    untold = [
        f"{at}: {name}"
        for at, found in objects(LAYOUT)
        if "then" not in at
        for name, one in found["properties"].items()
        if not one.get("description", "").endswith(".")
    ]
    assert untold == []
    assert len([*objects(LAYOUT)]) > 15
    assert all(DEFS[part]["properties"]["schema"]["const"] == SCHEMA for part in ("ending", "comparison", "error"))


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("report", {*report.Report().to_dict(), "nearest", "also"}),
        ("refusal", {*report.Refusal._fields, "command"}),
        ("change", {*report.Change._fields, "count"}),
        ("step", {*report.Step._fields, "count", "nodes"}),
        ("example_step", {*report.Step._fields, "specification", "done"}),
        ("example", {*report.Example._fields, "count"}),
        ("scene", {*report.Scene._fields}),
        ("drawn_node", {*report.DrawnNode._fields}),
        ("drawn_value", {*report.DrawnValue._fields}),
        ("verification", {*Verification().to_dict()}),
        ("output", {*Output("y", agrees=True).to_dict()}),
        ("run", {*Run._fields, "agrees"}),
        ("first_difference", {*FirstDifference._fields}),
        ("within", {*Within._fields}),
        ("description", {*Description().to_dict(), "schema", "tool", "status"}),
    ],
)
def test_the_fields_are_those_of_the_code(part: str, names: set[str]) -> None:
    assert set(DEFS[part]["properties"]) == names


def test_what_is_one_of_several_is_one_of_those_of_the_code() -> None:
    assert DEFS["refusal"]["properties"]["code"]["enum"] == [*report.CODES]
    assert DEFS["step"]["properties"]["form"]["enum"] == [*report.FORMS]
    assert DEFS["outcome"]["properties"]["status"]["enum"] == [*STATUSES]
    assert {one.name for one in fields(report.Report)} - {"inexact"} <= set(DEFS["report"]["properties"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    graphs = {
        "soft": ("(float[2, 3, 4] x) => (float[2, 3, 4] y) { a = Relu (x) y = Softmax <axis = 1> (a) }", 13),
        "hard": ("(float[2] x) => (float[2] y) { y = HardSwish (x) }", 14),
        "text": ("(string[4] x) => (string[4] y) { y = StringConcat (x, x) }", 20),
        "brain": ("(bfloat16[2] x) => (bfloat16[2] y) { y = Relu (x) }", 14),
    }
    for name, (graph, opset) in graphs.items():
        onnx.save(model(graph, opset), tmp_path / f"{name}.onnx")
    (tmp_path / "zoo").mkdir()
    for name in ("soft", "text"):
        (tmp_path / "zoo" / f"{name}.onnx").write_bytes((tmp_path / f"{name}.onnx").read_bytes())
    (tmp_path / "zoo" / "broken.onnx").write_bytes(b"no model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("soft.onnx --to 12", "converted"),
        ("hard.onnx --to 12 --diff", "converted"),
        ("soft.onnx --to 13", "unchanged"),
        ("soft.onnx --to 12 --check", "checked"),
        ("soft.onnx --for onnxruntime@1.4", "converted"),
        ("soft.onnx --to 12 --verify", "converted"),
        ("hard.onnx --to 13 --verify", "converted"),
        ("text.onnx --to 12", "refused"),
        ("brain.onnx --to 12", "refused"),
    ],
)
def test_reports_are_as_described(folder: Path, line: str, status: str) -> None:
    done = CliRunner().invoke(main.main, [*line.split(), "--json", "--report", "r.json"])
    printed, written = json.loads(done.stdout), json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert printed["status"] == status == written["status"]
    assert (bool(written["refusals"]), bool(written["verified"])) == (status == "refused", "--verify" in line)
    assert written["examples"] or status in ("unchanged", "refused")
    assert faults(printed) == [] == faults(written)


def test_a_difference_is_as_described() -> None:
    first = FirstDifference("y", "Softmax", "s", "ai.onnx.Softmax@13 down", ("Softmax",), "other numbers")
    output = Output("y", agrees=False, dtype="float32", shape=(2,), elements=2, differing=1, beyond=1,
                    max_abs=float("inf"), max_ulp=None, why="element 0 is inf")  # fmt: skip
    told = Verification(verdict="different", runs=[Run("random 0", (output,))], shapes={"x": (2,)}, first=first)
    assert faults(json.loads(json.dumps(told.to_dict())), "verification") == []


@pytest.mark.parametrize("line", ["zoo --to 12 -o out --json", "zoo --to 12 -o out --json --verify"])
def test_many_models_are_as_described(folder: Path, line: str) -> None:
    done = CliRunner().invoke(main.main, line.split())
    *lines, total = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(line["status"] for line in lines) == ["converted", "failed", "refused"]
    assert [fault for line in lines for fault in faults(line, "outcome")] == []
    assert faults(total, "total") == []


def test_an_error_is_as_described(folder: Path) -> None:
    done = CliRunner().invoke(main.main, "zoo/broken.onnx --to 12 --json".split())
    assert done.exit_code == 4
    assert faults(json.loads(done.stdout), "error") == []


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("soft.onnx", "description"),
        ("brain.onnx", "description"),
        ("soft.onnx --from 15", "description"),
        ("soft.onnx --verify-against soft.onnx", "comparison"),
        ("soft.onnx --verify-against hard.onnx", "comparison"),
        ("soft.onnx --diff hard.onnx", "difference"),
        ("--list-runtimes", "runtimes"),
        ("--list-runtimes onnxruntime", "runtimes"),
        ("--explain Softmax", "explanation"),
        ("--explain ai.onnx.ml.TreeEnsemble", "explanation"),
        ("--explain Softmax@13", "explanation"),
        ("--coverage", "coverage"),
        ("--message", "advice"),
        ("soft.onnx --to 12", "ending"),
        ("soft.onnx --to 12 --check --diff", "ending"),
        ("text.onnx --to 12", "ending"),
        ("zoo/broken.onnx", "error"),
        ("--explain Nothing", "error"),
        ("--list-runtimes nothing", "error"),
        ("absent.onnx --verify-against soft.onnx", "error"),
        ("soft.onnx --to 12 --verify --inputs absent.npz", "error"),
    ],
)
def test_whatever_is_printed_is_as_described(folder: Path, line: str, part: str) -> None:
    words = line.split() if line != "--message" else ["--message", ""]
    told = json.loads(CliRunner().invoke(main.main, [*words, "--json"]).stdout)
    assert faults(told, part) == []
    assert Draft202012Validator(LAYOUT).is_valid(told)


def test_every_operator_is_explained_as_described(folder: Path) -> None:
    told = json.loads(CliRunner().invoke(main.main, ["--coverage", "--json"]).stdout)
    for row in told["operators"]:
        explained = operators.explain(f"{row['domain']}.{row['operator']}").to_dict()
        assert faults(json.loads(json.dumps(explained)), "explanation") == []


def test_what_is_not_described_is_found(folder: Path) -> None:
    CliRunner().invoke(main.main, "soft.onnx --to 12 --report r.json".split())
    told = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert faults(told) == []
    assert faults({**told, "new": 1}) and faults({**told, "seconds": "1"}) and faults({**told, "schema": 2})
    told["examples"][0]["before"]["nodes"][0]["new"] = 1
    assert len(faults(told)) == 1
    assert Draft202012Validator(LAYOUT).is_valid(told), "readers of today read what is added tomorrow"
