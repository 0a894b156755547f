"""Figures for papers, by matplotlib, which has to be installed.

>>> results = zonelab.run("C10b", quick=True)
>>> figure = zonelab.plot.figure(results, style="confznspp", width="single")
>>> zonelab.plot.save(figure, "C10b.pdf")

A style has the column widths, the size of type and the look of the figures of one of the
papers that zonelab reproduces. Its colours differ in lightness, so that they are told apart in
grey, and so do dashes and markers. What is drawn is what the command draws: our points are
solid and joined, published ones hollow.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
from cycler import cycler
from matplotlib import font_manager
from matplotlib.figure import Figure as Drawing

import zonelab

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Width = Literal["single", "double"] | float
"""The width of a column, of the page, or so many inches."""

DASHES = ("-", (0, (6, 2)), (0, (2, 1.2)), "-.", (0, (5, 1.5, 1, 1.5, 1, 1.5)), (0, (1, 1)))
"""Dashes of the lines, one after the other."""
MARKERS = ("o", "s", "^", "D", "v", "h")
"""Markers, one after the other."""


@dataclass(frozen=True)
class Style:
    """How the figures of a paper look."""

    name: str
    fonts: tuple[str, ...]
    """Families of fonts, of which the first that is installed is taken."""
    points: float
    """Size of the type."""
    single_in: float
    """Width of a column, in inches."""
    double_in: float
    """Width of both."""
    colours: tuple[str, ...]
    """Colours of the series, one after the other, each of another lightness."""
    has_grid: bool
    has_frame: bool
    """A line all around the panel, rather than along its axes."""
    ticks: Literal["in", "out"]

    def width_in(self, width: Width) -> float:
        """A width in inches."""
        match width:
            case "single":
                return self.single_in
            case "double":
                return self.double_in
            case _ if not isinstance(width, str) and 0.5 <= width <= 60:
                return float(width)
            case _:
                message = f'width = {width!r}: "single", "double", or 0.5 to 60 inches'
                raise zonelab.UsageError(message)

    def settings(self) -> dict[Any, Any]:
        """What it sets of matplotlib's settings."""
        installed = {font.name for font in font_manager.fontManager.ttflist}
        fonts = [font for font in self.fonts if font in installed] or ["DejaVu Sans"]
        small = self.points - 1
        return {
            "font.family": fonts[:1],
            "font.size": self.points,
            "mathtext.fontset": "stix" if fonts[0].startswith("STIX") else "dejavusans",
            "axes.labelsize": self.points,
            "axes.titlesize": self.points,
            "xtick.labelsize": small,
            "ytick.labelsize": small,
            "legend.fontsize": small,
            "legend.frameon": False,
            "legend.handlelength": 2.6,
            "legend.borderaxespad": 0.2,
            "legend.labelspacing": 0.3,
            "axes.grid": self.has_grid,
            "axes.axisbelow": True,
            "axes.linewidth": 0.6,
            "axes.spines.top": self.has_frame,
            "axes.spines.right": self.has_frame,
            "grid.color": "#d9d9d9",
            "grid.linewidth": 0.4,
            "lines.linewidth": 1.1,
            "lines.markersize": 3.6,
            "lines.markeredgewidth": 0.8,
            "xtick.direction": self.ticks,
            "ytick.direction": self.ticks,
            "xtick.top": self.has_frame and self.ticks == "in",
            "ytick.right": self.has_frame and self.ticks == "in",
            "axes.prop_cycle": cycler(color=self.colours, linestyle=DASHES, marker=MARKERS),
            # Type that stays type, in what can be embedded anywhere (TrueType).
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
            # And in SVG outlines, which need no font.
            "svg.fonttype": "path",
            # The same figure gives the same bytes.
            "svg.hashsalt": "zonelab",
            "savefig.bbox": None,
            "figure.dpi": 150,
        }


_SERIF = ("STIXGeneral", "DejaVu Serif")
_SANS = ("Liberation Sans", "Arial", "Helvetica", "DejaVu Sans")

STYLES: Mapping[str, Style] = MappingProxyType(
    {
        style.name: style
        for style in (
            # ConfZNS++, SYSTOR '24: two columns of ACM's.
            Style(
                name="confznspp",
                fonts=("Libertinus Serif", "Linux Libertine O", *_SERIF),
                points=8,
                single_in=3.33,
                double_in=7.0,
                colours=("#01396f", "#dc6b23", "#016833", "#ff82be", "#d3363b", "#e9c338"),
                has_grid=True,
                has_frame=True,
                ticks="out",
            ),
            # The ZN540 characterised, CLUSTER '23: two columns of IEEE's.
            Style(
                name="zn540",
                fonts=("Times New Roman", *_SERIF),
                points=8,
                single_in=3.5,
                double_in=7.16,
                colours=("#780214", "#1294d0", "#4f4bb6", "#5cc05b", "#9d6701", "#07dce1"),
                has_grid=True,
                has_frame=False,
                ticks="out",
            ),
            # Preemptive zone reset, Electronics 2023: one column, with a margin beside it.
            Style(
                name="pzr",
                fonts=("Palatino Linotype", "Palatino", *_SERIF),
                points=9,
                single_in=5.31,
                double_in=7.24,
                colours=("#043d59", "#e1664a", "#06673d", "#dc8df2", "#8f6d04", "#feb3b5"),
                has_grid=False,
                has_frame=True,
                ticks="in",
            ),
            # SilentZNS: two columns of ACM's.
            Style(
                name="silentzns",
                fonts=("Linux Biolinum O", *_SANS),
                points=8,
                single_in=3.33,
                double_in=7.0,
                colours=("#182a97", "#e76236", "#0c6277", "#a2b521", "#cf2a88", "#fcbb3d"),
                has_grid=False,
                has_frame=True,
                ticks="in",
            ),
            # The thesis on vroom: one column of A4, or two figures side by side.
            Style(
                name="vroom",
                fonts=_SANS,
                points=9,
                single_in=2.85,
                double_in=5.9,
                colours=("#043e51", "#fb4858", "#036918", "#fe8e34", "#8b55d4", "#e0c727"),
                has_grid=True,
                has_frame=False,
                ticks="out",
            ),
        )
    }
)
"""The styles there are."""


def named(style: str | Style) -> Style:
    """A style by its name."""
    if isinstance(style, Style):
        return style
    if style not in STYLES:
        raise zonelab.UsageError(f'style = "{style}": there are {", ".join(STYLES)}')
    return STYLES[style]


@contextmanager
def styled(style: str | Style = "confznspp", width: Width = "single") -> Generator[Style]:
    """Draws and saves one's own figures in a style: they get its width, type and colours."""
    of = named(style)
    width_in = of.width_in(width)
    settings: dict[Any, Any] = {**of.settings(), "figure.figsize": (width_in, width_in * 0.62)}
    with mpl.rc_context(settings):
        yield of


def figure(
    source: zonelab.Figure | zonelab.Results,
    *,
    style: str | Style = "confznspp",
    width: Width = "single",
    height: float | None = None,
    title: bool = False,
    published: bool = True,
    colours: Mapping[str, str] | None = None,
) -> Drawing:
    """Draws the figure of results.

    ``height`` is in inches, of all panels together. ``title`` writes the heading, which in
    papers stands below. ``published`` draws the published points beside ours. ``colours`` are
    those of series by name, for those that have one of their own.
    """
    of = named(style)
    if isinstance(source, zonelab.Results):
        source = source.figure()
    data = source.to_dict()
    panels = data["panels"]
    columns = 1 if of.width_in(width) < 5 else min(len(panels), 3)
    rows = -(-len(panels) // columns)
    with styled(of, width):
        width_in = of.width_in(width)
        tall = height if height is not None else width_in / columns * 0.66 * rows + 0.25
        drawing = Drawing(figsize=(width_in, tall), layout="constrained")
        looks = _looks(of, panels, colours or {})
        axes = drawing.subplots(rows, columns, squeeze=False).flat
        for panel, at in zip(panels, axes, strict=False):
            _draw(at, panel, looks, published)
        for empty in list(axes)[len(panels) :]:
            empty.remove()
        if title:
            drawing.suptitle(data["title"])
        _legend(drawing, looks, panels, published)
    # The type is chosen when the figure is saved.
    drawing.set_label(of.name)
    return drawing


def save(drawing: Drawing, path: str | PathLike[str], *, style: str | Style | None = None) -> Path:
    """Saves a figure as PDF, SVG, PNG or whatever the name ends with.

    The type is embedded in PDF and drawn as outlines in SVG. The same figure gives the same
    bytes: no date is written.
    """
    path = Path(path)
    label = str(drawing.get_label())
    of = named(style or (label if label in STYLES else "confznspp"))
    no_date: dict[str, dict[str, None]] = {
        ".pdf": {"CreationDate": None},
        ".svg": {"Date": None},
    }
    with mpl.rc_context(of.settings()):
        try:
            drawing.savefig(path, metadata=no_date.get(path.suffix.lower()))
        except OSError as error:
            raise zonelab.EnvironmentFailure(f"{path}: {error.strerror or error}") from error
        except ValueError as error:
            raise zonelab.UsageError(f"{path}: {error}") from error
    return path


def _looks(
    style: Style, panels: list[dict[str, Any]], colours: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Colour, dashes and marker of each series, the same in all panels."""
    names = dict.fromkeys(series["name"] for panel in panels for series in panel["series"])
    each = zip(names, cycle(style.colours), cycle(DASHES), cycle(MARKERS), strict=False)
    return {
        name: {"color": colours.get(name, colour), "linestyle": dashes, "marker": marker}
        for name, colour, dashes, marker in each
    }


def _draw(
    axes: Axes, panel: dict[str, Any], looks: dict[str, dict[str, Any]], published: bool
) -> None:
    """Draws a panel."""
    for series in panel["series"]:
        look = looks[series["name"]]
        ours = [point for point in series["ours"] if point["y"] is not None]
        if ours:
            line = "none" if series["is_scattered"] else look["linestyle"]
            x, y = ([point[key] for point in ours] for key in "xy")
            ours_look: dict[str, Any] = {**look, "linestyle": line}
            axes.plot(x, y, **ours_look)
            _band(axes, ours, look["color"])
        theirs = [point for point in series["published"] if point["y"] is not None]
        if published and theirs:
            _published(axes, theirs, look)
    for axis, which in ((panel["x"], "x"), (panel["y"], "y")):
        unit = f" ({axis['unit']})" if axis["unit"] else ""
        axes.set(**{f"{which}label": axis["quantity"] + unit})
        if axis["scale"] == "log":
            axes.set(**{f"{which}scale": "log"})
    if panel["y"]["scale"] != "log":
        axes.set_ylim(bottom=0)
    if panel["x"]["labels"]:
        places, words = zip(*panel["x"]["labels"], strict=True)
        axes.set_xticks(places, words)
    elif panel["x"]["ticks"]:
        axes.set_xticks(panel["x"]["ticks"])
    if panel["title"]:
        axes.set_title(panel["title"])


def _band(axes: Axes, points: list[dict[str, Any]], colour: str) -> None:
    """The interval of our points, where there is one."""
    known = [point for point in points if point["low"] is not None]
    if known:
        x, low, high = ([point[key] for point in known] for key in ("x", "low", "high"))
        axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


def _published(axes: Axes, points: list[dict[str, Any]], look: dict[str, Any]) -> None:
    """Published points, with the spread of their authors' repeats where that is known."""
    size = mpl.rcParams["lines.markersize"] * 1.5
    axes.plot(
        [point["x"] for point in points],
        [point["y"] for point in points],
        color=look["color"],
        marker=look["marker"],
        linestyle="none",
        markersize=size,
        markerfacecolor="none",
    )
    for point in points:
        if point["low"] is not None:
            axes.plot(
                [point["x"]] * 2,
                [point["low"], point["high"]],
                color=look["color"],
                linestyle="-",
                marker="none",
                linewidth=0.7,
            )


def _legend(
    drawing: Drawing,
    looks: dict[str, dict[str, Any]],
    panels: list[dict[str, Any]],
    published: bool,
) -> None:
    """One legend above all panels, if there is something to tell apart."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **look) for name, look in looks.items()]
    series = [series for panel in panels for series in panel["series"]]
    if published and any(one["published"] for one in series):
        ring: dict[str, Any] = {"linestyle": "none", "marker": "o", "markerfacecolor": "none"}
        handles.append(Line2D([], [], label="published", color="#444444", **ring))
    if len(handles) > 1:
        columns = max(1, min(len(handles), int(drawing.get_figwidth() // 1.6)))
        drawing.legend(handles=handles, loc="outside upper center", ncols=columns)
