"""From what scripts/gpu_check measured to its table of goals.

Run as `python3 -m checking.goals FOLDER [WHY]`; with WHY there is no GPU, and nothing was measured. Exit codes: 0 all goals that
could be judged are met; 8 one is missed; 9 one was to be judged and could not be.
"""

import json
import pathlib
import re
import sys

from racing import tables

BELOW, INCONCLUSIVE = 8, 9  # exit codes
REDUCE, TRAFFIC, STAGED, LAUNCHES = 0.90, 0.80, 0.85, 2.0
NOT_MEASURED = "not measured"


class Absent(Exception):
    """What a goal needs was not measured: why."""


class Run:
    """The files of a folder of scripts/gpu_check."""

    def __init__(self, folder):
        self.folder = folder
        self.about = dict(line.split("\t", 1) for line in self.lines("about.tsv"))
        self.steps = [(line.split("\t") + [""] * 4)[:4] for line in self.lines("steps.tsv")]
        self.device = self.json("device.json") or {}
        self.is_software = self.device.get("gpu", "").startswith("software GPU")

    def text(self, name):
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def lines(self, name):
        return [line for line in self.text(name).splitlines() if line]

    def json(self, name):
        text = self.text(name)
        return json.loads(text) if text.strip() else None

    def need(self, *steps):
        """All of these passed."""
        for step in steps:
            state, why = next(((row[1], row[3]) for row in self.steps if row[0] == step), ("", ""))
            if state != "passed":
                raise Absent(f"{step} {state}: {why}" if state else "")

    def micro(self, name):
        """Bytes and the median time in microseconds."""
        self.need("micro")
        measure = next(row for row in self.json("micro.json")["measures"] if row["name"] == name)
        return measure["bytes"], measure["median_us"]

    def rate(self, name):
        """In GB/s."""
        size, us = self.micro(name)
        return size / us / 1e3

    def rows(self, step):
        """Those that were verified, and have a time."""
        self.need(step)
        rows = self.json(f"{step}.json")["rows"]
        if not rows or any(row["wrong"] != 0 or not row["time_us"]["median"] > 0 for row in rows):
            raise Absent(f"{step}: a row was not verified, or has no time")
        return rows


def percent(fraction):
    return f"{100 * fraction:.0f} %"


def place(row):
    return "in place" if row["in_place"] else "out of place"


def size_text(size):
    scale, unit = next((pair for pair in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")) if size % pair[0] == 0), (1, "B"))
    return f"{size // scale} {unit}"


# A goal's function gives what was measured, and whether that is enough.

def reduce_goal(run):
    fraction = run.rate("reduce") / run.rate("device_copy")
    size = run.micro("device_copy")[0] // 2
    return f"{percent(fraction)} of {run.rate('device_copy'):.0f} GB/s, {size_text(size)}", fraction >= REDUCE


def one_gpu_goal(ranks):
    """Each rank's input is read once, and each output written once, at the best rate of this run."""
    def judge(run):
        rate = max(run.rate("device_copy"), run.rate("reduce"))
        rows = run.rows(f"one-gpu-{ranks}")
        shares = [(2 * ranks * row["size_bytes"] / (rate * 1e3) / row["time_us"]["median"], row) for row in rows]
        measured = ", ".join(f"{percent(share)} {place(row)}" for share, row in shares)
        beyond = " (more than the bound: its rate is too low)" if max(share for share, _ in shares) > 1 else ""
        return f"{measured}, {size_text(rows[0]['size_bytes'])}{beyond}", min(share for share, _ in shares) >= TRAFFIC
    return judge


def small_goal(run):
    launch = run.micro("launch")[1]
    times, row = max(((row["time_us"]["median"] / launch, row) for row in run.rows("small")), key=lambda pair: pair[0])
    return f"at most {times:.2f} x {launch:.1f} us ({size_text(row['size_bytes'])} {place(row)})", times <= LAUNCHES


def staged_goal(run):
    pinned = min(run.rate("to_host"), run.rate("from_host"))
    fraction = run.rate("staged") / pinned
    return f"{percent(fraction)} of {pinned:.1f} GB/s, {size_text(run.micro('staged')[0])}", fraction >= STAGED


def nccl_one_goal(run):
    rows = run.rows("nccl-one")
    times = ", ".join(f"{tables.duration(row['time_us']['median'])} {place(row)}" for row in rows)
    return f"{times}, {size_text(rows[0]['size_bytes'])}, {rows[0]['implementation']}", True


def nccl_two_goal(run):
    run.need("nccl-two")
    if (run.folder / "nccl-two.json").exists():
        rows = run.rows("nccl-two")
        return f"ran: {', '.join(tables.duration(row['time_us']['median']) for row in rows)}, {rows[0]['implementation']}", True
    said = [line for line in run.lines("nccl-two.log") if line.startswith("polyring: ")]
    refused = re.search(r"NCCL [\d.]+ refuses ranks 0 and 1", said[0]) if len(said) == 1 else None
    return (refused[0] if refused else "; ".join(said) or "nothing was said"), refused is not None


GOALS = (
    ("sum of 2 float32 operands, of the GPU's copy rate", f">= {percent(REDUCE)}", reduce_goal),
    *((f"allreduce, {ranks} ranks on one GPU, of the bound by memory traffic", f">= {percent(TRAFFIC)}", one_gpu_goal(ranks))
      for ranks in (2, 4, 8)),
    ("allreduce of 8 B to 64 KiB, 2 ranks on one GPU, of an empty launch", f"<= {LAUNCHES:.0f} x", small_goal),
    ("message through the host, of the rate of pinned copies", f">= {percent(STAGED)}", staged_goal),
    ("NCCL, one rank", "timed, verified", nccl_one_goal),
    ("NCCL, two ranks on one GPU", "refused; runs from 2.30 on", nccl_two_goal),
)


def all_gpus(run):
    """Rows without a goal, where there are several GPUs."""
    try:
        rows = run.rows("gpus")
    except Absent:
        return []
    return [[f"{row['algorithm']}, {row['ranks']} GPUs, {place(row)}",
             f"{tables.duration(row['time_us']['median'])}, busbw {row['busbw_GBps']:.1f} GB/s, {size_text(row['size_bytes'])}", "-", "-"]
            for row in rows]


def judged(run, why_none):
    """The table's rows, and the outcomes: True, False, or None for what could not be judged though its step was to run."""
    rows, outcomes = [], []
    for name, limit, judge in GOALS:
        try:
            if why_none:
                raise Absent("")
            measured, met = judge(run)
        except Absent as absent:
            rows.append([name, f"{NOT_MEASURED}{' (' + str(absent) + ')' if str(absent) else ''}", limit, "-"])
            if str(absent) and " skipped: " not in str(absent):
                outcomes.append(None)
            continue
        rows.append([name, measured, limit, "-" if run.is_software else "yes" if met else "NO"])
        if not run.is_software:
            outcomes.append(met)
    return rows + ([] if why_none else all_gpus(run)), outcomes


def title(run, why_none):
    about = run.about
    if why_none:
        return f"No GPU: {why_none}. Nothing was measured, and nothing is claimed. {about['program']}, {about['date']}."
    device = run.device
    text = (f"{device['gpu']} ({device['gpus']} in this machine), driver {about['driver']}, CUDA {device['cuda_runtime']}, "
            f"{about['program']}, {about['date']}.")
    if run.is_software:
        text += " Times on the software GPU mean nothing: no goal is judged."
    return text


def main(folder, why_none=""):
    run = Run(pathlib.Path(folder))
    rows, outcomes = judged(run, why_none)
    print(title(run, why_none) + "\n")
    print(tables.markdown(["goal", "measured", "limit", "met"], rows), end="")
    if run.steps:
        print("\n" + tables.markdown(["step", "state", "s", "why"], run.steps), end="")
    if False in outcomes:
        return BELOW
    return INCONCLUSIVE if None in outcomes else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
