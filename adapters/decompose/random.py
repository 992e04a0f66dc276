# SPDX-License-Identifier: Apache-2.0
"""Bernoulli, Multinomial. Their replacements draw other numbers from the same distribution.

7: Multinomial draws classes with given log-probabilities.
15: Bernoulli draws 1 with a given probability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, INT64

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_ANOTHER_STREAM: Final = "only the distribution of the random numbers matters, not the numbers that a seed gives"


@downgrade("Bernoulli", at=15)
def compare_with_uniform(node: Node, op: Emitter) -> Value:
    """A uniform number is below the probability that often. (The schema's own body has it the wrong way round.)"""
    x, dtype = node.input(0), node.attr("dtype") or node.dtype(0)
    op.conditional(_ANOTHER_STREAM)
    drawn = op.Less(op.RandomUniformLike(x, low=0.0, high=1.0, seed=node.attr("seed")), x)
    return drawn if dtype == BOOL else op.Cast(drawn, to=dtype)


@downgrade("Multinomial", at=7)
def largest_with_gumbel_noise(node: Node, op: Emitter) -> Value:
    """The largest log-probability after each got noise with a Gumbel distribution, anew for each sample."""
    x, samples, dtype = node.input(0), node.attr("sample_size"), node.attr("dtype")
    op.conditional(_ANOTHER_STREAM)
    rows = op.Tile(op.at(10).Unsqueeze(x, axes=[1]), op.const([1, samples, 1]))
    uniform = op.RandomUniformLike(rows, dtype=FLOAT, low=0.0, high=1.0, seed=node.attr("seed"))
    noise = op.Neg(op.Log(op.Neg(op.Log(uniform))))
    rows = rows if x.dtype == FLOAT else op.Cast(rows, to=FLOAT)
    drawn = op.ArgMax(op.at(7).Add(rows, noise), axis=2, keepdims=0)
    return drawn if dtype == INT64 else op.Cast(drawn, to=dtype)
