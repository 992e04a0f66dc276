# SPDX-License-Identifier: Apache-2.0
"""Small pipelines of scikit-learn, fitted to random data, as skl2onnx writes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import skl2onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, SVR

NEWEST = skl2onnx.__max_supported_opset__
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 5)).astype(np.float32)
CLASSES = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(np.int64) + (X[:, 3] > 1)
NAMED = np.array(["low", "mid", "high"])[CLASSES]
NUMBERS = X[:, 0] * 2 - X[:, 4]
HOLES = np.where(RANDOM.random(X.shape) < 0.1, np.float32(np.nan), X)
WORDS = np.array([["red", "tall"], ["blue", "short"], ["green", "tall"], ["red", "short"]] * 5)
TEXTS = np.array([["the old cat sat"], ["a cat ran"], ["the old dog"], ["dog and cat and dog"]] * 3)


@dataclass(frozen=True)
class Row:
    """An estimator, what it learns from, and what else skl2onnx is told."""

    name: str
    make: Callable[[], BaseEstimator]
    data: np.ndarray = field(default_factory=lambda: X)
    target: np.ndarray | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    opsets: tuple[int, ...] = (18, NEWEST)

    def __str__(self) -> str:
        return self.name


def classifies(name: str, make: Callable[[], BaseEstimator], target: np.ndarray = CLASSES, **others: Any) -> Row:
    """Probabilities as one tensor."""
    return Row(name, make, target=target, **{"options": {"zipmap": False}, **others})


ROWS = [
    classifies("LogisticRegression", lambda: make_pipeline(StandardScaler(), LogisticRegression())),
    classifies("LogisticRegression, ZipMap", LogisticRegression, NAMED, options={}),
    classifies("RandomForest", lambda: RandomForestClassifier(4, max_depth=4, random_state=0), NAMED),
    classifies("GradientBoosting", lambda: GradientBoostingClassifier(n_estimators=4, random_state=0)),
    classifies("KNN", lambda: KNeighborsClassifier(3)),
    classifies("SVC", lambda: SVC(probability=True, random_state=0)),
    classifies("MLP", lambda: MLPClassifier((8,), max_iter=30, random_state=0)),
    classifies("GaussianNB", GaussianNB),
    Row("RandomForestRegressor", lambda: RandomForestRegressor(4, max_depth=4, random_state=0), target=NUMBERS),
    Row("IsolationForest", lambda: IsolationForest(n_estimators=4, random_state=0)),
    Row("KNNRegressor", lambda: KNeighborsRegressor(3), target=NUMBERS),
    Row("SVR", SVR, target=NUMBERS),
    Row("LinearRegression", lambda: make_pipeline(PCA(3), PolynomialFeatures(), LinearRegression()), target=NUMBERS),
    Row("GaussianProcess", lambda: GaussianProcessRegressor(RBF(), alpha=0.1, optimizer=None), target=NUMBERS),
    Row("GaussianMixture", lambda: GaussianMixture(2, random_state=0)),
    Row("KMeans", lambda: make_pipeline(MinMaxScaler(), KMeans(3, n_init=1, random_state=0))),
    Row("SimpleImputer", lambda: make_pipeline(SimpleImputer(), Normalizer(), Binarizer(threshold=0.1)), HOLES),
    Row("KBinsDiscretizer", lambda: KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform")),
    Row("OneHotEncoder", lambda: OneHotEncoder(handle_unknown="ignore"), WORDS),
    Row("OrdinalEncoder", OrdinalEncoder, WORDS),
    # Lower case would need a locale of the system's.
    Row("CountVectorizer", lambda: make_column_transformer((CountVectorizer(lowercase=False), 0)), TEXTS),
    Row("TfidfVectorizer", lambda: make_column_transformer((TfidfVectorizer(lowercase=False, norm="l1"), 0)), TEXTS),
]  # fmt: skip


def export(row: Row, opset: int, path: Path) -> dict[str, np.ndarray]:
    """Writes the file, and returns inputs for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = row.make().fit(row.data, row.target)
        inputs: dict[str, Any] = {"X": row.data[:1]}
        if row.data.dtype.kind == "U":
            inputs = {"initial_types": [("X", StringTensorType([None, row.data.shape[1]]))]}
        options = {id(estimator): row.options} if row.options else None
        model = skl2onnx.to_onnx(estimator, **inputs, options=options, target_opset={"": opset, "ai.onnx.ml": 3})
    path.write_bytes(model.SerializeToString())
    return {"X": row.data[:7].astype(object) if row.data.dtype.kind == "U" else row.data[:7]}
