"""A drive, step by step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import zonelab

#: A small drive that keeps what is written.
KEEPS = {"data.store": "memory"}


def test_a_write_takes_as_long_as_its_parts() -> None:
    drive = zonelab.Drive("confznspp")
    tag = drive.submit("write", zone=0, nbytes=16384, tag=7)
    assert tag == 7
    assert drive.in_flight == 1
    # 25 us on the channel, 700 us on the plane.
    assert drive.advance(724_999) == []
    assert drive.next_event() == 725_000
    (done,) = drive.advance(725_000)
    assert (done.tag, done.op, done.lba, done.nbytes, done.ok) == (7, "write", 0, 16384, True)
    assert (done.submitted, done.at, done.latency_ns) == (0, 725_000, 725_000)
    assert drive.now == 725_000
    assert drive.next_event() is None
    assert drive.totals["host_write_bytes"] == 16384


def test_data_come_back() -> None:
    drive = zonelab.Drive("confznspp", set=KEEPS)
    data = bytes(range(256)) * 64
    drive.execute("write", zone=1, data=data)
    written = drive.execute("append", zone=1, data=memoryview(data))
    zone = drive.profile.to_dict()["zones"]
    assert zone["count"] == len(drive.zones())
    start = drive.zones()["start_lba"][1]
    assert written.lba == start + len(data) // 4096
    assert drive.execute("read", zone=1, nbytes=len(data)).data == data
    assert drive.execute("read", lba=written.lba, nbytes=len(data)).data == data
    assert drive.execute("compare", lba=written.lba, data=bytearray(data)).ok
    report = drive.execute("report").data
    assert report is not None
    assert int.from_bytes(report[:8], "little") == len(drive.zones())


def test_zones_are_managed() -> None:
    drive = zonelab.Drive("confznspp")
    states = ["empty"]
    for op in ("open", "close", "finish", "reset"):
        drive.execute(op, zone=3)
        states.append(drive.zones()["state"][3])
    assert states == ["empty", "explicitly opened", "closed", "full", "empty"]


def test_what_fails_has_the_status_of_nvme() -> None:
    drive = zonelab.Drive("confznspp")
    with pytest.raises(zonelab.CommandFailed, match="Zone Invalid Write") as caught:
        drive.execute("write", zone=0, offset=4, nbytes=4096)
    assert caught.value.status == 0x1BC
    assert caught.value.exit_code == 5
    assert caught.value.completion.op == "write"
    drive.submit("read", lba=1 << 60, nbytes=4096)
    (done,) = drive.advance()
    assert not done.ok
    assert done.status == 0x80
    with pytest.raises(zonelab.CommandFailed):
        done.check()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"op": "wirte", "zone": 0, "nbytes": 4096}, "there are read, write"),
        ({"op": "write", "zone": 0}, "give its length"),
        ({"op": "write", "nbytes": 4096}, "lba or zone"),
        ({"op": "write", "zone": 0, "lba": 0, "nbytes": 4096}, "not both"),
        ({"op": "write", "zone": 0, "nbytes": 100}, "multiple of the 4096 bytes"),
        ({"op": "write", "zone": 0, "nbytes": 4096, "data": b"x"}, "1 bytes of data"),
        ({"op": "write", "zone": 99, "nbytes": 4096}, "there are 48"),
        ({"op": "reset", "zone": 0, "offset": 3}, "has no offset"),
        ({"op": "read", "zone": 0, "nbytes": 4096, "nsid": 2}, "namespace 2"),
        ({"op": "write", "lba": 0, "offset": 3, "nbytes": 4096}, "give zone"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, object], what: str) -> None:
    drive = zonelab.Drive("confznspp")
    with pytest.raises(zonelab.UsageError, match=what):
        drive.submit(**arguments)  # pyright: ignore[reportArgumentType]
    assert drive.in_flight == 0


def test_time_does_not_go_back() -> None:
    drive = zonelab.Drive("confznspp")
    drive.advance(1_000)
    with pytest.raises(zonelab.UsageError, match="time does not go back"):
        drive.advance(999)
    with pytest.raises(zonelab.UsageError, match="time does not go back"):
        drive.submit("flush", at=10)
    drive.submit("flush", at=2_000)
    assert drive.advance()[0].submitted == 2_000


def test_many_commands_are_the_same_as_one_after_another() -> None:
    one, many = (zonelab.Drive("confznspp") for _ in range(2))
    for drive in (one, many):
        drive.fill(0, 4)
    lbas = [4 * ((n * 7919) % 60_000) for n in range(500)]
    for at, lba in enumerate(lbas):
        one.submit("read", lba=lba, nbytes=16384, at=at * 20_000)
    times = range(0, 20_000 * len(lbas), 20_000)
    first, count = many.submit_many("read", lba=lbas, nbytes=16384, at=list(times))
    assert (first, count) == (0, 500)
    frame = many.advance_frame()
    done = one.advance()
    assert frame["tag"] == [completion.tag for completion in done]
    assert frame["completed_ns"] == [completion.at for completion in done]
    assert frame["status"] == [0] * 500


def test_a_depth_keeps_as_many_in_flight() -> None:
    latencies = []
    for depth in (1, 8):
        drive = zonelab.Drive("confznspp")
        # A write goes to the write pointer as it is when its turn comes.
        drive.submit_many("write", zone=[0] * 64, nbytes=16384, depth=depth)
        frame = drive.advance_frame()
        assert len(frame) == 64
        assert frame["lba"] == [4 * n for n in range(64)]
        latencies.append(sum(frame["latency_ns"]) / 64)
    assert latencies[0] == 725_000
    assert latencies[1] > latencies[0]


def test_columns_of_numpy_are_taken() -> None:
    numpy = pytest.importorskip("numpy")
    drive = zonelab.Drive("confznspp")
    drive.fill(0, 2)
    lbas = numpy.arange(0, 4000, 4, dtype=numpy.int32)
    ops = numpy.array(["read", "verify"] * 500)
    drive.submit_many(ops, lba=lbas, nbytes=numpy.full(1000, 16384, dtype=numpy.uint64))
    frame = drive.advance_frame()
    assert sorted(frame["lba"]) == lbas.tolist()
    for wrong, what in (
        (lbas.astype(float), "whole numbers"),
        (-lbas, "negative"),
        (lbas[:3], "1000 values and lba 3"),
    ):
        with pytest.raises(zonelab.UsageError, match=what):
            drive.submit_many(ops, lba=wrong, nbytes=4096)
    with pytest.raises(zonelab.UsageError, match="row 2: write: zone 99"):
        drive.submit_many("write", zone=[0, 1, 99], nbytes=4096)


def test_a_snapshot_goes_on_where_it_was() -> None:
    drive = zonelab.Drive("confznspp", set=KEEPS)
    drive.execute("write", zone=0, data=b"z" * 8192)
    again = zonelab.Drive.restore("confznspp", drive.snapshot(), set=KEEPS)
    assert again.execute("read", zone=0, nbytes=8192).data == b"z" * 8192
    assert again.zones()["written_lbas"] == drive.zones()["written_lbas"]
    drive.submit("write", zone=0, nbytes=4096)
    with pytest.raises(zonelab.UsageError, match="busy"):
        drive.snapshot()
    with pytest.raises(zonelab.InvalidInput):
        zonelab.Drive.restore("confznspp", b"nonsense")


def test_a_loss_of_power_takes_what_was_under_way() -> None:
    drive = zonelab.Drive("confznspp", set=KEEPS)
    drive.execute("write", zone=0, data=b"a" * 4096)
    tag = drive.submit("write", zone=0, nbytes=16384)
    lost, ready_at = drive.power_cut(1_000)
    assert lost == [tag]
    assert drive.advance(ready_at) == []
    assert drive.execute("read", zone=0, nbytes=4096).data == b"a" * 4096


def test_what_a_drive_did_is_in_tables() -> None:
    drive = zonelab.Drive("confznspp")
    drive.submit_many("write", zone=[0] * 16, nbytes=65536, depth=2)
    drive.advance()
    busy = drive.busy().to_dicts()
    writes = sum(row["busy_ns"] for row in busy if row["cause"] == "host-write")
    # 64 pages: 25 us on the channel and 700 us on the plane each.
    assert writes == 64 * 725_000, {row["cause"] for row in busy}
    assert sum(drive.wear()["erasures"]) == 0
    assert len(drive.groups()) == 0


def test_threads_make_no_difference() -> None:
    def run(_: int) -> str:
        drive = zonelab.Drive("confznspp")
        drive.submit_many("write", zone=[0, 1] * 200, nbytes=16384, depth=16)
        return drive.advance_frame().to_csv()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(run, range(8)))) == 1
