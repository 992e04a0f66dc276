# SPDX-License-Identifier: Apache-2.0
"""What becomes of adapters of somebody else's that are broken: one line says whose fault it is."""

from __future__ import annotations

import logging
from importlib import metadata
from typing import Any

import pytest
from texts import model

import onnx_convert
from onnx_convert import InternalError, UsageError
from onnx_convert.rewrite import plugins, registry


class _Broken:
    name, value = "bad", "bad_adapters"

    def load(self) -> Any:
        raise SyntaxError("no such word")


def test_a_broken_plug_in(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda group: [_Broken()])
    plugins.load.cache_clear()
    source = model("(float[2] x) => (float[2] y) { y = org.broken.Op (x) }", 17)
    source.opset_import.add(domain="org.broken", version=2)
    says = "the adapters 'bad' (bad_adapters) cannot be loaded: SyntaxError: no such word"
    try:
        with caplog.at_level(logging.INFO), pytest.raises(UsageError) as caught:
            onnx_convert.convert(source, to={"org.broken": 1})
    finally:
        plugins.load.cache_clear()
    way = "without --to org.broken:... it stays as it is"
    assert str(caught.value) == f"no adapter is registered for domain 'org.broken': {way}; {says}"
    assert [record.getMessage() for record in caplog.records] == [says]
    assert not any(record.exc_info for record in caplog.records)


@registry.upgrade("NoOperator", at=2, domain="org.faulty")
def write_what_is_not_there(node, op):
    return op.Nope(node.input(0))


@registry.upgrade("NoValue", at=2, domain="org.faulty")
def forget_the_result(node, op):
    return None


@registry.upgrade("NoReason", at=2, domain="org.faulty")
def stop_without_a_word(node, op):
    raise AssertionError


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        ("NoOperator", "(adapter write_what_is_not_there, node 'y')"),
        ("NoValue", "no value for output 'y' (adapter forget_the_result, node 'y')"),
        ("NoReason", "AssertionError (adapter stop_without_a_word, node 'y')"),
    ],
)
def test_a_faulty_adapter(operator: str, says: str) -> None:
    source = model(f"(float[2] x) => (float[2] y) {{ y = org.faulty.{operator} (x) }}", 17)
    source.opset_import.add(domain="org.faulty", version=1)
    with pytest.raises(InternalError) as caught:
        onnx_convert.convert(source, to={"org.faulty": 2})
    assert says in str(caught.value)
    assert str(caught.value).endswith(f"; this is a bug of {__name__}, please report it")
