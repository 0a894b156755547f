"""What policies of one's own look like, and the built-in ones written in Python.

A policy is any object with the methods of one of the protocols here; it need not inherit
from anything. What it is given are values, which it may keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from zonelab._native import (
        AllocationRequest,
        FreeElement,
        FreeZone,
        InvalidZone,
        ResetView,
        VictimZone,
    )

ResetState: TypeAlias = Literal["serving", "partial", "full"]
"""What a group of zones does: serves the host, erases steps beside it, holds it back."""

ResetStep: TypeAlias = Literal["wait", "row", "zone"] | int
"""What a group in state "partial" erases now; a number is a time to look again, in ns."""

ResetEvent: TypeAlias = Literal[
    "before-allocation",
    "allocated",
    "released",
    "erased",
    "served",
    "command-begins",
    "command-ends",
    "resumed",
]
"""What a reset policy can hear of."""


class ResetPolicy(Protocol):
    """When how much of the flash of reset zones is erased.

    The drive's profile needs ``reset.erase_at = "thresholds"``. Beside the method below, an
    object may have:

    * ``events``, names of events that it wants to hear of; by default those that change how
      many zones are free or invalid. ``command-begins`` and ``command-ends`` cost a call
      per command.
    * ``step(view)``, what a group in state "partial" erases now; by default nothing.
    * ``erases_more(view)``, whether a group in state "full" erases one zone more before the
      host goes on; by default not.
    * ``victim(view, candidates)``, the position of the zone that is erased next; by default
      the one that was reset first.
    * ``sees_flash = True``, to get ``idle_units``, ``units`` and ``rows_of_next`` as well.
    * ``has_memory = False``, if its answers depend on nothing but what it is given: drives
      with others cannot be saved.
    * ``name``, for messages.
    """

    def state_after(self, event: ResetEvent, view: ResetView, /) -> ResetState:
        """The state of a group after something happened. Not "full" after "served"."""
        ...


class AllocationPolicy(Protocol):
    """Which flash zones get.

    The profile's ``mapping.design`` decides which method is asked, and an object needs only
    that one: ``physical_zone`` for ``lazy``, for ``chunk`` and ``stripe``
    ``elements(request, candidates)``, which returns numbers of elements, or ``None`` for the
    built-in choice.
    """

    def physical_zone(self, request: AllocationRequest, candidates: Sequence[FreeZone], /) -> int:
        """The position of the physical zone that a zone gets."""
        ...


class ElementsPolicy(Protocol):
    """The same where zones consist of storage elements."""

    def elements(
        self, request: AllocationRequest, candidates: Sequence[FreeElement], /
    ) -> Sequence[int] | None:
        """Numbers of the elements that a zone gets, or ``None`` for the built-in choice."""
        ...


class VictimPolicy(Protocol):
    """Which zone the flash translation layer empties next."""

    def choose(self, candidates: Sequence[VictimZone], /) -> int:
        """The position of the next victim."""
        ...


class Scheduler(Protocol):
    """In which order requests of the host go to the drive.

    An object may also have ``completed(now, op, lba, nlb)``.
    """

    def insert(self, now: int, number: int, op: str, lba: int, nlb: int, /) -> None:
        """Takes a request, which is called ``number`` from now on."""
        ...

    def dispatch(self, now: int, /) -> int | None:
        """The number of the request that goes now; ``None``: none, until one completes."""
        ...


class Thresholds:
    """The built-in erasure by thresholds, in Python: the same results, call by call.

    The zone mapping method and preemptive zone reset of Jung et al., Electronics 12, 798
    (2023), without thresholds that adapt to the load.
    """

    has_memory = False

    def __init__(
        self,
        free_zones: int = 1,
        invalid_zones: int | None = 1,
        *,
        evaluate: Literal["allocation", "command", "change"] = "allocation",
        zones_at_once: int | None = None,
        victim: Literal["oldest", "least-worn"] = "oldest",
    ) -> None:
        """The keys of ``[reset.thresholds]`` of a profile."""
        self.free_zones = free_zones
        self.invalid_zones = invalid_zones
        self.evaluate = evaluate
        self.zones_at_once = zones_at_once
        self.oldest = victim == "oldest"
        events: dict[str, tuple[ResetEvent, ...]] = {
            "allocation": ("before-allocation",),
            "command": ("command-begins",),
            "change": ("allocated", "released"),
        }
        self.looks_at = events[evaluate]
        counts: Iterable[ResetEvent] = ("allocated", "released", "erased", "served", "resumed")
        self.events = (*counts, *self.looks_at)

    def state_after(self, event: ResetEvent, view: ResetView) -> ResetState:
        """Full if too few zones are free, else partial if enough are invalid."""
        if event in self.looks_at and view.free <= self.free_zones and view.has_victim:
            return "full"
        if event in ("before-allocation", "command-begins"):
            return view.state
        if self.invalid_zones is not None and view.invalid >= self.invalid_zones:
            return "partial"
        return "serving"

    def step(self, view: ResetView) -> ResetStep:
        """A row whenever nothing of the host is under way."""
        return "row" if view.is_quiet else "wait"

    def erases_more(self, view: ResetView) -> bool:
        """Until enough are free, or as many have been erased as may be at once."""
        # Before the allocation that has brought this about, there was one more.
        needed = self.free_zones + (self.evaluate != "allocation")
        if view.free >= needed:
            return False
        most = self.zones_at_once
        return most is None or view.erased_whole < most * view.parts_of_zone

    def victim(self, _view: ResetView, candidates: Sequence[InvalidZone]) -> int:
        """The zone that was reset first, or the one that was erased least."""
        if self.oldest:
            return 0
        return min(range(len(candidates)), key=lambda at: candidates[at].wear)


class Greedy:
    """The built-in choice of victims, in Python: the fewest valid blocks."""

    def choose(self, candidates: Sequence[VictimZone]) -> int:
        """The zone with the fewest valid blocks; of equals, the one that was closed first."""
        return min(
            range(len(candidates)),
            key=lambda at: (candidates[at].valid, candidates[at].closed_as),
        )


class CostBenefit:
    """The built-in rule by cost and benefit, in Python."""

    def choose(self, candidates: Sequence[VictimZone]) -> int:
        """The largest ``(1 - u) * age / (1 + u)``, ``u`` being the share of valid blocks."""

        def benefit(zone: VictimZone) -> float:
            share = zone.valid / zone.blocks
            return (1.0 - share) * zone.age / (1.0 + share)

        return max(range(len(candidates)), key=lambda at: benefit(candidates[at]))
