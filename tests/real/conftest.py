# SPDX-License-Identifier: Apache-2.0
"""Prints how many nodes a model had, and has at each opset it was moved to."""

from __future__ import annotations

import pytest
from real.moving import LANDMARKS, Growth, newest

GROWTH = pytest.StashKey[Growth]()


@pytest.fixture(scope="session")
def growth(pytestconfig: pytest.Config) -> Growth:
    """For a model, its opset and its number of nodes: the number of nodes at each target that was reached, with a ?
    where onnxruntime has no kernels for it."""
    return pytestconfig.stash.setdefault(GROWTH, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    growth = config.stash.get(GROWTH, {})
    if not growth:
        return
    targets = (newest(), *LANDMARKS)
    terminalreporter.section("nodes before, and at each opset; -: refused, ?: not run", sep="-")
    terminalreporter.write_line(f"{'model':44} opset nodes " + "".join(f"{f'@{target}':>5}" for target in targets))
    for (name, opset, nodes), counts in growth.items():
        cells = "".join(f"{counts.get(target, '-'):>5}" for target in targets)
        terminalreporter.write_line(f"{name:44} {opset:5} {nodes:5} {cells}")
