"""Which rows of `polyring scale` share a chart, what they are called there, and which results can be drawn over one another."""

from collections import defaultdict

from plots.results import InputError, ranks_text


def baseline_gpus(rows):
    """How many GPUs have the speedup 1: one node of the published systems."""
    for row in rows:
        if row["speedup"] > 0:
            return row["gpus"] * row["efficiency"] / row["speedup"]
    return 1


def rails_text(row):
    return f", {ranks_text(row['rails'], 'NIC')} a host" if row.get("rails_differ") else ""


def label_of(row):
    """The algorithm, of a strategy what is the same at all GPU counts: not the number of its replicas; the NICs, where they
    differ; and the run, where several are compared."""
    where = f"{row['compared']}: " if row.get("compared") else ""
    rails = rails_text(row)
    if "strategy" not in row:
        return where + row["algorithm"] + rails
    factors = row["strategy"].split(",")
    split = [factor for factor in factors if not factor.startswith(("data=", "inter-model="))]
    return f"{where}{row['algorithm']}, {','.join(split) or factors[0].split('=')[0]}{rails}"


def batch_text(row):
    return f"global batch {row['global_batch']}" if "global_batch" in row else f"batch {row['batch']} per GPU"


def published_points(rows, key):
    return sorted({row["gpus"]: row[key] for row in rows if row[key] is not None}.items())


def group_title(rows):
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    models = list(dict.fromkeys(row["model"] for row in rows))
    return f"Scaling of {listed(models)} on {listed(machines)}"


def listed(names):
    """"a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def exchange_of(row):
    """What tells charts apart in how gradients are exchanged: nothing for strategies, since each has its own buckets and overlap."""
    return () if "strategy" in row else (row["bucket"], row["overlap"])


def conditions_text(rows):
    """What the rows have in common, or how they differ."""
    batches = list(dict.fromkeys(batch_text(row) for row in rows))
    if len(batches) > 3:
        batches = ["batches that differ"]
    exchanges = {(row["bucket"], row["overlap"]) for row in rows}
    if len(exchanges) > 1 and all("strategy" in row for row in rows):
        return f"{listed(batches)}, each strategy with its own buckets and overlap"
    buckets = list(dict.fromkeys(row["bucket"] for row in rows))
    overlaps = list(dict.fromkeys("with overlap" if row["overlap"] else "without overlap" for row in rows))
    return f"{listed(batches)}, buckets: {listed(buckets)}, {listed(overlaps)}"


def scaled(rows):
    """Those that tables of scaling have: no published training runs, and what has a speedup."""
    return [row for row in rows if row["speedup"] > 0 and "published_run" not in row]


def with_rails(rows):
    """Says which rows differ from others in nothing but the NICs of a host."""
    rails = defaultdict(set)
    for row in rows:
        rails[label_of(row)].add(row.get("rails"))
    return [{**row, "rails_differ": True} if "rails" in row and len(rails[label_of(row)]) > 1 else row for row in rows]


def beside(runs):
    """All rows of several (name, rows), each with the name of its run and its number."""
    return [{**row, "compared": name, "run": number} for number, (name, rows) in enumerate(runs) for row in rows]


def compared(groups):
    """Groups of machines that differ in nothing but the batch are one: --machine A --machine B."""
    same_but_batch = defaultdict(list)
    for (machine, *others, _), rows in groups.items():
        same_but_batch[(*others, round(baseline_gpus(rows)))].append((machine, rows))
    for same in same_but_batch.values():
        if len({machine for machine, _ in same}) == len(same) > 1:
            yield beside(same)
        else:
            yield from (with_rails(rows) for _, rows in same)


def groups_of(result):
    """The rows of each chart: of each machine, model, bucket policy, overlap and batch, a GPU's, or that of all GPUs. Strategies of
    one machine, model and batch share a chart."""
    groups = defaultdict(list)
    for row in scaled(result.rows):
        groups[row["machine"], row["model"], exchange_of(row), batch_text(row)].append(row)
    return list(compared(groups))


# --- several results


def overlaid_rows(results):
    """All rows, each with a name that tells its run from the others: the machine's and the model's where these differ, else
    the file's."""
    every = [row for result in results for row in scaled(result.rows)]
    differing = [key for key in ("machine", "model") if len({row[key] for row in every}) > 1]
    runs = defaultdict(list)
    for result in results:
        for row in scaled(result.rows):
            runs[result.name, ", ".join(row[key] for key in differing)].append(row)
    said = [text for _, text in runs]
    unique = len(set(said)) == len(said) and all(said)
    several = len(runs) > len(results)
    return beside([(text if unique else f"{name}, {text}" if several and text else name, with_rails(rows))
                   for (name, text), rows in runs.items()])


def check_lines(result):
    """That what one line of the result would join differs in nothing but the GPUs."""
    lines = defaultdict(list)
    for row in scaled(result.rows):
        lines[row["machine"], row["model"], label_of(row), row["source"]].append(row)
    for (machine, model, *_), rows in lines.items():
        if len({(row["bucket"], row["overlap"], batch_text(row)) for row in rows}) > 1:
            raise InputError(f"'{result.name}' has more of {model} on {machine} than one line can show: {conditions_text(rows)}; "
                             "write each into a file of its own, and name these")


def check_scaling(results, most):
    """That these results, all of `scale`, can be laid over one another."""
    for result in results:
        if any("published_run" in row for row in result.rows):
            raise InputError(f"'{result.name}' has published results beside the model, which are not drawn over others; leave it out")
        if not scaled(result.rows):
            raise InputError(f"'{result.name}' has no rows to draw over others; leave it out")
        check_lines(result)
    rows = overlaid_rows(results)
    if rows[-1]["run"] >= most:
        raise InputError(f"{rows[-1]['run'] + 1} machines over one another cannot be told apart; name {most} at most")
    (first, name), *others = {round(baseline_gpus([row])): result.name for result in results for row in scaled(result.rows)}.items()
    for base, other in others:
        raise InputError(f"the speedups of '{name}' and of '{other}' cannot be compared: they are over {ranks_text(first, 'GPU')} and "
                         f"over {ranks_text(base, 'GPU')}; give all machines the same --baseline")
