"""Published training runs beside the model, in one picture: for each the modelled range, its middle, and what was published."""

from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from plots import style
from plots.lettering import Line, clean, width_of_all, wrapped
from plots.results import ranks_text

LABEL, LINE, GAP = 8, 0.2, 0.34  # points; inches for a run, and for a group's heading
LONGEST_NAME = 50  # letters
INSIDE, OUTSIDE = style.BLUE, style.VERMILION
GROUPS = {"held out": "Held out", "seen before": "Seen before the model's costs were set",
          "with something unpublished": "Not everything published, range of all combinations"}
TITLE = "Published training runs beside the model"


def is_inside(row):
    return row["efficiency_low"] <= row["published_efficiency"] <= row["efficiency_high"]


def group_of(row):
    return "with something unpublished" if "combinations" in row else "held out" if row["held_out"] else "seen before"


def largest_of(rows, group):
    """The first row of each run with the most GPUs, as in reports/published_runs.cpp; the highest published efficiency first."""
    largest = {}
    for row in rows:
        run = row["published_run"]
        if group_of(row) == group and (run not in largest or largest[run]["gpus"] < row["gpus"]):
            largest[run] = row
    return sorted(largest.values(), key=lambda row: (-row["published_efficiency"], row["published_run"]))


def tally_text(rows):
    inside = sum(map(is_inside, rows))
    errors = [100 * (row["efficiency"] - row["published_efficiency"]) for row in rows]
    if "combinations" in rows[0]:
        return f"{inside} of {len(rows)} inside"
    return (f"{inside} of {len(rows)} inside, the middle off by {sum(map(abs, errors)) / len(rows):.1f} points on average "
            f"({sum(errors) / len(rows):+.1f} with its sign)")


def finding(groups):
    said = [f"{group}: {tally_text(rows)}" for group, rows in groups.items()]
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}. Nothing in the model is fitted to them."


def look_of(row):
    """Shape and colour say the same."""
    if is_inside(row):
        return {"marker": "o", "color": INSIDE, "markersize": 6.5, "linestyle": "none", "zorder": 5}
    return {"marker": "X", "color": OUTSIDE, "markersize": 7.5, "linestyle": "none", "zorder": 5}


def draw_run(axes, row, at):
    axes.axhline(at, color=style.GRID, linewidth=0.8, zorder=0.5)
    axes.plot((row["efficiency_low"], row["efficiency_high"]), (at, at), color=style.IDEAL, linewidth=6, solid_capstyle="butt", zorder=2)
    axes.plot(row["efficiency"], at, marker="|", color=style.INK, markersize=12, markeredgewidth=1.6, zorder=4)
    axes.plot(row["published_efficiency"], at, **look_of(row))


def legend_of(rows):
    handles = [Line2D([], [], color=style.IDEAL, linewidth=6, label="modelled range"),
               Line2D([], [], color=style.INK, marker="|", markersize=9, markeredgewidth=1.6, linestyle="none", label="its middle")]
    for inside, word in ((True, "inside"), (False, "outside")):
        some = [row for row in rows if is_inside(row) == inside]
        if some:
            handles.append(Line2D([], [], label=f"published, {word}", **look_of(some[0])))
    return handles


def short(run):
    """Its end tells runs of a system apart, above all what follows a colon."""
    if len(run) <= LONGEST_NAME:
        return run
    claim = run[run.rfind(": "):] if ": " in run else ""
    end = claim if 0 < len(claim) < LONGEST_NAME - 8 else run[-LONGEST_NAME // 2:]
    return f"{run[:LONGEST_NAME - len(end) - 1]}…{end}"


def name_of(row):
    return f"{short(clean(row['published_run']))}, {ranks_text(row['gpus'], 'GPU')}"


def placed(groups, beside):
    """(distance from the top in inches, row or heading) of all lines, and how high they are together. `beside`: the names stand
    left of the axes, otherwise above each interval."""
    found, at = [], 0
    for group, rows in groups.items():
        found.append((at + GAP / 2, f"{GROUPS[group]}: {sum(map(is_inside, rows))} of {len(rows)} inside"))
        at += GAP
        for row in rows:
            at += 0 if beside else 0.15
            found.append((at + LINE / 2, row))
            at += LINE
        at += 0.08
    return found, at


def draw(result, groups):
    rows = [row for group in groups.values() for row in group]
    beside = style.sheet.panels > 1
    names = [Line(name_of(row), LABEL) for row in rows]
    left = width_of_all(names) + 0.2 if beside else 0.15
    subtitle = f"{TITLE}; " if result.title else ""
    subtitle += "each run with its most GPUs; they only check the model, and nothing in it is fitted to them"
    legend = legend_of(rows)
    lines, inside = placed(groups, beside)
    foot = 0.55 + style.foot([result])
    height = style.head(subtitle) + style.legend_height(style.legend_groups(legend)) + 0.1 + inside + foot
    figure = style.new_figure(height, result.title or TITLE, subtitle, [result], {"modelled", "published"})
    top = style.legend_above(figure, height, legend, subtitle=subtitle) - 0.28  # the axes have no title
    edge = 0.6 if style.sheet.framed else 0
    axes = style.panels(figure, 1, height, top, foot, left=left + edge)[0]
    begin = -left / (style.sheet.width - left - edge - 0.2) if beside else 0  # of the names, in parts of the axes
    for at, row in lines:
        if isinstance(row, str):
            texts = wrapped(row, style.sheet.width - 0.8, size=LABEL, bold=True)
            axes.text(begin, at, "\n".join(text.text for text in texts), transform=axes.get_yaxis_transform(), fontsize=LABEL,
                      fontweight="bold", va="center")
            continue
        draw_run(axes, row, at)
        axes.text(begin, at if beside else at - LINE / 2 - 0.02, name_of(row), transform=axes.get_yaxis_transform(),
                  fontsize=LABEL, va="center", zorder=6)
    shown = [value for row in rows for value in (row["efficiency_low"], row["efficiency_high"], row["published_efficiency"])]
    axes.set_xlim(max(0, int(20 * min(shown) - 0.4) / 20), max(1.02, max(shown) + 0.02))
    axes.set_ylim(inside, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("scaling efficiency")
    return figure


def charts(result):
    """One of all runs."""
    rows = [row for row in result.rows if "published_run" in row]
    groups = {group: largest_of(rows, group) for group in GROUPS}
    groups = {group: largest for group, largest in groups.items() if largest}
    if not groups:
        return []
    return [style.Chart("published-runs", result.title or TITLE, finding(groups), lambda: draw(result, groups))]
