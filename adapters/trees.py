# SPDX-License-Identifier: Apache-2.0
"""TreeEnsembleRegressor, TreeEnsembleClassifier, TreeEnsemble, of the domain ai.onnx.ml.

3: thresholds, weights and base values may be tensors of double.
5: one operator for both, TreeEnsemble. Leaves have a table of their own and one vote each; there are sets to be member
of; there are no base values, and the output has the dtype of the input, where it was float.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import AI_ONNX_ML, downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT, FLOAT16
from onnx_convert.adapters.ml import label

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

    Numbers = numpy.ndarray[Any, Any]

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
    lists = {}
    for name in (full.removesuffix(_TENSOR) for full in tensors):
        numbers = node.tensor(name + _TENSOR)
        if name == "nodes_values":
            numbers = _float_thresholds(node, numbers)
        elif numbers.dtype == numpy.float64 and name != "nodes_hitrates":
            op.equivalent("weights are rounded to float, and summed up in it")
        with numpy.errstate(over="ignore"):
            lists[name] = numbers.astype(numpy.float32).tolist()
    return op.same(drop=tensors, **lists)


def _float_thresholds(node: Node, exact: Numbers) -> Numbers:
    """The floats that divide all floats as these thresholds do."""
    with numpy.errstate(over="ignore"):
        near = exact.astype(numpy.float32)
    if (near == exact).all():
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


# ---- 5, up: one operator for both


@dataclass(slots=True)
class Ensemble:
    """The tables of TreeEnsemble, one entry a node or leaf."""

    roots: list[int] = field(default_factory=list)
    nodes: list[tuple[int, int, float, int]] = field(default_factory=list)  # feature, mode, split, follows NaN
    branches: list[list[tuple[int, bool]]] = field(default_factory=list)  # true and false: where, is it a leaf
    leaves: list[tuple[int, float]] = field(default_factory=list)  # target, weight

    def leaf(self, vote: tuple[int, float]) -> tuple[int, bool]:
        """The place of a new leaf."""
        self.leaves.append(vote)
        return len(self.leaves) - 1, True

    def plant(self, vote: tuple[int, float]) -> None:
        """A tree of one leaf: both branches of a node lead to it."""
        self.roots.append(len(self.nodes))
        self.nodes.append((0, 0, 0.0, 0))
        self.branches.append([self.leaf(vote)] * 2)

    def write(self, op: Emitter, x: Value, dtype: int, **attributes: Any) -> Value:
        """The node."""
        kind = numpy.float64 if dtype == DOUBLE else numpy.float32
        features, modes, splits, missing = zip(*self.nodes, strict=True)
        (true, true_leaves), (false, false_leaves) = (
            zip(*(pair[side] for pair in self.branches), strict=True) for side in (0, 1)
        )
        return op.node(
            "TreeEnsemble",
            x,
            domain=AI_ONNX_ML,
            tree_roots=self.roots,
            nodes_featureids=features,
            nodes_modes=numpy.array(modes, dtype=numpy.uint8),
            nodes_splits=numpy.array(splits, dtype=kind),
            nodes_missing_value_tracks_true=missing if any(missing) else None,
            nodes_truenodeids=true,
            nodes_trueleafs=map(int, true_leaves),
            nodes_falsenodeids=false,
            nodes_falseleafs=map(int, false_leaves),
            leaf_targetids=[target for target, _ in self.leaves],
            leaf_weights=numpy.array([weight for _, weight in self.leaves], dtype=kind),
            **attributes,
        )[0]


@upgrade("TreeEnsembleRegressor", at=5, domain=AI_ONNX_ML)
def regress_by_ensemble(node: Node, op: Emitter) -> Value:
    """Nodes and leaves go into two tables, and each base value into a tree of one leaf."""
    return _scores(node, op, "target", node.attr("n_targets") or 1, node.attr("post_transform"))


@upgrade("TreeEnsembleClassifier", at=5, domain=AI_ONNX_ML)
def classify_by_ensemble(node: Node, op: Emitter) -> tuple[Value, Value]:
    """A regression to one score a class; the class is that of the highest."""
    texts, numbers = node.attr("classlabels_strings"), node.attr("classlabels_int64s")
    count = len(texts or numbers or ())
    if count < 3:
        node.refuse("how one of two classes is chosen by the scores is each runtime's convention", _STAY)
    scores = _scores(node, op, "class", count, "NONE")
    best = op.at(13).ArgMax(scores, axis=1, keepdims=0)
    if texts:
        best = label(op, best, texts, default_string="")
    elif numbers != list(range(count)):
        best = op.at(1).Gather(op.const(numbers), best)
    return best, _transformed(node, op, scores, node.attr("post_transform"))


def _scores(node: Node, op: Emitter, votes: str, targets: int, transform: str) -> Value:
    """What the trees and the base values give, in float."""
    x, dtype = node.input(0), node.dtype(0)
    work = FLOAT if dtype == FLOAT else DOUBLE
    weights, base = _numbers(node, f"{votes}_weights"), _numbers(node, "base_values")
    if work == DOUBLE or numpy.float64 in (weights.dtype, base.dtype):
        op.equivalent("the scores are summed up in another precision")
    aggregate = node.attr("aggregate_function") or "SUM"
    ensemble, trees = _ensemble(node, votes, weights, aggregate, work)
    if aggregate == "AVERAGE" and (len(ensemble.roots) > trees or base.any()):
        op.equivalent("weights are divided by the number of trees before they are summed up")
        aggregate = "SUM"
        ensemble.leaves = [(target, weight / trees) for target, weight in ensemble.leaves]
    added = aggregate in ("MIN", "MAX") and base.any()
    for target, value in enumerate([] if added else base.tolist()):
        if value:
            ensemble.plant((target, value))
    # Of a single score, or by the two other functions: written out, these would not be what runtimes make of them.
    inside = transform if not added and (targets == 1 or transform not in ("SOFTMAX", "LOGISTIC")) else "NONE"
    y = ensemble.write(
        op,
        x if dtype in (FLOAT, DOUBLE) else op.at(13).Cast(x, to=DOUBLE),
        work,
        n_targets=targets,
        aggregate_function=_AGGREGATES.index(aggregate),
        post_transform=_TRANSFORMS.index(inside),
    )
    if added:
        y = op.at(7).Add(y, op.const(base, work))
    if inside != transform:
        y = _transformed(node, op, y, transform)
    return y if work == FLOAT else op.at(13).Cast(y, to=FLOAT)


def _transformed(node: Node, op: Emitter, scores: Value, transform: str) -> Value:
    if transform == "SOFTMAX":
        return op.at(13).Softmax(scores, axis=-1)
    if transform == "LOGISTIC":
        return op.at(13).Sigmoid(scores)
    if transform != "NONE":
        node.refuse(f"there is no form for post_transform {transform} of these scores", _STAY)
    return scores


def _ensemble(node: Node, votes: str, weights: Numbers, aggregate: str, work: int) -> tuple[Ensemble, int]:
    """The tables, with a tree once for each of the votes that its leaves have, and the number of trees before."""
    names = list(zip(node.attr("nodes_treeids"), node.attr("nodes_nodeids"), strict=True))
    place = {name: index for index, name in enumerate(names)}
    voted: dict[tuple[int, int], list[tuple[int, float]]] = {}
    voters = zip(node.attr(f"{votes}_treeids"), node.attr(f"{votes}_nodeids"), strict=True)
    for name, target, weight in zip(voters, node.attr(f"{votes}_ids"), weights.tolist(), strict=True):
        voted.setdefault(name, []).append((target, weight))
    thresholds = _numbers(node, "nodes_values")
    if work == FLOAT and thresholds.dtype == numpy.float64:
        thresholds = _float_thresholds(node, thresholds)
    modes, features, splits = node.attr("nodes_modes"), node.attr("nodes_featureids"), thresholds.tolist()
    missing = node.attr("nodes_missing_value_tracks_true") or [0] * len(names)
    children = (node.attr("nodes_truenodeids"), node.attr("nodes_falsenodeids"))
    inner = [index for index, mode in enumerate(modes) if mode != "LEAF"]
    below = {place[names[index][0], side[index]] for index in inner for side in children}
    roots = [index for index in range(len(names)) if index not in below]
    if len(roots) != len({tree for tree, _ in names}):
        node.refuse("a tree has not exactly one root", "the model is not valid")
    ensemble = Ensemble()
    rounds: dict[int, int] = {}
    for name, cast in voted.items():
        rounds[name[0]] = max(rounds.get(name[0], 1), len(cast))

    def vote(index: int, turn: int) -> tuple[int, float]:
        cast = voted.get(names[index], [])
        if turn < len(cast):
            return cast[turn]
        if aggregate in ("MIN", "MAX"):
            if not cast:
                node.refuse(f"a leaf has no vote, and its 0 would count for {aggregate}")
            return cast[0]  # once more makes no difference
        return 0, 0.0

    def grow(root: int, turn: int) -> None:
        if modes[root] == "LEAF":
            ensemble.plant(vote(root, turn))
            return
        pending = [(root, len(ensemble.nodes))]
        ensemble.roots.append(len(ensemble.nodes))
        ensemble.nodes.append((0, 0, 0.0, 0))
        ensemble.branches.append([])
        while pending:
            index, spot = pending.pop()
            ensemble.nodes[spot] = (features[index], _MODES.index(modes[index]), splits[index], missing[index])
            for side in children:
                child = place[names[index][0], side[index]]
                if modes[child] == "LEAF":
                    ensemble.branches[spot].append(ensemble.leaf(vote(child, turn)))
                else:
                    pending.append((child, len(ensemble.nodes)))
                    ensemble.branches[spot].append((len(ensemble.nodes), False))
                    ensemble.nodes.append((0, 0, 0.0, 0))
                    ensemble.branches.append([])

    for root in roots:
        for turn in range(rounds.get(names[root][0], 1)):
            grow(root, turn)
    return ensemble, len(roots)


def _numbers(node: Node, name: str) -> Numbers:
    """Numbers that are a list of floats or a tensor; none, if they are not given."""
    if node.has(name + _TENSOR):
        return node.tensor(name + _TENSOR)
    return numpy.array(node.attr(name) or [], dtype=numpy.float32)


# ---- 5, down: a regressor


@downgrade("TreeEnsemble", at=5, domain=AI_ONNX_ML)
def regress_by_nodes(node: Node, op: Emitter) -> Value:
    """Nodes and leaves go into one table; being member of a set becomes a chain of equalities."""
    x, dtype = node.input(0), node.dtype(0)
    if dtype == DOUBLE:
        node.refuse("its output is double, that of a TreeEnsembleRegressor float", "make the input float")
    nodes, leaves = _merged(node)
    features, modes, values, true, false, missing, trees, ids = zip(*nodes, strict=True)
    leaf_trees, leaf_nodes, targets, weights = zip(*leaves, strict=True)
    y = op.node(
        "TreeEnsembleRegressor",
        op.at(13).Cast(x, to=FLOAT) if dtype == FLOAT16 else x,
        domain=AI_ONNX_ML,
        n_targets=node.attr("n_targets") or 1,
        aggregate_function=_AGGREGATES[node.attr("aggregate_function")],
        post_transform=_TRANSFORMS[node.attr("post_transform")],
        nodes_treeids=trees,
        nodes_nodeids=ids,
        nodes_featureids=features,
        nodes_modes=modes,
        nodes_values=values,
        nodes_truenodeids=true,
        nodes_falsenodeids=false,
        nodes_missing_value_tracks_true=missing if any(missing) else None,
        target_treeids=leaf_trees,
        target_nodeids=leaf_nodes,
        target_ids=targets,
        target_weights=weights,
    )[0]
    if dtype != FLOAT16:
        return y
    op.equivalent("computed in float, rounded once")
    return op.at(13).Cast(y, to=FLOAT16)


def _merged(node: Node) -> tuple[list[list[Any]], list[tuple[int, int, int, float]]]:
    """The rows of the table of nodes, and those of the table of votes. A node with two parents is written twice."""
    modes, splits, weights = (node.tensor(n).tolist() for n in ("nodes_modes", "nodes_splits", "leaf_weights"))
    features, targets = node.attr("nodes_featureids"), node.attr("leaf_targetids")
    missing = node.attr("nodes_missing_value_tracks_true") or [0] * len(modes)
    sides = [(node.attr(f"nodes_{side}nodeids"), node.attr(f"nodes_{side}leafs")) for side in ("true", "false")]
    sets = _sets(node, modes)
    nodes: list[list[Any]] = []
    leaves: list[tuple[int, int, int, float]] = []
    for tree, root in enumerate(node.attr("tree_roots")):
        first = len(nodes)

        def put(*row: Any, tree: int = tree, first: int = first) -> int:
            nodes.append([*row, tree, len(nodes) - first])
            return len(nodes) - 1 - first

        pending = [(root, False, -1, 0)]  # what to write, is it a leaf, and the place and column that point to it
        while pending:
            index, is_leaf, parent, column = pending.pop()
            if is_leaf:
                spot = put(0, "LEAF", 0.0, 0, 0, 0)
                leaves.append((tree, spot, targets[index], weights[index]))
            else:
                chain = sets[index] if modes[index] == _MEMBER else [splits[index]]
                mode = _EQUAL if modes[index] == _MEMBER else _MODES[modes[index]]
                (true, true_leaf), (false, false_leaf) = ((ids[index], bool(leafs[index])) for ids, leafs in sides)
                spots = [put(features[index], mode, value, 0, 0, missing[index]) for value in chain]
                spot = spots[0]
                for here, following in pairwise(spots):
                    nodes[first + here][4] = following
                pending += [(true, true_leaf, here, 3) for here in spots]
                pending.append((false, false_leaf, spots[-1], 4))
            if parent >= 0:
                nodes[first + parent][column] = spot
    return nodes, leaves


def _sets(node: Node, modes: list[int]) -> dict[int, list[float]]:
    """The members of each node's set; NaN ends a set. An empty one has NaN for a member, which nothing equals."""
    if not node.has("membership_values"):
        return {}
    found: list[list[float]] = [[]]
    for value in node.tensor("membership_values").tolist():
        if math.isnan(value):
            found.append([])
        else:
            found[-1].append(value)
    asking = [index for index, mode in enumerate(modes) if mode == _MEMBER]
    return {index: members or [math.nan] for index, members in zip(asking, found, strict=False)}
