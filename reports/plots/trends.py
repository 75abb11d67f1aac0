"""Charts of what `polyring accept --duration` measured round after round: of each check the medians of its subjects."""

from collections import defaultdict
from statistics import median

import numpy
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from plots import style
from plots.contenders import bytes_text
from plots.lettering import clean

MOST_LINES = 6    # subjects that have a line of their own; a band stands for the others
MOST_MARKED = 40  # rounds whose points are marked
LONGEST_NAME = 40
WORTH = 0.05      # so much worse is worth a word, as accept itself says it
COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.INK)
MARKERS = ("o", "s", "^", "D", "v", "P")


def is_trending(row):
    return len(row.get("trend", ())) > 1


def less_is_worse(row):
    return row["least"] is not None or row["most"] is None


def ends_of(row):
    """The medians of its first and its last third."""
    third = max(1, len(row["trend"]) // 3)
    return median(row["trend"][:third]), median(row["trend"][-third:])


def worsening(row):
    """From the first third to the last, as a part of the first."""
    first, last = ends_of(row)
    change = last - first if not less_is_worse(row) else first - last
    return change / first if first > 0 else float(change > 0)


def misses(row):
    """How many rounds were beyond a threshold."""
    least = row["least"] if row["least"] is not None else -numpy.inf
    most = row["most"] if row["most"] is not None else numpy.inf
    return sum(not least <= value <= most for value in row["trend"])


def lined(rows):
    """The subjects that have a line of their own, the worst first: all where these are few, else what is worth a word, and one
    at least."""
    rows = sorted(rows, key=lambda row: (-misses(row), -worsening(row)))
    subjects = list(dict.fromkeys(row["subject"] for row in rows))
    if len(subjects) <= MOST_LINES:
        return subjects
    notable = list(dict.fromkeys(row["subject"] for row in rows if misses(row) or worsening(row) > WORTH))
    return (notable or subjects[:1])[:MOST_LINES]


def rounds_of(rows):
    return max(len(row["trend"]) for row in rows)


def panels_of(rows):
    """The rows of each quantity, unit and size."""
    groups = defaultdict(list)
    for row in rows:
        groups[(row["quantity"], row["unit"], row["size_bytes"])].append(row)
    return list(groups.values())


def name_of(row):
    name = clean(row["subject"]) or row["check"]
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME - 1]}…"


def unit_of(row):
    return f" {clean(row['unit'])}" if row["unit"] else ""


def quantity_of(row, joint):
    """`joint`: what comes before its size, where it has one."""
    return clean(row["quantity"]) + (f"{joint}{bytes_text(row['size_bytes'])}" if row["size_bytes"] else "")


# --- what it shows, in words


def said_of(rows):
    """Of one quantity."""
    worst = max(rows, key=worsening)
    if worsening(worst) > WORTH:
        first, last = ends_of(worst)
        verb = "fell" if less_is_worse(worst) else "rose"
        said = f"that of {name_of(worst)} {verb} most, from {first:.4g} to {last:.4g}{unit_of(worst)}"
    else:
        said = f"none of {len(rows)} got worse by more than {100 * WORTH:.0f} %"
    missed = sum(misses(row) > 0 for row in rows)
    if missed:
        said += f"; {missed} of {len(rows)} missed the threshold in some round"
    return f"{quantity_of(worst, ' of ')}: {said}"


def finding(rows):
    return f"{rounds_of(rows)} rounds. {'. '.join(said_of(panel) for panel in panels_of(rows))}."


# --- the chart


def title(rows):
    return f"{rows[0]['check']}, round after round"


def thresholds_of(rows):
    """Those that all rows have."""
    of = {key: {row[key] for row in rows} for key in ("least", "most")}
    return {key: next(iter(values)) for key, values in of.items() if len(values) == 1 and None not in values}


def padded(rows):
    """A line for each row, as long as the longest; NaN where it has no more rounds."""
    length = rounds_of(rows)
    return numpy.array([row["trend"] + [numpy.nan] * (length - len(row["trend"])) for row in rows])


def draw_band(axes, rows):
    """From the least to the greatest of these, and their median."""
    values = padded(rows)
    rounds = numpy.arange(1, values.shape[1] + 1)
    axes.fill_between(rounds, numpy.nanmin(values, axis=0), numpy.nanmax(values, axis=0), color=style.NO_VALUE, linewidth=0, zorder=1)
    axes.plot(rounds, numpy.nanmedian(values, axis=0), color=style.MUTED, linewidth=1.4, zorder=2)


def draw_line(axes, row, look):
    marked = len(row["trend"]) <= MOST_MARKED
    axes.plot(range(1, len(row["trend"]) + 1), row["trend"], linewidth=1.6, **{**look, "marker": look["marker"] if marked else ""})


def limit_y(axes, rows, thresholds):
    """What changes little looks so: the axis spans at least a fifth of the highest value."""
    values = [value for row in rows for value in row["trend"]] + thresholds
    low, high = min(values), max(values)
    if high <= 0:
        axes.set_ylim(0, 1)
        return
    margin = 0.08 * max(high - low, 0.2 * high)
    axes.set_ylim(min(low, 0.8 * high) - margin if low > margin else -margin / 2, high + margin)


def draw_panel(axes, rows, looks):
    own = [row for row in rows if row["subject"] in looks]
    others = [row for row in rows if row["subject"] not in looks]
    if others:
        draw_band(axes, others)
    for row in own:
        draw_line(axes, row, looks[row["subject"]])
    common = thresholds_of(rows)
    for limit in common.values():
        axes.axhline(limit, color=style.MUTED, linestyle="--", linewidth=1.4, zorder=2)
    limits = list(common.values())
    for row in own:
        for key in {"least", "most"} - common.keys():
            if row[key] is not None:
                axes.axhline(row[key], color=looks[row["subject"]]["color"], linestyle="--", linewidth=1.1, zorder=2)
                limits.append(row[key])
    limit_y(axes, rows, limits)
    axes.set_xlim(0.6, rounds_of(rows) + 0.4)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_title(quantity_of(rows[0], ", "))
    axes.set_ylabel(clean(rows[0]["unit"]))
    axes.set_xlabel("measurement, one a round")


def looks_of(rows):
    """A colour and a marker for each subject that has a line of its own."""
    return {subject: {"color": COLOURS[at], "marker": MARKERS[at], "markersize": 4.5, "zorder": 4 - at / 10}
            for at, subject in enumerate(lined(rows))}


def handles_of(rows, looks):
    names = {row["subject"]: name_of(row) for row in rows}
    handles = [Line2D([], [], linewidth=1.6, label=names[subject], **look) for subject, look in looks.items()]
    many = len(names) - len(looks)
    if many:
        handles.append(Patch(color=style.NO_VALUE, label=f"{many} others, from least to greatest"))
        handles.append(Line2D([], [], color=style.MUTED, linewidth=1.4, label="their median"))
    if any(row["least"] is not None or row["most"] is not None for row in rows):
        handles.append(Line2D([], [], color=style.MUTED, linestyle="--", linewidth=1.4, label="threshold"))
    return handles


def draw(result, rows):
    panels, looks = panels_of(rows), looks_of(rows)
    subtitle = "the median of each round that measured it"
    if len({row["subject"] for row in rows}) > len(looks):
        subtitle += f"; {'the worst has a line' if len(looks) == 1 else f'the {len(looks)} worst have lines'}"
    handles = handles_of(rows, looks)
    foot = 0.55 + style.foot([result])
    height = (style.head(subtitle) + style.legend_height(style.legend_groups(handles)) + 0.38 +
              style.panels_height(len(panels), 2.6) + foot)
    figure = style.new_figure(height, title(rows), subtitle, [result], {row["source"] for row in rows})
    top = style.legend_above(figure, height, handles, subtitle=subtitle)
    for axes, panel in zip(style.panels(figure, len(panels), height, top, foot, left=0.72), panels):
        draw_panel(axes, panel, looks)
    return figure


def charts(result):
    """Of each check that several rounds have measured."""
    checks = defaultdict(list)
    for row in filter(is_trending, result.rows):
        checks[row["check"]].append(row)
    return [style.Chart("trend", title(rows), finding(rows), lambda rows=rows: draw(result, rows)) for rows in checks.values()]
