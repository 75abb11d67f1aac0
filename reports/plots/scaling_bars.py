"""Efficiency with one number of GPUs: a bar for each algorithm, strategy and run, the best first, with its range as whiskers."""

from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from plots import style
from plots.lettering import Line, wrapped
from plots.results import ranks_text
from plots.scaling_rows import baseline_gpus, rails_text

LABEL, BAR, GAP, BELOW = 8.5, 0.2, 0.12, 0.03  # points; inches, the last below a name


def name_of(row, several_algorithms):
    """A bar's own name: the whole strategy, and what the caption does not say."""
    algorithm = row["algorithm"] if several_algorithms or "strategy" not in row else ""
    strategy = row.get("strategy", "").replace(",", ", ")  # so that a line may end there
    return ": ".join(part for part in (row.get("compared", ""), algorithm, strategy) if part) + rails_text(row)


def value_text(row):
    rate = row["images_per_second"]
    return f"{100 * row['efficiency']:.1f} %, {f'{rate:,.0f}' if rate >= 1000 else f'{rate:.4g}'} {row.get('samples', 'images')}/s"


def most_of(rows):
    """How far the bars reach, with their ranges, what is published and the ideal."""
    return max([1] + [value for row in rows for value in (row["efficiency"], row.get("efficiency_high", 0), row["published_efficiency"] or 0)])


def draw_bar(axes, row, at, colour):
    modelled = not style.SOURCE_STYLES[row["source"]].filled
    axes.barh(at, row["efficiency"], height=BAR, color=style.mixed(colour, 0.55) if modelled else colour, edgecolor=colour,
              linewidth=1.2, zorder=2)
    middle, low, high = (row.get(key, row["efficiency"]) for key in ("efficiency", "efficiency_low", "efficiency_high"))
    if low < high:
        axes.errorbar(middle, at, xerr=[[max(0, middle - low)], [max(0, high - middle)]], fmt="none", ecolor=style.INK,
                      elinewidth=1.3, capsize=3.5, zorder=4)
    if row["published_efficiency"] is not None:
        axes.plot(row["published_efficiency"], at, zorder=5, **published_look())


def published_look():
    look = style.point_style("published", style.INK)
    return {**{key: look[key] for key in ("marker", "color", "markeredgecolor", "markeredgewidth")}, "linestyle": "none",
            "markersize": 6.5, "markerfacecolor": "none"}


def legend_of(rows, colours):
    handles = [Patch(facecolor=style.mixed(colour, 0.55), edgecolor=colour, label=name) for name, colour in colours.items()]
    if any("efficiency_low" in row for row in rows):
        handles.append(Line2D([], [], color=style.INK, marker="|", markersize=7, linewidth=1.3, label="range of what is not exactly known"))
    if any(row["published_efficiency"] is not None for row in rows):
        handles.append(Line2D([], [], label="published", **published_look()))
    return handles


def draw(results, rows, title, subtitle):
    rows = sorted(rows, key=lambda row: -row["efficiency"])
    algorithms = list(dict.fromkeys(row["algorithm"] for row in rows))
    colours = style.colours_of((algorithm, algorithm) for algorithm in algorithms)
    base, gpus = round(baseline_gpus(rows)), rows[0]["gpus"]
    left = 0.62 if style.sheet.framed else 0.2
    wide = style.sheet.width - left - 0.2
    names = [wrapped(name_of(row, len(algorithms) > 1), wide - 0.1, size=LABEL) for row in rows]
    sources = {row["source"] for row in rows} | ({"published"} if any(row["published_efficiency"] is not None for row in rows) else set())
    legend = legend_of(rows, colours)
    foot = 0.55 + style.foot(results)
    inside = sum(len(lines) * lines[0].height + BELOW + BAR + GAP for lines in names) + GAP
    height = style.head(subtitle) + style.legend_height(style.legend_groups(legend)) + 0.55 + inside + foot
    figure = style.new_figure(height, title, subtitle, results, sources)
    top = style.legend_above(figure, height, legend, subtitle=subtitle)
    axes = style.panels(figure, 1, height, top, foot, left=left)[0]
    high = height - top - foot  # the y axis is in inches, from the top
    at = GAP
    for row, lines in zip(rows, names):
        for line in lines:
            at += line.height
            axes.text(0.004, at, line.text, fontsize=LABEL, va="bottom", zorder=4)
        at += BELOW
        draw_bar(axes, row, at + BAR / 2, colours[row["algorithm"]])
        axes.text(most_of(rows) + 0.02, at + BAR / 2, value_text(row), va="center", fontsize=LABEL)
        at += BAR + GAP
    axes.axvline(1, color=style.IDEAL, linewidth=2.5, zorder=1)
    values = Line(max((value_text(row) for row in rows), key=len), LABEL).width + 0.1  # inches
    axes.set_xlim(0, (most_of(rows) + 0.02) * wide / (wide - values))
    axes.set_xticks([part / 5 for part in range(6)])
    axes.set_ylim(high, 0)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("scaling efficiency")
    axes.set_title(f"efficiency with {ranks_text(gpus, 'GPU')}, over {ranks_text(base, 'GPU')}")
    return figure
