# SPDX-License-Identifier: Apache-2.0
"""The API: what goes in, what comes out, what is left alone, and what is imported for it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import ModelProto, TensorProto
from texts import model, opset_imports

import onnx_convert
from onnx_convert import Conversion, RefusedError, Report, UsageError
from oracle import opset_of

GRAPH = "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis = 1> (x) }"
SOURCE = model(GRAPH, 12)


def with_weight(elements: int = 4096, opset: int = 12) -> ModelProto:
    """Returns a model with one weight of float32, large enough to stay in its file."""
    graph = f"(float[{elements}] x) => (float[1,{elements}] y) {{ z = Add (x, w) y = Unsqueeze <axes = [0]> (z) }}"
    source = model(graph, opset)
    raw = bytes(range(256)) * (elements * 4 // 256)
    source.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[elements], raw_data=raw)
    return source


def to_path(source: ModelProto, folder: Path) -> Path:
    onnx.save(source, folder / "model.onnx")
    return folder / "model.onnx"


GIVEN = {
    "ModelProto": lambda source, folder: source,
    "bytes": lambda source, folder: source.SerializeToString(),
    "str": lambda source, folder: str(to_path(source, folder)),
    "Path": to_path,
    "onnx_ir.Model": lambda source, folder: onnx_ir.from_proto(source),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_every_kind_of_model_gives_the_same(kind: str, tmp_path: Path) -> None:
    given = GIVEN[kind](with_weight(), tmp_path)
    with onnx_convert.convert(given, to=13) as conversion:
        result = conversion.model
        conversion.save(tmp_path / "out.onnx")
        stream = io.BytesIO()
        conversion.write(stream)
    assert isinstance(result, onnx_ir.Model if kind == "onnx_ir.Model" else ModelProto)
    held = onnx_ir.to_proto(result) if kind == "onnx_ir.Model" else result
    expected = onnx_convert.convert(with_weight(), to=13).model
    for got in (held, onnx.load(tmp_path / "out.onnx"), onnx.load_from_string(stream.getvalue())):
        assert opset_imports(got) == {"": 13}
        if kind == "onnx_ir.Model":  # onnx_ir spells out empty strings
            got = onnx_ir.to_proto(onnx_ir.from_proto(got))  # noqa: PLW2901
            expected = onnx_ir.to_proto(onnx_ir.from_proto(expected))
        assert list(got.graph.node) == list(expected.graph.node)
        assert list(got.graph.initializer) == list(expected.graph.initializer)


def test_the_same_model_gives_the_same_bytes() -> None:
    results = {onnx_convert.convert(SOURCE, to=13).model.SerializeToString(deterministic=True) for _ in range(3)}
    assert len(results) == 1


def test_a_model_is_not_changed() -> None:
    source, before = with_weight(), with_weight()
    result = onnx_convert.convert(source, to=13).model
    assert source == before
    assert result is not source
    result.graph.node[0].name = "changed"
    assert source == before


def test_an_ir_model_is_not_changed() -> None:
    source = onnx_ir.from_proto(SOURCE)
    onnx_convert.convert(source, to=13)
    assert onnx_ir.to_proto(source) == onnx_ir.to_proto(onnx_ir.from_proto(SOURCE))


def test_in_place_changes_the_model_itself() -> None:
    source = with_weight()
    weight = source.graph.initializer[0]
    conversion = onnx_convert.convert(source, to=13, in_place=True)
    assert conversion.model is source
    assert opset_of(source) == 13
    assert source.graph.initializer[0] is weight


@pytest.mark.parametrize("kind", ["bytes", "str", "Path", "onnx_ir.Model"])
def test_in_place_is_for_model_protos(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in_place needs a ModelProto"):
        onnx_convert.convert(GIVEN[kind](SOURCE, tmp_path), to=13, in_place=True)


def test_convert_version_is_the_function_of_onnx() -> None:
    before = SOURCE.SerializeToString(deterministic=True)
    result = onnx_convert.convert_version(SOURCE, 13)
    assert isinstance(result, ModelProto)
    assert opset_of(result) == 13
    assert SOURCE.SerializeToString(deterministic=True) == before


def test_plan_reports_what_convert_does() -> None:
    planned, done = onnx_convert.plan(SOURCE, to=13), onnx_convert.convert(SOURCE, to=13).report
    assert isinstance(planned, Report)
    planned.seconds = done.seconds = 0.0
    assert planned == done
    assert opset_of(SOURCE) == 12


def test_plan_refuses_as_convert_does() -> None:
    source = model("(bfloat16[2] x, bool[2] c) => (bfloat16[2] y) { y = Where (c, x, x) }", 16)
    errors = []
    for function in (onnx_convert.plan, onnx_convert.convert):
        with pytest.raises(RefusedError) as caught:
            function(source, to=15)
        errors.append((caught.value.refusals, caught.value.nearest))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("to", "after"),
    [
        (13, {"ai.onnx": 13, "ai.onnx.ml": 2}),
        (16, {"ai.onnx": 16, "ai.onnx.ml": 2}),  # and stays where it is on the way up
        ("latest", {"ai.onnx": onnx.defs.onnx_opset_version(), "ai.onnx.ml": 2}),
        ({"ai.onnx": 13, "ai.onnx.ml": 3}, {"ai.onnx": 13, "ai.onnx.ml": 3}),
        ({"": 13}, {"ai.onnx": 13, "ai.onnx.ml": 2}),
        ({"ai.onnx.ml": 3}, {"ai.onnx": 12, "ai.onnx.ml": 3}),
        ({"ai.onnx.ml": "latest"}, {"ai.onnx": 12, "ai.onnx.ml": 5}),
    ],
)
def test_targets(to: int | str | dict, after: dict[str, int]) -> None:
    source = model("(float[2] x) => (float[2] y) { y = Relu (x) }", 12, ai_onnx_ml=2)
    assert onnx_convert.convert(source, to=to).report.opsets_after == after


def test_what_is_closed_says_so(tmp_path: Path) -> None:
    onnx.save(model("(float[2] x) => (float[2] y) { y = Relu (x) }", 12), tmp_path / "a.onnx")
    with onnx_convert.convert(tmp_path / "a.onnx", to=13) as kept:
        converted = kept.model
    assert kept.model is converted
    with onnx_convert.convert(tmp_path / "a.onnx", to=13) as conversion:
        pass
    for use in (
        lambda: conversion.model,
        lambda: conversion.save(tmp_path / "b"),
        lambda: conversion.write(io.BytesIO()),
    ):
        with pytest.raises(UsageError, match="closed"):
            use()


def test_an_opset_is_any_whole_number() -> None:
    source = model("(float[2] x) => (float[2] y) { y = Relu (x) }", 12)
    assert opset_of(onnx_convert.convert(source, to=np.int64(13)).model) == 13


def test_nothing_of_a_refused_model_is_changed() -> None:
    source = model("(int8[2] x) => (int8[2] y) { y = Add (x, x) }", 14)
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=13)
    assert not caught.value.report.changed
    assert not caught.value.report.to_dict()["changed"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"to": 0}, "no opset 0 of ai.onnx"),
        ({"to": -3}, "no opset -3"),
        ({"to": 99}, "no opset 99 of ai.onnx: the installed onnx"),
        ({"to": True}, "True is not an opset"),
        ({"to": 13.0}, "13.0 is not an opset"),
        ({"to": "13"}, "'13' is not an opset"),
        ({"to": "newest"}, "'newest' is not an opset"),
        ({"to": {"com.acme": 2}}, "no adapter is registered for domain 'com.acme'"),
        ({"to": {"com.acme": "latest"}}, "com.acme"),
        ({"to": {"ai.onnx.ml": 99}}, "no opset 99 of ai.onnx.ml"),
        ({}, "say where to"),
        ({"to": {}}, "say where to"),
        ({"to": 13, "types": "guess"}, "types is"),
        ({"to": 13, "allow": ["everything"]}, "only 'conditional' can be allowed"),
        ({"to": 13, "allow": None}, "what is allowed is a collection"),
        ({"runtime": 5}, "a runtime is a name and a version"),
        ({"to": 13, "ir_version": True}, "True is not an IR version"),
        ({"to": 13, "allow": "everything"}, "only 'conditional' can be allowed"),
        ({"to": 13, "exact": True, "types": "cast-rounding"}, "exact contradicts"),
        ({"to": 13, "exact": True, "allow": ["conditional"]}, "exact contradicts"),
    ],
)
def test_requests_that_make_no_sense(options: dict, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        onnx_convert.convert(SOURCE, **options)


@pytest.mark.parametrize("given", [None, 5, SOURCE.graph, ["model.onnx"]])
def test_what_is_no_model(given: object) -> None:
    with pytest.raises(UsageError, match="a model is a path"):
        onnx_convert.convert(given, to=13)


def test_nothing_to_do(tmp_path: Path) -> None:
    conversion = onnx_convert.convert(SOURCE, to=12)
    assert not conversion.changed
    assert not conversion.report.steps
    assert conversion.model == SOURCE
    path = to_path(SOURCE, tmp_path)
    before = path.read_bytes()
    with onnx_convert.convert(path, to=12) as unchanged:
        unchanged.save(tmp_path / "copy.onnx")
    assert (tmp_path / "copy.onnx").read_bytes() == before


def test_a_file_may_be_replaced_by_its_own_conversion(tmp_path: Path) -> None:
    path = to_path(with_weight(), tmp_path)
    with onnx_convert.convert(path, to=13) as conversion:
        report = conversion.save(path)
    assert report.destination == str(path)
    assert opset_of(onnx.load(path)) == 13
    assert onnx.load(path).graph.initializer[0] == with_weight().graph.initializer[0]
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_is_data() -> None:
    report = onnx_convert.convert(SOURCE, to=13).report
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["opsets_before"] == {"ai.onnx": 12}
    assert plain["opsets_after"] == {"ai.onnx": 13}
    assert (plain["nodes_before"], plain["changed"], plain["form"]) == (1, True, "exact")
    assert plain["nodes_after"] == len(onnx_convert.convert(SOURCE, to=13).model.graph.node)
    (step,) = plain["steps"]
    assert (step["operator"], step["boundary"], step["direction"], step["count"]) == ("Softmax", 13, "up", 1)


def test_conversion_is_what_convert_returns() -> None:
    assert isinstance(onnx_convert.convert(SOURCE, to=13), Conversion)


# ---- what gets imported


def modules_after(code: str) -> set[str]:
    """Returns the modules that a fresh Python has imported after some code."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent / "helpers")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True, env=environment
    )
    return set(done.stdout.split())


CONVERT = f"""
import onnx.parser, onnx_convert
source = onnx.parser.parse_model('<ir_version: 7, opset_import: ["" : 12]> g {GRAPH}')
onnx_convert.convert(source, to=13)
"""


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import onnx_convert", {"onnx", "numpy", "click", "rich", "google.protobuf"}),
        ("import onnx_convert; dir(onnx_convert)", {"onnx", "numpy", "click", "rich"}),
        ("from onnx_convert import upgrade, RefusedError", {"onnx_convert.api", "click", "rich"}),
        ("import onnx_convert.errors", {"onnx", "numpy"}),
        ("import onnx_convert.cli.main", {"onnx", "numpy", "rich"}),
        (
            "from onnx_convert.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass",
            {"onnx", "numpy", "rich", "onnx_convert.api"},
        ),
        (CONVERT, {"onnxscript", "onnx_ir", "onnxruntime", "click", "rich", "onnx.reference"}),
    ],
    ids=["package", "dir", "names", "errors", "cli", "help", "convert"],
)
def test_what_is_not_needed_is_not_imported(code: str, absent: set[str]) -> None:
    assert not absent & modules_after(code)


def test_every_public_name_is_there() -> None:
    assert sorted(onnx_convert.__all__) == list(onnx_convert.__all__)
    for name in onnx_convert.__all__:
        assert getattr(onnx_convert, name).__doc__, name
        assert name in dir(onnx_convert)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = onnx_convert.no_such_name


def test_external_data_that_a_model_in_memory_leaves_behind_are_told(tmp_path: Path) -> None:
    """Only a file tells where they are: a ModelProto is saved as it is, and what it points at has to be brought."""
    source = with_weight()
    onnx.save(source, tmp_path / "there.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    loaded = onnx.load(tmp_path / "there.onnx", load_external_data=False)
    conversion = onnx_convert.convert(loaded, to=13)
    assert conversion.save(tmp_path / "beside.onnx").warnings == []
    (tmp_path / "other").mkdir()
    for _ in range(2):  # a second writing has nothing new to tell
        (said,) = conversion.save(tmp_path / "other" / "away.onnx").warnings
    assert said == f"its external data are not there: {tmp_path / 'other' / 'w.data'}"


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """What it leads to may belong to a store that many share, under a name made of its content."""
    blob, link = tmp_path / "blob", tmp_path / "model.onnx"
    onnx.save(SOURCE, blob)
    link.symlink_to(blob)
    before = blob.read_bytes()
    with onnx_convert.convert(link, to=13) as conversion:
        conversion.save(link)
    assert not link.is_symlink()
    assert opset_imports(onnx.load(link)) == {"": 13}
    assert blob.read_bytes() == before


def test_a_stream_cannot_tell_where_external_data_are(tmp_path: Path) -> None:
    onnx.save(with_weight(), tmp_path / "there.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    with onnx_convert.convert(tmp_path / "there.onnx", to=13) as conversion:
        for _ in range(2):
            conversion.write(io.BytesIO())
        (said,) = conversion.report.warnings
    assert said == "it finds its external data only in the folder in which they are: w.data"


@pytest.mark.parametrize("before", ["onnx_convert.rewrite.registry", "onnx_convert.api"])
def test_a_crossing_that_is_decided_here_cannot_be_decided_again(before: str, tmp_path: Path) -> None:
    """Not even before the family was asked for: neither of the two may win in silence."""
    onnx.save(SOURCE, tmp_path / "softmax.onnx")
    code = (
        f"import sys, {before}; from onnx_convert.rewrite import registry; import onnx_convert; "
        "registry.upgrade('Softmax', at=13)(lambda node, op: op.same()); onnx_convert.convert(sys.argv[1], to=13)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "softmax.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ValueError: ai.onnx.Softmax@13 up is decided twice"


def test_adapters_are_found_in_an_archive(tmp_path: Path) -> None:
    """Families are found by what their files say, which has to work wherever Python imports from."""
    root, archive = Path(__file__).parents[1], tmp_path / "onnx_convert.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for folder, name in (("converter", "onnx_convert"), ("adapters", "onnx_convert/adapters")):
            for path in (root / folder).rglob("*"):
                if path.suffix in (".py", ".toml", ".onnxtxt"):
                    packed.write(path, f"{name}/{path.relative_to(root / folder).as_posix()}")
    code = (
        "import onnx.parser, onnx_convert; assert '.zip' in onnx_convert.__file__; "
        """model = onnx.parser.parse_model('<ir_version: 9, opset_import: ["": 20]> g (float x) => (float y) """
        "{ y = Gelu (x) }'); print(*(node.op_type for node in onnx_convert.convert(model, to=13).model.graph.node))"
    )
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["Mul", "Mul", "Erf", "Add", "Mul"], done.stderr
