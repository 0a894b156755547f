"""What policies in Python cost: prints figures, and asserts nothing.

python python/bench/callbacks.py
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import zonelab
from zonelab.policies import ResetEvent, ResetState, Thresholds

#: A small relative of the drive for which preemptive zone reset was made.
SMALL = {"zones.size": "512MiB", "zones.count": 16, "geometry.blocks_per_plane": 80}
COMMANDS = 200_000


class Counting:
    """Hears of each command and does nothing."""

    events = ("command-begins", "command-ends")

    def __init__(self) -> None:
        self.calls = 0

    def state_after(self, event: ResetEvent, view: zonelab.ResetView) -> ResetState:
        self.calls += 1
        return "serving"


class CountingThresholds(Thresholds):
    """The built-in rules, with calls counted."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def state_after(self, event: ResetEvent, view: zonelab.ResetView) -> ResetState:
        self.calls += 1
        return super().state_after(event, view)


def best(run: Callable[[], Any], times: int = 5) -> float:
    """The shortest of some runs, in seconds."""
    spans: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        spans.append(time.perf_counter() - start)
    return min(spans)


def reads(policy: Any) -> zonelab.Drive:
    """Reads, many at a time, of zones that are full."""
    drive = zonelab.Drive("cosmos-plus", set=SMALL, reset_policy=policy)
    drive.fill(0, 16)
    lbas = [4 * (n * 7919 % 400_000) for n in range(COMMANDS)]
    drive.submit_many("read", lba=lbas, nbytes=16384, depth=16)
    drive.advance_frame()
    return drive


def mixed(policy: Any) -> zonelab.Drive:
    """Zones that are written and reset over and over, with reads between."""
    drive = zonelab.Drive("cosmos-plus", set=SMALL, reset_policy=policy)
    drive.fill(0, 12)
    rng = random.Random(1)
    ops, zones, nbytes = [], [], []
    for _ in range(COMMANDS // 4):
        zone = rng.randrange(16)
        for op in ("reset", "write", "read", "read"):
            ops.append(op)
            zones.append(zone)
            nbytes.append(16384)
    drive.submit_many(ops, zone=zones, nbytes=nbytes, depth=8)
    drive.advance_frame()
    return drive


def main() -> None:
    """Prints what a call costs, and runs beside those with the built-in policy."""
    without = best(lambda: reads(None))
    counting = Counting()
    with_calls = best(lambda: reads(counting))
    calls = counting.calls / 5
    print(f"{COMMANDS} reads, built-in: {without * 1e9 / COMMANDS:.0f} ns each")
    print(f"with {calls:.0f} callbacks: {(with_calls - without) * 1e9 / calls:.0f} ns for each")
    native = best(lambda: mixed(None))
    policy = CountingThresholds()
    own = best(lambda: mixed(policy))
    print(
        f"{COMMANDS} writes, reads and resets: {native * 1e3:.0f} ms by the built-in thresholds, "
        f"{own * 1e3:.0f} ms by the same in Python ({own / native:.2f} times, "
        f"{policy.calls / 5:.0f} calls of state_after)"
    )
    drive = zonelab.Drive("confznspp")
    drive.fill(0, 8)

    def one_by_one() -> None:
        for n in range(10_000):
            drive.submit("read", lba=4 * n, nbytes=16384)
            drive.advance()

    def at_once() -> None:
        lbas = range(0, 40_000, 4)
        drive.submit_many("read", lba=list(lbas), nbytes=16384, depth=1)
        drive.advance_frame()

    single, many = best(one_by_one), best(at_once)
    print(
        f"a read: {single * 1e9 / 1e4:.0f} ns by submit and advance, "
        f"{many * 1e9 / 1e4:.0f} ns by submit_many"
    )


if __name__ == "__main__":
    main()
