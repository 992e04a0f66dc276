# SPDX-License-Identifier: Apache-2.0
"""The command line with many models: what is printed, what contradicts, how it ends."""

from __future__ import annotations

import io
import json
import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result
from many import Here
from texts import model

from onnx_convert.batch.workers import Elsewhere
from onnx_convert.cli import github
from onnx_convert.cli.main import main

SOFTMAX = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }"
JOIN = "(string[4] x) => (string[4] y) { y = StringConcat (x, x) }"  # there is none below 20


@pytest.fixture(autouse=True)
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("onnx_convert.rewrite.registry._modules", {})  # what other tests have registered
    folder = tmp_path / "zoo"
    (folder / "sub").mkdir(parents=True)
    onnx.save(model(SOFTMAX, 12), folder / "a.onnx")
    onnx.save(model(SOFTMAX, 13), folder / "sub" / "猫 1.onnx")
    monkeypatch.chdir(tmp_path)
    return folder


def run(*words: str, **more: Any) -> Result:
    return CliRunner().invoke(main, words, **more)


def lines(text: str) -> set[str]:
    return set(text.splitlines())


def test_a_folder(zoo: Path) -> None:
    result = run("zoo", "--to", "13", "-o", "out")
    assert result.exit_code == 0, result.output
    assert lines(result.stdout) == {
        "converted   a.onnx   opset 12 -> 13   1 of 1 node changed",
        "unchanged   sub/猫 1.onnx",
        "2 models: 1 converted, 1 unchanged",
    }
    assert not result.stderr
    assert Path("out/sub/猫 1.onnx").exists()
    again = run("zoo", "--to", "13", "-o", "out")
    assert lines(again.stdout) == {"up to date  a.onnx", "up to date  sub/猫 1.onnx", "2 models: 2 up to date"}
    assert "2 models: 1 converted, 1 unchanged" in run("zoo", "--to", "13", "-o", "out", "--redo").stdout


def test_what_is_not_well_goes_to_stderr_and_sets_the_exit_code(zoo: Path) -> None:
    onnx.save(model(JOIN, 20), zoo / "join.onnx")
    result = run("zoo", "--to", "13", "-o", "out")
    assert result.exit_code == 1
    assert result.stderr.startswith("refused     join.onnx: StringConcat ")
    assert "3 models: 1 converted, 1 unchanged, 1 refused\nrefused nodes: 1 no-form\n" in result.stdout
    (zoo / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    result = run("zoo", "--to", "13", "-o", "out", "-q")
    assert result.exit_code == 4
    assert not result.stdout and len(result.stderr.splitlines()) == 2


def test_names_from_a_list(zoo: Path) -> None:
    Path("list").write_text("zoo/a.onnx\n\nzoo/sub/猫 1.onnx\r\n", encoding="utf-8")
    for more in ({}, {"input": Path("list").read_bytes()}):
        name = "-" if more else "list"
        result = run("--files-from", name, "--to", "14", "--check", **more)
        assert "2 models: 2 checked" in result.stdout, result.output
    Path("zoo/new\nline\r.onnx").write_bytes(Path("zoo/a.onnx").read_bytes())
    whole = run("--files-from", "-", "--to", "14", "--check", input=b"zoo/a.onnx\0zoo/new\nline\r.onnx\0")
    assert "checked     new\\nline\\r.onnx" in whole.stdout and "2 models: 2 checked" in whole.stdout, whole.output
    missing = run("--files-from", "none", "--to", "14", "--check")
    assert missing.exit_code == 4 and missing.stderr == "error: none: No such file or directory\n"


def test_json_lines(zoo: Path) -> None:
    onnx.save(model(JOIN, 20), zoo / "join.onnx")
    result = run("zoo", "--to", "13", "-o", "out", "--json")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert {outcome["name"]: outcome["status"] for outcome in told[:-1]} == {
        "a.onnx": "converted", "join.onnx": "refused", "sub/猫 1.onnx": "unchanged",
    }  # fmt: skip
    counts = {"converted": 1, "unchanged": 1, "refused": 1}
    assert told[-1] == {"status": "done", "models": 3, "counts": counts, "codes": {"no-form": 1}}


def test_a_gate_for_ci(zoo: Path) -> None:
    assert run("zoo", "--to", "13", "--check").exit_code == 0
    assert run("zoo", "--to", "13", "--check", "--exit-code").exit_code == 5
    assert run("zoo/sub", "--to", "13", "--check", "--exit-code").exit_code == 0
    onnx.save(model(JOIN, 20), zoo / "join.onnx")
    assert run("zoo", "--for", "onnxruntime@1.14", "--check", "--exit-code").exit_code == 1


def test_verified(zoo: Path) -> None:
    result = run("zoo", "--to", "13", "-o", "out", "--verify")
    assert result.exit_code == 0, result.output
    assert lines(result.stdout) == {
        "converted   a.onnx   opset 12 -> 13   1 of 1 node changed   verified: the same bits",
        "unchanged   sub/猫 1.onnx   verified: the same bits",
        "2 models: 1 converted, 1 unchanged",
    }
    told = [
        json.loads(line) for line in run("zoo", "--to", "13", "-o", "other", "--verify", "--json").stdout.splitlines()
    ]
    assert [one["report"]["verified"]["verdict"] for one in told[:-1]] == ["same", "same"]


@pytest.mark.parametrize("words", [["zoo"], ["zoo/a.onnx"]])
def test_what_computes_something_else_is_an_annotation(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_convert.batch.run.Processes", lambda *_: Elsewhere(Here()))
    monkeypatch.setattr("onnx_convert.verification.run._unlike_signatures", lambda *_: "they are not alike")
    result = run(
        *words, "--to", "13", "-o", "out" if words == ["zoo"] else "x.onnx", "--verify", "--output-format", "github"
    )
    assert result.exit_code == 3, result.output
    told = [line for line in result.stdout.splitlines() if line.startswith("::error file=zoo/a.onnx,")]
    start = "::error file=zoo/a.onnx,title=onnx-convert%3A mismatch::computes something else: they are not alike; the "
    assert len(told) == 1 and told[0].startswith(start), result.output
    if words == ["zoo"]:
        assert "mismatch    a.onnx: computes something else: they are not alike; the result is kept as" in result.stderr
        assert "2 models: 2 mismatch" in result.stdout


@pytest.mark.parametrize("words", [["zoo"], ["zoo/join.onnx"], ["zoo/join.onnx", "zoo/a.onnx"]])
def test_annotations_of_github(zoo: Path, words: list[str]) -> None:
    onnx.save(model(JOIN, 20), zoo / "join.onnx")
    result = run(*words, "--to", "13", "--check", "--output-format", "github")
    assert result.exit_code == 1
    told = [line for line in result.stdout.splitlines() if line.startswith("::")]
    start = "::error file=zoo/join.onnx,title=onnx-convert%3A no-form::StringConcat y: "
    assert len(told) == 1 and told[0].startswith(start), result.output
    (zoo / "join.onnx").write_bytes(b"\x08\x07\x3a\xff")
    broken = run(*words, "--to", "13", "--check", "--output-format", "github")
    assert "::error file=zoo/join.onnx,title=onnx-convert%3A failed::" in broken.stdout and broken.exit_code == 4


def test_annotations_are_escaped() -> None:
    assert github.error("a,b:c", "t", "50 %\nx") == "::error file=a%2Cb%3Ac,title=onnx-convert%3A t::50 %25%0Ax"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("zoo", "Missing option '--to' or '--for': one model alone can be described."),
        ("zoo --to 13", "Several models need one of: -o FOLDER, --in-place, --check."),
        ("zoo --to 13 -o out --check", "Several models need one of: -o FOLDER, --in-place, --check."),
        ("zoo --to 13 -o -", "A stream holds one model: several need files."),
        ("zoo/a.onnx - --to 13 -o out", "Unexpected -: there is no such file. The output is given by -o -."),
        ("zoo --to 13 -o out --save-external-data=w", "--save-external-data=NAME is for one model"),
        ("zoo --to 13 -o out --no-clobber", "--no-clobber is for one model"),
        ("zoo --to 13 -o zoo/a.onnx", "zoo/a.onnx: many models need a folder for the results, and this is a file"),
        (
            "zoo --to 13 -o out --verify --input-shape x:2",
            "--input-shape is for one model: for several, inputs are made",
        ),
        ("zoo --to 13 --check --verify", "--verify needs a result, and --check makes none."),
        ("zoo --verify-against zoo/a.onnx", "--verify-against is for one model: a loop of the shell compares several."),
        ("zoo --to 99 -o out", "there is no opset 99 of ai.onnx"),
        ("zoo/a.onnx --to 13 -j 2", "--workers is for several models."),
        ("zoo/a.onnx --to 13 --redo", "--redo is for several models."),
        ("zoo --to 13 -o out -j 0", "0 workers do nothing"),
        ("zoo/a.onnx 13", "Unexpected 13. The opset is given by --to 13."),
        ("zoo/a.onnx onnxruntime@1.14", "Unexpected onnxruntime@1.14. The runtime is given by --for onnxruntime@1.14."),
        ("zoo/a.onnx b.onnx --to 13", "Unexpected b.onnx: there is no such file. The output is given by -o b.onnx."),
    ],
)
def test_wrong_usage(line: str, said: str) -> None:
    result = run(*line.split())
    assert result.exit_code == 2 and said in result.stderr, result.output
    assert not Path("out").exists() and len(result.stderr.splitlines()) == 1


def test_without_the_extra_dask(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = run("zoo", "--to", "13", "-o", "out", "--dask", "tcp://127.0.0.1:9")
    assert result.exit_code == 2
    assert result.stderr == "error: --dask needs dask's distributed: pip install 'onnx-convert[dask]'\n"


def test_a_bar_on_a_terminal(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", stdout := io.StringIO())
    monkeypatch.setattr(sys, "stderr", stderr)
    with pytest.raises(SystemExit) as ended:
        main(["zoo", "--to", "13", "-o", "out"])
    assert ended.value.code == 0
    assert "2/2" in stderr.getvalue() and "2 models: 1 converted, 1 unchanged" in stdout.getvalue()


def test_workers_of_the_program_begin_as_forks_of_a_server(zoo: Path) -> None:
    """Of the program alone: whoever calls the API keeps his own server, and what it has imported."""
    code = (
        "import sys\n"
        "from onnx_convert.batch import processes\n"
        "print(processes.context().get_start_method())\n"
        "from onnx_convert.cli.main import main\n"
        "try: main(['zoo', '--to', '13', '-q', '-o', 'out'])\n"
        "except SystemExit as end: print(end.code, processes.context().get_start_method())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    warm = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    assert done.stdout.split() == ["spawn", "0", warm], done.stderr
