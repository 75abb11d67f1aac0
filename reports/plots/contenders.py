"""What the rows of collectives are called, as in reports/collective_tables.cpp, and which of them can be compared."""

from collections import defaultdict

from plots.results import COLLECTIVES, InputError, ranks_text
from plots.scaling_rows import check_scaling

DETAILS = {"patterns": str, "lanes": lambda value: f"{value} lanes", "chunk_bytes": lambda value: f"{size_text(value)} chunks",
           "implementation": str}
TIMINGS = {"isolated": "", "osu": "timed as OSU does", "back-to-back": "timed back to back",
           "blocking": "timed blocking", "graph": "timed in a CUDA graph"}
VENDORS = ("mpi", "nccl")
MOST_RUNS = 4  # over one another: style.py has so many shades and markers


def size_text(size):
    for suffix, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= 0.9995 * factor:
            value = size / factor
            return f"{value:.3g}{suffix}" if value < 999.5 else f"{value:.0f}{suffix}"
    return str(size)


def bytes_text(size):
    """With its unit: 4MiB, as everywhere but on axes."""
    text = size_text(size)
    return f"{text} bytes" if text[-1].isdigit() else f"{text}iB"


def timing_of(row):
    return row.get("timing", "isolated")


def point_of(row):
    """Rows at one point differ only in how the collective was done."""
    return tuple(row[key] for key in ("nodes", "ranks", "dtype", "op", "size_bytes", "in_place")) + (timing_of(row),)


def brief_label(row):
    return f"{row['algorithm']} {row['dims']}" if "x" in row["dims"] else row["algorithm"]


def labels_of(rows):
    """A label for each row of a run that tells it from every other at the same point."""
    first, differing = {}, defaultdict(set)
    for row in rows:
        label = brief_label(row)
        contender = first.setdefault((label, point_of(row), row["source"], row["run"]), row)
        differing[label] |= {detail for detail in DETAILS if row[detail] != contender[detail]}
    timings_differ = len({timing_of(row) for row in rows}) > 1

    def label_of(row):
        brief = brief_label(row)
        parts = [text(row[detail]) for detail, text in DETAILS.items() if detail in differing[brief] and row[detail]]
        return ", ".join([brief, *parts, *([f"timing {timing_of(row)}"] if timings_differ else [])])

    return [label_of(row) for row in rows]


def without_the_same(rows):
    """The rows without contenders that did the same as another one at all points, step by step; that one's label has their
    names too."""
    labels = {}
    for row in rows:
        labels.setdefault((row["run"], point_of(row), row["algorithm"]), row["label"])
    did = defaultdict(set)
    for row in rows:
        at = row["run"], point_of(row)
        did[row["run"], row["label"]].add((at, labels.get((*at, row.get("same_as")), row["label"])))
    same = defaultdict(list)
    for (run, label), steps in did.items():
        same[run, frozenset(steps)].append(label)
    names = {(run, first): " = ".join([first, *others]) for (run, _), (first, *others) in same.items()}
    return [{**row, "label": names[row["run"], row["label"]]} for row in rows if (row["run"], row["label"]) in names]


def run_labels_of(rows):
    """What to call the run of each row, of several: its name, and its ranks and nodes where they differ."""
    texts = [(key, word) for key, word in (("ranks", "rank"), ("nodes", "node")) if len({row[key] for row in rows}) > 1]

    def label_of(row):
        counts = " on ".join(ranks_text(row[key], word) for key, word in texts)
        return f"{row['run']}, {counts}" if counts else row["run"]

    return [label_of(row) for row in rows]


def baseline_of(rows):
    """The vendor's call that the others are compared with, or None; as in reports/report_text.cpp."""
    algorithms = {row["algorithm"] for row in rows}
    return next((vendor for vendor in VENDORS if vendor in algorithms), None)


def check_number(results):
    """That so many runs can be told apart in one chart."""
    if len(results) > MOST_RUNS:
        raise InputError(f"{len(results)} runs over one another cannot be told apart; name {MOST_RUNS} at most")


def check_comparable(results):
    """That the charts of all these runs, more than one, can be laid over one another."""
    if len(results) < 2:
        raise InputError("there is no other result to draw this one beside; name two or more")
    check_number(results)
    if all(result.kind == "scale" for result in results):
        check_scaling(results, MOST_RUNS)
        return
    for result in results:
        if result.kind not in COLLECTIVES:
            raise InputError(f"'{result.name}' is of polyring {result.kind}, and only runs of one collective, or only tables of scale, are drawn over "
                             "one another; leave it out")
        if not result.rows:
            raise InputError(f"'{result.name}' has no rows to draw over others; leave it out")
    said = {"collective": lambda result: {result.kind}}
    for word, value in (("type", lambda row: row["dtype"]), ("operation", lambda row: row["op"]), ("timing", timing_of)):
        said[word] = lambda result, value=value: {value(row) for row in result.rows}
    first = results[0]
    for other in results[1:]:
        for word, values in said.items():
            if values(first) != values(other):
                raise InputError(f"'{first.name}' and '{other.name}' cannot be compared: they differ in the {word}, "
                                 f"{', '.join(sorted(values(first)))} and {', '.join(sorted(values(other)))}; "
                                 "leave one of them out")
