# SPDX-License-Identifier: Apache-2.0
"""Every family has a test file of its name, and every crossing that an adapter makes is crossed by a row of it, or by
another test of which the family says so here."""

from __future__ import annotations

from pathlib import Path

from boundaries import REFUSES, Row
from boundaries.tables import FOLDER, files, rows
from onnx_convert.rewrite import registry
from onnx_convert.rewrite.registry import Adapter
from onnx_convert.spec import opsets
from oracle import all_nodes

ADAPTERS = Path(__file__).parents[2] / "adapters"

# Operators whose models are no rows: another domain, no evaluator, many inputs, random numbers.
ELSEWHERE = {
    "adapters/recurrent.py": ("GRU", "LSTM", "RNN"),
    "adapters/normalization.py": ("GroupNormalization", "MeanVarianceNormalization"),
    "adapters/ml.py": ("LabelEncoder",),
    "adapters/trees.py": ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"),
    "adapters/experimental.py": ("ThresholdedRelu",),
    "adapters/split.py": ("Split",),
    "adapters/decompose/random.py": ("Bernoulli", "Multinomial"),
    "adapters/decompose/sequences.py": ("SequenceMap",),
    "adapters/resize.py": ("Upsample",),
}


def crossed(row: Row) -> set[registry.Key]:
    """Returns the crossings on the way of the nodes of a row."""
    found = set()
    for node in all_nodes(row.model):
        for boundary, direction in opsets.crossings(node.op_type, row.source, row.target):
            found.add((opsets.AI_ONNX, node.op_type, boundary, direction))
    return found


def test_each_family_has_a_test_file() -> None:
    """`adapters/<family>.py` is tested in `tests/adapters/<family>.py`, whatever the folder; and nothing else is."""
    families = {
        path.relative_to(ADAPTERS).with_suffix("").as_posix()
        for folder in (ADAPTERS, ADAPTERS / "decompose", ADAPTERS / "tables")
        for path in folder.glob("[!_]*.py")
    }
    assert files().keys() == families


def test_the_name_of_a_row_is_its_own() -> None:
    names = [str(row) for row in rows()]
    assert sorted(set(names)) == sorted(names)


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
    assert not missing, "adapters without a row in tests/adapters"


def test_the_other_tests_name_the_operators() -> None:
    for file, operators in ELSEWHERE.items():
        text = (FOLDER.parent / file).read_text(encoding="utf-8")
        assert all(operator in text for operator in operators), file
