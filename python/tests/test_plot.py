"""Figures for papers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib.figure
import pytest

import zonelab
from zonelab import plot


def lightness(colour: str) -> float:
    """CIE L* of a colour: what is left of it in grey, from 0 to 100."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    y = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return 116 * y ** (1 / 3) - 16


@pytest.mark.parametrize("style", plot.STYLES.values(), ids=lambda style: style.name)
def test_colours_are_told_apart_in_grey(style: plot.Style) -> None:
    levels = [lightness(colour) for colour in style.colours]
    assert min(abs(a - b) for a, b in combinations(levels, 2)) >= 8
    # And from paper, and neighbours most of all.
    assert max(levels) <= 85
    assert min(abs(a - b) for a, b in pairwise(levels)) >= 15
    assert len(style.colours) == len(plot.DASHES) == len(plot.MARKERS)


@pytest.mark.parametrize("name", plot.STYLES)
@pytest.mark.parametrize("width", ["single", "double", 4.0])
def test_figures_are_as_wide_as_the_column(
    name: str, width: plot.Width, small_results: zonelab.Results, tmp_path: Path
) -> None:
    drawing = plot.figure(small_results, style=name, width=width)
    expected = plot.STYLES[name].width_in(width)
    assert drawing.get_figwidth() == expected
    file = plot.save(drawing, tmp_path / "figure.pdf")
    box = next(line for line in file.read_bytes().split(b"\n") if b"/MediaBox" in line)
    wide = float(box.split(b"[")[1].split()[2])
    assert wide == pytest.approx(expected * 72, abs=0.5)


def test_type_is_embedded_and_the_bytes_are_the_same(
    small_results: zonelab.Results, tmp_path: Path
) -> None:
    for name in ("figure.pdf", "figure.svg"):
        files = [plot.save(plot.figure(small_results), tmp_path / f"{n}-{name}") for n in range(2)]
        first, second = (file.read_bytes() for file in files)
        assert first == second
    pdf = (tmp_path / "0-figure.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    svg = (tmp_path / "0-figure.svg").read_text()
    assert "<text" not in svg
    assert "<path" in svg


def test_what_is_drawn_is_what_the_command_draws(small_results: zonelab.Results) -> None:
    data = small_results.figure().to_dict()
    (axes,) = plot.figure(small_results).axes
    drawn = [[tuple(point) for point in line.get_xydata().tolist()] for line in axes.get_lines()]  # type: ignore[union-attr]
    expected = [
        [(point["x"], point["y"]) for point in series["ours"]]
        for series in data["panels"][0]["series"]
    ]
    assert drawn == expected
    assert axes.get_yscale() == "log"
    looks = {
        (line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.get_lines()
    }
    assert len(looks) == 2


def test_published_points_are_hollow() -> None:
    results = zonelab.reproduce("C10a", quick=True)
    data = results.figure().to_dict()
    series = [series for panel in data["panels"] for series in panel["series"]]
    theirs = sum(len(one["published"]) > 0 for one in series)
    assert theirs > 0

    def hollow(drawing: matplotlib.figure.Figure) -> Iterator[str]:
        lines = (line for axes in drawing.axes for line in axes.get_lines())
        return (str(line.get_label()) for line in lines if line.get_markerfacecolor() == "none")

    assert len(list(hollow(plot.figure(results)))) == theirs
    assert list(hollow(plot.figure(results, published=False))) == []


def test_what_is_wrong_is_said(small_results: zonelab.Results, tmp_path: Path) -> None:
    with pytest.raises(zonelab.UsageError, match="there are confznspp, zn540"):
        plot.figure(small_results, style="x")
    with pytest.raises(zonelab.UsageError, match='"single", "double"'):
        plot.figure(small_results, width=0)
    drawing = plot.figure(small_results)
    with pytest.raises(zonelab.EnvironmentFailure):
        plot.save(drawing, tmp_path / "no" / "where.pdf")
    with pytest.raises(zonelab.UsageError):
        plot.save(drawing, tmp_path / "figure.docx")


def test_own_figures_in_a_style() -> None:
    with plot.styled("zn540", "double") as style:
        import matplotlib as mpl

        assert mpl.rcParams["figure.figsize"][0] == style.double_in
        assert mpl.rcParams["pdf.fonttype"] == 42
