# SPDX-License-Identifier: Apache-2.0
"""What runtimes load: the table itself, how a row is found, and what is changed for it, said, and warned of."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import ModelProto, TensorProto
from texts import assert_same_numbers, model, operators, opset_imports

import onnx_convert
from onnx_convert import RefusedError, UsageError
from onnx_convert.cli.main import main
from onnx_convert.spec import opsets
from onnx_convert.target import runtimes

RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"
IDENTITY = "(float[2] x) => (float[2] y) { y = Identity (x) }"
ROWS = runtimes.listed()
BY_NAME = {name: list(rows) for name, rows in itertools.groupby(ROWS, key=lambda row: row.name)}


# ---- the table


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_says_how_it_is_known(row: runtimes.Runtime) -> None:
    assert row.certainty in {"measured", "documented", "reported", "inferred"}
    assert row.source
    assert row.opset is not None or (row.ir is None and row.ml is None)
    assert row.opset is None or 1 <= row.minimum <= row.opset


@pytest.mark.parametrize("name", BY_NAME)
def test_versions_ascend_and_each_is_found(name: str) -> None:
    rows = BY_NAME[name]
    keys = [runtimes._key(row.version) for row in rows]
    assert keys == sorted(set(keys))
    for row in rows:
        if row.version:
            assert runtimes.find(f"{name}@{row.version}") == row
    assert len(rows) == sum(row.name == name for row in ROWS), "the rows of a runtime stand together"


@pytest.mark.parametrize("release", [row for row in onnx.helper.VERSION_TABLE if row[0] != "1.1.1"], ids=lambda r: r[0])
def test_releases_of_onnx_are_as_onnx_says(release: tuple[str, int, int, int]) -> None:
    version, ir, opset, ml = release[:4]
    row = runtimes.find(f"onnx@{version}")
    assert (row.opset, row.ir, row.ml) == (opset, ir, ml)


def test_limits_of_onnxruntime_never_fall() -> None:
    limits = [(row.opset, row.ir, row.ml) for row in BY_NAME["onnxruntime"]]
    assert all(a <= b for before, after in itertools.pairwise(limits) for a, b in zip(before, after, strict=True))


def test_what_is_missing_is_within_what_is_loaded() -> None:
    known = {(opsets.shown(schema.domain), schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
    newest = {"ai.onnx": opsets.latest(), "ai.onnx.ml": opsets.latest(opsets.AI_ONNX_ML)}
    for row in ROWS:
        for missing in row.missing:
            if row.opset is not None:
                most = row.opset if missing.domain == "ai.onnx" else row.ml
                assert most is None or missing.at <= most
            if missing.at <= newest[missing.domain]:  # an older onnx does not know all
                assert {(missing.domain, operator) for operator in missing.operators} <= known


def loads(opset: int, ir: int) -> bool:
    stamped = model(RELU, 13, ir=7)
    stamped.opset_import[0].version, stamped.ir_version = opset, ir
    try:
        onnxruntime.InferenceSession(stamped.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001 - it has many
        return False
    return True


def test_the_installed_onnxruntime_loads_what_its_row_says_and_no_more() -> None:
    row = runtimes.find("onnxruntime")
    assert row.guess == (
        f"onnxruntime without a version is taken to be the one that is installed here, {onnxruntime.__version__}: "
        "--for onnxruntime@VERSION names yours"
    )
    if row.notes:
        pytest.skip(f"onnxruntime {onnxruntime.__version__} is not listed yet")
    assert row.opset is not None and row.ir is not None
    assert loads(row.opset, row.ir)
    assert not loads(row.opset + 1, row.ir)
    assert not loads(row.opset, row.ir + 1)


# ---- finding a row


@pytest.mark.parametrize(
    ("text", "found", "opset", "ir", "ml"),
    [
        ("onnxruntime@1.14", "onnxruntime 1.14", 18, 8, 3),
        ("onnxruntime==1.14", "onnxruntime 1.14", 18, 8, 3),
        ("onnxruntime:1.14", "onnxruntime 1.14", 18, 8, 3),
        (" ONNXRuntime@v1.14.1 ", "onnxruntime 1.14", 18, 8, 3),
        ("ort@1.2", "onnxruntime 1.2", 11, 6, 2),
        ("onnxruntime_gpu==1.18.0", "onnxruntime-cuda 1.18", 21, 10, 5),
        ("triton@22.12", "triton 22.12", 17, 8, 3),
        ("triton@22.12-py3", "triton 22.12", 17, 8, 3),
        ("windowsml@10-1903", "windowsml 10-1903", 8, 3, 1),
        ("tensorrt@8.6", "tensorrt 8.6", 17, 8, 3),
        ("tensorrt@8.6.1.6", "tensorrt 8.6", 17, 8, 3),
        ("rknn-toolkit2@1.5.2", "rknn-toolkit2 1.5.2", 12, 7, 2),
        ("onnx@1.12", "onnx 1.12", 17, 8, 3),
        ("openvino", "openvino 2026.4", None, None, None),
        ("tensorrt", "tensorrt 11", 25, 13, 5),
        ("hailo", "hailo-dfc", 13, 9, 2),
        ("openvino@2022.3.2", "openvino 2022.3", 17, None, None),
        ("openvino@2025.4.1", "openvino 2025.4", None, None, None),
        ("windowsml@10-2004", "windowsml 10-2004", 9, 3, 1),
        ("windowsml@11-24H2", "windowsml 11-24h2", 19, 9, 3),
        ("tidl@9", "tidl 9", 18, 8, 3),
        ("unity", "sentis", 15, 8, 2),
        ("inference-engine", "sentis", 15, 8, 2),
        ("Unity_Barracuda", "barracuda", 9, 4, 1),
        ("transformers.js@3.2", "transformers-js 3.2", 22, 10, 5),
        ("burn-import@0.18.1", "burn 0.18", None, None, None),
    ],
)
def test_found(text: str, found: str, opset: int | None, ir: int | None, ml: int | None) -> None:
    row = runtimes.find(text)
    assert (str(row), row.opset, row.ir, row.ml, row.notes) == (found, opset, ir, ml, ())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tensorrt@10.7", "tensorrt 10.6"),
        ("onnxruntime@1.999", str(BY_NAME["onnxruntime"][-1])),
        ("triton@23.01", "triton 22.12"),
        ("windowsml@10-20H2", "windowsml 10-2004"),
        ("windowsml@11-22H2", "windowsml 11"),
        ("rknn-toolkit2@2.0.0", "rknn-toolkit2 1.6"),
    ],
)
def test_an_unlisted_version_takes_the_nearest_older_one_and_says_so(text: str, found: str) -> None:
    row = runtimes.find(text)
    assert str(row) == found
    (note,) = row.notes
    assert text.replace("@", " ") in note and "not listed" in note and found in note
    assert note in onnx_convert.plan(model(RELU, 13), runtime=text).notes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("onnxruntme@1.14", "did you mean onnxruntime"),
        ("tensort@8", "did you mean tensorrt?"),
        ("trition@22.12", "did you mean triton?"),
        ("rknn-toolkit3", "did you mean rknn-toolkit"),
        ("abacus@3", "no runtime 'abacus' is listed: --list-runtimes"),
        ("onnxruntime@0.4", "older than all that is listed, which begins with onnxruntime 1.0"),
        ("onnxruntime@newest", "'newest' is no version of onnxruntime"),
        ("onnxruntime@", "is no runtime"),
        ("onnxruntime 1.14", "is no runtime"),
        ("", "is no runtime"),
    ],
)
def test_not_found(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        onnx_convert.plan(model(RELU, 13), runtime=text)
    assert says in str(caught.value)


def test_without_onnxruntime_its_newest_row_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "_HERE", ("no-such-distribution",))
    row = runtimes.find("onnxruntime")
    assert str(row) == str(BY_NAME["onnxruntime"][-1])
    assert "is taken to be the newest listed" in row.guess


# ---- what is changed


@pytest.mark.parametrize(
    ("opset", "ir", "target", "expected"),
    [
        (17, 10, "triton@22.12", (17, 8)),
        (21, 10, "triton@22.12", (17, 8)),
        (13, 7, "triton@22.12", (13, 7)),
        (18, 9, "onnxruntime@1.14", (18, 8)),
        (21, 8, "onnxruntime@1.14", (18, 8)),
        (17, 8, "windowsml@10-1809", (7, 3)),
        (17, 10, "rknn-toolkit2@1.5.2", (12, 7)),
        (12, 10, "rknn-toolkit2@1.5.2", (12, 7)),
        (9, 4, "rknn-toolkit2@1.6", (12, 7)),
        (12, 4, "rknn-toolkit2@1.6", (12, 4)),
        (6, 3, "onnxruntime@1.4", (7, 3)),
        (21, 10, "openvino", (21, 10)),
        (21, 10, "openvino@2021.4", (13, 10)),
        (13, 7, "iree", (17, 8)),
        (18, 8, "iree", (18, 8)),
        (11, 6, "gonnx", (13, 7)),
        (17, 8, "gonnx", (13, 7)),
        (21, 13, "onnx@1.5", (10, 5)),
        (13, 2, "onnx@1.23", (13, 3)),
    ],
)
def test_only_what_is_needed_is_changed(opset: int, ir: int, target: str, expected: tuple[int, int]) -> None:
    source = model(RELU, opset, ir=ir)
    conversion = onnx_convert.convert(source, runtime=target)
    assert (opset_imports(conversion.model)[""], conversion.model.ir_version) == expected
    wanted = ModelProto()
    wanted.CopyFrom(source)
    wanted.opset_import[0].version, wanted.ir_version = expected
    if opset > 6:  # below 6, and so for the way to 7, Relu is another
        assert conversion.model == wanted


@pytest.mark.parametrize(
    ("ml", "target", "expected"), [(5, "onnxruntime@1.17", 4), (5, "onnxruntime@1.10", 2), (1, "onnxruntime@1.17", 1)]
)
def test_ai_onnx_ml(ml: int, target: str, expected: int) -> None:
    graph = "(float[2] x) => (float[2] y) { y = ai.onnx.ml.Binarizer <threshold = 0.5> (x) }"
    converted = onnx_convert.convert(model(graph, 15, ir=8, ai_onnx_ml=ml), runtime=target)
    assert opset_imports(converted.model) == {"": 15, "ai.onnx.ml": expected}
    assert ("ai.onnx.ml opset (5) was too new" in converted.report.notes[0]) is (ml > expected)


@pytest.mark.parametrize(
    ("opset", "ir", "target", "verdict"),
    [
        (17, 10, "triton@22.12", "the IR version (10) was too new, the opset (17) was not"),
        (21, 10, "triton@22.12", "the opset (21) and the IR version (10) were too new"),
        (18, 8, "triton@22.12", "the opset (18) was too new, the IR version (8) was not"),
        (13, 7, "triton@22.12", "nothing was too new"),
        (9, 4, "rknn-toolkit2@1.6", "the opset (9) was too old, it begins with 12"),
        (9, 10, "rknn-toolkit2@1.6", "the IR version (10) was too new, the opset (9) was too old, it begins with 12"),
        (17, 10, "openvino", "nothing was too new"),
        (17, 10, "openvino@2022.1", "the opset (17) was too new, the IR version (10) was not"),
        (13, 7, "iree", "the opset (13) was too old, it begins with 17"),
    ],
)
def test_one_sentence_says_what_was_too_new(opset: int, ir: int, target: str, verdict: str) -> None:
    row = runtimes.find(target)
    limits = f"loads opset {row.opset} and IR version {row.ir} at most"
    if row.opset is None:
        limits = f"does not look at {'how new opset and IR version are' if row.minimum > 1 else 'opset and IR version'}"
    elif row.ir is None:
        limits = f"loads opset {row.opset} at most and any IR version"
    assert onnx_convert.plan(model(RELU, opset, ir=ir), runtime=target).notes[0] == f"{row} {limits}: {verdict}"


FUNCTION = '<domain: "f", opset_import: ["" : 17]> Twice (a) => (b) { b = Add (a, a) }'


def test_functions_are_expanded_for_a_runtime_that_knows_none() -> None:
    source = model("(float[2] x) => (float[2] y) { y = f.Twice (x) }", 17, FUNCTION, f=1)
    assert [f.name for f in onnx_convert.convert(source, runtime="onnxruntime@1.10").model.functions] == ["Twice"]
    converted = onnx_convert.convert(source, runtime="onnxruntime@1.8").model
    assert (operators(converted), len(converted.functions), converted.ir_version) == (["Add"], 0, 7)
    assert_same_numbers(source, converted)
    with pytest.raises(
        RefusedError, match=r"function 'Twice'.*needs IR version 8, and onnxruntime 1.8 loads 7 at most"
    ):
        onnx_convert.plan(source, runtime="onnxruntime@1.8", keep_functions=True)


def test_content_that_the_runtime_cannot_hold_is_refused() -> None:
    source = model(RELU, 17, ir=10)
    source.graph.initializer.add(name="w", data_type=TensorProto.UINT4, dims=[1], raw_data=b"\0")
    assert onnx_convert.plan(source, runtime="onnxruntime@1.18").ir_version_after == 10
    with pytest.raises(RefusedError, match=r"initializer 'w'.*needs IR version 10, and triton 22.12 loads 8 at most"):
        onnx_convert.plan(source, runtime="triton@22.12")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"to": 14, "runtime": "triton@22.12"}, "exclude each other"),
        ({"runtime": "triton@22.12", "ir_version": 9}, "IR version 9 is higher than 8"),
        ({"runtime": "triton@22.12", "ir_version": 2}, "IR version 2 is not one of"),
    ],
)
def test_contradictions(options: dict, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        onnx_convert.plan(model(RELU, 17, ir=10), **options)
    assert says in str(caught.value)


def test_an_ir_version_may_be_lower() -> None:
    report = onnx_convert.plan(model(RELU, 17, ir=10), runtime="triton@22.12", ir_version=7)
    assert (report.ir_version_after, report.opsets_after) == (7, {"ai.onnx": 17})


# ---- what is warned of

BINARIZER = "(float[2] x) => (float[2] y) { y = ai.onnx.ml.Binarizer (x) }"
NORM = "(float[2] x, float[2] s) => (float[2] y) { y = LayerNormalization (x, s) }"
AXES = "(float[2] x, int64[1] a) => (float[1, 2] y) { y = Unsqueeze (x, a) }"


@pytest.mark.parametrize(
    ("source", "target", "warning"),
    [
        (model(IDENTITY, 18), "onnxruntime@1.15", None),
        (model(IDENTITY, 19), "onnxruntime@1.16", None),
        (
            model(BINARIZER, 17, ai_onnx_ml=3),
            "openvino@2025.0",
            "openvino 2025.0 has no kernel for Binarizer at opset 3",
        ),
        (model(RELU, 12, ir=7), "rknn-toolkit2@1.5.2", "what is known of rknn-toolkit2 1.5.2 is reported"),
        (model(RELU, 12, ir=7), "st-edge-ai-core@2.0", "is inferred, not documented"),
        (model(RELU, 12, ir=7), "tensorrt@8.6", None),
        (model(RELU, 12, ir=7), "tensorrt", "tensorrt without a version is taken to be the newest listed, 11: --for"),
        (model(RELU, 12, ir=7), "pplnn@1", None),
        (model(NORM, 17), "tensorrt@8.6", None),
        (model(AXES, 13), "onnx-tensorflow@1.9", "no kernel for Unsqueeze at opset 13 (nodes: 1); a lower opset may"),
    ],
)
def test_warnings(source: ModelProto, target: str, warning: str | None) -> None:
    warnings = onnx_convert.plan(source, runtime=target).warnings
    assert len(warnings) == (warning is not None)
    assert warning is None or warning in warnings[0]


# ---- the command line


def run(*line: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, line)
    return result.exit_code, result.stdout, result.stderr


def test_the_command_line_says_it(tmp_path: Path) -> None:
    source = model(RELU, 17, ir=10)
    onnx.save(source, tmp_path / "m.onnx")
    code, text, _ = run(str(tmp_path / "m.onnx"), "--for", "triton==22.12")
    assert code == 0
    assert text.splitlines()[0] == f"{tmp_path / 'm.onnx'}   opset 17   IR version 10 -> 8   for triton 22.12"
    assert "note:  triton 22.12 loads opset 17 and IR version 8 at most: the IR version (10) was too new" in text
    source.ir_version = 8
    assert onnx.load(tmp_path / "m.opset17.onnx") == source


def test_the_command_line_says_it_with_a_refusal_too(tmp_path: Path) -> None:
    onnx.save(model("(uint8[n] x) => (uint8[h, w, 3] y) { y = ImageDecoder (x) }", 20), tmp_path / "m.onnx")
    code, _, text = run(str(tmp_path / "m.onnx"), "--for", "onnxruntime@1.10")
    assert code == 1
    assert "ImageDecoder@20" in text
    assert "onnxruntime 1.10 loads opset 15 and IR version 8 at most: the opset (20) and the IR version (9)" in text


def test_the_command_line_suggests(tmp_path: Path) -> None:
    onnx.save(model(RELU, 17), tmp_path / "m.onnx")
    code, _, text = run(str(tmp_path / "m.onnx"), "--for", "onnxruntme@1.14")
    assert code == 2
    assert text.startswith("error: no runtime 'onnxruntme' is listed: did you mean onnxruntime")
    assert text.count("\n") == 1


def test_the_list() -> None:
    code, text, _ = run("--list-runtimes")
    header, *lines = text.partition("\n\n")[0].splitlines()
    assert code == 0
    assert header.split() == ["Runtime", "Opset", "IR", "ai.onnx.ml", "Certainty", "Source"]
    assert len(lines) == len(ROWS)
    assert ["triton@22.12", "7-17", "8", "3", "documented"] in [line.split()[:5] for line in lines]
    assert ["openvino@2026.4", "any", "any", "any", "measured"] in [line.split()[:5] for line in lines]
    code, text, _ = run("--list-runtimes", "--json")
    assert code == 0
    assert [row["name"] for row in json.loads(text)] == [row.name for row in ROWS]


@pytest.mark.parametrize("target", ["onnxruntime@1.14", "onnxruntime@1.5", "tensorrt@7.1", "windowsml@10-1903"])
def test_a_converted_model_computes_the_same(target: str) -> None:
    graph = """(float[2, 3, 4] x) => (float[2, 1, 3, 4] y) <int64[1] axes = {1}>
        { t = Softmax <axis = 1> (x)  c = Clip (t)  y = Unsqueeze (c, axes) }"""
    source = model(graph, 21, ir=10)
    converted = onnx_convert.convert(source, runtime=target).model
    assert opset_imports(converted)[""] == runtimes.find(target).opset
    assert_same_numbers(source, converted)
