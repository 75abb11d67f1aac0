"""polyring compare: results and other benchmarks' logs side by side."""

import csv
import io
import json
import os
import unittest
from pathlib import Path
from unittest import mock

from program import ProgramTest, main

LOGS = Path(os.environ.get("POLYRING_LOGS", ""))
SAMPLES = [1.0, 1.01, 1.02, 1.0, 0.99, 1.03, 1.01, 1.0, 0.98, 1.02, 1.01]
SIZES = [1 << 10, 1 << 20, 1 << 26]
NCCL = """# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1024 maxBytes 67108864 step: 256(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#  Rank  0 Group  0 Pid   1 on     hosta device  0 [0000:06:00] NVIDIA A100
#  Rank  1 Group  0 Pid   2 on     hosta device  1 [0000:07:00] NVIDIA A100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
        1024           256     float     sum      -1    10.00    0.10    0.10      0    10.00    0.10    0.10      0
     1048576        262144     float     sum      -1    20.00   52.43   52.43      0    20.00   52.43   52.43      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 26.2
"""
OSU = "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n1024    12.00\n1048576    30.00\n"


def timing(us):
    samples = [round(us * sample, 6) for sample in SAMPLES]
    ordered = sorted(samples)
    return {"median": ordered[5], "ci_low": ordered[1], "ci_high": ordered[9], "min": ordered[0], "p99": ordered[-1],
            "samples": samples}


def row(algorithm, size, us, ranks=4):
    time = timing(us)
    algbw = size / time["median"] / 1e3
    return {"algorithm": algorithm, "implementation": "polyring over shared memory", "dims": "4", "patterns": "", "lanes": 1,
            "chunk_bytes": 0, "ranks": ranks, "nodes": 1, "ranks_per_node": ranks, "size_bytes": size, "count": size // 4,
            "dtype": "float", "op": "sum", "in_place": False, "time_us": time, "timing": "isolated", "algbw_GBps": algbw,
            "busbw_GBps": algbw * 2 * (ranks - 1) / ranks, "bound_us": None, "bound_fraction": None, "wrong": 0,
            "source": "measured"}


def result(factors, kind="allreduce", ranks=4, **more):
    """Times of 10 us, 100 us and 5 ms, times the factors of each algorithm."""
    rows = [row(algorithm, size, us * factor, ranks) for algorithm, each in factors.items()
            for size, us, factor in zip(SIZES, (10, 100, 5000), each)]
    return {"format": "polyring-result", "version": 1, "kind": kind, "created": "2026-01-02T03:04:05Z",
            "command": "polyring allreduce -J x.json", "polyring_version": "0.1.0", "commit": "abc",
            "placement": [{"rank": rank, "host": "alpha"} for rank in range(ranks)], "environment": {},
            "versions": {"mpi": "Open MPI 4.1.4"}, "notes": [], "inputs": [], "machine": None, "rows": rows, **more}


class Compare(ProgramTest):
    def write(self, name, content):
        text = content if isinstance(content, str) else json.dumps(content)
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def rows(self, *words):
        return list(csv.DictReader(io.StringIO(self.succeed("compare", *words, "--format", "csv"))))

    def two(self):
        self.write("before.json", result({"multi-ring": (1, 1, 1), "mpi": (1.5, 1.5, 1.5)}))
        after = result({"multi-ring": (1, 0.8, 0.9), "ring": (2, 2, 2)})
        after["versions"]["mpi"] = "Open MPI 5.0.1"
        self.write("after.json", after)
        return "before.json", "after.json"

    def test_differences_come_before_times_and_sentences_after(self):
        text = self.succeed("compare", *self.two())
        self.assertRegex(text, r"(?m)^mpi +Open MPI 4\.1\.4 +Open MPI 5\.0\.1$")
        self.assertRegex(text, r"(?m)^The same: .*ranks 4")
        line = next(line for line in text.splitlines() if line.split()[:3] == ["1048576", "out", "multi-ring"])
        self.assertEqual(line.split()[3:5], ["101.0", "80.80"])
        self.assertEqual((line.split()[7], line.split()[-1]), ("0.800", "faster"))
        self.assertIn("B's multi-ring, out of place: at 1KiB no difference shows (1.00, intervals include 1); takes 0.80 to 0.90 of A's "
                      "time from 1MiB to 64MiB. What differs is real", text)
        self.assertLess(text.index("Open MPI 5.0.1"), text.index("1048576"))
        self.assertLess(text.index("1048576"), text.index("In short"))

    def test_every_contender_of_every_run_is_there(self):
        rows = self.rows(*self.two())
        shown = {(row["compared"], row["run"]) for row in rows}
        self.assertEqual(shown, {("best", "A"), ("best", "B"), ("multi-ring", "A"), ("multi-ring", "B"), ("mpi", "A"), ("ring", "B")})
        ours = next(row for row in rows if row["compared"] == "multi-ring" and row["run"] == "B" and row["size_bytes"] == "1048576")
        self.assertAlmostEqual(float(ours["ratio"]), 0.8)
        self.assertLess(float(ours["ratio_low"]), 0.8)
        self.assertLess(float(ours["ratio_high"]), 0.9)
        self.assertEqual(ours["finding"], "faster")

    def test_the_baseline_by_number_letter_and_name(self):
        files = self.two()
        for name in ("2", "B", "b", "after.json", "after"):
            rows = self.rows(*files, "--baseline", name)
            self.assertTrue(all(row["finding"] == "baseline" for row in rows if row["run"] == "B" and row["compared"] == "best"))
        self.refused("compare", *files, "--baseline", "3", naming="none of the runs")
        self.refused("compare", *files, "--baseline", "x", naming="A (before.json), B (after.json)")

    def test_the_same_twice(self):
        self.two()
        text = self.succeed("compare", "before.json", "before.json")
        self.assertIn("Nothing that is recorded of these runs differs.", text)
        self.assertNotRegex(text, "faster$|slower$")

    def test_logs_beside_results(self):
        self.two()
        self.write("nccl.log", NCCL)
        text = self.succeed("compare", "before.json", "nccl.log")
        self.assertIn("A has 4 ranks and B 2: their times are not of the same work", text)
        self.assertIn("--timing back-to-back measures as B did", text)
        self.assertIn("A has medians of samples, and B means without samples", text)
        self.assertRegex(text, "other timing")
        rows = self.rows("before.json", "nccl.log")
        nccl = next(row for row in rows if row["run"] == "B" and row["size_bytes"] == "1048576" and row["compared"] == "best" and row["ratio"])
        self.assertEqual((nccl["ratio_of"], nccl["source"]), ("busbw", "imported"))
        self.assertAlmostEqual(float(nccl["ratio"]), 52.4288 / (1048576 / 101 / 1e3 * 1.5), places=3)

    def test_ranks_are_for_logs_that_do_not_say_how_many(self):
        self.write("nccl.log", NCCL)
        self.write("osu.out", OSU)
        self.refused("compare", "nccl.log", "osu.out", naming="--ranks")
        rows = self.rows("nccl.log", "osu.out", "--ranks", "2")
        self.assertEqual({row["ranks"] for row in rows}, {"2"})
        osu = next(row for row in rows if row["run"] == "B" and row["size_bytes"] == "1048576")
        self.assertAlmostEqual(float(osu["ratio"]), 1.5)
        self.assertEqual({row["ranks"] for row in self.rows("nccl.log", "osu.out", "--ranks", "4")}, {"2", "4"})

    def test_imported_rows_are_written(self):
        self.write("nccl.log", NCCL)
        self.write("osu.out", OSU)
        text = self.succeed("compare", "nccl.log", "osu.out", "--ranks", 2, "-J", "rows.json")
        self.assertIn("A (allreduce) is written to rows.json\nB (allreduce) is written to rows.json.1\n", text)
        written = json.loads((self.folder / "rows.json").read_text())
        self.assertEqual({row["source"] for row in written["rows"]}, {"imported"})
        self.assertEqual(self.rows("rows.json", "rows.json.1")[0]["source"], "imported")
        self.two()
        alone = json.loads(self.succeed("compare", "before.json", "nccl.log", "-J", "-"))
        self.assertEqual(len(alone["rows"]), 4)
        self.refused("compare", "nccl.log", "osu.out", "--ranks", 2, "-J", "-", naming="2 are imported")
        self.refused("compare", "before.json", "after.json", "-J", "x.json", naming="all of these are results already")

    def test_on_a_machine(self):
        self.write("nccl.log", NCCL)
        text = self.succeed("compare", "nccl.log", "nccl.log", "--machine", "dgx-a100")
        self.assertIn("verdict of all: no data", text)
        self.assertRegex(text, r"- A, B: .*NVLink")
        rows = self.rows("nccl.log", "nccl.log", "--machine", "dgx-a100")
        found = next(row for row in rows if row["size_bytes"] == "1048576")
        self.assertAlmostEqual(float(found["of_bound_percent"]), 100 * (1 << 20) / 20e-6 / 300e9, places=1)  # 12 NVLinks of 25 GB/s
        self.assertEqual(found["verdict"], "no data")
        self.refused("compare", "nccl.log", "nccl.log", "--rails", 2, naming="--machine or --from")

    def test_one_run_is_judged_by_its_machine(self):
        self.write("nccl.log", NCCL)
        text = self.succeed("compare", "nccl.log", "--machine", "dgx-a100")
        self.assertIn("verdict", text)
        self.assertNotIn("In short", text)
        alone, twice = self.rows("nccl.log", "--machine", "dgx-a100"), self.rows("nccl.log", "nccl.log", "--machine", "dgx-a100")
        judged = ("size_bytes", "placement", "of_bound_percent", "verdict")
        self.assertEqual([[row[key] for key in judged] for row in alone],
                         [[row[key] for key in judged] for row in twice if row["run"] == "A"])
        self.refused("compare", "nccl.log", naming="--machine")

    def test_wrong_results_of_a_log_are_said_loudly(self):
        self.write("nccl.log", NCCL.replace("52.43      0    20.00", "52.43      3    20.00"))
        text = self.succeed("compare", "nccl.log", "--machine", "dgx-a100", "-J", "rows.json")
        self.assertIn("What cannot be judged:\n\n- 1 result of A is wrong: what is wrong has no time.\n", text)
        self.assertRegex(text, r"(?m)^ *1048576 +out .*\bwrong\b.*\bfail\b")
        two = self.succeed("compare", "nccl.log", "nccl.log")
        self.assertIn("- 1 result of B is wrong: what is wrong has no time.", two)
        self.assertIn("wrong result", two)
        with mock.patch.dict(os.environ, POLYRING_PYTHON="/bin/false"):  # no charts, which take seconds
            self.succeed("report", "rows.json", "--out", "report")
        self.assertIn("**WRONG**: 1 of 4 rows have wrong results (rows).\n", (self.folder / "report/report.md").read_text(encoding="utf-8"))

    def test_markdown_and_json(self):
        files = self.two()
        table = [line for line in self.succeed("compare", *files, "--format", "markdown").splitlines() if line.startswith("|")]
        self.assertTrue(table)
        rows = json.loads(self.succeed("compare", *files, "--format", "json"))
        self.assertEqual(rows[0]["compared"], "best")
        self.assertIsInstance(rows[0]["time_us"], float)
        ran = self.run_program("compare", *files, "-q")
        self.assertNotRegex(ran.stdout, "differs|In short|Notes")

    def test_charts(self):
        self.two()
        self.write("nccl.log", NCCL)
        ran = self.run_program("compare", "before.json", "after.json", "nccl.log", "--chart", "charts")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        if "no charts" in ran.stderr:
            self.skipTest(ran.stderr)
        names = sorted(path.name for path in (self.folder / "charts").iterdir())
        self.assertEqual(names, ["allreduce-bus-bandwidth.png", "allreduce-bus-bandwidth.svg", "allreduce-latency.png", "allreduce-latency.svg"])
        self.refused("compare", *5 * ["before.json"], "--chart", "more", naming="4 at most")

    def test_a_journal_is_partial(self):
        self.two()
        partial = result({"multi-ring": (1, 1, 1)}, partial="3 of 9 measurements")
        self.assertIn("B did not come to its end: its allreduce has 3 of 9 measurements.",
                      self.succeed("compare", "before.json", self.write("part.json", partial)))

    def test_what_cannot_be_compared_is_refused(self):
        self.two()
        self.refused("compare", naming="files is required")
        self.refused("compare", "before.json", naming="name another file")
        self.refused("compare", "before.json", "nowhere.json", naming="nowhere.json")
        self.refused("compare", "before.json", ".", naming="folder")
        self.refused("compare", "before.json", self.write("hello.txt", "hello\n"), naming="neither a result of polyring nor a log")
        self.refused("compare", "before.json", self.write("empty.json", result({})), naming="no row yet")
        self.refused("compare", "before.json", self.write("broken.json", json.dumps(result({}))[:200]), naming="broken.json")
        double = result({"ring": (1, 1, 1)})
        for of in double["rows"]:
            of["dtype"] = "double"
        self.refused("compare", "before.json", self.write("double.json", double), naming="of double, sum")
        self.refused("compare", *27 * ["before.json"], naming="26 at most")
        self.succeed("train", "-g", 2, "-n", 2, "--compute-ms", 1, "--algorithm", "ring", "-J", "train.json")
        self.refused("compare", "before.json", "train.json", naming="'train.json' is a result of polyring train")
        self.refused("compare", "before.json", "after.json", "-J", "nowhere/x.json", naming="nowhere")


@unittest.skipUnless(LOGS.is_dir() and os.environ.get("POLYRING_LOGS"), "POLYRING_LOGS names no folder of benchmarks' logs")
class RealLogs(ProgramTest):
    """Expected by hand, from the logs themselves."""

    def log(self, begin):
        return next(path for path in sorted(LOGS.iterdir()) if path.name.startswith(begin))

    def compare(self, *begins, more=()):
        text = self.succeed("compare", *map(self.log, begins), *more, "--format", "csv")
        return {(row["collective"], row["type"], row["size_bytes"], row["placement"], row["run"]): row
                for row in csv.DictReader(io.StringIO(text))}

    def test_one_host_against_16(self):
        rows = self.compare("o01", "o02")
        row = rows["allreduce", "float", "131072", "out-of-place", "B"]
        self.assertEqual((row["ranks"], row["ratio_of"], float(row["time_us"])), ("128", "busbw", 203.2))
        base = rows["allreduce", "float", "131072", "out-of-place", "A"]
        self.assertEqual((base["ranks"], base["finding"]), ("8", "baseline"))
        self.assertAlmostEqual(float(row["ratio"]), (127 / 128) / 203.2 / ((7 / 8) / float(base["time_us"])), places=4)
        self.assertEqual(row["finding"], "no samples")

    def test_equal_ranks_of_other_machines(self):
        rows = self.compare("o06", "o04")
        row = rows["allreduce", "float", "2097152", "out-of-place", "B"]
        self.assertEqual((row["ratio_of"], float(row["time_us"])), ("time", 87.18))
        self.assertAlmostEqual(float(row["ratio"]), 87.18 / 43.45, places=4)
        self.assertEqual(rows["allreduce", "float", "17179869184", "in-place", "A"]["ratio"], "")

    def test_collective_by_collective(self):
        self.assertEqual({key[0] for key in self.compare("o05", "o05")}, {"allreduce", "allgather", "reduce-scatter", "alltoall"})
        text = self.succeed("compare", self.log("o03"), self.log("o01"))
        for said in ("A has 12 ranks and B 8: their times are not of the same work", "Only A has allgather.",
                     "Only A has reduce-scatter of float, sum.", "4 FAILED"):
            self.assertIn(said, text)
        self.refused("compare", self.log("o03"), self.log("o05"), naming="nothing in these runs is of the same collective")

    def test_mpi_benchmarks(self):
        rows = self.compare("o15", "o16", more=("--ranks", 2))
        row = rows["allreduce", "float", "1024", "out-of-place", "B"]
        self.assertEqual((float(row["time_us"]), row["finding"], row["algorithm"]), (0.47, "no samples", "mpi"))
        self.assertAlmostEqual(float(row["ratio"]), 0.47 / 0.44, places=4)

    def test_on_the_machine(self):
        rows = self.compare("o06", "o01", more=("--machine", "dgx-h100"))
        row = rows["allreduce", "float", "17179869184", "out-of-place", "A"]
        self.assertEqual(row["of_bound_percent"], "69.0")  # 483.1 of 700 GB/s, which switches that reduce could do
        self.assertIn("450 GB/s of each GPU", row["limited_by"])

    def test_charts_on_the_machine(self):
        ran = self.run_program("compare", self.log("o05"), "--machine", "dgx-h100", "--chart", "charts")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        if "no charts" in ran.stderr:
            self.skipTest(ran.stderr)
        drawn = (self.folder / "charts/allreduce-bus-bandwidth.svg").read_text(encoding="utf-8")
        self.assertIn("expected", drawn)

    def test_each_stands_beside_itself(self):
        for path in sorted(LOGS.glob("o*")):
            with self.subTest(path.name):
                text = self.succeed("compare", path, path, "--ranks", 16 if path.name.startswith(("o12", "o13")) else 64)
                self.assertNotRegex(text, r"\b(faster|slower)\s*$")
                self.assertIn("Nothing that is recorded of these runs differs.", text)


if __name__ == "__main__":
    main()
