# SPDX-License-Identifier: Apache-2.0
"""Dropout: 7: `is_test` goes; 10: the mask is boolean; 12: `ratio` is an input, and `training_mode` comes."""

from __future__ import annotations

from boundaries.rows import Row, keeps, refuses, rewrites


def attribute(attributes: str = "", mask: str = "") -> str:
    """A graph with the ratio in an attribute, and with a mask of the given dtype."""
    more, second = (f", {mask}[2,3] z", ", z") if mask else ("", "")
    return f"(float[2,3] x) => (float[2,3] y{more}) {{ y{second} = Dropout{attributes}(x) }}"


def constant(ratio: str = "", training: str = "", attributes: str = "", mask: bool = False) -> str:
    """A graph with constants for the inputs."""
    initializers = ", ".join(
        filter(None, [ratio and f"float r = {{{ratio}}}", training and f"bool t = {{{training}}}"])
    )
    inputs = "x" + (", r" if ratio else ', ""' if training else "") + (", t" if training else "")
    more, second = (", bool[2,3] z", ", z") if mask else ("", "")
    head = f"(float[2,3] x) => (float[2,3] y{more})" + (f" <{initializers}>" if initializers else "")
    return f"{head} {{ y{second} = Dropout{attributes}({inputs}) }}"


D = "Dropout"
CONDITIONAL = {"allow": {"conditional"}}
EXACT = {"exact": True}

ROWS: list[Row] = [
    rewrites("Dropout in test", 6, 7, attribute("<is_test=1,ratio=0.3>"), into=[D]),
    rewrites("Dropout in test", 1, 22, attribute("<is_test=1>"), into=[D]),
    rewrites("Dropout", 7, 6, attribute("<ratio=0.3>"), into=[D]),
    refuses("Dropout that is random", 6, 7, attribute(), because="only the distribution"),
    keeps("Dropout", 7, 10, attribute("<ratio=0.3>")),
    keeps("Dropout", 10, 7, attribute("<ratio=0.3>")),
    rewrites("Dropout with a mask", 7, 10, attribute("", "float"), into=[D, "Cast"]),
    rewrites("Dropout with a mask", 10, 7, attribute("", "bool"), into=[D, "Cast"]),
    keeps("Dropout of the default ratio", 10, 12, attribute()),
    *(
        refuses(f"Dropout{more} with a mask", 11, 12, attribute(more, "bool"), because="not specified", options=EXACT)
        for more in ("<ratio=0.3>", "")
    ),
    rewrites("Dropout", 10, 12, attribute("<ratio=0.3>"), into=[D]),
    rewrites("Dropout", 10, 22, attribute("<ratio=0.3>"), into=[D]),
    rewrites("Dropout", 12, 10, constant("0.3"), into=[D]),
    keeps("Dropout without ratio", 12, 10, constant()),
    rewrites("Dropout with a seed", 12, 10, constant("", "", "<seed=7>"), into=[D]),
    rewrites("Dropout that does not train", 13, 11, constant("0.3", "0"), into=[D]),
    rewrites("Dropout that does not train, of no ratio", 13, 11, constant("", "0"), into=[D]),
    rewrites(
        "Dropout with a ratio at run time", 13, 11, "(float[2,3] x, float r) => (float[2,3] y) { y = Dropout(x, r) }"
    ),
    rewrites("Dropout with a mask", 12, 11, constant("0.3", mask=True)),
    rewrites("Dropout of a scalar with a mask", 12, 11, "(float x) => (float y, bool z) { y, z = Dropout(x) }"),
    rewrites(
        "Dropout of nothing with a mask", 12, 11, "(float[0,2] x) => (float[0,2] y, bool[0,2] z) { y, z = Dropout(x) }"
    ),
    rewrites("Dropout with a mask", 22, 8, constant("0.3", mask=True)),
    rewrites("Dropout that trains and drops nothing", 12, 10, constant("0.0", "1", mask=True), options=EXACT),
    rewrites(
        "Dropout that might train",
        12,
        11,
        '(float[2,3] x, bool t) => (float[2,3] y, bool[2,3] z) { y, z = Dropout(x, "", t) }',
        feeds={"t": False},
        options=CONDITIONAL,
    ),
    refuses("Dropout that trains", 12, 11, constant("0.3", "1"), because="only the distribution"),
]
