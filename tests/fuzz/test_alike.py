# SPDX-License-Identifier: Apache-2.0
"""A node like one that was rewritten before is not thought about again, and must become what it would have become."""

from __future__ import annotations

from typing import Any

import pytest

from fuzz.outcomes import outcome, several
from fuzz.trials import make
from onnx_convert.recipes import Recipes

CHUNK = 50  # seeds


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
def test_nodes_alike(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _compare_all(range(first, first + CHUNK), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(500, 12_000, CHUNK))
def test_more_nodes_alike(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _compare_all(range(first, first + CHUNK), monkeypatch)


def _compare_all(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = []
    follow = Recipes.follow

    def noting(*given: Any) -> Any:
        answer = follow(*given)
        followed.append(answer is not None)
        return answer

    for seed in seeds:
        trial = make(seed)
        model = several(trial) if trial else None
        if not trial or model is None:
            continue
        monkeypatch.setattr(Recipes, "follow", noting)
        quickly = outcome(model, trial)
        monkeypatch.setattr(Recipes, "follow", lambda *given: None)
        assert quickly == outcome(model, trial), f"seed {seed}: {trial}"
    assert sum(followed) > len(seeds) // 4
