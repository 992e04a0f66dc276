# SPDX-License-Identifier: Apache-2.0
"""The page of a report: it can be read in both themes, asks nobody for anything, says how it ended; and the one among
the examples is what the command makes."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from texts import model

import onnx_convert
from onnx_convert.cli import html, markdown
from onnx_convert.cli.page.data import report_data, with_texts
from onnx_convert.verification.outcome import FirstDifference, Run, Verification

ROOT = Path(__file__).parents[2]
PAGE = resources.files("onnx_convert.cli.page")
STYLE = PAGE.joinpath("page.css").read_text(encoding="utf-8")
SOFTMAX = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { a = Relu (x) y = Softmax <axis = 1> (a) }"
TEXT = [
    *product(("ink", "quiet", "accent"), ("paper", "card")),
    *product(("ink", "quiet"), ("faint",)),
    *product(("ink", "quiet", "accent"), ("tint",)),
    *product(("ink", "warn"), ("warn-tint",)),
    ("bad", "bad-tint"),
    ("paper", "ink"),
]
"""Colours of text and what is behind it."""


def colours(theme: str) -> dict[str, str]:
    """Returns the colours of a theme by name."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light if theme == "light" else dark))


def luminance(colour: str) -> float:
    """Returns the relative luminance of WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Returns the contrast ratio of WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_specification() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme: str) -> None:
    known = colours(theme)
    assert set(known) == set(colours("light")) == {name for pair in TEXT for name in pair} | {"bad", "line"}
    weak = {pair: contrast(*(known[name] for name in pair)) for pair in TEXT}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}
    assert min(contrast(known["accent"], known["card"]), contrast(known["bad"], known["card"])) >= 3, "bars and borders"


def data_of(status: str, *, to: int = 12, **more: Any) -> dict[str, Any]:
    report = onnx_convert.plan(model(SOFTMAX, 13), to=to, examples=True)
    return {**with_texts(report_data(status, report), ["onnx-convert", "m.onnx", "--to", str(to)]), **more}


def test_the_page_asks_nobody_for_anything() -> None:
    pages = [html.page(data_of("converted")), (ROOT / "examples" / "report.html").read_text(encoding="utf-8")]
    ours = [part for part in PAGE.iterdir() if part.name.endswith((".css", ".js"))]
    assert len(ours) >= 4
    for text in (*pages, *(part.read_text(encoding="utf-8") for part in ours)):
        for word in ("url(", "@import", "src=", "srcset", "http:", "https:", "fetch(", "XMLHttpRequest", "WebSocket",
                     "sendBeacon", "import(", "<link", "<form", 'http-equiv="refresh'):  # fmt: skip
            assert word not in text
    for page in pages:
        assert {link[:1] for link in re.findall(r'href="([^"]*)', page)} == {"#"}
        targets = re.findall(r'href="#([^"]*)', page)
        assert [name for name in targets if f'id="{name}"' not in page] == []


@pytest.mark.parametrize(
    ("status", "says", "mark"),
    [
        ("converted", "1 of 2 nodes was rewritten.", "badge"),
        ("checked", "1 of 2 nodes would be rewritten.", "badge"),
        ("different", "Computes something else, kept aside", "badge bad"),
        ("unverified", "Converted, not verified", "badge warn"),
    ],
)
def test_the_page_says_how_it_ended(status: str, says: str, mark: str) -> None:
    page = html.page(data_of(status))
    assert says in page
    assert f'<p class="brand">onnx-convert report &nbsp; <span class="{mark}">' in page


def test_a_difference_is_told_with_its_reason() -> None:
    first = FirstDifference("v", "Softmax", "s<1>", "Softmax@13 down", ("Flatten", "Softmax"))
    runs = [Run("random 0"), Run("zeros", why="it does not run")]
    told = Verification(verdict="different", reason="y differs on <zeros>", runs=runs, first=first, notes=["a note"])
    data = data_of("different", verified=told.to_dict())
    page = html.page(data)
    assert "<dd>numbers: different <span" in page and "on 1 of 2 sets of inputs" in page
    whole = "y differs on <zeros>; first at Softmax s<1>, which became Flatten, Softmax (adapter Softmax@13 down)"
    assert whole.replace("<", "&lt;").replace(">", "&gt;") in page and "a note" in page
    assert "numbers: different (on 1 of 2 sets of inputs)" in markdown.text(data)
    same = data_of("converted", verified=Verification(verdict="same", runs=runs[:1]).to_dict())
    assert "numbers: same" in html.page(same) and "on 1 set of inputs" in html.page(same)
    nothing = data_of("unverified", verified=Verification(reason="it runs nowhere").to_dict())
    assert "numbers: unverified" in html.page(nothing) and "it runs nowhere" in html.page(nothing)


def timeless(page: str) -> str:
    """Returns a page without what differs from run to run, and with the release of onnx and of onnx-convert."""
    page = re.sub(r"[\d.]+ s</dd>", "T s</dd>", page)
    page = re.sub(r"\d+ bytes → \d+ bytes", "N bytes", page)
    return re.sub(r"(Made by onnx-convert )[\w.+]+\. ", r"\1V. ", page)


def test_the_report_among_the_examples_is_what_the_command_makes(tmp_path: Path) -> None:
    """`python examples/make_report.py` makes it anew."""
    line = [sys.executable, str(ROOT / "examples" / "make_report.py"), str(tmp_path / "r.html")]
    subprocess.run(line, check=True, capture_output=True, timeout=120)
    made, kept = (path.read_text(encoding="utf-8") for path in (tmp_path / "r.html", ROOT / "examples/report.html"))
    assert len(kept.encode()) < 60_000
    assert timeless(made) == timeless(kept)
    assert made.count('<g class="box node"') == 9, "those before, and those after"
