"""Running experiments: the results of the command, byte for byte."""

from __future__ import annotations

import _thread
from collections.abc import Callable, Generator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import tomllib

import zonelab


def test_the_results_are_those_of_the_command(
    command: Callable[..., str], tmp_path: Path, small: str
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small)
    out = tmp_path / "out"
    command("run", str(file), "--seed", "7", "--quiet", "--out", str(out))
    results = zonelab.run(file, seed=7)
    assert results.points.to_csv() == (out / "points.csv").read_text()
    assert results.rows.to_csv() == (out / "rows.csv").read_text()
    assert results.to_json() == (out / "rows.json").read_text()
    assert results.figure().to_svg() == (out / "small.svg").read_text()


def test_repeats_are_those_of_the_command(
    command: Callable[..., str], tmp_path: Path, small: str
) -> None:
    file = tmp_path / "small.toml"
    difference = """
[[difference]]
series = "beside finishes"
baseline = "reads alone"
job = "read"
metrics = ["kiops"]
"""
    file.write_text(small + difference)
    out = tmp_path / "out"
    command("run", str(file), "--repeats", "3", "--quiet", "--out", str(out))
    results = zonelab.run(file, repeats=3, threads=2)
    frames = {
        "points": results.points,
        "repeats": results.repeats,
        "rows": results.rows,
        "differences": results.differences,
    }
    for name, frame in frames.items():
        assert frame.to_csv() == (out / f"{name}.csv").read_text(), name
    assert results.to_json() == (out / "rows.json").read_text()
    assert set(results.differences["verdict"]) == {"lower"}
    bands = [row for row in results.figure().to_frame().to_dicts() if row["low"] is not None]
    assert all(row["low"] <= row["y"] <= row["high"] for row in bands)
    assert len(bands) == 6


def test_reproductions_are_those_of_the_command(
    command: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command("reproduce", "CM", "C10a", "--quick", "--quiet", "--out", str(out))
    results = zonelab.reproduce(["C10a", "CM"], quick=True)
    assert results.experiments == ["CM", "C10a"]
    assert results.rows.to_csv() == (out / "rows.csv").read_text()
    assert results.to_json() == (out / "rows.json").read_text()
    assert results.passed
    assert {"ok", "info"} <= set(results.rows["verdict"])


def test_an_experiment_is_the_same_from_wherever_it_comes(small: str, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small)
    data = tomllib.loads(small)
    with_drive = {**data, "profile": zonelab.Profile("confznspp").to_dict()}
    expected = zonelab.run(small).points.to_csv()
    for source in (file, str(file), data, with_drive, zonelab.Experiment(small)):
        assert zonelab.run(source, threads=1).points.to_csv() == expected
    assert zonelab.run(small, profile="confznspp").points.to_csv() == expected
    assert zonelab.run(small, seed=2).points.to_csv() != expected


def test_settings_are_those_of_the_command(small: str) -> None:
    plain = zonelab.run(small)
    slow = zonelab.run(small, set={"drive.media.read": "120us", "job.0.runtime": "10ms"})
    texts = zonelab.run(small, set=["drive.media.read=120us", "job.0.runtime=10ms"])
    assert slow.points.to_csv() == texts.points.to_csv()

    def mean(results: zonelab.Results) -> float:
        return results.value("lat_mean_us", series="reads alone", x=1, job="read")

    assert mean(slow) > mean(plain) + 40
    experiment = zonelab.Experiment(small, set={"drive.media.read": "120us"})
    assert experiment.drive().to_dict()["media"]["read"] == "120us"
    assert len(experiment) == len(experiment.points()) == 6
    experiment.check()


def test_what_is_wrong_is_said_as_the_command_says_it(
    command: Callable[..., str], small: str, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(small.replace('block = "16KiB"', 'block = "16"'))
    with pytest.raises(zonelab.InvalidInput) as wrong:
        zonelab.run(file)
    assert f"zonelab: {wrong.value}\n" == command("run", str(file), code=3)
    assert wrong.value.problems[0].line == 15
    with pytest.raises(zonelab.UsageError) as unknown:
        zonelab.run("C99")
    assert f"zonelab: {unknown.value}\n" == command("run", "C99", code=2)
    with pytest.raises(zonelab.UsageError) as unknown:
        zonelab.reproduce("C99")
    assert f"zonelab: {unknown.value}\n" == command("reproduce", "C99", code=2)
    with pytest.raises(zonelab.UsageError, match="threads"):
        zonelab.run(small, threads=0)
    with pytest.raises(zonelab.UsageError, match="say which series"):
        zonelab.run(small).value("kiops")


def test_tables_say_what_happened(small_results: zonelab.Results) -> None:
    points = small_results.points.to_dicts()
    reads = [row for row in points if (row["job"], row["metric"]) == ("read", "kiops")]
    assert [row["x"] for row in reads] == [1, 1, 2, 2, 4, 4]
    wide = small_results.metrics.to_dicts()
    by_point = {(row["series"], row["x"]): row["kiops"] for row in wide if row["job"] == "read"}
    assert all(by_point[row["series"], row["x"]] == row["value"] for row in reads)
    drives = small_results.drives.to_dicts()
    assert [row["finishes"] > 0 for row in drives] == [False, True] * 3
    busy = small_results.busy.to_dicts()
    fills = sum(row["busy_ns"] for row in busy if row["cause"] == "finish-fill")
    assert fills > 0, {row["cause"] for row in busy}
    history = small_results.zone_history.to_dicts()
    # What is declared full before a run is full from the beginning.
    finished = [row for row in history if row["to"] == "full" and row["time_ns"] > 0]
    assert {row["series"] for row in finished} == {"beside finishes"}
    assert {row["zone"] for row in finished} <= set(range(40))
    latencies = small_results.latencies.to_dicts()
    one = [row for row in latencies if (row["series"], row["x"]) == ("reads alone", 1)]
    assert [row["percent"] for row in one][:1] == [0]
    assert [row["latency_ns"] for row in one] == sorted(row["latency_ns"] for row in one)
    assert sum(small_results.throughput["operations"]) > 0
    assert len(small_results.failures) == 0


def test_traces_are_those_of_the_command(
    command: Callable[..., str], small: str, tmp_path: Path
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small)
    theirs = tmp_path / "theirs.pftrace"
    command("trace", str(file), "--point", "beside finishes,2", "--out", str(theirs))
    results = zonelab.run(file, trace="beside finishes,2")
    (trace,) = results.traces
    assert trace.perfetto() == theirs.read_bytes()
    trace.write(tmp_path / "ours.pftrace")
    assert (tmp_path / "ours.pftrace").read_bytes() == theirs.read_bytes()
    assert "beside finishes" in trace.title
    commands = trace.commands.to_dicts()
    whole = [row for row in commands if row["flash_ns"] is not None]
    parts = ("front_end_ns", "flash_ns", "blocked_ns", "own_line_ns", "idle_ns", "link_ns")
    assert whole
    assert all(sum(row[part] for part in parts) == row["latency_ns"] for row in whole)
    with pytest.raises(zonelab.UsageError, match=r"there is no point \"x\""):
        zonelab.run(file, trace="x")
    with pytest.raises(zonelab.EnvironmentFailure):
        trace.write(tmp_path / "no" / "where")


def test_the_interference_model_is_that_of_the_paper() -> None:
    alone, beside = [(294.50, 749.57)], [(169.09, 2179.02)]
    published = {0.5: 1.38, 0.0: 1.91, 1.0: 0.43}
    for alpha, value in published.items():
        assert zonelab.m_inter(alone, beside, alpha=alpha) == pytest.approx(value, abs=0.005)
    with pytest.raises(ValueError, match="each level has one of both"):
        zonelab.m_inter(alone, [])


def test_an_interrupt_leaves_a_point_that_runs(small: str) -> None:
    long = {"job.0.runtime": "100000s", "axis.values": [4]}
    seen: list[tuple[int, int]] = []
    Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        zonelab.run(small, set=long, progress=lambda done, total: seen.append((done, total)))
    assert seen == []


def test_progress_may_raise(small: str) -> None:
    def stop(done: int, total: int) -> None:
        raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError, match="of 48"):
        zonelab.run(
            small,
            set={"axis.values": list(range(1, 25)), "job.0.runtime": "2s"},
            progress=stop,
        )


def test_job_files_of_fio(command: Callable[..., str], root: Path) -> None:
    jobs = root / "docs/examples/writers-and-finishes.fio"
    # Each writer is given three zones and fills less than one.
    with pytest.warns(UserWarning, match="8 of 12 zones were not read"):
        report = zonelab.fio(jobs, "confznspp", seed=3)
    theirs = command("fio", str(jobs), "--device", "confznspp", "--seed", "3", "--json")
    assert report.to_json() == theirs
    assert report.to_dict()["jobs"]
    with pytest.warns(UserWarning, match="8 of 12 zones were not read"):
        assert zonelab.fio(jobs.read_text(), zonelab.Profile("confznspp"), seed=3).to_json()
    with pytest.raises(zonelab.InvalidInput):
        zonelab.fio("[a]\nrw=read\nbs=x\n", "confznspp")


def test_key_value_workloads(command: Callable[..., str]) -> None:
    report = zonelab.kv(
        "fillrandom", "confznspp", workload_set={"operations": 20000, "records": 1000}
    )
    theirs = command(
        "kv", "fillrandom", "--device", "confznspp", "--operations", "20000",
        "--records", "1000", "--json", "--quiet",
    )  # fmt: skip
    assert report.to_json() == theirs


DIVIDED = {"namespaces": [{"zones": 20}, {"zones": 28}]}


def test_a_drive_of_several_namespaces_wants_one_named() -> None:
    seen: list[int] = []

    def once(about: dict[str, int]) -> Generator[Any, Any, None]:
        seen.append(about["zones"])
        yield ("write", about["zone_lbas"] * (about["zones"] - 1), 16384)

    jobs = "[a]\nrw=write\nbs=64k\nsize=1z\nzonemode=zbd\n"
    for run in (
        lambda: zonelab.fio(jobs, "confznspp", set=DIVIDED),
        lambda: zonelab.kv("ycsb-a", "confznspp", set=DIVIDED),
        lambda: zonelab.simulate("confznspp", once, set=DIVIDED),
    ):
        with pytest.raises(zonelab.UsageError, match=r"there are 2 namespaces.*nsid="):
            run()
    for nsid, zones in ((1, 20), (2, 28)):
        frame, _ = zonelab.simulate("confznspp", once, set=DIVIDED, nsid=nsid)
        assert seen[-1] == zones
        assert frame.to_pandas()["status"].tolist() == [0]
    report = zonelab.fio(jobs, "confznspp", set=DIVIDED, nsid=2)
    assert report.to_dict()["jobs"][0]["write"]["total_ios"] > 0


def test_what_job_files_ask_for_in_vain_is_a_warning() -> None:
    jobs = "[a]\nrw=read\nbs=64k\nsize=4z\nzonemode=zbd\n"
    with pytest.warns(UserWarning, match="job a: 3 of 4 zones were not read"):
        zonelab.fio(jobs, "confznspp", full_zones=(0, 1))
