"""The items of a pipeline, given or found, and the combinations of them that stages are repeated for."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from agentx.synthesis.pipelines.definition.faults import Faults, Place, hint
from agentx.synthesis.pipelines.definition.item_lists import ItemDict
from agentx.synthesis.pipelines.definition.pipeline import ForEach, FoundItems, Pipeline, Previous
from agentx.synthesis.pipelines.definition.plan import Item

OWN_KEYS = ("number", "first", "last", "of")
"""Keys of an item that the engine fills in."""

Found = Mapping[str, Sequence[ItemDict]]
"""Items that were found, by name; those that are not known yet are missing."""

_KEY = re.compile(r"[^\W_][\w.-]{0,63}")

_WIDTH = 2
"""Minimum number of digits of item ids if only the number of items is given."""


class ItemValues(dict[str, Any]):
    """The values of an item in a template, which prints its id for the item alone.

    >>> str(ItemValues(id="de", number=1))
    'de'
    """

    def __str__(self) -> str:
        """Return the id."""
        return str(self["id"])


class Items:
    """The items of a pipeline.

    Attributes:
        known: The items, by name.
        open: The names of items that are not known yet.
    """

    def __init__(self, pipeline: Pipeline, found: Found, faults: Faults) -> None:
        self._faults = faults
        self.known: dict[str, tuple[Item, ...]] = {}
        self.open: list[str] = []
        for name, given in pipeline.items.items():
            if isinstance(given, FoundItems):
                if name in found:
                    self.known[name] = tuple(self._items(name, found[name]))
                else:
                    self.open.append(name)
            elif isinstance(given, int):
                width = max(_WIDTH, len(str(given)))
                numbered = [{"id": str(number).zfill(width)} for number in range(1, given + 1)]
                self.known[name] = tuple(self._items(name, numbered))
            else:
                self.known[name] = tuple(self._items(name, given))

    def _items(self, name: str, given: Sequence[ItemDict]) -> Iterator[Item]:
        seen: set[str] = set()
        for number, values in enumerate(given, start=1):
            place: Place = ("items", name, number - 1)
            key = values.get("id", "")
            if not isinstance(key, str) or not _KEY.fullmatch(key):
                wrong = f"an `id` consists of letters, digits, dots, - and _; {key!r} does not"
                self._faults.add((*place, "id"), wrong if key else "the item has no `id`")
                continue
            for ours in values.keys() & OWN_KEYS:
                self._faults.add((*place, ours), f"{ours!r} of an item is set by the engine; remove it")
            if key in seen:
                self._faults.add((*place, "id"), f"duplicate item {key!r}")
            seen.add(key)
            first, last = number == 1, number == len(given)
            own = {"number": number, "first": first, "last": last, "of": len(given)}
            yield Item(key, number, {name: ItemValues(values | own)}, first, last)

    @property
    def values(self) -> dict[str, list[dict[str, Any]]]:
        """All known items for templates, by name."""
        return {name: [item.parts[name] for item in items] for name, items in self.known.items()}

    def count(self, for_each: ForEach | None) -> int:
        """Return the number of combinations before any is left out."""
        return prod(len(self.known[name]) for name in for_each.over) if for_each else 1

    def over(self, for_each: ForEach | None, place: Place) -> tuple[Item | None, ...]:
        """Return the items or combinations that a stage is repeated for; (``None``,) where it runs once."""
        if for_each is None:
            return (None,)
        for part in ("exclude", "include"):
            for number, rule in enumerate(getattr(for_each, part)):
                self._look_at_rule(rule, for_each, (*place, part, number))
        rows = product(*(self.known[name] for name in for_each.over))
        kept = [row for row in rows if not _left_out(for_each, row)]
        if not kept:
            self._faults.add(place, f"no combination of {' and '.join(for_each.over)} is left")
        return tuple(
            row[0]
            if len(row) == 1 and len(kept) == len(self.known[for_each.over[0]])
            else Item(
                ",".join(one.id for one in row),
                number,
                {name: one.parts[name] for name, one in zip(for_each.over, row, strict=True)},
                number == 1,
                number == len(kept),
            )
            for number, row in enumerate(kept, start=1)
        )

    def _look_at_rule(self, rule: Mapping[str, Sequence[str]], for_each: ForEach, place: Place) -> None:
        for name, ids in rule.items():
            if name not in for_each.over:
                what = f"{name!r} is not among the items of `over`{hint(name, for_each.over)}"
                self._faults.add((*place, name), what)
                continue
            known = [item.id for item in self.known[name]]
            for one in ids:
                if one not in known:
                    self._faults.add((*place, name), f"there is no {name} {one!r}{hint(one, known)}")


def _left_out(for_each: ForEach, row: Sequence[Item]) -> bool:
    """Return whether a combination is excluded and not included again."""
    ids = dict(zip(for_each.over, (item.id for item in row), strict=True))
    excluded, included = (
        any(all(ids.get(name) in wanted for name, wanted in rule.items()) for rule in rules)
        for rules in (for_each.exclude, for_each.include)
    )
    return excluded and not included


class Agreeing:
    """The items of one stage that agree with those of another: in each kind of item that both have."""

    def __init__(self, items: Sequence[Item | None]) -> None:
        self._items = items
        self._kinds = {name for item in items if item for name in item.parts}
        self._by: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = {}

    def of(self, item: Item | None) -> Sequence[str]:
        """Return the keys of the items that agree with an item; empty keys where the stage runs once."""
        shared = tuple(sorted(name for name in item.parts if name in self._kinds)) if item else ()
        if shared not in self._by:
            made: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
            for one in self._items:
                made[tuple(one.parts[name]["id"] for name in shared) if one else ()].append(
                    one.id if one else ""
                )
            self._by[shared] = made
        ids = tuple(item.parts[name]["id"] for name in shared) if item else ()
        return self._by[shared].get(ids, ())


def before(items: Sequence[Item | None], previous: Previous, present: Collection[str]) -> dict[str, str]:
    """Return for each item the item before it in its chain, by key; only those in ``present`` count.

    Raises:
        KeyError: An item lacks a value that ``by`` names.
    """
    latest: dict[tuple[str, ...], str] = {}
    made: dict[str, str] = {}
    for item in items:
        if item is None:
            continue
        chain = tuple(_value(item, word) for word in previous.by)
        if chain in latest:
            made[item.id] = latest[chain]
        if item.id in present:
            latest[chain] = item.id
    return made


def _value(item: Item, word: str) -> str:
    name, _, key = word.partition(".")
    return str(item.parts[name][key or "id"])
