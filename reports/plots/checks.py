"""Charts of what `polyring accept` measured: a heat map of the pairs of hosts, and the ranks beside the median one."""

import numpy
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from plots import style
from plots.contenders import bytes_text
from plots.lettering import clean
from plots.results import ranks_text

PAIRS, STRAGGLERS = "pairs.allreduce", "stragglers"
MOST_RANKS = 40      # that a chart of ranks has, the slowest
MOST_NAMES = 16      # hosts whose pairs have their values written in
LONGEST_NAME = 14
VERDICT_COLOURS = {"pass": style.BLUE, "fail": style.VERMILION}


def median_of(row):
    return row["value"]["median"]


def short(name):
    """The end tells hosts apart."""
    name = clean(name)
    return name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME:]


def verdicts_text(rows):
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in dict.fromkeys(row["verdict"] for row in rows)}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


# --- pairs of hosts


def pair_text(row):
    return f"{' and '.join(clean(host) for host in row['hosts'])} ({median_of(row):.4g} {row['unit']})"


def pairs_finding(rows):
    slow = sorted(rows, key=median_of)
    bad = [row for row in slow if row["verdict"] == "fail"]
    more = f" and {len(bad) - 4} more" if len(bad) > 4 else ""
    said = (f"{len(bad)} failed: {', '.join(map(pair_text, bad[:4]))}{more}" if bad
            else f"the slowest is {pair_text(slow[0])}")
    middle = slow[len(slow) // 2]
    return f"{ranks_text(len(rows), 'pair')}, {median_of(middle):.4g} {middle['unit']} in the middle; {said}."


def matrix_of(rows, hosts):
    """Both halves; NaN where nothing was measured."""
    at = {host: index for index, host in enumerate(hosts)}
    values = numpy.full((len(hosts), len(hosts)), numpy.nan)
    for row in rows:
        a, b = (at[host] for host in row["hosts"])
        values[a, b] = values[b, a] = median_of(row)
    return values


def draw_values(axes, values, image):
    for (y, x), value in numpy.ndenumerate(values):
        if not numpy.isnan(value):
            dark = image.norm(value) < 0.5
            axes.text(x, y, f"{value:.3g}", ha="center", va="center", fontsize=6.5, zorder=4,
                      color=style.ON_DARK if dark else style.ON_FACES)


def mark_failures(axes, rows, hosts):
    at = {host: index for index, host in enumerate(hosts)}
    for row in rows:
        if row["verdict"] == "fail":
            for x, y in (tuple(at[host] for host in row["hosts"]), tuple(at[host] for host in row["hosts"][::-1])):
                axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=style.VERMILION, linewidth=1.8, zorder=5))


def draw_pairs(result, rows):
    hosts = list(dict.fromkeys(host for row in rows for host in row["hosts"]))
    hosts.sort(key=result.hosts.index if set(hosts) <= set(result.hosts) else natural)
    side = min(max(2.2, 0.5 * len(hosts)), 6.4, style.sheet.width - 1.9)
    first = rows[0]
    subtitle = (f"{first['quantity']} of allreduces of {bytes_text(first['size_bytes'])} between two hosts, median; "
                f"{verdicts_text(rows)}")
    failed = any(row["verdict"] == "fail" for row in rows)
    handles = [Patch(facecolor="none", edgecolor=style.VERMILION, linewidth=1.8, label="failed")] if failed else []
    handles.append(Patch(color=style.NO_VALUE, label="not measured"))
    foot = 0.9 + style.foot([result])
    height = style.head(subtitle) + style.legend_height(style.legend_groups(handles)) + 0.38 + side + foot
    figure = style.new_figure(height, pairs_title(rows), subtitle, [result], {row["source"] for row in rows})
    top = style.legend_above(figure, height, handles, subtitle=subtitle)
    wide = style.sheet.width
    axes = figure.add_axes((1.15 / wide, foot / height, side / wide, (height - top - foot) / height))
    values = matrix_of(rows, hosts)
    highest = numpy.nanmax(values)
    # Equal hosts look equal: the colours span at least a fifth of the highest.
    image = axes.imshow(values, cmap="cividis", interpolation="nearest", vmin=min(numpy.nanmin(values), 0.8 * highest), vmax=highest)
    axes.set_facecolor(style.NO_VALUE)
    axes.grid(visible=False)
    if len(hosts) <= MOST_NAMES and style.sheet.panels > 1:
        draw_values(axes, values, image)
    mark_failures(axes, rows, hosts)
    step = max(1, -(-len(hosts) // 32) if style.sheet.panels > 1 else -(-len(hosts) // 16))
    shown = range(0, len(hosts), step)
    axes.set_xticks(shown, [short(hosts[index]) for index in shown], rotation=90, fontsize=7)
    axes.set_yticks(shown, [short(hosts[index]) for index in shown], fontsize=7)
    scale = figure.add_axes(((1.15 + side + 0.15) / wide, foot / height, 0.16 / wide, (height - top - foot) / height))
    bar = figure.colorbar(image, cax=scale)
    bar.set_label(f"{first['quantity']} ({first['unit']})", labelpad=4)
    bar.outline.set_visible(False)
    return figure


def natural(name):
    """node2 before node10."""
    digits = "".join(letter if letter.isdecimal() else " " for letter in name).split()
    return "".join(letter for letter in name if not letter.isdecimal()), [int(number[:18]) for number in digits], name


def pairs_title(rows):
    return f"Pairs of hosts: {rows[0]['quantity']} of an allreduce"


# --- ranks beside the median one


def stragglers_finding(rows):
    slow = max(rows, key=median_of)
    limit = f"; at most {slow['most']:.4g} is allowed" if slow["most"] is not None else ""
    return (f"{ranks_text(len(rows), 'rank')}: {verdicts_text(rows)}. The slowest is {clean(slow['subject'])} with "
            f"{median_of(slow):.4g} {slow['unit']}{limit}.")


def draw_stragglers(result, rows):
    shown = sorted(rows, key=median_of)[-MOST_RANKS:]
    first = rows[0]
    subtitle = "dot: median, line: its 95 % confidence interval"
    if len(shown) < len(rows):
        subtitle += f"; the slowest {len(shown)} of {len(rows)} ranks"
    handles = [Line2D([], [], color=VERDICT_COLOURS.get(verdict, style.ORANGE), marker=marker_of(verdict), linestyle="none",
                      label=verdict) for verdict in dict.fromkeys(row["verdict"] for row in shown)]
    limits = {row["most"] for row in shown if row["most"] is not None}
    if limits:
        handles.append(Line2D([], [], color=style.MUTED, linestyle="--", label="allowed"))
    foot = 0.55 + style.foot([result])
    height = style.head(subtitle) + style.legend_height(style.legend_groups(handles)) + 0.38 + 0.35 + 0.2 * len(shown) + foot
    figure = style.new_figure(height, "Ranks beside the median rank", subtitle, [result], {row["source"] for row in rows})
    top = style.legend_above(figure, height, handles, subtitle=subtitle)
    axes = style.panels(figure, 1, height, top, foot, left=1.9)[0]
    for at, row in enumerate(shown):
        colour, value = VERDICT_COLOURS.get(row["verdict"], style.ORANGE), row["value"]
        axes.plot((value["ci_low"], value["ci_high"]), (at, at), color=colour, linewidth=2, zorder=3)
        axes.plot(value["median"], at, marker=marker_of(row["verdict"]), color=colour, markersize=6, zorder=4)
    for limit in limits:
        axes.axvline(limit, color=style.MUTED, linestyle="--", linewidth=1.4, zorder=2)
    axes.set_yticks(range(len(shown)), [clean(row["subject"])[:24] for row in shown], fontsize=7.5)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"{first['quantity']} ({first['unit']})")
    return figure


def marker_of(verdict):
    return {"pass": "o", "fail": "X"}.get(verdict, "D")


def charts(result):
    """Pairs of each size; all ranks."""
    measured = [row for row in result.rows if row["value"]]
    found = []
    pairs = [row for row in measured if row["check"] == PAIRS and len(set(row["hosts"])) == 2]
    for size in sorted({row["size_bytes"] for row in pairs}):
        rows = [row for row in pairs if row["size_bytes"] == size]
        found.append(style.Chart("pairs", pairs_title(rows), pairs_finding(rows), lambda rows=rows: draw_pairs(result, rows)))
    ranks = [row for row in measured if row["check"] == STRAGGLERS]
    if ranks:
        found.append(style.Chart("stragglers", "Ranks beside the median rank", stragglers_finding(ranks),
                                 lambda: draw_stragglers(result, ranks)))
    return found
