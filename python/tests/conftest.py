"""What the tests share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import zonelab

ROOT = Path(__file__).resolve().parents[2]

SMALL = """
schema = 1
id = "small"
title = "Random reads beside finishes, for milliseconds"
profile = "confznspp"

[axis]
name = "queue depth"
values = [1, 2, 4]

[[job]]
name = "read"
work = "read"
zones = "40..=44"
block = "16KiB"
queue_depth = "$x"
runtime = "20ms"
ends_run = true

[[job]]
name = "finish"
work = "finish"
zones = "0..=39"
fill = "16KiB"
fill_block = "16KiB"

[[series]]
name = "reads alone"
full_zones = "40..=44"
jobs = ["read"]

[[series]]
name = "beside finishes"
full_zones = "40..=44"
jobs = ["read", "finish"]

[[compare]]
job = "read"
metrics = ["kiops", "lat_p95_us"]

[figure]
job = "read"
x = "kiops"
y = "lat_p95_us"
log_y = true
"""
"""An experiment that takes some milliseconds."""


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def small() -> str:
    """The text of a small experiment."""
    return SMALL


@pytest.fixture(scope="session")
def small_results() -> zonelab.Results:
    """What it measured."""
    return zonelab.run(SMALL, threads=2)


@pytest.fixture(scope="session")
def command() -> Callable[..., str]:
    """Runs the `zonelab` command, and gives what it prints."""
    path = os.environ.get("ZONELAB")
    if path is None:
        pytest.skip("ZONELAB does not say where the command is")

    def run(*words: str, code: int = 0) -> str:
        done = subprocess.run([path, *words], capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return run
