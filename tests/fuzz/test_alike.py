# SPDX-License-Identifier: Apache-2.0
"""A node like one that was rewritten before is not thought about again, and must become what it would have become."""

from __future__ import annotations

from typing import Any

import pytest
from fuzz.outcomes import outcome, several
from fuzz.seeds import chunks
from fuzz.trials import make

from onnx_convert.rewrite.replay import Replays


@pytest.mark.parametrize("seeds", chunks(50, quick=500))
def test_nodes_alike(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = []
    follow = Replays.follow

    def noting(*given: Any) -> Any:
        answer = follow(*given)
        followed.append(answer is not None)
        return answer

    for seed in seeds:
        trial = make(seed)
        model = several(trial) if trial else None
        if not trial or model is None:
            continue
        monkeypatch.setattr(Replays, "follow", noting)
        quickly = outcome(model, trial)
        monkeypatch.setattr(Replays, "follow", lambda *given: None)
        assert quickly == outcome(model, trial), f"seed {seed}: {trial}"
    assert sum(followed) > len(seeds) // 4
