# SPDX-License-Identifier: Apache-2.0
"""Reads what a runtime printed, and tells what to type: the table is `messages.toml`."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple

from onnx_convert.errors import UsageError
from onnx_convert.spec import opsets
from onnx_convert.target import runtimes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MOST: Final = 100_000  # characters of a message that are read; the rest of a log says nothing new


class Advice(NamedTuple):
    """What one message means: who prints it, why, what to type behind `onnx-convert`, and what to know besides.

    `options` are one or two, each enough by itself: ("MODEL --ir-version 9", "MODEL --for onnxruntime@1.17").
    """

    text: str
    by: str
    why: str
    options: tuple[str, ...]
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the advice as plain data, fit for JSON."""
        return {**self._asdict(), "options": [f"onnx-convert {option}" for option in self.options]}


def all_of_them() -> list[Advice]:
    """Returns the advice for each message of the table, as if it had been printed as it stands there."""
    return [_advice(row, found) for row in _rows() if (found := _found(row, row["text"])) is not None]


def advice_on(message: str) -> list[Advice]:
    """Returns what a message, or a log with several, calls for. UsageError if nothing like it is known."""
    text = _tidy(message)
    told = [_advice(row, found) for row in _rows() if (found := _found(row, text)) is not None]
    if not told:
        what = f"{message.strip()[:60]!r}" if message.strip() else "an empty message"
        raise UsageError(
            f"nothing like {what} is known: --message alone lists what is; onnx-convert MODEL tells who loads a model"
        )
    return told


def markdown() -> list[str]:
    """Returns the rows of the table in `MESSAGES.md`."""
    return [f"| *{told.text.replace('*', chr(92) + '*')}* | {told.by} | {_ways(told)} |" for told in all_of_them()]


@lru_cache(maxsize=1)
def _rows() -> list[dict[str, str]]:
    text = resources.files("onnx_convert.target").joinpath("messages.toml").read_text(encoding="utf-8")
    return [{"or": "", "note": "", **row} for row in tomllib.loads(text)["message"]]


def _tidy(message: str) -> str:
    """Returns a message as the patterns expect it: in one line, with plain quotes."""
    return " ".join(message[:_MOST].replace("\u2019", "'").replace("\u2018", "'").split())


def _found(row: dict[str, str], text: str) -> dict[str, str] | None:
    match = re.search(row["pattern"].replace(" ", r"\s+"), text, re.IGNORECASE)
    return match.groupdict() if match else None


def _advice(row: dict[str, str], found: dict[str, str]) -> Advice:
    """Returns the advice of a row with what its pattern found."""
    words = {name: value for name, value in found.items() if value} | _derived(found)
    first, other = _filled(row["type"], words), _filled(row["or"], words) if row["or"] else None
    ways = [] if first is None else [first] if other is None else [first, other]
    options = tuple(f"MODEL {way}".strip() for way in ways)
    return Advice(row["text"], row["by"], row["why"], options, row["note"] if options else "no opset helps with that")


def _filled(template: str, words: dict[str, str]) -> str | None:
    """Returns a template with its words filled in; None if one of them is not known."""
    return template.format(**words) if set(re.findall(r"{(\w+)}", template)) <= words.keys() else None


def _derived(found: dict[str, str]) -> dict[str, str]:
    """Returns what follows from the numbers and the operator of a message."""
    words: dict[str, str] = {}
    for name, of in (("runtime", "onnxruntime"), ("release", "onnx")):
        for group, field in (("opset", "opset"), ("ir", "ir"), ("ml", "ml")):
            stopping = [
                row.version
                for row in runtimes.listed()
                if row.name == of and found.get(group) and getattr(row, field) == int(found[group])
            ]
            if stopping:
                words[name] = stopping[-1]
    if found.get("opset") and int(found["opset"]) > 1:
        words["below"] = str(int(found["opset"]) - 1)
    since = min(opsets.history(found.get("operator") or ""), default=1)
    if since > 1:
        words["before"] = str(since - 1)
    return words


def _ways(told: Advice) -> str:
    """Returns what to type, in Markdown."""
    typed = ", or ".join(f"`{option.removeprefix('MODEL').strip() or 'onnx-convert MODEL'}`" for option in told.options)
    return f"{typed}; {told.note}" if told.note else typed
