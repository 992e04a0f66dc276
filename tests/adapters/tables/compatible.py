# SPDX-License-Identifier: Apache-2.0
"""The table of decisions against the schemas of the installed onnx; and rows of operators that cross as they are.

What is declared compatible must be so by the schemas; and every crossing is decided, or listed in `undecided.py`.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import onnx.defs
import pytest
from schemas import arity, attributes, structural_differences, types
from undecided import every_crossing, format_undecided, listed_undecided, undecided

import onnx_convert.adapters.tables.compatible
from boundaries import Row, each_of, keeps, refuses
from onnx_convert.rewrite import registry
from onnx_convert.rewrite.registry import Compatible
from onnx_convert.spec import opsets
from onnx_convert.spec.opsets import AI_ONNX, DOWN, UP
from onnx_convert.spec.schema_diff import differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onnx.defs import OpSchema

    from onnx_convert.rewrite.registry import Key

    Parameters = Sequence[OpSchema.FormalParameter]


def _size(dtype: str) -> str:
    return f"({dtype}[2,3] x) => (int64 y) {{ y = Size(x) }}"


# dtype -> the opset that brought it to Size (and to every other operator)
FLOORS = {
    "bfloat16": 13,
    "float8e4m3fn": 19,
    "float8e5m2": 19,
    "int4": 21,
    "uint4": 21,
    "float4e2m1": 23,
    "float8e8m0": 24,
    "int2": 25,
    "uint2": 25,
}
PLAIN = ("float", "double", "float16", "int8", "int64", "uint16", "bool", "string")
VERSIONS = (1, 13, 19, 21, 23, 24, 25)

SIZE: list[Row] = [
    *(keeps(f"Size of {dtype}", 1, 25, _size(dtype)) for dtype in PLAIN),
    *(keeps(f"Size of {dtype}", 25, 1, _size(dtype)) for dtype in PLAIN),
    *(keeps("Size", below, above, _size("float")) for below, above in pairwise(VERSIONS)),
    *(keeps("Size", above, below, _size("float")) for below, above in pairwise(VERSIONS)),
    *(keeps(f"Size of {dtype}", floor, 25, _size(dtype)) for dtype, floor in FLOORS.items() if floor < 25),
    *(keeps(f"Size of {dtype}", 25, floor, _size(dtype)) for dtype, floor in FLOORS.items() if floor < 25),
    *(refuses(f"Size of {d}", floor, floor - 1, _size(d), because=d) for d, floor in FLOORS.items()),
]

OTHERS: list[Row] = [
    keeps("Abs", 6, 13, "(float[2,3] x) => (float[2,3] y) { y = Abs(x) }"),
    keeps("Abs", 13, 6, "(float[2,3] x) => (float[2,3] y) { y = Abs(x) }"),
    keeps("Transpose", 1, 25, "(float[2,3] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }"),
    keeps("Transpose", 25, 1, "(float[2,3] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }"),
    keeps("Identity", 25, 1, "(int8[2] x) => (int8[2] y) { y = Identity(x) }"),
    keeps("MatMul", 1, 13, "(float[2,3] a, float[3,2] b) => (float[2,2] y) { y = MatMul(a, b) }"),
    keeps("Shape", 1, 15, "(float[2,3] x) => (int64[2] y) { y = Shape(x) }"),
]


ROWS = [*SIZE, *OTHERS]

test_rows = each_of(ROWS)


LATE = {(AI_ONNX, "Attention", 25)}  # put into opset 25 after its release: unknown to onnx below 1.23
SWAPPED = {(AI_ONNX, "GlobalLpPool", 22)}  # onnx 1.17 has the dtypes of version 22 at version 2, and the reverse

COMPATIBLE = {key: what.because for key, what in registry.decisions() if isinstance(what, Compatible)}
KNOWN = COMPATIBLE.keys() & every_crossing()


def shown(key: Key) -> str:
    domain, operator, boundary, direction = key
    return f"{opsets.shown(domain)}.{operator}@{boundary} {direction}"


def schemas(key: Key) -> tuple[OpSchema, OpSchema]:
    """Returns the schema that a node leaves and the one that it arrives at."""
    domain, operator, boundary, direction = key
    pair = (onnx.defs.get_schema(operator, boundary - 1, domain), onnx.defs.get_schema(operator, boundary, domain))
    return pair if direction == UP else pair[::-1]


def to_do(key: Key) -> str:
    """Returns what somebody who is to decide a crossing has to look at."""
    domain, operator, boundary, _ = key
    if opsets.schema_at(operator, boundary - 1, domain) is None:
        return f"{shown(key)}\n    the operator is new"
    found = list(differences(*schemas(key)))
    return "\n    ".join([shown(key), *(found or ["only the wording differs"])])


def is_within_reach(key: Key) -> bool:
    """Tells whether the installed onnx must know a crossing."""
    domain, operator, boundary, _ = key
    return opsets.is_known(domain) and boundary <= opsets.latest(domain) and (domain, operator, boundary) not in LATE


def test_an_entry_names_an_operator_that_changed_there() -> None:
    above = f"{len(COMPATIBLE) - len(KNOWN)} of {len(COMPATIBLE)} entries are unknown to the installed onnx"
    assert KNOWN, above
    assert sorted(shown(key) for key in COMPATIBLE.keys() - KNOWN if is_within_reach(key)) == [], above


def test_an_entry_without_a_reason_differs_in_types_or_wording_only() -> None:
    found = {shown(key): list(structural_differences(*schemas(key))) for key in KNOWN if not COMPATIBLE[key]}
    assert {name: differences for name, differences in found.items() if differences} == {}


def obstacles(key: Key) -> Iterator[str]:
    """Yields why the schema of arrival would not take, or would read in another way, what the schema of departure
    takes."""
    departure, arrival = schemas(key)
    for name, (kind, required, default) in attributes(departure).items():
        there = attributes(arrival).get(name)
        if there is None:
            yield f"attribute {name} is unknown there"
        elif there[0] != kind or there[2] != default or (there[1] and not required):
            yield f"attribute {name} is another there"
    for name in attributes(arrival).keys() - attributes(departure).keys():
        if attributes(arrival)[name][1]:
            yield f"attribute {name} is required there"
    for what in ("inputs", "outputs"):
        here, there = getattr(departure, what), getattr(arrival, what)
        if [one.name for one in here] != [one.name for one in there][: len(here)]:
            yield f"{what} have other names or another order there"
    narrowest, widest = arity(arrival)[::2], arity(arrival)[1::2]
    if any(least > own for least, own in zip(narrowest, arity(departure)[::2], strict=True)):
        yield "more inputs or outputs are required there"
    if any(most < own for most, own in zip(widest, arity(departure)[1::2], strict=True)):
        yield "fewer inputs or outputs are allowed there"
    if arrival.deprecated:
        yield "the operator is deprecated there"


def test_an_entry_with_a_reason_arrives_where_all_that_it_may_have_is_known() -> None:
    found = {shown(key): list(obstacles(key)) for key in KNOWN if COMPATIBLE[key]}
    assert {name: why for name, why in found.items() if why} == {}


def shrunk_types(key: Key) -> Iterator[str]:
    """Where the schema of arrival takes fewer dtypes, or binds two dtypes to each other that used to be free."""
    departure, arrival = schemas(key)
    before, after = types(departure), types(arrival)
    for name in before:
        if lost := before[name] - after.get(name, frozenset()):
            yield f"{name} loses {sorted(lost)}"
    here, there = ({one.name: one.type_str for one in (*schema.inputs, *schema.outputs)} for schema in schemas(key))
    for one, other in combinations(before, 2):
        bound = here[one] == here[other] or (before[one] == before[other] and len(before[one]) == 1)
        if there.get(one) == there.get(other) and not bound:
            yield f"{one} and {other} are bound to one dtype there"


def test_on_the_way_up_no_entry_loses_a_dtype() -> None:
    found = {shown(key): list(shrunk_types(key)) for key in KNOWN if key[3] == UP and key[:3] not in SWAPPED}
    assert {name: why for name, why in found.items() if why} == {}


def test_a_reason_is_given_only_where_it_is_needed() -> None:
    about_wording = {(AI_ONNX, "OneHot", 11, UP)}
    idle = {key for key in KNOWN if COMPATIBLE[key] and not list(structural_differences(*schemas(key)))}
    assert idle == about_wording


@lru_cache(maxsize=1)
def negative_axes() -> frozenset[Key]:
    """Returns the way down over each boundary at which the wording starts to allow an axis that counts from the end."""
    allows = re.compile(r"negative value means counting|accepted range is \[-r", re.IGNORECASE)

    def axes(schema: OpSchema) -> str:
        described = [(name, one.description) for name, one in schema.attributes.items()]
        described += [(one.name, one.description) for one in schema.inputs]
        return " ".join(text for name, text in described if re.search("ax[ie]s", name))

    down = (key for key in every_crossing() if key[3] == DOWN and opsets.schema_at(key[1], key[2] - 1, key[0]))
    return frozenset(
        key for key in down if allows.search(axes(schemas(key)[0])) and not allows.search(axes(schemas(key)[1]))
    )


def test_a_version_without_negative_axes_is_never_compatible() -> None:
    expected = {(AI_ONNX, name, 11, DOWN) for name in ("ArgMax", "Concat", "ReduceSum", "Scan", "Softmax", "Squeeze")}
    assert expected <= negative_axes()
    assert sorted(map(shown, negative_axes() & COMPATIBLE.keys())) == []


@pytest.mark.parametrize(
    ("operator", "boundary", "direction"),
    [
        ("Clip", 12, DOWN),  # integers need comparisons, not a wider dtype
        ("ConvTranspose", 11, UP),  # the padding of SAME is on other sides
        ("Dropout", 10, DOWN),  # the mask is of another dtype
        ("Dropout", 10, UP),
        ("Equal", 11, DOWN),  # floating point has no Equal below
        ("Erf", 13, UP),  # integers are gone
        ("Gather", 11, DOWN),  # negative indices
        ("GroupNormalization", 21, UP),  # scale and bias per group, then per channel
        ("GroupNormalization", 21, DOWN),
        ("Hardmax", 13, UP),  # all trailing axes, then one
        ("Hardmax", 13, DOWN),
        ("Max", 8, DOWN),  # broadcasting
        ("Mod", 28, DOWN),  # floating point with fmod=0
        ("PRelu", 7, UP),  # a slope of one dimension: per channel, then along the last axis
        ("PRelu", 7, DOWN),
        ("Pad", 19, DOWN),  # mode wrap
        ("QuantizeLinear", 19, UP),  # int32 beside a scale of float
        ("ReduceLogSum", 28, UP),  # integers are gone
        ("Resize", 11, UP),  # coordinates
        ("Resize", 19, DOWN),  # half_pixel_symmetric
        ("Scan", 9, UP),  # the batch axis
        ("ScatterND", 18, DOWN),  # reduction max and min
        ("Softmax", 13, UP),
        ("Softmax", 13, DOWN),
    ],
)
def test_what_the_signature_does_not_show_is_not_compatible(operator: str, boundary: int, direction: str) -> None:
    key = (AI_ONNX, operator, boundary, direction)
    assert key in every_crossing() or not is_within_reach(key)
    assert key not in COMPATIBLE


def test_the_table_is_in_order() -> None:
    source = Path(onnx_convert.adapters.tables.compatible.__file__).read_text(encoding="utf-8")
    calls = [
        one.value for one in ast.parse(source).body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
    ]
    boundaries = []
    for call in calls:
        names = [ast.literal_eval(one) for one in call.args]
        assert names == sorted(set(names)), f"line {call.lineno}: not in alphabetical order"
        words = {one.arg: one.value for one in call.keywords}
        boundaries.append(("domain" in words, ast.literal_eval(words["at"])))
    assert boundaries
    assert boundaries == sorted(boundaries), "ai.onnx first, then ai.onnx.ml, each by boundary"


def test_every_crossing_is_decided_or_listed() -> None:
    new = sorted(undecided() - listed_undecided())
    assert not new, "to decide, with an adapter, compatible(...) or impossible(...):\n" + "\n".join(map(to_do, new))


def test_the_list_of_the_undecided_only_shrinks() -> None:
    settled = sorted(filter(is_within_reach, listed_undecided() - undecided()))
    assert not settled, f"decided, but still in tests/helpers/undecided.py: {', '.join(map(shown, settled))}"


def test_the_list_of_the_undecided_reads_as_it_is_written() -> None:
    sample = {("", "Softmax", 13, UP), ("", "Hardmax", 13, UP), ("ai.onnx.ml", "LabelEncoder", 2, DOWN)}
    text = format_undecided(sample)
    assert text == "\nai.onnx 13 up: Hardmax Softmax\nai.onnx.ml 2 down: LabelEncoder\n"
    assert listed_undecided(text) == sample
