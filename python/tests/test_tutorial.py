"""The tutorial with its Python: every block of it, in an empty directory."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from pathlib import Path

import pytest

BLOCK = re.compile(
    r"(?:^<!-- (file|at the end of): (\S+) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
"""A block of code: the file that it is written to, its language, and what is in it."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where programs are found, with `zonelab` among them."""
    program = os.environ.get("ZONELAB")
    if program is None:
        pytest.skip("ZONELAB does not say where the command is")
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "zonelab").symlink_to(Path(program).resolve())
    return f"{directory}:{os.environ['PATH']}"


def test_the_tutorial_does_what_it_says(
    root: Path, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "empty"
    here.mkdir()
    monkeypatch.chdir(here)
    text = (root / "docs/tutorial.md").read_text()
    blocks = BLOCK.findall(text)
    assert {language for _, _, language, _ in blocks} == {"toml", "csv", "console", "python"}
    names: dict[str, object] = {}
    for how, name, language, block in blocks:
        match language:
            case "console":
                for line in block.splitlines():
                    run(line.removeprefix("$ "), path)
            case "python":
                exec(compile(block, "docs/tutorial.md", "exec"), names)
            case _:
                assert name, f"a block that goes to no file:\n{block}"
                before = f"{Path(name).read_text()}\n" if how == "at the end of" else ""
                Path(name).write_text(before + block)
    # The last run has repeats, and those since the second a table to compare with.
    with Path("results/granularity/latest/rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["repeats"] for row in rows} == {"5"}
    assert sum(bool(row["published"]) for row in rows) == 5
    assert len(list(Path("results/granularity").glob("*/rows.csv"))) == 4
    assert len(Path("results/grid/latest/sweep.csv").read_text().splitlines()) > 6
    assert Path("granularity.pdf").stat().st_size > 1000


def run(line: str, path: str) -> None:
    """Runs a command of the tutorial."""
    done = subprocess.run(
        ["sh", "-ec", line],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
