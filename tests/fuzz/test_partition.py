# SPDX-License-Identifier: Apache-2.0
"""A model whose every few nodes are a chunk of their own must become what it becomes as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from fuzz.outcomes import outcome, several
from fuzz.seeds import chunks
from fuzz.trials import make

from onnx_convert.analysis import partition
from onnx_convert.model import validation


@pytest.mark.parametrize("seeds", chunks(250, quick=500))  # among fewer there may be no model that can be cut
def test_chunks_of_random_models(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, results = [], []
    inferred = partition.inferred

    def noting(view: Any, infer: Any, check: Any = None) -> Any:
        answer = inferred(view, infer, check)
        (sources if check is None else results).append(answer is not None)
        return answer

    monkeypatch.setattr(partition, "inferred", noting)
    for seed in seeds:
        trial = make(seed)
        for model in filter(None, (trial.disguised().model, several(trial)) if trial else ()):
            found = []
            for length in (1000, 1, 3):
                monkeypatch.setattr(validation, "CHUNK", length)
                found.append(outcome(model, trial))
            assert found[0] == found[1] == found[2], f"seed {seed}: {trial}"
    assert any(sources) and any(results)
