# SPDX-License-Identifier: Apache-2.0
"""A domain as a tree of choices: walked without repetition until nothing is left, evenly, and from the simple side.

Whoever makes a case picks one option after the other, the simplest of each list first; what can be picked may depend
on what was. So a domain is written as if one case were made, and a case is a list of numbers: lower is simpler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

Option = TypeVar("Option")
Case = TypeVar("Case")


class Outside(Exception):
    """What was picked does not go together: no case."""


@dataclass
class Choices:
    """The picks of one case. `decide` is told the name of a choice and the number of its options."""

    decide: Callable[[str, int, bool], int]
    picked: list[int] = field(default_factory=list)
    named: list[str] = field(default_factory=list)

    def pick(self, name: str, options: Sequence[Option], *, rare: bool = False) -> Option:
        """Returns one of the options. Where all but the first are rare, it is taken half of the time."""
        if not options:
            raise Outside
        index = self.decide(name, len(options), rare) if len(options) > 1 else 0
        self.picked.append(index)
        if index:
            self.named.append(f"{name} = {options[index]}")
        return options[index]


@dataclass
class _Fork:
    """A choice that was met: the options that are not done with, and what follows each."""

    open: list[int]
    after: dict[int, _Fork] = field(default_factory=dict)


class Tree:
    """A domain that is being walked: `next` returns a case that was not yet, until it returns None."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._uses: Counter[tuple[str, int]] = Counter()  # how often an option was taken, by the name of the choice
        self._first: _Fork | None = None
        self.done = False

    def next(self, make: Callable[[Choices], Case]) -> Case | None:
        """Returns what `make` makes of picks that were not yet; raises Outside if they do not go together."""
        if self.done:
            return None
        way: list[tuple[_Fork, int]] = []

        def decide(name: str, count: int, rare: bool) -> int:
            fork = self._fork(way, count)
            index = 0
            if not (rare and 0 in fork.open and self._random.random() < 0.5):
                least = min(self._uses[name, at] for at in fork.open)
                index = self._random.choice([at for at in fork.open if self._uses[name, at] == least])
                self._uses[name, index] += 1
            way.append((fork, index))
            return index

        try:
            return make(Choices(decide))
        finally:
            self._close(way)

    def _fork(self, way: list[tuple[_Fork, int]], count: int) -> _Fork:
        if not way:
            if self._first is None:
                self._first = _Fork(list(range(count)))
            return self._first
        before, index = way[-1]
        return before.after.setdefault(index, _Fork(list(range(count))))

    def _close(self, way: list[tuple[_Fork, int]]) -> None:
        """Takes the leaf off the tree, and every fork that has no leaf any more."""
        for fork, index in reversed(way):
            fork.open.remove(index)
            fork.after.pop(index, None)
            if fork.open:
                return
        self.done = True


def again(picked: Sequence[int], make: Callable[[Choices], Case]) -> tuple[Case, Choices]:
    """Returns the case of these picks, and the picks as they were made; where they run out, the simplest is taken."""
    rest = list(picked)

    def decide(_name: str, count: int, _rare: bool) -> int:
        return min(rest[len(choices.picked)], count - 1) if len(choices.picked) < len(rest) else 0

    choices = Choices(decide)
    return make(choices), choices


def shrink(picked: Sequence[int], fails: Callable[[Sequence[int]], Sequence[int] | None], patience: int) -> list[int]:
    """Returns the simplest picks that still fail: each is lowered as far as it goes, until none goes any lower.

    `fails` returns the picks as they were made if that case fails, else None.
    """
    best = list(picked)
    found = True
    while found:
        found = False
        for at in range(len(best)):
            for lower in range(best[at] if at < len(best) else 0):
                patience -= 1
                if patience < 0:
                    return best
                made = fails([*best[:at], lower, *best[at + 1 :]])
                if made is not None and (sum(map(bool, made)), sum(made)) < (sum(map(bool, best)), sum(best)):
                    best, found = list(made), True
                    break
    return best
