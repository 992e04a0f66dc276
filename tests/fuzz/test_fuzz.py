# SPDX-License-Identifier: Apache-2.0
"""The same random models in every run, and whether the judge notices what it should notice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from fuzz.judge import CONVERTED, DISCARDED, FAILED, OUTCOMES, UNVERIFIABLE, judge
from fuzz.run import graph_text, judged, reproducer, smallest
from fuzz.seeds import chunks
from fuzz.shrink import shrink
from fuzz.trials import Trial, make
from onnx import ModelProto

import onnx_convert


@pytest.mark.parametrize("seeds", chunks(20, quick=1000))
def test_random_models(seeds: range) -> None:
    outcomes = dict.fromkeys(OUTCOMES, 0)
    for seed in seeds:
        for trial, verdict in judged(seed):
            outcomes[verdict.outcome] += 1
            if verdict.outcome == FAILED:
                pytest.fail(f"seed {seed}\n{reproducer(*smallest(trial, verdict.kind, patience=100))}")
    done = outcomes[CONVERTED] + outcomes[UNVERIFIABLE]
    assert 2 * done > len(seeds), f"too few models come to anything: {outcomes}"
    assert 2 * outcomes[DISCARDED] < len(seeds), f"too many models are illegal: {outcomes}"


def test_seeds_repeat() -> None:
    for seed in range(20):
        one, other = make(seed), make(seed)
        assert one and other
        assert one.flat == other.flat
        assert one.disguised().model == other.disguised().model
        assert str(one) == str(other)


def test_rows_can_be_read() -> None:
    for seed in range(40):
        trial = make(seed)
        assert trial
        graph = onnx.parser.parse_graph(f"g {graph_text(trial)}")
        assert [node.op_type for node in graph.node] == [node.op_type for node in trial.flat.graph.node]
        assert [value.name for value in graph.input] == list(trial.feeds)


# ---- what the judge notices: a converter that does something wrong, and the kind of failure that it is


def _trial() -> Trial:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Neg(x)  w = Abs(x)  z = Softmax<axis = 0>(w) }"""
    model = onnx.parser.parse_model(text)
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    x = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
    softmax = np.exp(abs(x)) / np.exp(abs(x)).sum(axis=0)
    return Trial(model, {"x": x, "y": -x, "w": abs(x), "z": softmax}, 12)


def _stamped(model: ModelProto, to: int, **options: Any) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.opset_import[0].version = to
    copy.ir_version = onnx.helper.find_min_ir_version_for(copy.opset_import)
    return copy


def _forgets_the_opset(model: ModelProto, to: int, **options: Any) -> ModelProto:
    return model


def _changes_the_source(model: ModelProto, to: int, **options: Any) -> ModelProto:
    model.producer_name = "changed"
    return model


def _drops_an_output(model: ModelProto, to: int, **options: Any) -> ModelProto:
    result = _stamped(model, to)
    del result.graph.output[0]
    return result


def _writes_nonsense(model: ModelProto, to: int, **options: Any) -> ModelProto:
    result = _stamped(model, to)
    result.graph.node[0].attribute.append(onnx.helper.make_attribute("nonsense", 1))
    return result


def _never_rests(model: ModelProto, to: int, **options: Any) -> ModelProto:
    result = _stamped(REAL(model, to, **options).model, to)
    result.doc_string += "again"
    return result


def _adds_at_random(model: ModelProto, to: int, **options: Any) -> ModelProto:
    result = _stamped(REAL(model, to, **options).model, to)
    result.doc_string = str(next(COUNTER))
    return result


def _gives_up(model: ModelProto, to: int, **options: Any) -> ModelProto:
    raise ValueError("no idea")


REAL = onnx_convert.convert
COUNTER = count()

WRONG: list[tuple[Callable[..., ModelProto], str]] = [
    (_stamped, "numbers-convert"),  # Softmax normalises over other axes at 12
    (_forgets_the_opset, "invalid-convert"),
    (_changes_the_source, "mutated"),
    (_drops_an_output, "invalid-convert"),
    (_writes_nonsense, "invalid-convert"),
    (_never_rests, "again"),
    (_adds_at_random, "bytes"),
    (_gives_up, "crash-convert"),
]


@pytest.mark.parametrize(("wrong", "kind"), WRONG, ids=lambda value: getattr(value, "__name__", value))
def test_judge_notices(monkeypatch: pytest.MonkeyPatch, wrong: Callable[..., ModelProto], kind: str) -> None:
    assert judge(_trial()).outcome == CONVERTED

    def convert(model: ModelProto | bytes, to: int, **options: Any) -> Any:
        model = ModelProto.FromString(model) if isinstance(model, bytes) else model
        return SimpleNamespace(model=wrong(model, to, **options), changed=False)

    monkeypatch.setattr(onnx_convert, "convert", convert)
    verdict = judge(_trial())
    assert (verdict.outcome, verdict.kind) == (FAILED, kind), verdict.why


def test_shrinking_keeps_what_fails() -> None:
    trial = make(5)
    assert trial and len(trial.flat.graph.node) > 1
    operator = trial.flat.graph.node[-1].op_type
    small = shrink(trial, lambda other: operator in {node.op_type for node in other.flat.graph.node})
    assert [node.op_type for node in small.flat.graph.node] == [operator]
    assert not small.disguises and not small.options
    onnx.checker.check_model(small.flat)
