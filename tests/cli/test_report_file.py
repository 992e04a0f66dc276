# SPDX-License-Identifier: Apache-2.0
"""The report as a page, as JSON and as Markdown; the difference of models; drawings in text."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper
from texts import model

import onnx_convert
from onnx_convert.cli import drawing, html, main, markdown
from onnx_convert.cli.page.data import remedied, report_data, with_texts

SOFTMAX = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { a = Relu (x) y = Softmax <axis = 1> (a) }"
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m&`|'


def run(line: str) -> Result:
    return CliRunner().invoke(main.main, line.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    onnx.save(model(SOFTMAX, 13), tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data_of(proto: onnx.ModelProto, to: int) -> dict[str, Any]:
    report = onnx_convert.plan(proto, to=to, examples=True)
    return with_texts(report_data("checked", report), ["onnx-convert", "m.onnx", "--to", str(to)])


def hostile_model(nodes: int = 1) -> onnx.ModelProto:
    """Returns Softmaxes in a row, all of whose names mean harm."""
    names = [f"{HOSTILE}{place}" for place in range(nodes + 1)]
    made = [
        helper.make_node("Softmax", [names[n]], [names[n + 1]], name=f"{HOSTILE} {n}", axis=1) for n in range(nodes)
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3, 4]) for name in (names[0], names[-1])]
    graph = helper.make_graph(made, "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


class Elements(HTMLParser):
    """Takes down the elements of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_an_example_shows_the_nodes_and_their_neighbours() -> None:
    (example,) = onnx_convert.plan(model(SOFTMAX, 13), to=12, examples=True).examples or ()
    assert [node.operator for node in example.before.nodes] == ["Softmax"]
    assert [node.operator for node in example.after.nodes] == ["Transpose", "Softmax", "Transpose"]
    assert [node.operator for node in example.before.around] == ["Relu"]
    assert example.values["a"].type == "float[2,3,4]"
    assert example.values["y"].role == "output"
    assert onnx_convert.plan(model(SOFTMAX, 13), to=12).examples is None


@pytest.mark.parametrize("suffix", ["html", "json", "md"])
def test_a_report_is_written_beside_the_result(folder: Path, suffix: str) -> None:
    result = run(f"m.onnx --to 12 --report r.{suffix}")
    assert result.exit_code == 0, result.stderr
    assert (folder / "m.opset12.onnx").exists()
    text = (folder / f"r.{suffix}").read_text(encoding="utf-8")
    assert "Transpose" in text and "another one is moved there by a Transpose" in text or suffix == "md"
    if suffix == "json":
        told = json.loads(text)
        assert told["schema"] == 1 and told["tool"]["name"] == "onnx-convert" and told["status"] == "converted"
        assert told["runtime"] is None and told["examples"][0]["steps"][0]["condition"] is None
        assert told["operators_after"] == {"Relu": 1, "Softmax": 1, "Transpose": 2}


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [("r.pdf", 2, "an .html, .json or .md file"), ("m.onnx/r.html", 4, "a folder of its path is a file"),
     ("sub.html", 4, "it is no file")],
)  # fmt: skip
def test_a_report_that_cannot_be_written_is_known_before(folder: Path, path: str, code: int, says: str) -> None:
    (folder / "sub.html").mkdir()
    result = run(f"m.onnx --to 12 --report {path}")
    assert result.exit_code == code
    assert says in result.stderr and result.stderr.count("\n") == 1
    assert not (folder / "m.opset12.onnx").exists()


def test_a_report_that_fails_later_is_a_warning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "cannot be written: No space left on device")

    monkeypatch.setattr("onnx_convert.storage.writer.write_report", full)
    result = run("m.onnx --to 12 --report r.html")
    assert result.exit_code == 0
    assert result.stderr == "warning: r.html: the report cannot be written: No space left on device\n"
    assert (folder / "m.opset12.onnx").exists()


def test_a_refusal_has_a_page_with_the_command_that_helps(folder: Path) -> None:
    onnx.save(model("(bfloat16[2] x) => (bfloat16[2] y) { y = Relu (x) }", 14), folder / "b.onnx")
    result = run("b.onnx --to 12 --report r.html")
    assert result.exit_code == 1
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert '<article class="card refusal">' in page
    assert re.search(r"<code>onnx-convert b\.onnx --to \d+", page)


def test_remedies_are_commands() -> None:
    line = ["onnx-convert", "a b.onnx", "--to", "12", "--exact"]
    assert remedied(line, "--types cast") == "onnx-convert 'a b.onnx' --to 12 --exact --types cast"
    assert remedied(line, "leave out --exact") == "onnx-convert 'a b.onnx' --to 12"
    assert remedied(line, "go no lower than opset 13") == "onnx-convert 'a b.onnx' --exact --to 13"
    assert remedied(line, "register an adapter") is None


def test_nothing_of_a_file_runs_in_the_page() -> None:
    page = html.page(data_of(hostile_model(40), 12))
    found = Elements(page).found
    assert {tag for tag, _ in found if tag in ("img", "iframe", "object", "link")} == set()
    assert [given for tag, given in found if tag == "script" and given.get("type") != "application/json"] == [{}]
    assert not [name for _, given in found for name in given if name.startswith("on")]
    assert not [value for _, given in found for value in given.values() if value and "://" in value]
    assert "\x1b" not in page
    assert "\x1b" not in markdown.text(data_of(hostile_model(), 12))


def test_the_page_is_told_to_load_nothing() -> None:
    page = html.page(data_of(model(SOFTMAX, 13), 12))
    assert "default-src 'none'" in page and "script-src 'sha256-" in page
    ids = [given["id"] for _, given in Elements(page).found if "id" in given]
    assert len(ids) == len(set(ids))
    assert page.count("<svg") == 2 == page.count("</svg>")
    assert page.count('<g class="box node"') == 4


def test_the_difference_of_source_and_result(folder: Path) -> None:
    result = run("m.onnx --to 12 --check --diff -q")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("--- m.onnx") and lines[2] == "@@ -1,2 +1,4 @@"
    assert [line for line in lines[3:] if line[0] in " -"] == [" a = Relu (x)", "-y = Softmax <axis = 1> (a)"]
    assert sum(line.startswith("+") for line in lines[3:]) == 3
    with onnx_convert.convert("m.onnx", to=12) as conversion:
        conversion.save(folder / "n.onnx")
    assert run("m.onnx --diff n.onnx").stdout.splitlines()[2:] == lines[2:]
    assert run("m.onnx --diff m.onnx").stdout == "The nodes and the weights are the same.\n"
    assert run("m.onnx --diff n.onnx --to 12").exit_code == 2


def test_the_difference_of_weights(folder: Path) -> None:
    text = "(float[3] x) => (float[3] y) <float[3] w = {%s}, int64 k = {1}, %s> { a = Mul (x, w)  y = Add (a, b) }"
    onnx.save(model(text % ("1,2,3", "float b = {1}"), 13), folder / "one.onnx")
    onnx.save(model(text % ("1,0,0", "float[1] b = {1}"), 13), folder / "two.onnx")
    lines = run("one.onnx --diff two.onnx").stdout.splitlines()
    assert lines[0].startswith("--- one.onnx") and lines[1].startswith("+++ two.onnx")
    assert lines[2:] == [
        "@@ weights @@", "-float[3] w", "+float[3] w  # 2 of 3 elements differ", "-float b", "+float[1] b",
    ]  # fmt: skip
    source = model(text % ("1,2,3", "float b = {1}"), 13)
    numbers = np.arange(4096, dtype=np.float32)
    for name, tensor in (("three", numbers), ("four", numbers + 1)):
        copy = onnx.ModelProto.FromString(source.SerializeToString())
        copy.graph.initializer.append(numpy_helper.from_array(tensor, "large"))
        onnx.save(
            copy, folder / f"{name}.onnx", save_as_external_data=True, location=f"{name}.data", size_threshold=1024
        )
    changed = "+float[4096] large  # 4096 of 4096 elements differ"
    assert run("three.onnx --diff four.onnx").stdout.splitlines()[-1] == changed
    assert run("three.onnx --diff three.onnx").stdout == "The nodes and the weights are the same.\n"
    (folder / "four.data").unlink()
    told = run("three.onnx --diff four.onnx").stdout.splitlines()[-1]
    assert told == " # not compared, too large or without a file: 1 weights"


def test_a_drawing_in_text() -> None:
    (example,) = data_of(model(SOFTMAX, 13), 12)["examples"]
    drawn = drawing.before_and_after(example)
    assert drawn.splitlines()[0].split() == ["before", "after"]
    assert "Transpose perm=[0,2,1]" in drawn and "Softmax axis=1" in drawn
    assert drawn.translate(drawing.TO_ASCII).isascii()


def test_a_named_boundary_is_drawn() -> None:
    assert "Transpose perm=" in run("--explain Softmax@13").stdout
    assert "Transpose perm=" not in run("--explain Softmax").stdout


CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [360, 800, 1300])
def test_a_browser_shows_the_page(tmp_path: Path, width: int) -> None:
    assert CHROMIUM is not None
    page = html.page(data_of(hostile_model(40), 12))
    probe = "<script>document.title=[document.documentElement.scrollWidth<=innerWidth]</script>"
    place = tmp_path / "r.html"
    place.write_text(re.sub("script-src '[^']*'", "script-src 'unsafe-inline'", page) + probe, encoding="utf-8")
    line = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--log-level=0",
            f"--window-size={width},900", "--dump-dom", place.as_uri()]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=120)
    assert "CONSOLE" not in done.stderr
    assert "<title>true</title>" in done.stdout, "it does not scroll sideways"
    assert 'class="filter"' in done.stdout, "the script has run"
