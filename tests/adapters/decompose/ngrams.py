# SPDX-License-Identifier: Apache-2.0
"""TfIdfVectorizer (9) where it does not exist."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run, validate

ALL = {"expand": "all", "exact": True}
POOL = (
    "ngram_counts=[0,4],ngram_indexes=[0,1,2,3,4,5,6],pool_int64s=[2,3,5,4,5,6,7,8,6,7],"
    "weights=[7.0,2.0,3.0,-1.0,4.0,5.0,0.0]"
)
MOVED = "ngram_counts=[0,0,4],ngram_indexes=[5,1,1],pool_int64s=[5,6,7,8,5,5,6],weights=[2.0,2.0,2.0,2.0,2.0,2.0]"
TEXT = [1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8]


def vectorizer(x: str, y: str, lengths: str = "1,2", skips: int = 0, mode: str = "TF", pool: str = POOL) -> str:
    """Returns the result as integers, since a float could be of another dtype as well."""
    low, high = lengths.split(",")
    return (
        f'(int64[{x}] x) => (int32[{y}] y) {{ z = TfIdfVectorizer<{pool},mode="{mode}",min_gram_length={low},'
        f"max_gram_length={high},max_skip_count={skips}>(x) y = Cast<to=6>(z) }}"
    )


ROWS: list[Row] = [
    *(
        rewrites(f"TfIdfVectorizer {name}", source, target, graph, feeds={"x": x}, options=ALL)
        for source, target in ((9, 8), (13, 7))
        for name, graph, x in (
            ("of one row", vectorizer("12", "7"), TEXT),
            ("of two rows", vectorizer("2,6", "2,7"), [TEXT[:6], TEXT[6:]]),
            ("of pairs", vectorizer("12", "7", "2,2", mode="IDF"), TEXT),
            ("of single ones", vectorizer("12", "7", "1,1", 3, mode="TFIDF"), TEXT),
            ("that skips", vectorizer("2,6", "2,7", skips=5, mode="TFIDF"), [TEXT[:6], TEXT[6:]]),
            ("of whether there is any", vectorizer("12", "7", skips=1, mode="IDF"), TEXT),
            ("with places of its own", vectorizer("12", "6", "2,3", 1, "TFIDF", MOVED), TEXT),
            ("of too little", vectorizer("1", "7", "2,2"), [5]),
        )
    ),
    *(
        rewrites(f"TfIdfVectorizer of any rows, {x}", 9, 8, graph, feeds={"x": x}, options=ALL, dims={"N": 2})
        for x in ([TEXT, TEXT[::-1]], [[5], [6]])
        for graph in (vectorizer("N,C", "N,7", skips=2),)
    ),
    rewrites(
        "TfIdfVectorizer of int32",
        9,
        8,
        vectorizer("12", "7").replace("int64[12]", "int32[12]"),
        feeds={"x": TEXT},
        options=ALL,
    ),
    refuses(
        "TfIdfVectorizer with weights of two kinds",
        9,
        8,
        vectorizer("12", "6", "2,3", 1, "TFIDF", MOVED.replace("[2.0", "[1.0")),
        options={"expand": "all"},
        because="weights",
    ),
    refuses(
        "TfIdfVectorizer of strings",
        9,
        8,
        "(string[3] x) => (int32[2] y) { z = TfIdfVectorizer<ngram_counts=[0],"
        'ngram_indexes=[0,1],pool_strings=["a","b"],mode="TF",min_gram_length=1,max_gram_length=1,max_skip_count=0>(x) '
        "y = Cast<to=6>(z) }",
        because="strings",
    ),
    refuses("TfIdfVectorizer unasked", 9, 8, vectorizer("12", "7"), because="large"),
]


test_rows = each_of(ROWS)


def computed(graph: str, source: int, target: int, feeds: dict[str, Any]) -> list[Any]:
    """Returns what the model computes at the target."""
    result = onnx_convert.convert(model(graph, source), to=target, expand="all").model
    validate(result)
    return run(result, feeds)


# ---- TfIdfVectorizer


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skips", [0, 1, 3])
@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 3), (2, 3), (3, 3)])
def test_counts_of_grams(mode: str, skips: int, low: int, high: int) -> None:
    random = np.random.default_rng(2)
    pool = [0, 1, 2, *product(range(3), repeat=2), *product(range(3), repeat=3)]
    flat = ",".join(str(number) for gram in pool for number in (gram if isinstance(gram, tuple) else (gram,)))
    places = random.permutation(len(pool)).tolist()
    graph = (
        f'(int64[N,C] x) => (float[N,M] y) {{ y = TfIdfVectorizer<mode="{mode}",ngram_counts=[0,3,21],'
        f"pool_int64s=[{flat}],ngram_indexes={places},min_gram_length={low},max_gram_length={high},"
        f"max_skip_count={skips}>(x) }}"
    )
    for shape in ((4, 15), (3, 2), (1, 1)):
        x = random.integers(0, 4, shape)
        (wanted,) = run(model(graph, 9), {"x": x})
        (y,) = computed(graph, 9, 8, {"x": x})
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize(
    ("dtype", "attributes", "why"),
    [
        ("string", 'mode="TF",ngram_indexes=[0],pool_strings=["a"]', "strings"),
        ("int64", 'mode="IDF",ngram_indexes=[0,2],pool_int64s=[1,2],weights=[1.0,2.0]', "no weight"),
    ],
)
def test_what_has_no_form_below(dtype: str, attributes: str, why: str) -> None:
    """Floats are of no other dtype here, so that these are no rows."""
    lengths = "min_gram_length=1,max_gram_length=1,max_skip_count=0,ngram_counts=[0]"
    graph = f"({dtype}[4] x) => (float[n] y) {{ y = TfIdfVectorizer<{lengths},{attributes}>(x) }}"
    with pytest.raises(onnx_convert.RefusedError, match=why):
        onnx_convert.convert(model(graph, 9), to=8)
