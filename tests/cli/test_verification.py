# SPDX-License-Identifier: Apache-2.0
"""--verify and --verify-against: what they print, where the result goes, how they end, and what bad input leads to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from texts import model

import onnx_convert
from onnx_convert.cli import main as cli
from onnx_convert.verification import evaluators, subjects

SOFTMAX = "(float[N,3,4] x) => (float[N,3,4] y) { a = Relu (x)  y = Softmax <axis = 1> (a) }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with m.onnx, and wrong.onnx, which computes something else."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model(SOFTMAX, 13), "m.onnx")
    onnx.save(model(SOFTMAX, 12), "wrong.onnx")
    return tmp_path


def run(line: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.main, line.split())
    return result.exit_code, result.stdout, result.stderr


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def spoil(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has results run that have another axis than was written."""
    whole = subjects.Subject._serialised

    def spoilt(self: subjects.Subject) -> bytes:
        changed = onnx.ModelProto.FromString(whole(self))
        for node in changed.graph.node:
            if node.op_type == "Softmax" and changed.opset_import[0].version == 12:
                node.attribute[0].i = 1
        return changed.SerializeToString()

    def on_onnxruntime(self: subjects.Subject, more: list[str]) -> evaluators.OnnxRuntime:
        return evaluators.OnnxRuntime(spoilt(self) + subjects._outputs(more))

    monkeypatch.setattr(subjects.Subject, "_on_onnxruntime", on_onnxruntime)


def test_a_result_that_computes_the_same(folder: Path) -> None:
    code, text, errors = run("m.onnx --to 12 --verify")
    assert (code, errors) == (0, "")
    assert "y       float32      3600          0        0        0    0" in text
    assert "8 sets of inputs: the same bits" in text
    assert "wrote m.opset12.onnx" in text
    assert names() == {"m.onnx", "wrong.onnx", "m.opset12.onnx"}


def test_each_set_of_inputs_is_told_if_asked(folder: Path) -> None:
    _, text, _ = run("m.onnx --to 12 --verify -v")
    assert [line.split("  ")[0] for line in text.splitlines() if " float32 " in line] == [
        "random 0", "random 1", "random 2", "between 0 and 1", "zeros", "negative", "large", "tiny",
    ]  # fmt: skip


def test_the_outcome_is_in_the_json(folder: Path) -> None:
    told = json.loads(run("m.onnx --to 12 --verify --json")[1])
    assert told["status"] == "converted"
    assert told["verified"]["verdict"] == "same" and told["verified"]["identical"] is True
    assert told["verified"]["promised"] == "exact"
    assert json.loads(run("m.onnx --to 12 --json")[1])["verified"] is None


def test_a_result_that_differs_is_kept_aside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch)
    code, text, errors = run("m.onnx --to 12 --verify")
    assert code == 3
    assert errors.startswith("error: m.onnx: computes something else: output 'y', random 0: 24 of 24 elements differ")
    assert errors.endswith("the result is kept as m.opset12.mismatch.onnx\n") and errors.count("\n") == 1
    assert "first:   Softmax 'y', which became Transpose, Softmax, Transpose" in text
    assert "(adapter Softmax@13 normalise_trailing_axes)" in text
    assert names() == {"m.onnx", "wrong.onnx", "m.opset12.mismatch.onnx", "m.opset12.mismatch-report"}
    assert "wrote" not in text


def test_the_source_outlives_a_result_that_differs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("m.onnx").read_bytes()
    spoil(monkeypatch)
    assert run("m.onnx --to 12 --verify --in-place -q")[0] == 3
    assert Path("m.onnx").read_bytes() == before
    assert run("m.onnx --to 12 --verify --in-place -q")[0] == 3
    kept = {"m.mismatch.onnx", "m.mismatch-report", "m.mismatch-2.onnx", "m.mismatch-2-report"}
    assert names() == {"m.onnx", "wrong.onnx"} | kept


def test_a_name_without_an_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("m.onnx --to 12 --verify -o right -q")[0] == 0
    spoil(monkeypatch)
    assert run("m.onnx --to 12 --verify -o wrong -q")[0] == 3
    assert names() == {"m.onnx", "wrong.onnx", "right", "wrong.mismatch", "wrong.mismatch-report"}


def test_in_place(folder: Path) -> None:
    code, text, _ = run("m.onnx --to 12 --verify --in-place")
    assert code == 0 and "replaced m.onnx" in text
    assert onnx.load("m.onnx").opset_import[0].version == 12
    assert names() == {"m.onnx", "wrong.onnx"}


def test_weights_that_go_to_a_data_file_have_its_usual_name(folder: Path) -> None:
    big = model("(float[2,512] x) => (float[2,512] y) { y = Add (x, w) }", 13)
    big.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(512, np.float32), "w"))
    onnx.save(big, "big.onnx")
    code, _, errors = run("big.onnx --to 14 --verify --save-external-data -o o.onnx")
    assert (code, errors) == (0, "")
    assert {"o.onnx", "o.onnx.data"} < names()
    assert run("big.onnx --verify-against o.onnx")[0] == 0


def test_nothing_to_do_is_nothing_to_verify(folder: Path) -> None:
    code, text, _ = run("m.onnx --to 13 --verify")
    assert code == 0
    assert "nothing was changed, so there is nothing to verify" in text


def test_two_files(folder: Path) -> None:
    run("m.onnx --to 12 -o right.onnx")
    code, text, errors = run("m.onnx --verify-against right.onnx")
    assert (code, errors) == (0, "") and "the same bits" in text
    code, text, errors = run("m.onnx --verify-against wrong.onnx")
    assert code == 3
    assert errors.startswith("error: wrong.onnx: computes something else: output 'y', random 0: ")
    assert "8 sets of inputs: 8 of them computed otherwise" in text
    assert json.loads(run("m.onnx --verify-against wrong.onnx --json")[1])["status"] == "different"


def test_a_difference_can_be_sent_and_seen_again(folder: Path) -> None:
    run("m.onnx --verify-against wrong.onnx")
    page = Path("wrong.mismatch-report/README.md").read_text(encoding="utf-8")
    (command,) = [line.strip() for line in page.splitlines() if line.startswith("    onnx-convert")]
    line = command.removeprefix("onnx-convert ").replace("source.onnx", "wrong.mismatch-report/source.onnx")
    line = line.replace("result.onnx", "wrong.mismatch-report/result.onnx").replace(
        "test_data", "wrong.mismatch-report/test_data"
    )
    code, _, errors = run(line)
    assert code == 3 and "output 'y'" in errors
    assert [node.op_type for node in onnx.load("wrong.mismatch-report/source.onnx").graph.node] == ["Softmax"]


def test_a_model_without_inputs_that_fit(folder: Path) -> None:
    reshape = "(float[2,3] x, float[5] s) => (float[?] y) { t = Cast <to = 7> (s)  u = Mul (t, m)  y = Reshape (x, u) }"
    onnx.save(model(reshape.replace("=> (float[?] y)", "=> (float[?] y) <int64[5] m = {7,7,7,7,7}>"), 13), "no.onnx")
    code, text, errors = run("no.onnx --to 14 --verify")
    assert code == 3
    assert errors.startswith("error: no.onnx: not verified: no inputs could be made on which the source runs (")
    assert errors.endswith("give some with --inputs\n")
    assert "no.opset14.onnx" in text and "no.opset14.onnx" in names()
    assert json.loads(run("no.onnx --to 14 --verify --json -o p.onnx")[1])["status"] == "unverified"


# ---- inputs


@pytest.fixture
def given(folder: Path) -> None:
    right = np.ones((2, 3, 4), np.float32)
    np.savez("ok.npz", x=right)
    np.savez("name.npz", z=right)
    np.savez("more.npz", x=right, z=right)
    np.savez("shape.npz", x=np.ones((2, 3, 5), np.float32))
    np.savez("rank.npz", x=np.ones((2, 3), np.float32))
    np.savez("dtype.npz", x=np.ones((2, 3, 4)))
    np.savez("none.npz")
    Path("junk.npz").write_text("junk")
    Path("junk.txt").write_text("junk")
    for name in ("empty", "arrays", "messages", "sets/test_data_set_0", "sets/test_data_set_1", "damaged", "second"):
        Path(name).mkdir(parents=True)
    np.save("arrays/input_0.npy", right)
    message = onnx.numpy_helper.from_array(right, "anything").SerializeToString()
    for name in ("messages", "sets/test_data_set_0", "sets/test_data_set_1"):
        Path(name, "input_0.pb").write_bytes(message)
    Path("damaged/input_0.pb").write_bytes(message[:-9])
    np.save("second/input_1.npy", right)


@pytest.mark.parametrize(("name", "sets"), [("ok.npz", 1), ("arrays", 1), ("messages", 1), ("sets", 2)])
@pytest.mark.usefixtures("given")
def test_inputs_from_files(name: str, sets: int) -> None:
    code, text, errors = run(f"m.onnx --to 12 --verify --inputs {name}")
    assert (code, errors) == (0, "")
    assert f", {sets} set{'s' if sets > 1 else ''} of inputs: the same bits" in text


BAD = [
    ("--inputs name.npz", 2, "name.npz: input 'x' is missing; it has z"),
    ("--inputs more.npz", 2, "more.npz: the model has no input 'z'; it has x"),
    ("--inputs shape.npz", 2, "shape.npz: input 'x' has shape [2,3,5], the model wants [N,3,4] (N = 2)"),
    ("--inputs rank.npz", 2, "rank.npz: input 'x' has shape [2,3], the model wants [N,3,4]"),
    ("--inputs dtype.npz", 2, "dtype.npz: input 'x' is float64, the model wants float32"),
    ("--inputs none.npz", 2, "none.npz: input 'x' is missing; it is empty"),
    ("--inputs junk.npz", 4, "junk.npz: is no .npz"),
    ("--inputs junk.txt", 2, "junk.txt: inputs are an .npz, or a folder of input_0.pb or input_0.npy"),
    ("--inputs nowhere", 2, "nowhere: there is no such file or folder"),
    ("--inputs empty", 2, "empty: has no input_0.pb or input_0.npy"),
    ("--inputs second", 2, "second/input_1.npy: the model has 1 input"),
    ("--inputs damaged", 4, "damaged/input_0.pb: is no tensor, or damaged: "),
    ("--input-shape x:2,3", 2, "input 'x' has shape [2,3], the model wants [N,3,4]"),
    ("--input-shape x:2,3,5", 2, "input 'x' has shape [2,3,5], the model wants [N,3,4] (N = 2)"),
    ("--input-shape z:2,3", 2, "the model has no input 'z'; it has x"),
    ("--input-shape x", 2, "Invalid value for '--input-shape': 'x' is no shape of an input; x:1,3,224,224 is one."),
    ("--input-shape x:2,3,4 --input-shape x:3,3,4", 2, "--input-shape names an input twice"),
    ("--input-shape x:2,3,4 --inputs ok.npz", 2, "--inputs and --input-shape exclude each other"),
    ("--check", 2, "--verify needs a result, and --check makes none."),
    ("-o -", 2, "--verify needs the result in a file: use -o."),
    ("--inputs ok.npz wrong.onnx -o there/", 2, "--inputs is for one model: for several, inputs are made."),
]


@pytest.mark.parametrize(("options", "code", "says"), BAD, ids=[row[0] for row in BAD])
@pytest.mark.usefixtures("given")
def test_what_does_not_fit_ends_in_one_line_before_anything_is_written(options: str, code: int, says: str) -> None:
    before = names()
    ended, text, errors = run(f"m.onnx --to 12 --verify {options}")
    assert (ended, text, errors.count("\n")) == (code, "", 1)
    assert errors.startswith(f"error: {says}"), errors
    assert names() == before


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("m.onnx --to 12 --inputs ok.npz", "--inputs has no effect without --verify."),
        ("m.onnx --to 12 --input-shape x:1,3,4", "--input-shape has no effect without --verify."),
        ("m.onnx --verify", "Missing option '--to' or '--for'"),
        ("m.onnx --verify-against wrong.onnx --to 12", "--verify-against converts nothing: --to has no effect"),
        ("m.onnx --verify-against wrong.onnx --exact", "--verify-against converts nothing: --exact has no effect"),
    ],
)
@pytest.mark.usefixtures("given")
def test_options_without_effect(line: str, says: str) -> None:
    code, _, errors = run(line)
    assert code == 2 and errors.startswith(f"error: {says}"), errors


def test_a_file_that_is_not_there(folder: Path) -> None:
    assert run("m.onnx --verify-against nowhere.onnx")[0] == 4
    assert run("nowhere.onnx --verify-against m.onnx")[0] == 4


def test_without_onnxruntime_the_reference_computes_and_it_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise evaluators.LacksError(evaluators.MISSING)

    monkeypatch.setattr(evaluators, "_onnxruntime", missing)
    code, text, _ = run("m.onnx --to 12 --verify")
    assert code == 0
    assert 'onnxruntime is not installed (pip install "onnx-convert[verify]")' in text
    assert f"compared on onnx.reference {onnx.__version__}, 8 sets of inputs: the same bits" in text


def test_the_extra_is_there() -> None:
    extras = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert '\nverify = ["onnxruntime' in extras
    assert onnx_convert.verify is not None
