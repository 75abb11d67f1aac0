"""What all charts share: colours, markers, the title above and the footnote below."""

import textwrap
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Callable

import matplotlib
import matplotlib.colors
import matplotlib.ticker
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

LEGEND_LETTERS = 125  # that fit on a line of FILE, with 7 for each marker
PANEL_GAP = 0.95  # inches between panels below each other: the labels of the upper one, the title of the lower one

# Okabe and Ito's palette, told apart by colour-blind readers: https://jfly.uni-koeln.de/color/
BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"
INK, MUTED, GRID, IDEAL = "#1F2933", "#64707D", "#E3E8ED", "#AEB8C2"
AXIS = "#B6C0CA"
ON_FACES, ON_DARK = "#1F2934", "#FFFFFE"  # on colours that are the same in the dark
NO_VALUE = "#DDE2E7"

# What colours become on a dark page; all others stay.
IN_THE_DARK = {INK: "#E4E9EE", MUTED: "#9AA7B4", GRID: "#2C343D", IDEAL: "#5A6672", AXIS: "#55616D", NO_VALUE: "#3A434D",
               "#FFFFFF": "#171C22", BLUE: "#3A97D6", "#3A4652": "#A9B4BF", "#A87400": "#D9A01E", "#A8508A": "#CF7DB4",
               # faces of the picture of a machine
               "#E8F1F8": "#1D2C38", "#EEF1F4": "#262D35", "#E3F4EE": "#17322A", "#CDEBDF": "#1E4236", "#FDF3DC": "#382F1A",
               "#F7F9FA": "#1B2128"}

# An algorithm keeps its colour from chart to chart.
ALGORITHM_COLOURS = {"multi-ring": BLUE, "ring": ORANGE, "halving-doubling": GREEN, "tree": PURPLE,
                     "parameter-server": VERMILION, "direct": SKY, "mpi": INK, "nccl": MUTED}
SPARE_COLOURS = (SKY, PURPLE, GREEN, VERMILION, ORANGE, "#8C6D31", "#6B4C9A", INK)

FONT = "DejaVu Sans"

RUN_SHADES, RUN_MARKERS = (0, 0.4, 0.2, 0.6), ("o", "^", "v", "D")


@dataclass(frozen=True)
class SourceStyle:
    """How the points of a source look: filled where they were timed, hollow where they were computed."""
    marker: str
    filled: bool
    line: str


SOURCE_STYLES = {
    "measured": SourceStyle("o", True, "-"),
    "emulated": SourceStyle("s", True, "-."),
    "modelled": SourceStyle("o", False, "--"),
    "published": SourceStyle("D", True, ":"),
    "imported": SourceStyle("X", True, "-."),
}


@dataclass
class Chart:
    kind: str  # in the names of its files
    title: str
    finding: str  # what it shows, in a sentence: for who does not see it
    draw: Callable[[], Figure]
    runs: list = field(default_factory=list)  # the names of all results that it is of, where they are several


@dataclass(frozen=True)
class Sheet:
    """What figures are drawn for."""
    width: float  # inches
    framed: bool  # with title, subtitle and footnote; the page says these beside the figure
    panels: int  # side by side

    def letters(self, on_paper):
        """How many fit where so many fit on FILE."""
        return int(on_paper * self.width / FILE.width)


FILE = Sheet(10.5, framed=True, panels=2)
PAGE = Sheet(11.2, framed=False, panels=2)
PHONE = Sheet(5.2, framed=False, panels=1)
sheet = FILE


@contextmanager
def drawn_for(other):
    global sheet
    before, sheet = sheet, other
    try:
        yield
    finally:
        sheet = before


def colours_of(labels_and_algorithms):
    """A colour for each label: the first of an algorithm gets the algorithm's, variants of it get spare ones."""
    algorithms = dict(labels_and_algorithms)
    colours = dict.fromkeys(algorithms)
    for label, algorithm in algorithms.items():
        wanted = ALGORITHM_COLOURS.get(algorithm)
        colours[label] = wanted if wanted not in colours.values() else None
    for label in (label for label, colour in colours.items() if colour is None):
        free = [colour for colour in SPARE_COLOURS if colour not in colours.values()]
        colours[label] = free[0] if free else SPARE_COLOURS[len(label) % len(SPARE_COLOURS)]
    return colours


def point_style(source, colour):
    style = SOURCE_STYLES[source]
    return {"marker": style.marker, "markersize": 5.5, "color": colour, "linestyle": style.line, "linewidth": 1.8,
            "markerfacecolor": colour if style.filled else "white", "markeredgecolor": colour,
            "markeredgewidth": 1.5, "zorder": 3}


def run_style(source, colour, run):
    """Of several runs in one chart, the first looks as it does alone, and the others are lighter, with other markers."""
    if run == 0:
        return point_style(source, colour)
    look = point_style(source, mixed(colour, RUN_SHADES[run % len(RUN_SHADES)]))
    return {**look, "marker": RUN_MARKERS[run % len(RUN_MARKERS)]}


def mixed(colour, white):
    """The colour with so much white in it."""
    return matplotlib.colors.to_hex([white + (1 - white) * part for part in matplotlib.colors.to_rgb(colour)])


def source_handles(sources):
    """Legend entries that explain the markers."""
    handles = []
    for source in SOURCE_STYLES:
        if source in sources:
            handles.append(Line2D([], [], label=source, **point_style(source, MUTED)))
    return handles


def use_style():
    matplotlib.rcParams.update({
        "font.family": [FONT, "sans-serif"], "font.sans-serif": [FONT], "font.size": 9.5, "text.color": INK, "axes.labelcolor": INK,
        "axes.edgecolor": AXIS, "axes.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.8, "axes.axisbelow": True,
        "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 10,
        "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
        "xtick.minor.visible": False, "legend.frameon": False, "legend.fontsize": 9.5, "figure.facecolor": "white",
        "svg.hashsalt": "polyring",  # the same input gives the same file
        # Text stays text: it can be searched and edited, also where that font is missing.
        "svg.fonttype": "none",
    })
    if "text.parse_math" in matplotlib.rcParams:  # since 3.6; a name may have dollars in it
        matplotlib.rcParams["text.parse_math"] = False


def footnote(results, sources):
    """Where the numbers come from: a line for each run, or two for the only one."""
    source = f"Source: {', '.join(source for source in SOURCE_STYLES if source in sources)}.  "
    if len(results) == 1:
        lines = textwrap.wrap(source + origin(results[0]), 170)
        return "\n".join(lines if len(lines) <= 2 else [lines[0], lines[1][:166] + " …"])
    lines = [f"{result.name}:  {origin(result)}" for result in results]
    lines[0] = source + lines[0]
    return "\n".join(line if len(line) <= 170 else line[:168] + " …" for line in lines)


def origin(result):
    if not result.polyring_version:  # another benchmark's log, which has no date
        return f"imported:  {result.command or 'the log does not say how it was run'}"
    return f"{result.created[:10]}, polyring {result.polyring_version}:  {result.command}"


def new_figure(height, title, subtitle, results, sources):
    """A figure, with its title and footnote where it needs them; `height` is in inches."""
    use_style()
    figure = Figure(figsize=(sheet.width, height))
    figure.set_label(subtitle)
    if not sheet.framed:
        return figure
    from plots.lettering import fitted
    title = fitted(title, sheet.width * 0.94 - 0.1, 14, 10)
    figure.text(0.06, 1 - 0.32 / height, title.text, fontsize=title.size, fontweight="bold", va="center")
    figure.text(0.06, 1 - 0.50 / height, "\n".join(subtitle_lines(subtitle)), fontsize=10, color=MUTED, va="top",
                linespacing=1.3)
    figure.text(0.06, foot(results) / 2 / height, footnote(results, sources), fontsize=7.5, color=MUTED,
                va="center", linespacing=1.4)
    return figure


def subtitle_lines(subtitle):
    return textwrap.wrap(subtitle, 132)


def head(subtitle):
    """How many inches title and subtitle need."""
    return 0.74 + 0.18 * max(0, len(subtitle_lines(subtitle)) - 1) if sheet.framed else 0.05


def foot(results):
    """How many inches the footnote of so many runs needs."""
    return 0.4 + 0.15 * max(0, len(results) - 2) if sheet.framed else 0


def lines_of(handles, columns):
    return -(-len(handles) // columns)


def fit(handles, columns):
    """Whether they do beside each other, in columns as wide as their longest label; the first have one more."""
    letters = [len(handle.get_label()) + 7 for handle in handles]
    least, more = divmod(len(handles), columns)
    ends = [least * column + min(column, more) for column in range(columns + 1)]
    return sum(max(letters[begin:end]) for begin, end in zip(ends, ends[1:])) <= sheet.letters(LEGEND_LETTERS)


def columns_of(handles):
    """So many that there are as few lines as can be, and these about equally long."""
    choices = [lines_of(handles, lines) for lines in range(1, len(handles))]
    return next((columns for columns in choices if fit(handles, columns)), 1)


def legend_groups(*groups):
    """All handles on one line where they fit, else those of each group on lines of their own."""
    every = [handle for handles in groups for handle in handles]
    return [every] if columns_of(every) == len(every) else [handles for handles in groups if handles]


def panels(figure, count, height, top, bottom, left, between=0.75, **options):
    """So many, side by side or below each other. Lengths are in inches; `top` and `bottom` from the edges of the figure."""
    columns = min(count, sheet.panels)
    rows = lines_of(range(count), columns)
    high = (height - top - bottom - (rows - 1) * PANEL_GAP) / rows
    wide = (sheet.width - left - 0.2 - (columns - 1) * between) / columns
    grid = {"left": left / sheet.width, "right": 1 - 0.2 / sheet.width, "top": 1 - top / height, "bottom": bottom / height,
            "wspace": between / wide, "hspace": PANEL_GAP / high}
    return figure.subplots(rows, columns, squeeze=False, gridspec_kw=grid, **options).flatten()[:count]


def panels_height(count, each):
    """Of these together."""
    rows = lines_of(range(count), min(count, sheet.panels))
    return rows * each + (rows - 1) * PANEL_GAP


def legend_height(groups):
    return 0.24 * sum(lines_of(handles, columns_of(handles)) for handles in groups)


def legend_above(figure, height, *groups, subtitle=""):
    """The legend under the title. Returns how many inches from the top the axes may begin."""
    groups = legend_groups(*groups)
    from_top = head(subtitle)
    for handles in groups:
        for handle in handles:
            if handle.get_label().startswith("_"):  # matplotlib would leave it out
                handle.set_label(f" {handle.get_label()}")
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.052 if sheet.framed else 0, 1 - from_top / height),
                      ncol=columns_of(handles), columnspacing=1.6, handlelength=2.4, handletextpad=0.6, borderpad=0.2)
        from_top += legend_height([handles])
    return from_top + 0.38


def logarithmic(axes, low, high, text="{:.10g}".format):
    """A logarithmic y axis from below `low` to above `high`, with ticks at round numbers."""
    margin = max(1.15, (high / low) ** 0.05)
    low, high = low / margin, high * margin
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    if high / low < 8:
        ticks = matplotlib.ticker.MaxNLocator(8, steps=(1, 2, 5, 10)).tick_values(low, high)
    else:
        subs = (1, 1.5, 2, 3, 5, 7) if high / low < 30 else (1, 2, 5) if high / low < 2000 else (1,)
        ticks = matplotlib.ticker.LogLocator(10, subs=subs, numticks=20).tick_values(low, high)
    texts = {tick: text(tick) for tick in ticks if low <= tick <= high}
    axes.yaxis.set_ticks(list(texts), texts.values())
    axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())


def power_ticks(axis, values, text):
    """Ticks at the values themselves, at most about ten of them, and none that would run into the next."""
    values = sorted(set(values), reverse=True)
    apart = (values[0] / values[-1]) ** (1 / 9.5)
    ticks = values[:1]
    for value in values[1:]:
        if value * apart <= ticks[-1]:
            ticks.append(value)
    axis.set_ticks(ticks[::-1])
    axis.set_ticklabels([text(value) for value in ticks[::-1]])
    axis.set_minor_locator(matplotlib.ticker.NullLocator())
