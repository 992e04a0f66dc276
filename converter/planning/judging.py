# SPDX-License-Identifier: Apache-2.0
"""Tells what onnx's checker and strict inference find wrong with a view, and what is known of its values.

Together they are what `onnx.checker.check_model(full_check=True)` does, with one inference instead of two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
import onnx.checker
from onnx import GraphProto, ModelProto

from onnx_convert.analysis import inference, settling, view
from onnx_convert.analysis.inference import lines_of
from onnx_convert.analysis.settling import Settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.analysis.view import View
    from onnx_convert.model.source import SourceModel


def faults_of(source: SourceModel) -> list[str]:
    """Returns what onnx's own full check finds wrong with a source, one line a fault."""
    return find(view.of_source(source))[0]


def find(seen: View) -> tuple[list[str], GraphProto | None]:
    """Returns what is wrong with a view, one line a finding, and its inferred graph where inference got through."""
    found = inference.in_chunks(seen, check=onnx.checker.check_model)
    return ([], found.graph) if found is not None else _find_in_whole(seen)


def _find_in_whole(seen: View) -> tuple[list[str], GraphProto | None]:
    findings: list[str] = []
    inferred: GraphProto | None = None
    serialised = seen.serialised()
    try:
        inferred = inference.strictly(serialised)
    except Exception as error:  # C++ errors come as several unrelated types
        findings += lines_of(error)
    return findings + _unlawful(serialised), inferred


def judge(look: Callable[[], View], what: settling.Concern) -> tuple[list[str], Settled | None]:
    """Returns what is wrong with a view, one line a finding, and what is known of it where inference got through.
    `what` says what there is to settle."""
    seen = look()
    states = bool(seen.head.graph.value_info)
    found = inference.in_chunks(seen, check=onnx.checker.check_model)
    if found is not None and settling.is_settled(found, what, states=states):
        return [], Settled(found.graph)
    findings, inferred = ([], found.graph) if found is not None else _find_in_whole(seen)
    if not what:
        return findings, Settled(inferred) if inferred is not None else None
    serialised = look().serialised()
    lines, settled = settle(serialised, inferred)
    return lines + (_unlawful(serialised) if findings else []), settled


def _unlawful(serialised: bytes) -> list[str]:
    """Returns what the checker says."""
    try:
        onnx.checker.check_model(serialised)
    except Exception as error:  # C++ errors come as several unrelated types
        return lines_of(error)[:1]
    return []


def settle(serialised: bytes, inferred: GraphProto | None) -> tuple[list[str], Settled | None]:
    """Returns what is wrong with a model whose statements are believed, one line a fault, and what is known of it if
    nothing is. `inferred` is what inference says of it, if it was asked already."""
    try:
        return [], settling.settle(ModelProto.FromString(serialised), inferred, inference.strictly)
    except Exception as error:  # what the model states contradicts what is true
        return lines_of(error), None
