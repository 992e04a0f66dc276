# SPDX-License-Identifier: Apache-2.0
"""Writes findings as GitHub's workflow commands, which a pull request shows beside the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onnx_convert.batch.job import Outcome


def of_outcome(outcome: Outcome) -> Iterator[str]:
    """Yields the commands for a model of many: one for each kind of refusal, or one for the error."""
    refusals = outcome.report.get("refusals", ()) if outcome.report else ()
    file = os.path.relpath(outcome.source)  # as GitHub knows it: below the folder of the checkout
    if refusals:
        yield from of_refusals(file, refusals)
    elif not outcome.ok:
        yield error(file, outcome.status, outcome.message)


def of_refusals(file: str, refusals: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a command for each kind of refusal, with the number of nodes and the first of them."""
    kinds: dict[tuple[str, str, str, str], list[str]] = {}
    for refusal in refusals:
        key = (refusal["operator"], refusal["code"], refusal["reason"], refusal["remedy"])
        kinds.setdefault(key, []).append(refusal["node"] or "(unnamed)")
    for (operator, code, reason, remedy), nodes in kinds.items():
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        text = f"{operator} {nodes[0]}{more}: {reason}"
        yield error(file, code, f"{text}\nremedy: {remedy}" if remedy else text)


def error(file: str, title: str, text: str) -> str:
    """Returns the command that shows a text as an error of a file."""
    return f"::error file={_property(file)},title={_property(f'onnx-convert: {title}')}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
