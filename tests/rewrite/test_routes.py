# SPDX-License-Identifier: Apache-2.0
"""Where a node goes next is decided once an operator."""

from __future__ import annotations

import pytest

from onnx_convert.rewrite.routes import Routes


@pytest.mark.parametrize(
    ("operator", "start", "crosses", "judged", "stays"),
    [
        ("Softmax", 12, 13, False, False),
        ("Softmax", 13, 0, False, True),
        ("Abs", 12, 0, False, True),
        ("If", 13, 0, False, False),
        ("NoSuchOperator", 13, 0, False, False),
    ],
)
def test_routes(operator: str, start: int, crosses: int, judged: bool, stays: bool) -> None:
    routes = Routes({"": 13}, ())
    route = routes.of("", operator, start)
    assert (route.crossing.boundary if route.crossing else 0) == crosses
    assert (route.is_judged, route.stays) == (judged, stays)
    assert route is routes.of("", operator, start)


def test_a_node_of_a_function_has_no_way_to_go() -> None:
    route = Routes({"": 13}, {("", "Softmax")}).of("", "Softmax", 12)
    assert route.stop is None and route.crossing is None and not route.stays
