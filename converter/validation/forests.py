# SPDX-License-Identifier: Apache-2.0
"""Checks the lists of tree ensembles: whether the nodes that they refer to are there, and no node leads to itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import AttributeProto

    Given = Mapping[str, AttributeProto]

_LEAVES: Final = {"TreeEnsembleClassifier": "class", "TreeEnsembleRegressor": "target"}


def fault(operator: str, given: Given) -> str:
    """Returns what is wrong with the trees of a node, "" if nothing is, or if it has none."""
    if operator == "TreeEnsemble":
        return _fault_of_nodes(given)
    if operator in _LEAVES:
        return _fault_of_trees(_LEAVES[operator], given)
    return ""


def _ints(given: Given, name: str) -> list[int]:
    return list(given[name].ints) if name in given else []


def _fault_of_nodes(given: Given) -> str:
    """Returns the fault of nodes that are counted through all trees, as from ai.onnx.ml 5 on."""
    nodes, leaves = len(_ints(given, "nodes_featureids")), len(_ints(given, "leaf_targetids"))
    if any(root >= nodes for root in _ints(given, "tree_roots")):
        return f"attribute tree_roots refers to a node beyond the {nodes} that there are"
    ways: list[list[int]] = [[] for _ in range(nodes)]
    for side in ("true", "false"):
        leafs, numbers = _ints(given, f"nodes_{side}leafs"), _ints(given, f"nodes_{side}nodeids")
        for way, leaf, number in zip(ways, leafs, numbers, strict=False):
            if not 0 <= number < (leaves if leaf else nodes):
                return f"attribute nodes_{side}nodeids refers to {'leaf' if leaf else 'node'} {number}, which is none"
            if not leaf:
                way.append(number)
    targets = given["n_targets"].i if "n_targets" in given else 1
    if any(target >= targets for target in _ints(given, "leaf_targetids")):
        return f"attribute leaf_targetids refers to a target beyond the {targets} that there are"
    return _fault_of_ways(ways)


def _fault_of_trees(leaf: str, given: Given) -> str:
    """Returns the fault of nodes that are counted in each tree."""
    trees, numbers = _ints(given, "nodes_treeids"), _ints(given, "nodes_nodeids")
    modes = list(given["nodes_modes"].strings) if "nodes_modes" in given else []
    places = {key: place for place, key in enumerate(zip(trees, numbers, strict=False))}
    if len(places) < min(len(trees), len(numbers)):
        twice = next(key for key, times in Counter(zip(trees, numbers, strict=False)).items() if times > 1)
        return f"tree {twice[0]} has node {twice[1]} twice"
    ways: list[list[int]] = [[] for _ in trees]
    for side in ("true", "false"):
        for place, (tree, number, mode) in enumerate(
            zip(trees, _ints(given, f"nodes_{side}nodeids"), modes, strict=False)
        ):
            if mode == b"LEAF":
                continue
            if (tree, number) not in places:
                return f"attribute nodes_{side}nodeids refers to node {number} of tree {tree}, which is none"
            ways[place].append(places[tree, number])
    for key in zip(_ints(given, f"{leaf}_treeids"), _ints(given, f"{leaf}_nodeids"), strict=False):
        if key not in places:
            return f"attribute {leaf}_nodeids refers to node {key[1]} of tree {key[0]}, which is none"
    return _fault_of_ways(ways)


def _fault_of_ways(ways: Sequence[Sequence[int]]) -> str:
    """Says which node leads back to itself, given where each leads."""
    waiting = Counter(number for way in ways for number in way)
    free = [number for number in range(len(ways)) if not waiting[number]]
    done = 0
    while free:
        done += 1
        for number in ways[free.pop()]:
            waiting[number] -= 1
            if not waiting[number]:
                free.append(number)
    return "" if done == len(ways) else "a node of a tree leads back to itself"
