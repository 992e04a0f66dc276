# SPDX-License-Identifier: Apache-2.0
"""What the command line says to people with other habits, which files it replaces, and how it ends."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, numpy_helper
from texts import model

import onnx_convert
from onnx_convert.cli import main as cli
from onnx_convert.cli import printing, tables
from onnx_convert.storage import files
from onnx_convert.storage.source import is_model

RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"
BIG = "(float[n, 64] x) => (float[n, 64] y) { y = MatMul (x, w) }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with `m.onnx` at opset 17."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model(RELU, 17), "m.onnx")
    return tmp_path


def run(line: str, **more: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.main, line.split(), **more)
    return result.exit_code, result.stdout, result.stderr


def big(path: Path, *, external: str = "", value: float = 0.0) -> Path:
    """A model with a weight of 16 KiB, in a data file if one is named."""
    source = model(BIG, 17)
    source.graph.initializer.append(numpy_helper.from_array(np.full((64, 64), value, np.float32), "w"))
    path.parent.mkdir(exist_ok=True)
    if external:
        onnx.save(source, path, save_as_external_data=True, location=external, size_threshold=0)
    else:
        onnx.save(source, path)
    return path


# ---- the habits of other tools


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("m.onnx out.onnx --to 13", "Unexpected out.onnx: there is no such file. The output is given by -o out.onnx."),
        ("m.onnx 13", "Unexpected 13. The opset is given by --to 13."),
        ("m.onnx onnxruntime@1.14", "Unexpected onnxruntime@1.14. The runtime is given by --for onnxruntime@1.14."),
        ("m.onnx m.onnx --to 13", "Several models need one of: -o FOLDER, --in-place, --check."),
        ("m.onnx a.onnx b.onnx --to 13", "Unexpected a.onnx: there is no such file. The output is given by -o a.onnx."),
        ("m.onnx --opset 13", "No such option: --opset. The opset is given by --to 13."),
        ("m.onnx --opset=13", "No such option: --opset. The opset is given by --to 13."),
        ("m.onnx --opset", "No such option: --opset. The opset is given by --to N."),
        ("m.onnx --target_opset 13", "No such option: --target_opset. The opset is given by --to 13."),
        ("m.onnx --target 13", "No such option: --target. The opset is given by --to 13."),
        ("m.onnx --target tensorrt@8.6", "No such option: --target. The runtime is given by --for tensorrt@8.6."),
        ("m.onnx --output_model o.onnx --to 13", "No such option: --output_model. The output is given by -o o.onnx."),
        ("--input m.onnx --to 13", "No such option: --input. The model needs none: onnx-convert m.onnx --to N."),
        ("m.onnx --to 13 --check-numbers", "No such option: --check-numbers. --verify compares what source and result"),
        ("m.onnx --to 13 --dry-run", "No such option: --dry-run. --check plans and writes nothing."),
        ("m.onnx --for a@1 --for b@2", "--for takes one runtime, not 2 (a@1, b@2): run once for each."),
        ("m.onnx --exit-code --to 13", "--exit-code needs --check."),
        ("m.onnx --to 13 --no-clobber -f", "--no-clobber excludes --force."),
        ("m.onnx --to 13 --no-clobber --in-place", "--no-clobber excludes --in-place."),
    ],
)
def test_habits_get_the_right_hint(folder: Path, line: str, says: str) -> None:
    code, text, errors = run(line)
    assert (code, text, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"error: {says}"), errors
    assert {path.name for path in folder.iterdir()} == {"m.onnx"}


# ---- what is replaced


def test_a_model_is_replaced_and_the_report_says_so(folder: Path) -> None:
    assert "wrote o.onnx (" in run("m.onnx --to 13 -o o.onnx")[1]
    code, text, _ = run("m.onnx --to 15 -o o.onnx")
    assert code == 0 and "replaced o.onnx (" in text
    assert onnx.load("o.onnx").opset_import[0].version == 15
    code, text, _ = run("m.onnx --to 13 --in-place --json")
    assert json.loads(text)["replaced"] is True


@pytest.mark.parametrize("quiet", ["", " -q"])
def test_anything_else_is_not(folder: Path, quiet: str) -> None:
    Path("notes.txt").write_text("my notes")
    code, text, errors = run(f"m.onnx --to 13 -o notes.txt{quiet}")
    assert (code, text, errors) == (2, "", "error: notes.txt: exists already and is no ONNX model; -f replaces it\n")
    assert Path("notes.txt").read_text() == "my notes"
    code, text, _ = run("m.onnx --to 13 -o notes.txt -f")
    assert code == 0 and "replaced notes.txt" in text
    assert is_model("notes.txt")


def test_no_clobber_replaces_nothing(folder: Path) -> None:
    run("m.onnx --to 13 -o o.onnx")
    before = Path("o.onnx").read_bytes()
    code, _, errors = run("m.onnx --to 15 -o o.onnx --no-clobber")
    assert (code, errors) == (2, "error: o.onnx: exists already, and --no-clobber replaces nothing\n")
    assert Path("o.onnx").read_bytes() == before
    assert run("m.onnx --to 15 -o p.onnx --no-clobber")[0] == 0


def test_what_is_a_model(folder: Path) -> None:
    big(folder / "big.onnx")
    Path("empty").touch()
    Path("text").write_text("a text")
    Path("cut.onnx").write_bytes(Path("big.onnx").read_bytes()[:2000])
    names = ("m.onnx", "big.onnx", "empty", "text", "cut.onnx", "absent", ".")
    assert [is_model(name) for name in names] == [True, True, True, False, False, False, False]


# ---- two runs into one folder


def test_identical_data_files_are_shared(folder: Path) -> None:
    path = big(folder / "in" / "m.onnx", external="w.bin")
    assert "w.bin (written)" in run(f"{path} --to 13 -o out/")[1]
    code, text, errors = run(f"{path} --to 15 -o out/")
    assert code == 0, errors
    assert "data  out/w.bin (there already, the output points to it)" in text
    for name in ("m.opset13.onnx", "m.opset15.onnx"):
        onnx.load(folder / "out" / name)
    code, text, errors = run(f"{path} --to 13 -o out/ --save-external-data=w.bin")
    assert code == 0, errors


def test_a_data_file_of_another_content_is_not_replaced(folder: Path) -> None:
    run(f"{big(folder / 'in' / 'm.onnx', external='w.bin')} --to 13 -o out/")
    path = big(folder / "other" / "n.onnx", external="w.bin", value=1.0)
    code, _, errors = run(f"{path} --to 13 -o out/")
    assert code == 2
    assert "w.bin: exists already" in errors and "--save-external-data=NAME" in errors and "--overwrite-data" in errors
    assert run(f"{path} --to 13 -o out/ --save-external-data=n.bin")[0] == 0
    assert {entry.name for entry in (folder / "out").iterdir()} == {
        "m.opset13.onnx",
        "w.bin",
        "n.opset13.onnx",
        "n.bin",
    }


def test_holds(folder: Path) -> None:
    Path("f").write_bytes(b"abcdef" * 400_000)
    assert files.holds(Path("f"), [b"abcdef" * 400_000])
    assert not files.holds(Path("f"), [b"abcdef" * 399_999, b"abcdeg"])
    assert not files.holds(Path("f"), [b"abc"])
    assert not files.holds(Path("absent"), [b"abc"])


# ---- formats that people confuse


def zipped(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, "content")
    return stream.getvalue()


def safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x1f\x8b\x08\0" + bytes(20), "is compressed with gzip: unpack it first (gunzip)"),
        (zipped("model.onnx"), "is a zip archive: unpack it first"),
        (zipped("net/data.pkl"), "is a PyTorch checkpoint: torch.onnx.export"),
        (pickle.dumps({"a": [1, 2]}), "is a Python pickle, a PyTorch or scikit-learn model perhaps"),
        (safetensors(), "is a safetensors file: weights without a graph"),
        (b"\x20\0\0\0ORTM" + bytes(20), "is an ORT model (.ort)"),
        (b"\x20\0\0\0TFL3" + bytes(20), "is a TensorFlow Lite model: tf2onnx"),
        (b"\n<!DOCTYPE html>\n<html><body>404</body></html>", "is a web page: what was downloaded is not the model"),
        (b"hello\n", "is a text"),
        ("größe\n".encode(), "is a text"),
        (b'{"a": 1}', "is JSON"),
        (b'<?xml version="1.0"?>\n<net name="model" version="11">', "is an OpenVINO model (.xml)"),
        (b'<ir_version: 8, opset_import: ["" : 17]>\ng (float[2] x) => () {}', "is ONNX in its text form"),
        (b"ir_version: 8\nproducer_name: 'x'\n", "is ONNX as protobuf text"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
        (b"\x89HDF\r\n\x1a\n", "is an HDF5 file"),
        (b"\xff" * 100, "is no ONNX model, or damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_formats_are_named(folder: Path, content: bytes, says: str) -> None:
    Path("x.onnx").write_bytes(content)
    for line in ("x.onnx --to 13", "x.onnx"):
        code, _, errors = run(line)
        assert code == 4
        assert errors.startswith(f"error: x.onnx: {says}") and errors.count("\n") == 1, errors


# ---- places that cannot be written


def test_a_read_only_folder_suggests_an_output(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EACCES, "cannot be written: Permission denied", "m.opset13.onnx")

    monkeypatch.setattr("onnx_convert.storage.writer.write", refuse)
    code, _, errors = run("m.onnx --to 13")
    assert (code, errors) == (
        4,
        "error: m.opset13.onnx: cannot be written: Permission denied; -o PATH writes elsewhere\n",
    )
    assert run("m.onnx --to 13 -o x.onnx")[2] == "error: m.opset13.onnx: cannot be written: Permission denied\n"


# ---- runtimes


def test_unknown_runtimes_suggest_a_way(folder: Path) -> None:
    code, _, errors = run("m.onnx --for abacus@3")
    assert code == 2
    assert errors == (
        "error: no runtime 'abacus' is listed: --list-runtimes lists all, with their other names; "
        "--to N does without, where you know the opset\n"
    )


def test_the_list_of_runtimes_is_filtered() -> None:
    code, text, _ = run("--list-runtimes triton")
    table, _, aliases = text.partition("\n\n")
    assert code == 0
    assert {line.split("@")[0] for line in table.splitlines()[1:]} == {"triton"}
    assert aliases.splitlines() == ["Runtime  Also called", "triton   tritonserver, triton-inference-server"]
    assert {row["name"] for row in json.loads(run("--list-runtimes rknn --json")[1])} == {
        "rknn-toolkit",
        "rknn-toolkit2",
    }
    assert [row["name"] for row in json.loads(run("--list-runtimes trt@8.6 --json")[1])] == ["tensorrt"]
    code, _, errors = run("--list-runtimes trition")
    assert code == 2 and "did you mean triton?" in errors


# ---- what is printed


def test_the_coverage_has_no_backslashes() -> None:
    code, text, _ = run("--coverage")
    assert code == 0
    assert "\\n" not in text
    assert (
        "= stays as it is, ~ is rewritten, x is refused, ? is not decided (and refused), - has nothing below." in text
    )


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    parts = [tables.Table((), [("warning:", "a word")])]
    for value, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda: True)
        printing.show(parts, stream)
        assert ("\x1b[" in stream.getvalue()) is coloured
        monkeypatch.setattr(sys, "stderr", error := io.StringIO())
        monkeypatch.setattr(error, "isatty", lambda: True)
        printing.print_error("no")
        assert ("\x1b[" in error.getvalue()) is coloured


def test_notes_keep_their_label(folder: Path) -> None:
    onnx.save(model("(uint8[n] x) => (uint8[h, w, 3] y) { y = ImageDecoder (x) }", 20), "i.onnx")
    code, _, errors = run("i.onnx --for onnxruntime@1.10")
    assert code == 1
    assert "\nnote:  onnxruntime 1.10 loads opset 15 and IR version 8 at most: " in errors


def test_check_has_an_exit_code(folder: Path) -> None:
    assert run("m.onnx --to 13 --check")[0] == 0
    assert run("m.onnx --to 13 --check --exit-code")[0] == 5
    assert run("m.onnx --to 17 --check --exit-code")[0] == 0
    assert run("m.onnx --to 13 --check --exit-code -q") == (5, "", "")


# ---- the description


DESCRIBED = """(bool c, float[n, 3, 224, 224] x, int64 k) => (float[m] y, seq(float[2]) s) <float[2] w = {1, 2}> {
    y = Identity (w)  s = SequenceConstruct (w) }"""


def test_the_description_shows_inputs_and_outputs(folder: Path) -> None:
    source = model(DESCRIBED, 17)
    source.graph.input.add(name="u").type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(source, "d.onnx")
    lines = run("d.onnx")[1].splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("inputs"))
    assert [line.removeprefix("inputs").strip() for line in lines[at : at + 4]] == [
        "c  bool scalar",
        "x  float[n, 3, 224, 224]",
        "k  int64 scalar",
        "u  float16 of unknown rank",
    ]
    assert [line.removeprefix("outputs").strip() for line in lines[at + 4 : at + 6]] == [
        "y  float[m]",
        "s  sequence of float[2]",
    ]
    told = json.loads(run("d.onnx --json")[1])
    assert told["inputs"]["x"] == "float[n, 3, 224, 224]" and told["outputs"]["s"] == "sequence of float[2]"


def test_many_inputs_are_few_lines(folder: Path) -> None:
    source = model(RELU, 17)
    for index in range(60):
        source.graph.input.add(name=f"past.{index}").type.CopyFrom(source.graph.input[0].type)
    onnx.save(source, "d.onnx")
    text = run("d.onnx")[1]
    assert "past.6  float[2]" in text and "past.7 " not in text and "and 53 more" in text
    assert "past.59  float[2]" in run("d.onnx -v")[1]


def test_initializers_are_no_inputs_of_a_description() -> None:
    source = model("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }", 8, ir=3)
    assert onnx_convert.inspect(source).inputs == {"x": "float[2]"}


def test_the_description_does_not_need_the_data_file(folder: Path) -> None:
    path = big(folder / "in" / "m.onnx", external="w.bin")
    whole = run(str(path))[1]
    assert "external data  w.bin (16.4 kB)" in whole
    (folder / "in" / "w.bin").unlink()
    code, text, errors = run(str(path))
    assert code == 0, errors
    assert text == whole.replace("(16.4 kB)", "(16.4 kB, not there)")
    code, _, errors = run(f"{path} --to 13")
    assert code == 4 and "w.bin" in errors


def memory_of(*line: str) -> int:
    """The peak of a process, in KB."""
    script = (
        "import resource, sys\nfrom onnx_convert.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *line], capture_output=True, text=True, check=False)
    return int(done.stderr.splitlines()[-1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads what Linux counts")
def test_the_description_costs_no_more_than_a_check(folder: Path) -> None:
    """A row of a table of 100 MB is no reason to read the table."""
    graph = """(int64[n] i) => (float[m, 1000] y) <int64[1] k = {0}> {
        row = Gather (t, k)  some = Gather (t, i)  size = Shape (row)  y = Expand (some, size) }"""
    source = model(graph, 17)
    source.graph.initializer.add(name="t", data_type=TensorProto.FLOAT, dims=[25000, 1000], raw_data=bytes(10**8))
    onnx.save(source, "t.onnx")
    assert memory_of("t.onnx") < memory_of("t.onnx", "--to", "12", "--check") + 20_000


# ---- signals


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_cleans_up(folder: Path, name: str) -> None:
    big(folder / "m.onnx")
    script = (
        "import sys, time\nfrom onnx_convert.storage import files\npour = files.pour\n"
        "def slow(*given):\n    pour(*given)\n    print('now', flush=True)\n    time.sleep(30)\n"
        "files.pour = slow\nfrom onnx_convert.cli.main import main\nmain(sys.argv[1:])"
    )
    line = [sys.executable, "-c", script, "m.onnx", "--to", "13", "-o", "new/o.onnx"]
    (folder / "new").mkdir()
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        assert list((folder / "new").iterdir())
        started = time.monotonic()
        process.send_signal(getattr(signal, name))
        assert process.wait(20) == 128 + getattr(signal, name)
        assert time.monotonic() - started < 15
        assert process.stderr is not None and b"Traceback" not in process.stderr.read()
    assert list((folder / "new").iterdir()) == []


def test_a_typing_error_names_options_like_it(folder: Path) -> None:
    code, _, errors = run("m.onnx --to 13 --chek")
    assert code == 2 and "--chek" in errors and "--check" in errors


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_signals_that_are_ignored_stay_so() -> None:
    from onnx_convert.cli import signals

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.ended_by_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
