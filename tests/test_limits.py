# SPDX-License-Identifier: Apache-2.0
"""A new constant is in proportion to the model."""

from __future__ import annotations

from texts import model

import onnx_convert
from onnx_convert.session import FREE, Names, Session


def session(elements: int) -> Session:
    return Session(8, 8, Names(set()), lambda tensor: tensor, set, lambda: elements)


def test_what_is_in_proportion() -> None:
    assert session(0).takes(FREE)
    assert not session(0).takes(FREE + 1)
    assert session(FREE).takes(16 * FREE)
    assert not session(FREE).takes(16 * FREE + 1)


def test_the_indices_of_a_long_axis_are_computed() -> None:
    source = model(
        "(float[3000000,4] x) => (float[P,4] y) <int64[1] s = {0}, int64[1] e = {2999999}, int64[1] t = {2}>"
        " { y = Slice(x, s, e, s, t) }", 10,
    )  # fmt: skip
    assert onnx_convert.convert(source, to=9).model.ByteSize() < 10_000
