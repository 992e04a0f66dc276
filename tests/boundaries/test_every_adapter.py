# SPDX-License-Identifier: Apache-2.0
"""Every crossing that an adapter makes is crossed by a row of the tables, or by a test that says so here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from boundaries.rows import REFUSES, Row
from onnx_convert.rewrite import registry
from onnx_convert.rewrite.registry import Adapter
from onnx_convert.spec import opsets
from oracle import all_nodes

TESTS = Path(__file__).parents[1]

# Operators whose models are no rows: another domain, no evaluator, many inputs, random numbers.
ELSEWHERE = {
    "test_recurrent.py": ("GRU", "LSTM", "RNN"),
    "test_group_normalization.py": ("GroupNormalization",),
    "test_ml.py": ("LabelEncoder", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"),
    "test_experimental.py": ("MeanVarianceNormalization", "ThresholdedRelu"),
    "test_outside_tables.py": ("Split",),
    "conformance/test_conformance.py": ("Bernoulli", "Multinomial", "SequenceMap", "Upsample"),
}


def rows() -> list[Row]:
    """The rows of all tables."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("table_*.py"))
    return [row for name in names for row in import_module(f"boundaries.{name}").ROWS]


def crossed(row: Row) -> set[registry.Key]:
    """The crossings on the way of the nodes of a row."""
    found = set()
    for node in all_nodes(row.model):
        for boundary, direction in opsets.crossings(node.op_type, row.source, row.target):
            found.add((opsets.AI_ONNX, node.op_type, boundary, direction))
    return found


def test_each_adapter_has_a_row() -> None:
    known = {operator for operators in ELSEWHERE.values() for operator in operators}
    adapted = {
        key
        for key, decision in registry.decisions()
        if isinstance(decision, Adapter) and opsets.history(key[1], key[0]) and key[1] not in known
    }
    newest = opsets.latest()
    tried = {key for row in rows() if row.outcome != REFUSES and max(row.source, row.target) <= newest
             for key in crossed(row)}  # fmt: skip
    missing = sorted(key for key in adapted - tried if key[2] <= opsets.latest(key[0]))
    assert not missing, "adapters without a row in tests/boundaries/table_*.py"


def test_the_other_tests_name_the_operators() -> None:
    for file, operators in ELSEWHERE.items():
        text = (TESTS / file).read_text(encoding="utf-8")
        assert file.startswith("conformance/") or all(operator in text for operator in operators), file
