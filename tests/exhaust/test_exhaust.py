# SPDX-License-Identifier: Apache-2.0
"""Every adapter has a domain; the simplest cases of crossings, and a few more; the search finds what is wrong."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from exhaust import domains, run
from exhaust.choices import Choices, Outside, Tree, again, shrink
from exhaust.judging import CONVERTED, FAILED, Crossing, Verdict, made, stated, verdict
from exhaust.making import Made
from exhaust.measure import excused, unexcused
from exhaust.pasting import row, row_of
from exhaust.run import Explorer, Walk, crossings, explore, load, save, table

import onnx_convert.adapters  # noqa: F401 (fills the registry)
from boundaries import Row, rewrites
from boundaries.runner import check
from onnx_convert.rewrite import registry

ROOT = Path(__file__).parents[2]
EVERY = crossings()
PARTS = 8  # tests, which processes can share


@pytest.fixture(autouse=True)
def quiet() -> object:
    """Extremes overflow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ---- the domains


def adapted() -> set[str]:
    """Operators that an adapter of ours is about; other tests register their own."""
    return {
        key[1]
        for key, decision in registry.decisions()
        if isinstance(decision, registry.Adapter) and decision.function.__module__.startswith("onnx_convert.adapters.")
    }


def test_every_operator_that_has_an_adapter_has_a_domain() -> None:
    missing = adapted() - domains.DOMAINS.keys() - domains.ELSEWHERE.keys()
    assert not missing, "write a domain"
    assert not (domains.DOMAINS.keys() | domains.ELSEWHERE.keys()) - adapted(), "no adapter is left"
    assert not domains.DOMAINS.keys() & domains.ELSEWHERE.keys()


def test_what_has_no_domain_is_tested_where_it_says() -> None:
    for operator, why in domains.ELSEWHERE.items():
        files = [word.strip(",") for word in why.split() if word.startswith("tests/")]
        assert any(operator in (ROOT / file).read_text(encoding="utf-8") for file in files), operator


@pytest.mark.parametrize("part", range(PARTS))
def test_a_domain_says_which_values_every_attribute_may_have(part: int) -> None:
    for crossing in EVERY[part::PARTS]:
        explorer = Explorer(crossing, seed=0)
        cases = [explorer.next() for _ in range(4)]
        assert cases[0] is not None, crossing


# ---- a slice


def trouble(crossing: Crossing, picked: list[int]) -> str | None:
    found = verdict(crossing, picked)
    return f"{crossing} {picked}: {found.kind}: {found.why}" if found.outcome == FAILED else None


@pytest.mark.parametrize("part", range(PARTS))
def test_the_simplest_case_of_each_crossing(part: int) -> None:
    chosen = EVERY[part :: PARTS * 2]
    assert not [why for crossing in chosen if (why := trouble(crossing, []))]


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_some_cases_of_each_crossing(part: int) -> None:
    found = []
    for crossing in EVERY[part::PARTS]:
        explorer = Explorer(crossing, seed=3)
        for _ in range(3):
            picked = explorer.next()
            if picked is not None and (why := trouble(crossing, picked)):
                found.append(why)
    assert not found


# ---- the search itself


def pairs(choices: Choices) -> tuple[str, int]:
    """Six cases: of b only the even ones."""
    letter = choices.pick("letter", "abc")
    number = choices.pick("number", range(2 if letter == "a" else 3))
    if letter == "b" and number == 1:
        raise Outside
    return letter, number


def test_a_domain_is_walked_to_its_end_without_repetition() -> None:
    tree, found = Tree("7"), []
    while not tree.done:
        try:
            found.append(tree.next(pairs))
        except Outside:
            continue
    assert sorted(found) == [("a", 0), ("a", 1), ("b", 0), ("b", 2), ("c", 0), ("c", 1), ("c", 2)]
    assert tree.next(pairs) is None


def test_a_large_domain_is_sampled_evenly() -> None:
    tree = Tree("7")
    found = [tree.next(lambda choices: [choices.pick(name, range(10)) for name in "abcdef"]) for _ in range(100)]
    for place in range(6):
        counts = Counter(case[place] for case in found if case)
        assert set(counts) == set(range(10)) and set(counts.values()) == {10}


def test_the_picks_of_a_case_make_it_again() -> None:
    crossing = next(one for one in EVERY if one.operator == "Slice")
    picked = Explorer(crossing, 5).next()
    assert picked is not None
    (case, target), choices = again(picked, lambda choices: made(crossing, choices))
    (other, _), _ = again(choices.picked, lambda choices: made(crossing, choices))
    assert choices.picked == picked and target < case.opset
    assert case.model({}) == other.model({})


def test_the_same_seed_makes_the_same_cases() -> None:
    crossing = next(one for one in EVERY if one.operator == "Pad")
    one, other = Explorer(crossing, 5), Explorer(crossing, 5)
    assert [one.next() for _ in range(20)] == [other.next() for _ in range(20)]


def test_a_failure_is_made_simple() -> None:
    def fails(picked: list[int]) -> list[int] | None:
        return list(picked) if picked[1] >= 2 and picked[3] else None

    assert shrink([4, 5, 3, 2, 1], fails, patience=100) == [0, 2, 0, 1, 0]


def test_a_wrong_adapter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    key = ("", "Celu", 12, "down")
    right = registry.decision("Celu", 12, "down")
    assert isinstance(right, registry.Adapter)

    def wrong(node, op):
        """Gives something else."""
        return op.Elu(node.input(0), alpha=0.75)

    crossing = Crossing("Celu", "", 12, "down")
    picked, _ = simplest(crossing, [])
    row = of_text(row_of(crossing, picked))
    assert verdict(crossing, picked).outcome == CONVERTED
    check(row, "plain")
    monkeypatch.setitem(registry._decisions, key, right._replace(function=wrong))
    registry.first_crossing.cache_clear()
    found = verdict(crossing, picked)
    with pytest.raises(AssertionError, match="elements differ"):
        check(row, "plain")
    monkeypatch.undo()
    registry.first_crossing.cache_clear()
    assert (found.outcome, found.kind) == (FAILED, "numbers")


def simplest(crossing: Crossing, picked: list[int]) -> tuple[list[int], int]:
    (_, target), choices = again(picked, lambda choices: made(crossing, choices))
    return choices.picked, target


# ---- rows

PRINTED = r"""
# in the variant 'dims', which --thorough runs
# and back
# constants: x2
rewrites(
    "a \"name\"",
    13,
    9,
    "(double[1,2] x0, int32[2,0] x1, complex128[1] x2) => (int64[2] x0y) { "
    "x0y = Shape (x0) "
    "x1y = Shape (x1) "
    "x2y = Shape (x2) "
    "}",
    feeds={
        "x0": [[np.nan, -np.inf]],
        "x1": np.zeros((2, 0)),
        "x2": [complex(1.0, -2.0)],
    },
),
"""


def of_text(text: str) -> Row:
    """Returns the row that a printed one is, as if it stood in a list."""
    (row,) = eval(f"[\n{text}\n]", {"rewrites": rewrites, "np": np})
    assert isinstance(row, Row)
    return row


@pytest.mark.parametrize("part", range(PARTS))
def test_a_printed_row_is_the_case(part: int) -> None:
    rows = 0
    for crossing in EVERY[part::PARTS]:
        explorer = Explorer(crossing, seed=11)
        picked = explorer.next()
        assert picked is not None
        text = row_of(crossing, picked)
        if not text:
            continue
        (case, target), _ = again(picked, lambda choices, crossing=crossing: made(crossing, choices))
        source = stated(case)
        assert not isinstance(source, Verdict)
        row = of_text(text)
        rows += 1
        assert (row.source, row.target, row.options) == (case.opset, target, case.options)
        for node in (*source[0].graph.node, *row.model.graph.node):
            node.name = node.domain = ""
        if "# constants:" not in text:
            nodes = zip(row.model.graph.node, source[0].graph.node, strict=True)  # elements may be raw in one of them
            assert all(onnx.printer.to_text(node) == onnx.printer.to_text(other) for node, other in nodes)
            assert {value.name: value.type for value in row.model.graph.input} == {
                value.name: value.type for value in source[0].graph.input
            }
            assert row.model.graph.output[0].type == source[0].graph.output[0].type
        assert {tensor.name for tensor in row.model.graph.initializer} <= case.constants
        for name, value in case.free.items():
            assert row.inputs[name].dtype == value.dtype and row.inputs[name].shape == value.shape
            assert repr(row.inputs[name].tolist()) == repr(value.tolist())
    assert rows > 20


def test_a_row_says_what_lists_and_texts_cannot() -> None:
    feeds = {"x0": np.array([[np.nan, -np.inf]]), "x1": np.zeros((2, 0), np.int32), "x2": np.array([1 - 2j])}
    kinds = {"x0": 11, "x1": 6, "x2": onnx.TensorProto.COMPLEX128}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Shape", [name], [f"{name}y"]) for name in feeds],
        "g",
        [onnx.helper.make_tensor_value_info(name, kinds[name], feeds[name].shape) for name in ("x0", "x1")],
        [onnx.helper.make_tensor_value_info("x0y", 7, [2])],
        [onnx.numpy_helper.from_array(feeds["x2"], "x2")],
    )
    case = Made(13, "", list(graph.node), feeds, {"x2"}, ["x0y"], disguise="dims", returns=True)
    assert row('a "name"', case, 9, onnx.helper.make_model(graph)) == PRINTED.strip()


# ---- how far a walk is


def test_a_walk_is_kept_and_goes_on(tmp_path: Path) -> None:
    state, chosen = tmp_path / "state.json", EVERY[:2]
    walks = {crossing: Walk(tried=3) for crossing in chosen}
    walks[chosen[0]].outcomes["converted"] = 3
    save(state, walks, seed=1)
    assert load(state, chosen, seed=1) == walks
    assert load(state, chosen, seed=2) == {crossing: Walk() for crossing in chosen}
    save(state, {chosen[1]: Walk(tried=5)}, seed=1)
    assert [walk.tried for walk in load(state, chosen, seed=1).values()] == [3, 5]
    assert table(walks).splitlines()[1].split()[0] == chosen[0].operator


def test_a_walk_that_was_interrupted_ends_like_one_that_was_not(tmp_path: Path) -> None:
    state, chosen = tmp_path / "state.json", [one for one in EVERY if one.operator in ("Celu", "Trilu")]
    whole = {crossing: Walk() for crossing in chosen}
    explore(whole, 5, budget=100, most=8)
    walks, kept = {crossing: Walk() for crossing in chosen}, []
    explore(walks, 5, budget=100, most=4, keep=lambda: kept.append(1))
    save(state, walks, 5)
    explore(walks := load(state, chosen, 5), 5, budget=100, most=8)
    assert walks == whole and {walk.tried for walk in whole.values()} == {8} and not kept
    explore(walks, 5, budget=0)
    assert walks == whole


def test_a_case_that_was_interrupted_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_crossing: Crossing, _picked: list[int]) -> Verdict:
        raise KeyboardInterrupt

    walks = {EVERY[0]: Walk()}
    monkeypatch.setattr(run, "judged", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explore(walks, 1, budget=100)
    assert walks == {EVERY[0]: Walk()}


# ---- what is not reached

CODE = """def reached(x):
    if x:
        return 1
    if not x:  # unreached: nothing is false
        y = 2
        return y
    return 3
def other():  # unreached: of a later opset
    return 4
"""


def test_what_is_not_reached_says_why() -> None:
    assert excused(CODE) == {4: range(4, 7), 8: range(8, 10)}
    assert unexcused("f.py", CODE, [5, 6, 9], [(4, 5)]) == []
    assert unexcused("f.py", CODE, [3, 5, 6, 9], [(2, 3), (4, 5)]) == ["f.py:3: not reached"]
    assert unexcused("f.py", CODE, [9], [(2, 4), (4, 7)]) == ["f.py:2: never goes to 4"]
    assert unexcused("f.py", CODE, [5, 6], [(4, 5), (7, -1)]) == [
        "f.py:7: never goes to the end",
        "f.py:8: is reached, and says why not",
    ]
