# SPDX-License-Identifier: Apache-2.0
"""The domain of every operator that has an adapter, and the crossings that are tried."""

from __future__ import annotations

from exhaust import bodies, indexing, layers, moving, pointwise, windows
from exhaust.making import Domain

DOMAINS: dict[str, Domain] = {
    **pointwise.DOMAINS,
    **moving.DOMAINS,
    **indexing.DOMAINS,
    **windows.DOMAINS,
    **layers.DOMAINS,
    **bodies.DOMAINS,
}

# Operators without a domain here, and why.
ELSEWHERE = {
    **dict.fromkeys(
        "Affine Crop DynamicSlice ImageScaler ParametricSoftplus Scale ScaledTanh".split(),
        "no schema describes it any more: tests/adapters/experimental.py",
    ),
    **dict.fromkeys(
        "LabelEncoder TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor".split(),
        "its attributes are tables that hang together: tests/adapters/ml.py, tests/adapters/trees.py",
    ),
}
