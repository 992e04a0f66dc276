# SPDX-License-Identifier: Apache-2.0
"""The command line: what it asks of the API, where it writes, what it prints, how it ends.

A recording stand-in takes the place of the API, so that each ending can be had at will.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner, Result

import onnx_convert
from onnx_convert.cli import main as cli
from onnx_convert.cli import printing, tables
from onnx_convert.errors import InternalError, InvalidModelError, RefusedError, UsageError
from onnx_convert.report import Refusal, Report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODEL = b"a model"
COPY = b"the result"


@dataclass
class StandIn:
    """Plays `onnx_convert.api` and its Conversion: keeps what it was asked, raises `error` if there is one."""

    report: Report
    error: Exception | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    saved: dict[str, Any] = field(default_factory=dict)
    closed: bool = False

    def plan(self, model: object, to: object, **options: Any) -> Report:
        self.asked = {"model": model, "to": to, **options}
        if self.error:
            raise self.error
        return self.report

    @contextlib.contextmanager
    def convert(self, model: object, to: object, **options: Any) -> Iterator[StandIn]:
        self.plan(model, to, **options)
        yield self
        self.closed = True

    def save(self, path: str, *, progress: Any, **options: Any) -> None:
        self.saved = options
        self.report.destination = path
        with open(path, "wb") as stream:
            stream.write(COPY)

    def write(self, stream: io.BufferedIOBase, *, external: str) -> None:
        self.saved = {"external": external}
        self.report.destination = "-"
        stream.write(COPY)


def moved(before: int = 17, after: int = 14, **more: Any) -> Report:
    """Returns a report of a model that went from one opset to another."""
    opsets = {"opsets_before": {"ai.onnx": before}, "opsets_after": {"ai.onnx": after}}
    return Report(
        **{"ir_version_before": 8, "ir_version_after": 7, "nodes_before": 3, "nodes_after": 5, **opsets, **more}
    )


def still(opset: int = 14) -> Report:
    """Returns a report of a model that was there already."""
    return moved(opset, opset, ir_version_before=7, nodes_after=3)


def refused(count: int = 1, *, nearest: int | None = None) -> RefusedError:
    """Returns a refusal of `count` GridSamples and of one classifier in a branch."""
    equal = [
        Refusal("GridSample", "", f"/head/sample_{n}", 16, "down", "does not exist below opset 16", "stay at opset 16")
        for n in range(count)
    ]
    other = Refusal("TreeEnsemble", "ai.onnx.ml", "", 5, "down", "has a [set] membership", path="then_branch")
    return RefusedError([*equal, other], moved(), nearest)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandIn:
    """The stand-in, in a folder that holds `model.onnx`."""
    stand_in = StandIn(moved())
    monkeypatch.setattr(onnx_convert, "api", stand_in, raising=False)
    monkeypatch.setitem(sys.modules, "onnx_convert.api", stand_in)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(MODEL)
    (tmp_path / "folder").mkdir()
    return stand_in


def run(line: str, **more: Any) -> Result:
    return CliRunner().invoke(cli.main, line.split(), **more)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_help_fits_on_a_screen() -> None:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(cli.main, ["--help"])
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[2] == "  Move an ONNX model to another opset (MODEL.opsetN.onnx), or tell what it is."
    assert len(lines) <= 72 and max(map(len, lines)) <= 80
    for option in cli.main.get_params(click.Context(cli.main)):
        if isinstance(option, click.Option):
            assert sum(f"{max(option.opts, key=len)} " in line[:34] for line in lines) == 1, option


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--to 14", "Missing argument 'MODEL'"),
        ("model.onnx --check", "Missing option '--to' or '--for'"),
        ("model.onnx -o x.onnx", "Missing option '--to' or '--for'"),
        ("model.onnx --to 14 --for onnxruntime@1.14", "exclude each other"),
        ("model.onnx --to fourteen", "'fourteen' is not an opset"),
        ("model.onnx --to 0", "'0' is not an opset"),
        ("model.onnx --to ai.onnx.ml:", "'ai.onnx.ml:' is not an opset"),
        ("model.onnx --embed", "Missing option '--to'"),
        ("model.onnx --to 14 --to 15 --to 16", "names a domain twice"),
        ("model.onnx --to 14 --to ai.onnx:latest", "names a domain twice"),
        ("model.onnx --to 14 --embed --save-external-data=w", "exclude each other"),
        ("model.onnx --to 14 --in-place -o x.onnx", "excludes -o"),
        ("- --to 14 --in-place", "needs MODEL to be a file"),
        ("- --to 14 --json", "need the model in a file"),
        ("model.onnx --to 14 -o - --save-external-data", "need the model in a file"),
        ("model.onnx --to 14 -o model.onnx", "is the input"),
        ("model.onnx --to 14 -o folder/../model.onnx", "is the input"),
        ("model.onnx --to 14 --types guess", "'guess'"),
        ("model.onnx --to 14 --fast", "--fast"),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(api: StandIn, tmp_path: Path, line: str, says: str) -> None:
    result = run(line)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert says in result.stderr
    assert files(tmp_path) == {"model.onnx"} and (tmp_path / "model.onnx").read_bytes() == MODEL


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("--to 14", {"to": {"ai.onnx": 14}, "types": "refuse", "exact": False, "allow": (), "strict": False}),
        ("--to latest", {"to": {"ai.onnx": "latest"}}),
        ("--to ai.onnx:14", {"to": {"ai.onnx": 14}}),
        ("--to 14 --to ai.onnx.ml:3", {"to": {"ai.onnx": 14, "ai.onnx.ml": 3}}),
        ("--to ai.onnx.ml:3", {"to": {"ai.onnx.ml": 3}}),
        ("--to 14 --to ai.onnx.ml:latest", {"to": {"ai.onnx": 14, "ai.onnx.ml": "latest"}}),
        ("--ir-version 8", {"to": None, "runtime": None, "ir_version": 8}),
        ("--for onnxruntime@1.14", {"to": None, "runtime": "onnxruntime@1.14", "ir_version": None}),
        ("--for triton:22.12 --ir-version 7", {"to": None, "runtime": "triton:22.12", "ir_version": 7}),
        ("--to 14 --exact --strict --keep-functions", {"exact": True, "strict": True, "keep_functions": True}),
        ("--to 14 --types cast-rounding --allow conditional", {"types": "cast-rounding", "allow": ("conditional",)}),
    ],
)
def test_options_reach_the_api(api: StandIn, line: str, asked: dict[str, Any]) -> None:
    for extra in ("", " --check"):
        assert run(f"model.onnx {line}{extra}").exit_code == 0
        assert api.asked == {**api.asked, "model": "model.onnx", **asked}


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("model.onnx --to 14", "model.opset14.onnx"),
        ("./model.onnx --to 14", "model.opset14.onnx"),
        ("folder/net.opset17.onnx --to 14", "folder/net.opset14.onnx"),
        ("model.onnx --to 14 -o out.onnx", "out.onnx"),
        ("model.onnx --to 14 -o folder", "folder/model.opset14.onnx"),
        ("model.onnx --to 14 -o new/folder/", "new/folder/model.opset14.onnx"),
        ("model.onnx --to 14 --in-place", "model.onnx"),
        ("- --to 14 -o folder", "folder/model.opset14.onnx"),
        ("folder/no.such --to 14", "folder/no.opset14.such"),
    ],
)
def test_where_the_result_goes(api: StandIn, tmp_path: Path, line: str, path: str) -> None:
    result = run(line, input=MODEL)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / path).read_bytes() == COPY
    assert files(tmp_path) == {"model.onnx", path}
    assert f"wrote {path} in 0.00 s" in result.stdout


@pytest.mark.parametrize(
    ("line", "saving"),
    [
        ("model.onnx", {"external": "keep", "size_threshold": 1024, "overwrite_data": False}),
        ("model.onnx --embed", {"external": "embed"}),
        ("model.onnx --embed -o -", {"external": "embed"}),
        ("model.onnx -o -", {"external": "keep"}),
        ("model.onnx --save-external-data", {"external": "save", "external_name": None}),
        ("model.onnx --save-external-data --overwrite-data", {"external": "save", "overwrite_data": True}),
        ("model.onnx --save-external-data weights.bin", {"external": "save", "external_name": "weights.bin"}),
        ("--save-external-data model.onnx", {"external": "save", "external_name": None}),
        ("model.onnx --save-external-data --external-data-size-threshold 0", {"external": "save", "size_threshold": 0}),
    ],
)
def test_external_data(api: StandIn, line: str, saving: dict[str, Any]) -> None:
    assert run(f"--to 14 {line}").exit_code == 0
    assert api.asked["model"] == "model.onnx"
    assert api.saved == {**api.saved, **saving}
    assert api.closed


@pytest.mark.parametrize(
    ("line", "written", "says"),
    [
        ("--to 14", None, "model.onnx is already at opset 14; nothing to do."),
        ("--to 14 --in-place", None, "nothing to do."),
        ("--to 14 --check -o out.onnx", None, "nothing to do."),
        ("--to 14 -o out.onnx", "out.onnx", "model.onnx is already at opset 14; wrote it to out.onnx."),
        ("--to 14 -o folder", "folder/model.opset14.onnx", "wrote it to folder"),
        ("--to 14 --embed", "model.opset14.onnx", "wrote it to model.opset14.onnx"),
    ],
)
def test_already_there(api: StandIn, tmp_path: Path, line: str, written: str | None, says: str) -> None:
    api.report = still()
    result = run(f"model.onnx {line}")
    assert result.exit_code == 0
    assert files(tmp_path) == {"model.onnx", *([written] if written else [])}
    assert (tmp_path / "model.onnx").read_bytes() == MODEL
    assert says in result.stdout


@pytest.mark.parametrize("line", ["model.onnx -o out.onnx", "model.onnx --in-place", "model.onnx -o -", "-", "- -o -"])
def test_check_writes_nothing(api: StandIn, tmp_path: Path, line: str) -> None:
    result = run(f"{line} --to 14 --check", input=MODEL)
    assert result.exit_code == 0
    name = "stdin" if line.startswith("-") else "model.onnx"
    assert f"{name} can be moved to opset 14; nothing was written." in result.stdout
    assert files(tmp_path) == {"model.onnx"} and api.saved == {}


@pytest.mark.parametrize("line", ["- --to 14", "- --to 14 -o -", "model.onnx --to 14 -o -"])
@pytest.mark.parametrize("report", [moved(), still()], ids=["moved", "still"])
def test_model_on_stdout_and_messages_on_stderr(api: StandIn, line: str, report: Report) -> None:
    api.report = report
    result = run(line, input=MODEL)
    assert result.exit_code == 0
    assert result.stdout_bytes == COPY
    assert "stdout" in result.stderr.splitlines()[-1]
    assert api.asked["model"] == (MODEL if line.startswith("-") else "model.onnx")


def test_no_model_on_a_terminal(api: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with CliRunner().isolation(input=MODEL):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        with pytest.raises(SystemExit) as ended:
            cli.main(["-", "--to", "14"])
    assert ended.value.code == 2
    assert api.asked == {}


@pytest.mark.parametrize("extra", ["", " --check", " --in-place", " -o out.onnx"])
def test_refusals_are_one_table(api: StandIn, tmp_path: Path, extra: str) -> None:
    api.error = refused(14, nearest=16)
    result = run(f"model.onnx --to 14{extra}")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: model.onnx: 15 nodes cannot be moved; nothing was written",
        "Refused                    Nodes  Why",
        "GridSample@16                 14  does not exist below opset 16",
        "                                  remedy: stay at opset 16",
        "                                  nodes: /head/sample_0, /head/sample_1, /head/sample_2, and 11 more",
        "ai.onnx.ml.TreeEnsemble@5      1  has a [set] membership",
        "                                  node: then_branch/(unnamed)",
        "",
        "The nearest opset within reach: --to 16",
    ]
    assert files(tmp_path) == {"model.onnx"}


@pytest.mark.parametrize(
    ("line", "shown", "hidden"),
    [
        ("-v", ["/head/sample_13", "No opset on the way is within reach."], ["more"]),
        ("-q", ["error: model.onnx: GridSample '", "(and 14 more); nothing was written"], ["within reach"]),
    ],
)
def test_refusals_quiet_and_verbose(api: StandIn, line: str, shown: list[str], hidden: list[str]) -> None:
    api.error = refused(14)
    result = run(f"model.onnx --to 14 {line}")
    assert result.exit_code == 1
    assert [text for text in shown if text not in result.stderr] == []
    assert [text for text in hidden if text in result.stderr] == []


@pytest.mark.parametrize(
    ("extra", "report", "error", "code", "status"),
    [
        ("", moved(), None, 0, "converted"),
        ("", still(), None, 0, "unchanged"),
        (" --check", moved(), None, 0, "checked"),
        ("", moved(), refused(3, nearest=16), 1, "refused"),
        ("", moved(), InvalidModelError("no graph"), 4, "error"),
    ],
    ids=["converted", "unchanged", "checked", "refused", "error"],
)
def test_json(api: StandIn, extra: str, report: Report, error: Exception | None, code: int, status: str) -> None:
    api.report, api.error = report, error
    result = run(f"model.onnx --to 14 --json{extra}")
    assert result.exit_code == code
    told = json.loads(result.stdout)
    assert told["status"] == status
    if status == "error":
        assert told["error"] == "no graph" and told["schema"] == 1 and not told.keys() & {"refusals", "examples"}
        return
    assert told["opsets_after"] == {"ai.onnx": 14}
    assert len(told["refusals"]) == (4 if error else 0)
    if error:
        assert told["nearest"] == 16
        assert told["refusals"][0]["node"] == "/head/sample_0"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("opset 99 does not exist"), 2, "opset 99 does not exist"),
        (InvalidModelError("it ends\ntoo early", where="model.onnx"), 4, "model.onnx: it ends too early"),
        (FileNotFoundError(2, "No such file or directory", "no.onnx"), 4, "no.onnx: No such file or directory"),
        (OSError(28, "No space left on device"), 4, "No space left on device"),
        (MemoryError(), 4, "the memory does not suffice"),
        (ImportError("no libz.so.1", name="numpy"), 4, "the installation is not complete: no libz.so.1 (pip check"),
        (ImportError("no fun", name="onnx_convert.fun"), 70, "ImportError: no fun; this is a bug of onnx-convert"),
        (InternalError("a rewrite does not hold"), 70, "a rewrite does not hold; this is a bug of onnx-convert"),
        (KeyError("x"), 70, "KeyError: 'x'; this is a bug of onnx-convert"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_errors_are_one_line(api: StandIn, error: Exception, code: int, line: str) -> None:
    api.error = error
    result = run("model.onnx --to 14")
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {line}") and result.stderr.count("\n") == 1
    debug = run("model.onnx --to 14 --debug")
    assert debug.exit_code == code
    assert "Traceback" in debug.stderr and debug.stderr.splitlines()[-1] == result.stderr.splitlines()[0]


def test_an_interrupt_is_no_refusal(api: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "convert", interrupt)
    assert run("model.onnx --to 14").exit_code == 130


def test_quiet_prints_nothing(api: StandIn) -> None:
    result = run("model.onnx --to 14 -q")
    assert (result.exit_code, result.output) == (0, "")


def test_a_name_that_is_no_text_can_be_printed(api: StandIn) -> None:
    result = run("model.onnx --to 14 -o caf\udce9.onnx")
    assert result.exit_code == 0, result.stderr
    assert "caf\\udce9.onnx" in result.stdout


def test_only_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for isatty in (True, False):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda answer=isatty: answer)
        printing.show([tables.refusal_table(refused().refusals)], stream)
        assert ("\x1b[" in stream.getvalue()) is isatty


@pytest.mark.parametrize(("patience", "drawn"), [(0.0, [(1, 2, "w"), (2, 2, "w")]), (60.0, [])])
def test_progress_appears_when_copying_takes_long(
    monkeypatch: pytest.MonkeyPatch, patience: float, drawn: list[tuple[int, int, str]]
) -> None:
    seen: list[tuple[int, int, str]] = []
    monkeypatch.setattr(printing, "PATIENCE", patience)
    monkeypatch.setattr(printing, "_bar", lambda _: lambda *told: seen.append(told))
    clock = iter(range(100))
    monkeypatch.setattr(printing, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with printing.progress(shown=True) as progress:
        assert progress is not None
        for done in (1, 2):
            progress(done, 2, "w")
    assert seen == drawn
    with printing.progress(shown=False) as progress:
        assert progress is None


def test_progress_bar_draws_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(printing, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    with printing.progress(shown=True) as progress:
        assert progress is not None
        progress(2_000_000, 2_000_000, "[weights].bin")
    assert "[weights].bin" in stderr.getvalue() and "2.0/2.0 MB" in stderr.getvalue()
