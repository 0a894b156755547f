"""Policies that are Python objects: the built-in ones in Python are the built-in ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import zonelab
from zonelab.policies import CostBenefit, Greedy, ResetEvent, ResetState, ResetStep, Thresholds

#: A small relative of the drive for which preemptive zone reset was made.
SMALL = {
    "zones.size": "512MiB",
    "zones.count": 16,
    "geometry.blocks_per_plane": 80,
}


def load(drive: zonelab.Drive, seed: int) -> str:
    """Writes, reads and resets at random, and everything that came of it."""
    rng = random.Random(seed)
    for _ in range(250):
        zone = rng.randrange(16)
        kind = rng.random()
        if kind < 0.35:
            drive.submit("write", zone=zone, nbytes=16384 * rng.randrange(1, 5))
        elif kind < 0.6:
            drive.submit("read", zone=zone, nbytes=16384)
        elif kind < 0.85:
            drive.submit("reset", zone=zone)
        elif kind < 0.9:
            drive.submit("finish", zone=zone)
        drive.advance_frame(drive.now + rng.choice([1_000, 300_000, 8_000_000]))
    frame = drive.advance_frame()
    return "\n".join(
        [
            frame.to_csv(),
            drive.busy().to_csv(),
            drive.wear().to_csv(),
            drive.zones().to_csv(),
            drive.groups().to_csv(),
            repr(drive.totals),
        ]
    )


@pytest.mark.parametrize("evaluate", ["allocation", "command", "change"])
@pytest.mark.parametrize("victim", ["oldest", "least-worn"])
@pytest.mark.parametrize(("free", "invalid", "at_once"), [(1, 1, None), (2, None, 1), (3, 2, 2)])
def test_thresholds_in_python_are_those_of_the_drive(
    evaluate: Any, victim: Any, free: int, invalid: int | None, at_once: int | None
) -> None:
    keys: dict[str, Any] = {
        "free_zones": free,
        "invalid_zones": invalid,
        "evaluate": evaluate,
        "victim": victim,
        "zones_at_once": at_once,
    }
    given = {f"reset.thresholds.{key}": value for key, value in keys.items() if value is not None}
    settings: dict[str, Any] = SMALL | given
    if invalid is None:
        settings["reset.thresholds.invalid_zones"] = None
    policy = Thresholds(free, invalid, evaluate=evaluate, zones_at_once=at_once, victim=victim)
    for seed in range(3):
        native = zonelab.Drive("cosmos-plus", set=settings)
        own = zonelab.Drive("cosmos-plus", set=settings, reset_policy=policy)
        for drive in (native, own):
            drive.fill(0, 12)
        assert load(native, seed) == load(own, seed)
        assert native.totals["erased_blocks"] > 0


class Given:
    """Gives stated answers, and counts what it was asked."""

    events = ("allocated", "released", "erased", "served", "resumed", "command-ends")

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"state": "partial", "step": "row", "victim": 0} | answers
        self.asked: list[str] = []

    def give(self, what: str) -> Any:
        self.asked.append(what)
        answer = self.answers[what]
        return answer() if callable(answer) else answer

    def state_after(self, event: ResetEvent, view: zonelab.ResetView) -> ResetState:
        assert view.free + view.invalid + view.allocated == 20, event
        return self.give("state")

    def step(self, view: zonelab.ResetView) -> ResetStep:
        assert view.state == "partial"
        return self.give("step")

    def victim(self, _view: zonelab.ResetView, candidates: Sequence[zonelab.InvalidZone]) -> int:
        assert all(zone.stale_blocks > 0 for zone in candidates)
        return self.give("victim")


def drive_with(policy: Any) -> zonelab.Drive:
    return zonelab.Drive("cosmos-plus", set=SMALL, reset_policy=policy)


def reset_one(drive: zonelab.Drive) -> None:
    drive.execute("write", zone=0, nbytes=16384)
    drive.execute("reset", zone=0)
    drive.advance()


@pytest.mark.parametrize(
    ("answers", "what"),
    [
        ({"state": "idle"}, '"serving", "partial" or "full"'),
        ({"state": 3}, "answered 3"),
        ({"step": "page"}, "answered 'page'"),
        ({"step": 1}, "a time after"),
        ({"step": None}, "answered None"),
        ({"victim": 5}, "a position among the 1 candidates"),
        ({"victim": "first"}, "a position in the list"),
        ({"victim": -1}, "answered -1"),
    ],
)
def test_answers_that_make_no_sense_are_errors(answers: dict[str, Any], what: str) -> None:
    policy = Given()
    drive = drive_with(policy)
    policy.answers |= answers
    with pytest.raises(zonelab.PolicyError, match=what) as caught:
        reset_one(drive)
    assert "policy Given" in str(caught.value)
    # It goes on without the policy.
    asked = len(policy.asked)
    reset_one(drive)
    assert len(policy.asked) == asked


def test_what_a_policy_raises_is_raised_as_it_is() -> None:
    class MineError(Exception):
        pass

    error = MineError("an idea that did not work")

    def fail() -> Any:
        raise error

    drive = drive_with(Given(step=fail))
    with pytest.raises(MineError) as caught:
        reset_one(drive)
    assert caught.value is error
    # Nothing is lost: it goes on without the policy.
    assert [done.op for done in drive.advance()] == ["write"]


def test_a_policy_cannot_call_its_drive() -> None:
    drives: list[zonelab.Drive] = []

    def meddle() -> Any:
        return drives[0].now

    drives.append(drive_with(Given(step=meddle)))
    with pytest.raises(zonelab.UsageError, match="at work"):
        reset_one(drives[0])


def test_policies_have_to_fit() -> None:
    with pytest.raises(zonelab.PolicyError, match=r"reset\.erase_at"):
        zonelab.Drive("confznspp", reset_policy=Given())
    with pytest.raises(zonelab.PolicyError, match=r"mapping\.design"):
        zonelab.Drive("confznspp", allocation=Last())
    with pytest.raises(zonelab.UsageError, match="no method state_after"):
        drive_with(object())
    policy = Given()
    policy.events = ("never",)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(zonelab.UsageError, match="there are before-allocation"):
        drive_with(policy)
    failing = Given(state="idle")
    with pytest.raises(zonelab.PolicyError, match="answered 'idle'"):
        drive_with(failing)


class Last:
    """The physical zone that became free last."""

    has_memory = False

    def physical_zone(
        self, request: zonelab.AllocationRequest, candidates: Sequence[zonelab.FreeZone]
    ) -> int:
        assert request.luns is None
        return len(candidates) - 1


class Wearing:
    """The storage elements of most wear."""

    def elements(
        self, request: zonelab.AllocationRequest, candidates: Sequence[zonelab.FreeElement]
    ) -> list[int]:
        assert request.per_lun is not None
        chosen: list[int] = []
        for lun in range(request.luns or 0):
            of_lun = [of for of in candidates if of.lun == lun]
            of_lun.sort(key=lambda of: -of.wear)
            chosen += [of.element for of in of_lun[: request.per_lun]]
        return chosen


def test_zones_get_the_flash_that_was_chosen() -> None:
    drive = zonelab.Drive("cosmos-plus", set=SMALL, allocation=Last())
    drive.execute("write", zone=0, nbytes=16384)
    drive.execute("write", zone=5, nbytes=16384)
    physical = drive.zones()["physical_zone"]
    assert (physical[0], physical[5]) == (19, 18)
    again = zonelab.Drive.restore("cosmos-plus", drive.snapshot(), set=SMALL)
    assert again.zones()["physical_zone"] == physical
    with_memory = drive_with(Given())
    with pytest.raises(zonelab.UsageError, match="has no memory"):
        with_memory.snapshot()


def test_elements_are_chosen_too() -> None:
    settings = SMALL | {
        "mapping.design": "stripe",
        "reset.erase_at": "background",
        "reset.thresholds.free_zones": None,
        "reset.thresholds.invalid_zones": None,
    }
    spread: list[int] = []
    for allocation in (None, Wearing()):
        drive = zonelab.Drive("cosmos-plus", set=settings, allocation=allocation)
        for _ in range(10):
            drive.execute("write", zone=0, nbytes=16384)
            drive.execute("finish", zone=0)
            drive.execute("reset", zone=0)
            drive.advance()
        spread.append(max(drive.wear()["erasures"]))
    assert spread[0] < spread[1] == 10


def writes(count: int, seed: int) -> Callable[[dict[str, int]], Any]:
    """Overwrites blocks at random, eight at a time."""

    def workload(about: dict[str, int]) -> Any:
        rng = random.Random(seed)
        blocks, block = about["size_lbas"], about["lba_bytes"]
        for lba in range(0, blocks, 64):
            yield ("write", lba, block * min(64, blocks - lba))
        in_flight = 0
        for _ in range(count):
            commands = [("write", rng.randrange(blocks), block) for _ in range(8 - in_flight)]
            in_flight = 8 - len((yield commands))
        while in_flight:
            in_flight -= len((yield []))

    return workload


#: A drive of zones small enough for a translation layer to be busy.
TINY = {
    "geometry.pages_per_block": 4,
    "geometry.blocks_per_plane": 256,
    "zones.count": 64,
    "zones.size": "1MiB",
    "zones.capacity": "1MiB",
    "zones.max_active": 14,
    "zones.max_open": 14,
}


def test_greedy_victims_in_python_are_those_of_the_layer() -> None:
    def run(policies: zonelab.Policies | None) -> tuple[str, dict[str, Any]]:
        frame, totals = zonelab.simulate(
            "confznspp", writes(4_000, 1), set=TINY, ftl=True, policies=policies
        )
        return frame.to_csv(), totals

    native = run(None)
    assert native[1]["resets"] > 20
    assert native == run(zonelab.Policies(victims=Greedy))
    assert native != run(zonelab.Policies(victims=CostBenefit))


class Fifo:
    """Requests in the order in which they came."""

    def __init__(self) -> None:
        self.waiting: list[int] = []

    def insert(self, now: int, number: int, op: str, lba: int, nlb: int) -> None:
        assert now >= 0
        assert op == "read"
        assert nlb == 4
        assert lba % 4 == 0
        self.waiting.append(number)

    def dispatch(self, _now: int) -> int | None:
        return self.waiting.pop(0) if self.waiting else None


def reads(about: dict[str, int]) -> Any:
    """Reads, sixteen at a time."""
    rng = random.Random(3)
    for _ in range(100):
        commands = [("read", 4 * rng.randrange(10_000), 16384) for _ in range(16)]
        left = len(commands) - len((yield commands))
        while left:
            left -= len((yield []))
    assert about["zones"] == 48


def test_a_scheduler_in_python_that_keeps_the_order_changes_nothing() -> None:
    native, _ = zonelab.simulate("confznspp", reads, full_zones=4)
    own, _ = zonelab.simulate(
        "confznspp", reads, full_zones=4, policies=zonelab.Policies(scheduler=Fifo)
    )
    assert native.to_csv() == own.to_csv()
    assert len(native) == 1_600


def test_what_workloads_and_makers_raise_is_raised_as_it_is() -> None:
    def fails(_about: dict[str, int]) -> Any:
        yield ("read", 0, 4096)
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        zonelab.simulate("confznspp", fails)
    failing: Any = lambda: 1 // 0  # noqa: E731
    for maker in ("reset", "allocation", "scheduler", "victims"):
        with pytest.raises(ZeroDivisionError):
            zonelab.simulate(
                "cosmos-plus" if maker in ("reset", "allocation") else "confznspp",
                writes(4_000, 1) if maker == "victims" else reset_and_write,
                set=SMALL if maker in ("reset", "allocation") else TINY,
                ftl=maker == "victims",
                policies=zonelab.Policies(**{maker: failing}),
            )
    with pytest.raises(zonelab.UsageError, match="give a class"):
        zonelab.Policies(reset=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(zonelab.UsageError, match="a workload yields"):
        zonelab.simulate("confznspp", lambda _: iter_of(("read",)))
    with pytest.raises(zonelab.UsageError, match="no command"):
        zonelab.simulate("confznspp", lambda _: iter_of([]))


def iter_of(*yields: Any) -> Any:
    yield from yields


def reset_and_write(about: dict[str, int]) -> Any:
    """Writes and resets a zone."""
    for _ in range(3):
        yield ("write", 0, 4 * about["lba_bytes"])
        yield ("reset", 0)


EXPERIMENT = """
schema = 1
id = "own"
title = "Writes over and over"
profile = "cosmos-plus"

[host]
submit = "5us"
complete = "5us"

[axis]
name = "block"
values = ["512KiB", "2MiB"]

[[job]]
name = "write"
work = "write"
zones = "0..=3"
block = "$x"
command = "512KiB"
repeat = true
bytes = "4GiB"

[[series]]
name = "written"
jobs = ["write"]

[[compare]]
job = "write"
metrics = ["lat_mean_us"]
"""


def test_policies_take_part_in_experiments() -> None:
    settings = {"reset.thresholds.free_zones": 15} | SMALL
    drive = zonelab.Profile("cosmos-plus", set=settings)

    def run(policies: zonelab.Policies | None, threads: int = 1) -> tuple[str, ...]:
        results = zonelab.run(EXPERIMENT, profile=drive, policies=policies, threads=threads)
        return results.metrics.to_csv(), results.drives.to_csv(), results.latencies.to_csv()

    native = run(None)
    policies = zonelab.Policies(reset=lambda: Thresholds(15, 1))
    for threads in (1, 2):
        assert run(policies, threads) == native
    assert run(zonelab.Policies(reset=lambda: Thresholds(4, None))) != native


def test_what_a_policy_raises_ends_an_experiment() -> None:
    class Failing(Given):
        def state_after(self, event: ResetEvent, view: zonelab.ResetView) -> ResetState:
            if view.invalid:
                raise LookupError(event)
            return "serving"

    drive = zonelab.Profile("cosmos-plus", set=SMALL)
    with pytest.raises(LookupError, match="released"):
        zonelab.run(EXPERIMENT, profile=drive, policies=zonelab.Policies(reset=Failing))
    policies = zonelab.Policies(reset=lambda: Given(state="idle"))
    with pytest.raises(zonelab.InvalidInput, match="policy Given was asked for state_after"):
        zonelab.run(EXPERIMENT, profile=drive, policies=policies)
