# SPDX-License-Identifier: Apache-2.0
"""Tables of operator boundaries: what goes in, where to, and what has to come of it.

A test file of a family holds a list of rows, and one line that makes tests of them:

    ROWS = [
        keeps("Size", 1, 13, "(float[2,3] x) => (int64 y) { y = Size(x) }"),
        rewrites("Squeeze", 11, 13, "(float[1,3] x) => (float[3] y) { y = Squeeze<axes=[0]>(x) }", into=["Squeeze"]),
    ]

    test_rows = each_of(ROWS)

`rows` tells the columns, `variants` the shapes in which each model is tried, and `runner` what is checked.
"""

from boundaries.rows import KEEPS, REFUSES, REWRITES, Row, keeps, refuses, rewrites
from boundaries.runner import each_of
from boundaries.variants import VARIANTS, Case

__all__ = ["KEEPS", "REFUSES", "REWRITES", "VARIANTS", "Case", "Row", "each_of", "keeps", "refuses", "rewrites"]
