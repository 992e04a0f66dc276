# SPDX-License-Identifier: Apache-2.0
"""--report with many models: lines as they end, or a table that leads to a page for each."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import onnx
import pytest
from click.testing import CliRunner, Result
from many import SOFTMAX, Here
from texts import model

from onnx_convert.batch.job import Outcome
from onnx_convert.batch.workers import Elsewhere
from onnx_convert.cli import many_report
from onnx_convert.cli.main import main
from onnx_convert.cli.page.overview import Row, overview, row

JOIN = "(string[4] x) => (string[4] y) { y = StringConcat (x, x) }"  # there is none below 20
HOSTILE = '<script>alert(1)<!script>"&\x1b[31m'


@pytest.fixture(autouse=True)
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("onnx_convert.rewrite.registry._modules", {})  # what other tests have registered
    monkeypatch.setattr("onnx_convert.batch.run.Processes", lambda *_: Elsewhere(Here()))
    folder = tmp_path / "zoo"
    (folder / "sub").mkdir(parents=True)
    onnx.save(model(SOFTMAX, 12), folder / "a.onnx")
    onnx.save(model(SOFTMAX, 13), folder / "sub" / "猫 1.onnx")
    onnx.save(model(JOIN, 20), folder / "join.onnx")
    (folder / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    monkeypatch.chdir(tmp_path)
    return folder


def run(line: str) -> Result:
    return CliRunner().invoke(main, line.split())


def cells(page: str) -> dict[str, list[str]]:
    """Returns the words of each row of the table, by the first."""
    found = {}
    for text in re.findall(r"<tr data-status.*?</tr>", page, re.DOTALL):
        words = [unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall(r"<td.*?</td>", text, re.DOTALL)]
        found[words[0]] = words[1:]
    return found


def test_lines_of_json() -> None:
    result = run("zoo --to 13 -o out --verify --report new/r.jsonl --json")
    assert result.exit_code == 4
    written = [json.loads(line) for line in Path("new/r.jsonl").read_text(encoding="utf-8").splitlines()]
    assert written == [json.loads(line) for line in result.stdout.splitlines()][:-1]
    verified = {one["name"] for one in written if one["report"] and one["report"]["verified"]}
    assert verified == {"a.onnx", "sub/猫 1.onnx"}


def test_a_page_leads_to_the_page_of_each_model() -> None:
    assert run("zoo --to 13 -o out --verify --report r.html").exit_code == 4
    page = Path("r.html").read_text(encoding="utf-8")
    told = cells(page)
    assert set(told) == {"a.onnx", "broken.onnx", "join.onnx", "sub/猫 1.onnx"}
    seconds = told["a.onnx"][7]
    assert told["a.onnx"] == ["converted", "opset 12", "opset 13", "1", "exact", "the same bits", "", seconds, ""]
    assert told["sub/猫 1.onnx"][:6] == ["unchanged", "opset 13", "opset 13", "0", "exact", "the same bits"]
    assert told["join.onnx"][0] == "refused" and told["join.onnx"][6] == "no-form"
    assert told["broken.onnx"][0] == "failed" and told["broken.onnx"][8]
    links = [unquote(link) for link in re.findall(r'<a href="(r-models[^"]*)"', page)]
    assert len(links) == 3 and {Path(link) for link in links} == set(Path("r-models").iterdir())
    assert "<h1>join.onnx" in Path("r-models/join.onnx.html").read_text(encoding="utf-8")
    assert "http" not in re.sub(r"http-equiv", "", page)


def test_what_computes_something_else_stands_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_convert.verification.run._unlike_signatures", lambda *_: "they are not alike")
    assert run("zoo/a.onnx zoo/sub/*.onnx --to 13 -o out --verify --report r.html").exit_code == 3
    told = cells(Path("r.html").read_text(encoding="utf-8"))["a.onnx"]
    assert (told[0], told[5]) == ("mismatch", "mismatch") and "they are not alike" in told[8]
    page = Path("r-models/a.onnx.html").read_text(encoding="utf-8")
    assert '<span class="badge bad">Computes something else, kept aside</span>' in page


def test_names_of_pages_are_safe_and_each_its_own() -> None:
    names = [
        "a.onnx",
        "A.onnx",
        "sub/a.onnx",
        "sub_a.onnx",
        "../a.onnx",
        ".a",
        "x" * 300,
        "x" * 301,
        "猫",
        "犬",
        "\udce9",
    ]
    made = [many_report.page_name(name) for name in names]
    assert made[0] == "a.onnx.html" and len({name.lower() for name in made}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_-][a-z0-9._-]{0,120}\.html", name) for name in made), made


def test_whatever_a_file_is_called_nothing_of_it_runs(zoo: Path) -> None:
    (zoo / "a.onnx").rename(zoo / f"{HOSTILE}.onnx")
    assert run("zoo --to 13 --check --report <b>.html").exit_code == 4
    page = Path("<b>.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and "\x1b" not in page and "&lt;script&gt;alert(1)&lt;!script&gt;" in page
    assert all(Path(unquote(link)).is_file() for link in re.findall(r'<a href="(%3Cb[^"]*)"', page))
    assert page.count('<a href="%3Cb%3E-models/') == 3


def test_thousands_of_models() -> None:
    rows = [Row(f"m{number}.onnx", "converted", ok=True, seconds=number / 7) for number in range(3000)]
    page = overview(rows, 3001, "1")
    assert len(cells(page)) == 3000 and "<h1>3,000 models</h1>" in page and len(page) < 2**20
    assert "It was stopped before the other 1 had ended." in page


def test_what_could_not_be_verified_is_not_called_verified() -> None:
    report = {"opsets_before": {"ai.onnx": 12}, "opsets_after": {"ai.onnx": 13}, "nodes_changed": 1, "form": "exact"}
    for verdict, said in (("unverified", "not verified"), ("different", "mismatch")):
        told = {**report, "verified": {"verdict": verdict, "same": False}}
        assert row(Outcome("a", "a", report=told), "").verified == said


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("--report r.md", 2, "a report on several models is an .html or .jsonl file, not 'r.md'"),
        ("--report r", 2, "a report on several models is an .html or .jsonl file, not 'r'"),
        ("--report zoo/a.onnx/r.html", 4, "the report cannot be written: a folder of its path is a file"),
        ("--report folder.jsonl", 4, "the report cannot be written: it is no file"),
        ("--report taken.html", 4, "taken-models"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_converted(line: str, code: int, said: str) -> None:
    Path("folder.jsonl").mkdir()
    Path("taken-models").touch()
    result = run(f"zoo --to 13 -o out {line}")
    assert result.exit_code == code and said in result.stderr, result.output
    assert len(result.stderr.splitlines()) == 1 and not list(Path().glob("out/*"))


def test_a_report_takes_the_place_of_no_model(zoo: Path) -> None:
    (zoo / "a.onnx").rename(zoo / "a.html")
    before = (zoo / "a.html").read_bytes()
    result = run("zoo --to 13 -o out --report zoo/a.html")
    assert result.exit_code == 2 and "would take the place of the model" in result.stderr
    assert (zoo / "a.html").read_bytes() == before


@pytest.mark.parametrize("name", ["r.html", "r.jsonl"])
def test_a_report_that_fails_later_is_a_warning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    failing = "cli.report_file.put" if name == "r.html" else "storage.writer.append_line"
    monkeypatch.setattr(f"onnx_convert.{failing}", full)
    result = run(f"zoo/a.onnx zoo/sub/*.onnx --to 13 -o out --report {name}")
    warning = f"warning: {name}: the report cannot be written: No space left on device\n"
    assert result.exit_code == 0 and result.stderr.count(warning) == 1
    assert Path("out/a.onnx").is_file()


CHROMIUM = shutil.which("chromium")
PROBE = """<script>
const names = () => [...document.querySelectorAll("tbody tr td:first-child")].map((cell) => cell.textContent);
const press = (column) => document.querySelectorAll("th button")[column].click();
const seen = [names().length];
press(0); seen.push(names()[2]);
press(8); press(8); seen.push(names()[0]);
const word = document.querySelector("#word");
word.value = "M29"; word.dispatchEvent(new Event("input")); seen.push(names().length, names()[0]);
const status = document.querySelector("#status");
status.value = "failed"; status.dispatchEvent(new Event("change")); seen.push(names().join(), said.textContent);
seen.push(document.documentElement.scrollWidth <= innerWidth);
document.title = JSON.stringify(seen);
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [360, 1300])
def test_a_browser_sorts_and_filters_thousands(tmp_path: Path, width: int) -> None:
    assert CHROMIUM is not None
    rows = [Row(f"m{number}.onnx", "converted", ok=True, seconds=number / 7) for number in reversed(range(3000))]
    rows[50] = rows[50]._replace(status="failed", ok=False, message="x" * 200)
    page = re.sub("script-src '[^']*'", "script-src 'unsafe-inline'", overview(rows, 3000, "1"))
    (tmp_path / "r.html").write_text(page + PROBE, encoding="utf-8")
    line = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--log-level=0",
            f"--window-size={width},900", "--dump-dom", (tmp_path / "r.html").as_uri()]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    title = re.search("<title>(.*?)</title>", done.stdout)
    assert title is not None
    assert json.loads(unescape(title[1])) == [
        3000, "m2.onnx", "m2999.onnx", 111, "m2999.onnx", "m2949.onnx", "1 of 3000 are shown.", True,
    ]  # fmt: skip
