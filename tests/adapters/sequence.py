# SPDX-License-Identifier: Apache-2.0
"""Identity of sequences (14) and optionals (16), and what asks an optional of other things (18)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites

PAIR = (
    "(float[2] x) => (float[2] y) <int64 k = {{1}}> {{ s = SequenceConstruct(x, x) t = {0}(s) y = SequenceAt(t, k) }}"
)
TEXTS = "(string[2] x) => (int64 y) { s = SequenceConstruct(x) t = Identity(s) y = SequenceLength(t) }"
NOTHING = "(float[2] x) => (int64 y) { s = SequenceEmpty() t = Identity(s) y = SequenceLength(t) }"
OPTIONAL = "(float[2] x) => (float[2] y) { o = Optional(x) p = Identity(o) y = OptionalGetElement(p) }"
BRANCH = """(bool c, double[2] x) => (double[2] y) { o = Optional(x) p = If(c) <
    then_branch = t () => (optional(double[2]) a) { a = Identity(o) },
    else_branch = e () => (optional(double[2]) b) { b = Optional(x) }> y = OptionalGetElement(p) }"""

ROWS: list[Row] = [
    *(
        keeps("Identity of a tensor", *way, "(float[2] x) => (float[2] y) { y = Identity(x) }")
        for way in ((25, 1), (1, 25))
    ),
    rewrites(
        "Identity of a sequence",
        14,
        13,
        PAIR.format("Identity"),
        into=["SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceAt"],
    ),
    rewrites("Identity of a sequence", 21, 11, PAIR.format("Identity")),
    rewrites("Identity of a sequence of strings", 16, 12, TEXTS),
    rewrites("Identity of an empty sequence", 15, 11, NOTHING),
    keeps("Identity of a sequence", 21, 14, PAIR.format("Identity")),
    rewrites("Identity of an optional", 16, 15, OPTIONAL, into=["Optional", "Optional", "OptionalGetElement"]),
    keeps("Identity of an optional", 24, 16, OPTIONAL),
    rewrites(
        "OptionalGetElement of a tensor",
        18,
        17,
        "(float[2] x) => (float[2] y) { y = OptionalGetElement(x) }",
        into=["Identity"],
    ),
    rewrites(
        "OptionalGetElement of a tensor",
        24,
        8,
        "(float[2] x) => (float[2] y) { y = OptionalGetElement(x) }",
        into=["Identity"],
    ),
    rewrites("OptionalGetElement of a sequence", 18, 17, PAIR.format("OptionalGetElement")),
    rewrites("OptionalGetElement of a sequence", 18, 13, PAIR.format("OptionalGetElement")),
    keeps(
        "OptionalGetElement of an optional",
        18,
        15,
        "(float[2] x) => (float[2] y) { o = Optional(x) y = OptionalGetElement(o) }",
    ),
    rewrites(
        "OptionalHasElement of a tensor",
        18,
        17,
        "(float[2] x) => (bool y) { y = OptionalHasElement(x) }",
        into=["Identity"],
    ),
    rewrites("OptionalHasElement of a tensor", 18, 7, "(float[2] x) => (bool y) { y = OptionalHasElement(x) }"),
    rewrites(
        "OptionalHasElement of nothing",
        18,
        15,
        "(float[2] x) => (bool y) { y = OptionalHasElement() }",
        into=["Identity"],
    ),
    rewrites(
        "OptionalHasElement of nothing by an empty name",
        18,
        13,
        '(float[2] x) => (bool y) { y = OptionalHasElement("") }',
    ),
    keeps(
        "OptionalHasElement of an optional",
        28,
        15,
        "(float[2] x) => (bool y) { o = Optional(x) y = OptionalHasElement(o) }",
    ),
    refuses("Identity of an optional from outside", 16, 15, BRANCH, because="optional"),
]


test_rows = each_of(ROWS)
