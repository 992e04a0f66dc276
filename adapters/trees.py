# SPDX-License-Identifier: Apache-2.0
"""TreeEnsembleRegressor, TreeEnsembleClassifier, TreeEnsemble, of the domain ai.onnx.ml.

3: thresholds, weights and base values may be tensors of double.
5: one operator for both, TreeEnsemble. Leaves have a table of their own and one vote each; there are sets to be member
of; there are no base values, and the output has the dtype of the input, where it was float.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import AI_ONNX_ML, downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT, FLOAT16
from onnx_convert.adapters.ml import label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from onnx_convert.adapter import Emitter, Node, Value

    Numbers = numpy.ndarray[Any, Any]
    Vote = tuple[int, float]  # a target, and what it gets

_OLD: Final = ("TreeEnsembleRegressor", "TreeEnsembleClassifier")
_MODES: Final = "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ BRANCH_MEMBER".split()
_EQUAL, _MEMBER = "BRANCH_EQ", 6
_TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")
_TENSOR: Final = "_as_tensor"
_STAY: Final = "keep ai.onnx.ml below 5 (--to ai.onnx.ml:4)"

# ---- 3: tensors of double


@downgrade(*_OLD, at=3, domain=AI_ONNX_ML)
def tensors_to_floats(node: Node, op: Emitter) -> Value:
    """Tensors become lists of floats, thresholds such that a float falls on the same side of them."""
    tensors = [attribute.name for attribute in node.proto.attribute if attribute.name.endswith(_TENSOR)]
    lists: dict[str, Any] = {}
    for name in (full.removesuffix(_TENSOR) for full in tensors):
        numbers = node.tensor(name + _TENSOR).ravel()
        if name == "nodes_values":
            numbers = _float_thresholds(node, numbers)
        elif numbers.dtype == numpy.float64 and name != "nodes_hitrates":
            op.equivalent("weights are rounded to float, and summed up in it")
        with numpy.errstate(over="ignore"):
            lists[name] = numbers.astype(numpy.float32).tolist()
    return op.same(drop=tensors, **lists)


def _float_thresholds(node: Node, exact: Numbers) -> Numbers:
    """Returns the floats that divide all floats as these thresholds do."""
    with numpy.errstate(over="ignore"):
        near = exact.astype(numpy.float32)
    if numpy.array_equal(near, exact, equal_nan=True):
        return near
    if node.dtype(0) == DOUBLE:
        node.refuse("a threshold is no float, and the input is double", "make the input float")
    infinity = numpy.float32(math.inf)
    below = numpy.where(near > exact, numpy.nextafter(near, -infinity), near)
    above = numpy.where(near < exact, numpy.nextafter(near, infinity), near)
    modes = numpy.asarray(node.attr("nodes_modes"))
    never = numpy.where(near == exact, near, numpy.float32(math.nan))  # what no float equals
    chosen = numpy.where(numpy.isin(modes, ("BRANCH_LT", "BRANCH_GTE")), above, below)
    return numpy.where(numpy.isin(modes, (_EQUAL, "BRANCH_NEQ")), never, chosen)


# ---- what all versions tell


@dataclass(slots=True, eq=False)
class Leaf:
    """The place where a tree ends, with its votes."""

    votes: list[Vote] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Branch:
    """The place where a tree goes on: how it compares a feature, and with which numbers (several are the members of a
    set).

    `sides` follow if the comparison holds, and if not; `tracks_true` tells the side of NaN.
    """

    feature: int
    mode: str
    numbers: list[float]
    tracks_true: int
    sides: list[Branch | Leaf] = field(default_factory=list)

    def compared(self) -> list[Any]:
        """Returns the beginning of its row in the tables of a TreeEnsemble."""
        return [self.feature, _MODES.index(self.mode), self.numbers[0], self.tracks_true]


@dataclass(slots=True)
class Forest:
    """The trees of a node, by their roots. Each version is read into one, and written from one."""

    roots: list[Branch | Leaf]

    def leaves(self, root: Branch | Leaf) -> Iterator[Leaf]:
        """Yields the leaves of a tree."""
        pending = [root]
        while pending:
            spot = pending.pop()
            if isinstance(spot, Leaf):
                yield spot
            else:
                pending += spot.sides

    def always_voted(self) -> set[int]:
        """Returns the targets for which each leaf of some tree votes."""
        by_tree = ([{target for target, _ in leaf.votes} for leaf in self.leaves(root)] for root in self.roots)
        return set().union(*(reduce(set.intersection, votes) for votes in by_tree))

    # ---- below 5: one table, in which leaves are nodes, and one of votes

    @classmethod
    def from_lists(cls, node: Node, voting: str, weights: Numbers, thresholds: Numbers) -> Forest:
        """Reads the lists of a node below 5; `voting` is what those of the votes begin with."""
        ids, modes = node.attr("nodes_treeids"), node.attr("nodes_modes")
        tracks = node.attr("nodes_missing_value_tracks_true") or [0] * len(ids)
        lists = (node.attr(f"nodes_{name}") for name in ("nodeids", "featureids", "truenodeids", "falsenodeids"))
        rows = list(zip(ids, modes, tracks, thresholds.tolist(), *lists, strict=True))
        spots: dict[tuple[int, int], Branch | Leaf] = {}
        for tree, mode, follows, threshold, name, feature, _, _ in rows:
            spots[tree, name] = Leaf() if mode == "LEAF" else Branch(feature, mode, [threshold], follows)
        below = set()
        for tree, _, _, _, name, _, true, false in rows:
            spot = spots[tree, name]
            if isinstance(spot, Branch):
                sides = [(tree, true), (tree, false)]
                spot.sides = [spots[side] for side in sides]
                below.update(sides)
        votes = (node.attr(f"{voting}_{name}") for name in ("treeids", "nodeids", "ids"))
        for tree, name, target, weight in zip(*votes, weights.tolist(), strict=True):
            if isinstance(leaf := spots[tree, name], Leaf):
                leaf.votes.append((target, weight))
        roots = {name: spot for name, spot in spots.items() if name not in below}
        if len(roots) != len({tree for tree, _ in spots}) or len({tree for tree, _ in roots}) != len(roots):
            node.invalid("a tree has not exactly one root")
        return cls(list(roots.values()))

    def lists(self) -> dict[str, Any]:
        """Returns the lists of a regressor below 5. Being member of a set is a chain of equalities, and a node with two
        parents is written twice."""
        nodes: list[list[Any]] = []
        votes: list[tuple[int, int, int, float]] = []
        for tree, root in enumerate(self.roots):
            first = len(nodes)
            pending = [(root, -1, 0)]  # what to write, and the place and column that point to it
            while pending:
                spot, parent, column = pending.pop()
                place = len(nodes) - first
                if parent >= 0:
                    nodes[first + parent][column] = place
                if isinstance(spot, Leaf):
                    nodes.append([tree, place, 0, "LEAF", 0.0, 0, 0, 0])
                    votes += [(tree, place, *vote) for vote in spot.votes]
                    continue
                mode = _EQUAL if spot.mode == _MODES[_MEMBER] else spot.mode
                chain = range(place, place + len(spot.numbers))
                for here, number in zip(chain, spot.numbers, strict=True):
                    nodes.append([tree, here, spot.feature, mode, number, 0, here + 1, spot.tracks_true])
                pending += [(spot.sides[0], here, 5) for here in chain]
                pending.append((spot.sides[1], chain[-1], 6))
        names = "treeids nodeids featureids modes values truenodeids falsenodeids missing_value_tracks_true".split()
        columns = [list(column) for column in zip(*nodes, strict=True)]
        lists = {f"nodes_{name}": column for name, column in zip(names, columns, strict=True)}
        if not any(columns[-1]):
            del lists[f"nodes_{names[-1]}"]
        voted = zip(("treeids", "nodeids", "ids", "weights"), zip(*votes, strict=True), strict=True)
        return {**lists, **{f"target_{name}": list(column) for name, column in voted}}

    # ---- from 5 on: tables of nodes and of leaves, of which each has one vote

    @classmethod
    def from_tables(cls, node: Node) -> Forest:
        """Reads the tables of a TreeEnsemble."""
        modes, splits, weights = (
            node.tensor(name).ravel().tolist() for name in ("nodes_modes", "nodes_splits", "leaf_weights")
        )
        tracks = node.attr("nodes_missing_value_tracks_true") or [0] * len(modes)
        sides = [node.attr(f"nodes_{side}{what}") for side in ("true", "false") for what in ("nodeids", "leafs")]
        rows = list(zip(node.attr("nodes_featureids"), modes, splits, tracks, *sides, strict=True))
        leaves = [Leaf([vote]) for vote in zip(node.attr("leaf_targetids"), weights, strict=True)]
        sets, branches = _sets(node), []
        for feature, number, split, follows, *_ in rows:
            mode = _word(node, _MODES, number)
            numbers = next(sets, [math.nan]) if number == _MEMBER else [split]
            branches.append(Branch(feature, mode, numbers, follows))
        for branch, (*_, true, true_leaf, false, false_leaf) in zip(branches, rows, strict=True):
            branch.sides = [(leaves if leaf else branches)[i] for i, leaf in ((true, true_leaf), (false, false_leaf))]
        return cls([branches[root] for root in node.attr("tree_roots")])

    def tables(self, vote: Callable[[Leaf, int], Vote]) -> dict[str, Any]:
        """Returns the tables of a TreeEnsemble, as lists. A tree is there once for each of the votes that its leaves
        have; `vote` tells the one of a leaf at each turn. A tree of one leaf is a node whose sides both lead there."""
        nodes: list[list[Any]] = []
        leaves: list[Vote] = []
        roots: list[int] = []
        for root in self.roots:
            for turn in range(max(1, *(len(leaf.votes) for leaf in self.leaves(root)))):
                roots.append(len(nodes))
                if isinstance(root, Leaf):
                    nodes.append([0, 0, 0.0, 0, *[len(leaves), 1] * 2])
                    leaves.append(vote(root, turn))
                    continue
                nodes.append(root.compared())
                pending = [(root, nodes[-1])]
                while pending:
                    branch, row = pending.pop()
                    for side in branch.sides:
                        if isinstance(side, Leaf):
                            row += [len(leaves), 1]
                            leaves.append(vote(side, turn))
                        else:
                            row += [len(nodes), 0]
                            nodes.append(side.compared())
                            pending.append((side, nodes[-1]))
        names = (
            "featureids modes splits missing_value_tracks_true truenodeids trueleafs falsenodeids falseleafs".split()
        )
        tables = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*nodes, strict=True), strict=True)}
        if not any(tables["nodes_missing_value_tracks_true"]):
            del tables["nodes_missing_value_tracks_true"]
        targets, weights = zip(*leaves, strict=True)
        return {"tree_roots": roots, **tables, "leaf_targetids": targets, "leaf_weights": weights}


def _sets(node: Node) -> Iterator[list[float]]:
    """Yields the sets to be member of; NaN ends a set. An empty one has NaN for a member, which nothing equals."""
    members: list[float] = []
    for value in node.tensor("membership_values").ravel().tolist() if node.has("membership_values") else ():
        if math.isnan(value):
            yield members or [math.nan]
            members = []
        else:
            members.append(value)
    yield members or [math.nan]


def _word(node: Node, words: Sequence[str], number: int) -> str:
    """Returns the word that a number stands for from 5 on."""
    if not 0 <= number < len(words):
        node.invalid(f"number {number} is none of {', '.join(words)}")
    return words[number]


def _numbers(node: Node, name: str) -> Numbers:
    """Returns numbers that are a list of floats or a tensor; none, if they are not given."""
    if node.has(name + _TENSOR):
        return node.tensor(name + _TENSOR).ravel()
    return numpy.array(node.attr(name) or [], dtype=numpy.float32)


# ---- 5, up: one operator for both


@upgrade("TreeEnsembleRegressor", at=5, domain=AI_ONNX_ML)
def regress_by_ensemble(node: Node, op: Emitter) -> Value:
    """Nodes and leaves go into two tables, and each base value into a tree of one leaf."""
    targets, aggregate = node.attr("n_targets") or 1, node.attr("aggregate_function")
    return _scores(node, op, "target", targets, aggregate, node.attr("post_transform"))


@upgrade("TreeEnsembleClassifier", at=5, domain=AI_ONNX_ML)
def classify_by_ensemble(node: Node, op: Emitter) -> tuple[Value, Value]:
    """A regression to one score a class; the class is that of the highest."""
    texts, numbers = node.attr("classlabels_strings"), node.attr("classlabels_int64s")
    count = len(texts or numbers or ())
    if count < 3:
        node.refuse("how one of two classes is chosen by the scores is each runtime's convention", _STAY)
    scores = _scores(node, op, "class", count, "SUM", "NONE")
    best = op.at(13).ArgMax(scores, axis=1, keepdims=0)
    if texts:
        best = label(op, best, texts, default_string="")
    elif numbers != list(range(count)):
        best = op.at(1).Gather(op.const(numbers), best)
    return best, _transformed(node, op, scores, node.attr("post_transform"))


def _scores(node: Node, op: Emitter, voting: str, targets: int, aggregate: str, transform: str) -> Value:
    """Writes what the trees and the base values give, in float."""
    x, dtype = node.input(0), node.dtype(0)
    work = FLOAT if dtype == FLOAT else DOUBLE
    kind: Any = numpy.float64 if work == DOUBLE else numpy.float32
    weights, base, thresholds = (_numbers(node, name) for name in (f"{voting}_weights", "base_values", "nodes_values"))
    if work == DOUBLE or numpy.float64 in (weights.dtype, base.dtype):
        op.equivalent("the scores are summed up in another precision")
    if work == FLOAT and thresholds.dtype == numpy.float64:
        thresholds = _float_thresholds(node, thresholds)
    voters = list(zip(node.attr(f"{voting}_treeids"), node.attr(f"{voting}_nodeids"), strict=True))
    if aggregate == "AVERAGE" and (len(set(voters)) < len(voters) or base.any()):
        op.equivalent("weights are divided by the number of trees before they are summed up")
        aggregate, weights = "SUM", weights / len(set(node.attr("nodes_treeids")))
    forest = Forest.from_lists(node, voting, weights, thresholds)
    if voting == "class" and (weights < 0).any() and not base.size and len(forest.always_voted()) < targets:
        op.equivalent("whether a class without a vote wins over negative scores is not specified, and runtimes differ")
    added = aggregate in ("MIN", "MAX") and base.any()
    if added and len(forest.always_voted()) < targets:
        op.conditional(f"each target has a vote: whether the {aggregate} of none gets a base value is not specified")
    if base.any() and not added:
        op.equivalent("the base values are summed up with the votes")
        forest.roots += [Leaf([(target, value)]) for target, value in enumerate(base.tolist()) if value]
    # Of a single score, or by the two other functions: written out, these would not be what runtimes make of them.
    inside = transform if not added and (targets == 1 or transform not in ("SOFTMAX", "LOGISTIC")) else "NONE"

    def vote(leaf: Leaf, turn: int) -> Vote:
        if turn < len(leaf.votes):
            return leaf.votes[turn]
        if aggregate in ("MIN", "MAX"):
            if not leaf.votes:
                node.refuse(f"a leaf has no vote, and its 0 would count for {aggregate}")
            return leaf.votes[0]  # once more makes no difference
        return 0, 0.0

    tables = forest.tables(vote)
    for name, number in (("nodes_modes", numpy.uint8), ("nodes_splits", kind), ("leaf_weights", kind)):
        tables[name] = numpy.array(tables[name], dtype=number)
    y = op.node(
        "TreeEnsemble",
        x if dtype in (FLOAT, DOUBLE) else op.at(13).Cast(x, to=DOUBLE),
        domain=AI_ONNX_ML,
        n_targets=targets,
        aggregate_function=_AGGREGATES.index(aggregate),
        post_transform=_TRANSFORMS.index(inside),
        **tables,
    )[0]
    if added:
        y = op.at(7).Add(y, op.const(base, work))
    if inside != transform:
        y = _transformed(node, op, y, transform)
    return y if work == FLOAT else op.at(13).Cast(y, to=FLOAT)


def _transformed(node: Node, op: Emitter, scores: Value, transform: str) -> Value:
    if transform == "NONE":
        return scores
    if transform not in ("SOFTMAX", "LOGISTIC"):
        node.refuse(f"there is no form for post_transform {transform} of these scores", _STAY)
    op.equivalent(f"{transform} of the scores is an operator of its own, which may round differently")
    return op.at(13).Softmax(scores, axis=-1) if transform == "SOFTMAX" else op.at(13).Sigmoid(scores)


# ---- 5, down: a regressor


@downgrade("TreeEnsemble", at=5, domain=AI_ONNX_ML)
def regress_by_nodes(node: Node, op: Emitter) -> Value:
    """Nodes and leaves go into one table; being member of a set becomes a chain of equalities."""
    x, dtype = node.input(0), node.dtype(0)
    if dtype == DOUBLE:
        node.refuse("its output is double, that of a TreeEnsembleRegressor float", "make the input float")
    if dtype == FLOAT16:
        op.equivalent("computed in float, rounded once")
    y = op.node(
        "TreeEnsembleRegressor",
        op.at(13).Cast(x, to=FLOAT) if dtype == FLOAT16 else x,
        domain=AI_ONNX_ML,
        n_targets=node.attr("n_targets") or 1,
        aggregate_function=_word(node, _AGGREGATES, node.attr("aggregate_function")),
        post_transform=_word(node, _TRANSFORMS, node.attr("post_transform")),
        **Forest.from_tables(node).lists(),
    )[0]
    return y if dtype != FLOAT16 else op.at(13).Cast(y, to=FLOAT16)
