"""Tables, as others take them over."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zonelab


def test_frames_are_the_same_everywhere(small_results: zonelab.Results) -> None:
    for frame in (small_results.points, small_results.rows, small_results.busy):
        rows = frame.to_dicts()
        assert pa.table(frame).to_pylist() == rows
        assert pa.record_batch(frame).to_pylist() == rows
        assert pl.DataFrame(frame).to_dicts() == rows
        assert frame.to_polars().columns == frame.columns
        pandas = frame.to_pandas()
        assert list(pandas.columns) == frame.columns
        assert len(pandas) == len(frame) == len(rows)
        assert {name: frame[name] for name in frame.columns} == {
            name: [row[name] for row in rows] for name in frame.columns
        }
    value = small_results.points.to_pandas()["value"]
    assert value.dtype == "float64"
    assert isinstance(pd.DataFrame.from_arrow(small_results.points), pd.DataFrame)


def test_frames_are_taken_over_without_a_copy(small_results: zonelab.Results) -> None:
    frame = small_results.points
    first, second = pa.table(frame), pa.table(frame)
    buffers = [table["value"].chunk(0).buffers()[1] for table in (first, second)]
    assert buffers[0].address == buffers[1].address
    # And what was taken over outlives the frame.
    expected = frame.to_dicts()
    del frame
    assert first.to_pylist() == expected


def test_a_stream_is_read_once_and_may_be_left_unread(small_results: zonelab.Results) -> None:
    frame = small_results.points
    frame.__arrow_c_stream__()
    frame.__arrow_c_array__()
    frame.__arrow_c_schema__()
    assert len(pa.table(frame)) == len(frame)


def test_frames_show_themselves(small_results: zonelab.Results) -> None:
    frame = small_results.points
    assert repr(frame).endswith(f"[{len(frame)} rows]")
    assert "<th>metric</th>" in frame._repr_html_()
    with pytest.raises(KeyError, match="valu"):
        frame["valu"]


def test_figures_are_data(small_results: zonelab.Results) -> None:
    figure = small_results.figure()
    data = figure.to_dict()
    (panel,) = data["panels"]
    assert panel["y"]["scale"] == "log"
    names = [series["name"] for series in panel["series"]]
    assert names == ["reads alone", "beside finishes"]
    ours = [row for row in figure.to_frame().to_dicts() if row["whose"] == "ours"]
    points = [point for series in panel["series"] for point in series["ours"]]
    assert [(row["x"], row["y"]) for row in ours] == [(p["x"], p["y"]) for p in points]
    assert figure.to_svg().startswith("<svg")
