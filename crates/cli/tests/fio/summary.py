"""What scripts that plot fio results read, as one line for each job.

Fails on a result in which something is missing, as such scripts do.
"""

import json
import sys

DIRECTIONS = ("read", "write", "trim")


def latency(part):
    """Mean and percentiles of a latency in microseconds."""
    percentiles = {
        float(name): value / 1000 for name, value in part.get("percentile", {}).items()
    }
    assert list(percentiles) == sorted(percentiles), "percentiles in order"
    return part["mean"] / 1000, percentiles


def main(path):
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    assert "fio version" in result and "global options" in result
    for job in result["jobs"]:
        options = {**result["global options"], **job["job options"]}
        for name in DIRECTIONS:
            part = job[name]
            if part["total_ios"] == 0:
                continue
            mean, percentiles = latency(part["lat_ns"])
            if not percentiles:
                _, percentiles = latency(part["clat_ns"])
            assert part["lat_ns"]["N"] == part["total_ios"]
            assert part["lat_ns"]["min"] <= mean * 1000 <= part["lat_ns"]["max"]
            row = (
                job["jobname"],
                job["groupid"],
                name,
                options.get("bs", options.get("blocksize", "-")),
                part["total_ios"],
                f"{part['iops_mean'] / 1000:.2f} KIOPS +- {part['iops_stddev']:.0f}",
                f"{part['bw_bytes'] / 2**20:.1f} MiB/s",
                f"mean {mean:.1f} us",
                " ".join(f"P{p:g}={value:.1f}" for p, value in percentiles.items()),
            )
            print("\t".join(str(cell) for cell in row))
        assert job["error"] == 0


main(sys.argv[1])
