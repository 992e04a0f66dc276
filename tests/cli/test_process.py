# SPDX-License-Identifier: Apache-2.0
"""The program as a process: what it imports, reads and writes, and how it ends."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def relu(path: Path, opset: int) -> Path:
    """Returns a model that any opset can hold."""
    header = f'<ir_version: 7, opset_import: ["" : {opset}]>'
    onnx.save(onnx.parser.parse_model(f"{header} agraph (float[2] x) => (float[2] y) {{ y = Relu(x) }}"), path)
    return path


def process(*line: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "onnx_convert", *line], capture_output=True, check=False, **more)


@pytest.mark.parametrize("line", ["--help", "--version", "--list-runtimes", "model.onnx --to x"])
def test_answers_without_a_model_import_nothing_heavy(line: str) -> None:
    script = (
        "import sys\n"
        "try: from onnx_convert.cli.main import main; main(sys.argv[1:])\n"
        "finally: print(sorted({'onnx', 'numpy', 'rich', 'onnxscript', 'onnxruntime'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, *line.split()], capture_output=True, check=False)
    assert done.stdout.splitlines()[-1] == b"[]"
    assert done.returncode == (2 if "--to" in line else 0)


def test_the_collector_rests_while_a_process_of_our_own_imports(tmp_path: Path) -> None:
    """It works again before anything is converted, and has nothing to find in what was imported."""
    script = (
        "import gc, sys\n"
        "from onnx_convert import __main__\n"
        "try: __main__.run()\n"
        "finally: print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    relu(tmp_path / "model.onnx", 13)
    line = [sys.executable, "-c", script, "model.onnx", "--to", "14", "-q"]
    done = subprocess.run(line, capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [b"True", b"True"]


def test_the_collector_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = relu(tmp_path / "model.onnx", 13)
    for enabled in (True, False):
        script = (
            f"import gc, sys; gc.{'enable' if enabled else 'disable'}(); frozen = gc.get_freeze_count()\n"
            "import onnx_convert; from onnx_convert.cli.main import main\n"
            "onnx_convert.convert(sys.argv[1], to=14)\n"
            "try: main([*sys.argv[1:], '--to', '14', '--check', '-q'])\n"
            "finally: print(gc.isenabled(), gc.get_freeze_count() == frozen)"  # some CPythons begin with a few
        )
        done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, check=True)
        assert done.stdout.decode().split() == [str(enabled), "True"]


def test_a_process_converts_a_file(tmp_path: Path) -> None:
    done = process(str(relu(tmp_path / "model.onnx", 13)), "--to", "14", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert onnx.load(tmp_path / "model.opset14.onnx").opset_import[0].version == 14
    assert b"model.onnx   opset 13 -> 14   IR version 7" in done.stdout


@pytest.mark.parametrize("opset", [13, 14])
def test_a_process_is_a_filter(tmp_path: Path, opset: int) -> None:
    done = process("-", "--to", "14", input=relu(tmp_path / "model.onnx", opset).read_bytes())
    assert done.returncode == 0, done.stderr
    assert onnx.load_model_from_string(done.stdout).opset_import[0].version == 14


@pytest.mark.parametrize(
    ("content", "says"), [(None, b"No such file"), (b"", b""), (b"\xff" * 100, b"")], ids=["absent", "empty", "rubbish"]
)
def test_a_process_that_cannot_read_ends_with_4(tmp_path: Path, content: bytes | None, says: bytes) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    done = process(str(path), "--to", "14", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert done.stderr.startswith(b"error: ") and done.stderr.count(b"\n") == 1
    assert b"model.onnx" in done.stderr and says in done.stderr
    assert files(tmp_path) <= {"model.onnx"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("line", ["", "--json", "-o -"])
def test_a_process_whose_stdout_is_full_ends_with_4(tmp_path: Path, line: str) -> None:
    relu(tmp_path / "model.onnx", 13)
    command = [sys.executable, "-m", "onnx_convert", "model.onnx", "--to", "14", *line.split()]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (4, b"error: No space left on device\n")


@pytest.mark.parametrize("line", ["--coverage", "--list-runtimes", "--explain Softmax --json", "model.onnx --to 14"])
def test_a_reader_that_leaves_is_no_failure(tmp_path: Path, line: str) -> None:
    relu(tmp_path / "model.onnx", 13)
    command = f"{shlex.quote(sys.executable)} -m onnx_convert {line}"
    shell = f"{command} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "model.opset14.onnx").exists() == line.startswith("model")


@pytest.mark.parametrize("line", ["model.onnx --to 14 -o ", " --to 14"])
def test_an_empty_file_name_is_a_usage_error(line: str) -> None:
    done = process(*line.split(" "))
    assert (done.returncode, done.stderr) == (2, b"error: A file name is empty. (try --help)\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_options(shell: str) -> None:
    """What a shell asks when somebody has typed `onnx-convert --ov` and presses the tabulator."""
    script = {**os.environ, "_ONNX_CONVERT_COMPLETE": f"{shell}_source"}
    command = [Path(sys.executable).with_name("onnx-convert")]
    text = subprocess.run(command, capture_output=True, text=True, env=script, timeout=60, check=True).stdout
    assert "_ONNX_CONVERT_COMPLETE" in text and f"{shell}_complete" in text
    asked = {**script, "_ONNX_CONVERT_COMPLETE": f"{shell}_complete", "COMP_WORDS": "onnx-convert --ov"}
    asked["COMP_CWORD"] = "--ov" if shell == "fish" else "1"
    told = subprocess.run(command, capture_output=True, text=True, env=asked, timeout=60, check=True).stdout
    assert "--overwrite-data" in told
