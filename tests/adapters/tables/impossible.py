# SPDX-License-Identifier: Apache-2.0
"""Operators that nothing can replace where they do not exist: what works on strings, and what decodes images."""

from __future__ import annotations

from boundaries import Row, each_of, refuses

STRINGS: list[Row] = [
    refuses(
        "StringNormalizer",
        10,
        9,
        "(string[2] x) => (string[K] y) { y = StringNormalizer(x) }",
        because="changes strings",
    ),
    refuses(
        "StringConcat",
        20,
        19,
        "(string[2] x) => (string[2] y) { y = StringConcat(x, x) }",
        because="puts them together",
    ),
    refuses(
        "RegexFullMatch",
        20,
        18,
        '(string[2] x) => (bool[2] y) { y = RegexFullMatch<pattern="a*">(x) }',
        because="looks",
    ),
    refuses("ImageDecoder", 20, 13, "(uint8[N] x) => (uint8[A,B,C] y) { y = ImageDecoder(x) }", because="images"),
]


ROWS = STRINGS

test_rows = each_of(ROWS)
