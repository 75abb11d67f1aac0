"""plot.py draws every kind of chart, refuses bad input with exit code 6, and leaves nothing half-done.

usage: charts_test.py EXAMPLES_PROGRAM PLOT_SCRIPT
"""

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

PROGRAM, SCRIPT = sys.argv[1:3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(SCRIPT).parent))

from plots import checks, collectives, contenders, scaling, style, timeline, trends  # noqa: E402
from plots.results import read_result  # noqa: E402

HOST = {"name": "alpha", "model": None, "count": 1, "packages": [{"name": "package0", "model": "", "cores": 2}], "switches": [],
        "nvswitches": 0, "gpus": [], "nics": [], "links": []}
PROBE = {"schema": "polyring-probe", "version": 1, "name": "alpha", "hosts": [HOST],
         "fabric": {"hosts_per_leaf": 0, "leaf_uplink_GBps": None, "latency_us": 1, "spine_latency_us": 0}}
CHARTS = [("allreduce", f"allreduce-{kind}") for kind in ("bus-bandwidth", "latency", "ratio")]
CHARTS += [("train", "train-timeline"), ("scale", "scale-scaling"), ("published", "published-published-runs"), ("accept", "accept-pairs"), ("accept", "accept-stragglers"),
           ("accept", "accept-trend")]


def png_size(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[-8:-4] == b"IEND", path
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


class FolderTest(unittest.TestCase):
    """With an example of every kind of result in a folder."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        subprocess.run([PROGRAM, "write", self.folder], check=True)
        self.out = self.folder / "charts"

    def plot(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def result(self, kind):
        return json.loads((self.folder / f"{kind}.json").read_text(encoding="utf-8"))

    def write(self, name, document):
        path = self.folder / name
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return path

    def refused(self, expected, *arguments):
        run = self.plot(*arguments)
        self.assertEqual(run.returncode, 6, run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertIn(expected, run.stderr)
        self.assertFalse(self.out.exists())


class ChartsTest(FolderTest):
    def test_all_of_both_placements_is_inside_the_panels(self):
        result = read_result(self.folder / "allreduce.json")
        for row in result.rows:
            row["busbw_GBps"] *= 5 if row["in_place"] else 1
        for chart in collectives.charts(result):
            figure = chart.draw()
            lows, highs = zip(*(axes.get_ylim() for axes in figure.axes))
            if chart.kind == "bus-bandwidth":
                self.assertEqual(set(lows), {0})
            drawn = [y for axes in figure.axes for line in axes.get_lines() for y in line.get_ydata()]
            self.assertGreaterEqual(min(highs), max(drawn))

    def test_what_is_wrong_has_no_time(self):
        result = read_result(self.folder / "allreduce.json")
        of = len(collectives.named_rows([result]))
        result.rows[0]["wrong"], result.rows[1]["wrong"] = 7, None  # None: not checked
        self.assertEqual(len(collectives.named_rows([result])), of - 1)

    def test_what_has_no_chart_is_none_the_worse(self):
        """The table of a tune says it all, and an interrupted run may have no row yet."""
        tune = self.folder / "tune.json"
        empty = self.write("empty.json", {**self.result("allreduce"), "rows": []})
        run = self.plot(tune, empty, "--out", self.out)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)

    def test_every_kind_has_its_chart(self):
        run = self.plot(*(self.folder / f"{kind}.json" for kind in ("allreduce", "train", "scale", "published", "accept")), "--out", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([tuple(line.split("\t")[:2]) for line in run.stdout.splitlines()], CHARTS)
        for _, chart in CHARTS:
            width, height = png_size(self.out / f"{chart}.png")
            self.assertGreater(width, 1000)
            self.assertGreater(height, 400)
            svg = xml.etree.ElementTree.parse(self.out / f"{chart}.svg").getroot()
            self.assertGreater(sum(element.tag.endswith(("}path", "}use", "}text")) for element in svg.iter()), 40)
        self.assertEqual(len(list(self.out.iterdir())), 2 * len(CHARTS), "temporary files were left behind")

    def test_a_machine_is_drawn_once_with_all_runs_that_it_is_of(self):
        """Who read what where makes no other picture, a core more does."""
        others = [{**HOST, "sources": [{"name": "sysfs", "read": True, "detail": "now"}], "allowed_cores": {"cpuset": "1"}},
                  {**HOST, "packages": [{**HOST["packages"][0], "cores": 3}]}]
        machines = [PROBE, {**PROBE, "name": "beta", "hosts": others[:1]}, {**PROBE, "hosts": others[1:]}, PROBE]
        files = [self.write(f"{name}.json", {**self.result("tune"), "machine": machine}) for name, machine in zip("abcd", machines)]
        run = self.plot(*files, "--out", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = [line.split("\t") for line in run.stdout.splitlines()]
        self.assertEqual([line[:2] for line in lines], [["a,b,d", "a-topology"], ["c", "c-topology"]])
        self.assertTrue(lines[0][4].endswith("The machine of a, b, d."), lines[0])
        self.assertNotIn("The machine of", lines[1][4])
        self.assertIn("the machine in a.json, b.json, d.json", (self.out / "a-topology.svg").read_text(encoding="utf-8"))

    def test_of_many_runs_the_first_are_named(self):
        from plot import names_text
        self.assertEqual(names_text("abcdef"), "a, b, c, d, e, f")
        self.assertEqual(names_text("abcdefgh"), "a, b, c, d, e and 3 more")

    def test_the_same_input_gives_the_same_svg(self):
        for out in (self.out, self.folder / "again"):
            self.assertEqual(self.plot(self.folder / "scale.json", "--out", out).returncode, 0)
        self.assertEqual((self.out / "scale-scaling.svg").read_bytes(),
                         (self.folder / "again/scale-scaling.svg").read_bytes())

    def test_nothing_to_show_is_no_error(self):
        one_rank = self.result("allreduce")
        for row in one_rank["rows"]:
            row.update(ranks=1, nodes=1, busbw_GBps=0)
        no_timeline = self.result("train")
        for row in no_timeline["rows"]:
            row["timeline"] = []
        run = self.plot(self.write("a.json", one_rank), self.write("b.json", no_timeline),
                        self.write("c.json", {**self.result("scale"), "rows": []}), "--out", self.out)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)

    def test_groups_that_cannot_share_axes_get_charts_of_their_own(self):
        result = self.result("allreduce")
        result["rows"] += [{**row, "dtype": "float64"} for row in result["rows"]]
        run = self.plot(self.write("two.json", result), "--out", self.out)
        self.assertEqual([line.split("\t")[1] for line in run.stdout.splitlines()],
                         [f"two-{kind}{number}" for number in ("", "-2") for kind in ("bus-bandwidth", "latency", "ratio")])

    def test_machines_that_are_compared_share_a_chart(self):
        result = {**json.loads((self.folder / "scale.json").read_text(encoding="utf-8")), "title": ""}
        rows = result["rows"]
        result["rows"] += [{**row, "machine": "other", "batch": 64} for row in rows]
        charts = scaling.charts(type("Result", (), result))
        self.assertEqual([chart.title for chart in charts], [f"Scaling of {rows[0]['model']} on {rows[0]['machine']} and other"])
        self.assertIn("other: multi-ring", charts[0].finding)
        result["rows"] += [{**row, "batch": 128} for row in rows[:2]]
        self.assertEqual(len(scaling.charts(type("Result", (), result))), 3, "a machine with several batches has a chart for each")

    def test_strong_scaling_has_one_chart_for_all_its_batches(self):
        result = self.result("scale")
        for row in result["rows"]:
            row.update(global_batch=8192, batch=8192 // row["gpus"])
        run = self.plot(self.write("strong.json", result), "--out", self.out)
        self.assertEqual([line.split("\t")[1] for line in run.stdout.splitlines()], ["strong-scaling"])
        self.assertIn("global batch 8192", scaling.batch_text(result["rows"][0]))

    def test_bad_input_is_refused(self):
        whole = json.dumps(self.result("scale"))
        out = ("--out", self.out)
        self.refused("cannot read", self.folder / "none.json", *out)
        self.refused("not whole JSON", self.write("cut.json", whole[:len(whole) // 2]), *out)
        self.refused("not a polyring result", self.write("other.json", {"format": "other"}), *out)
        self.refused("use a newer polyring", self.write("new.json", {**self.result("scale"), "version": 2}), *out)
        self.refused("required", self.folder / "scale.json")
        self.refused("unrecognized arguments: --zoom", self.folder / "scale.json", "--zoom", *out)
        self.refused("cannot write into", self.folder / "scale.json", "--out", self.folder / "scale.json/out")
        damaged = self.result("train")
        del damaged["rows"][1]["timeline"][0]["end_ms"]
        # One bad result among good ones: nothing is drawn.
        self.refused("'rows[1].timeline[0].end_ms' is missing", self.folder / "scale.json",
                     self.write("damaged.json", damaged), *out)
        damaged = self.result("scale")
        damaged["rows"][0]["source"] = "guessed"
        self.refused("'rows[0].source' is 'guessed'", self.write("guessed.json", damaged), *out)
        damaged = self.result("allreduce")
        damaged["rows"][0]["timing"] = "quick"
        self.refused("'rows[0].timing' is 'quick'", self.write("quick.json", damaged), *out)

    def test_charts_are_never_replaced(self):
        self.assertEqual(self.plot(self.folder / "scale.json", "--out", self.out).returncode, 0)
        before = (self.out / "scale-scaling.png").stat().st_mtime_ns
        run = self.plot(self.folder / "scale.json", "--out", self.out)
        self.assertEqual(run.returncode, 6)
        self.assertIn("already has a chart", run.stderr)
        self.assertEqual((self.out / "scale-scaling.png").stat().st_mtime_ns, before)


class FindingsTest(FolderTest):
    """What charts show, in a sentence."""

    def findings(self, kind):
        run = self.plot(self.folder / f"{kind}.json", "--out", self.out)
        return {line.split("\t")[2]: line.split("\t")[4] for line in run.stdout.splitlines()}

    def test_of_a_collective(self):
        found = self.findings("allreduce")
        self.assertEqual(found["bus-bandwidth"], "Bus bandwidth at 4MiB, out of place: multi-ring 2x2 9.3 GB/s, ring 6.97 GB/s, mpi "
                         "5.9 GB/s; the bound is 18.1 GB/s.")
        self.assertIn("Latency at 4MiB, out of place: multi-ring 2x2 676 us, ring", found["latency"])
        self.assertIn("Speed against mpi at 4MiB, out of place: multi-ring 2x2 1.57 times", found["ratio"])

    def test_of_checks(self):
        found = self.findings("accept")
        self.assertEqual(found["pairs"], "6 pairs, 11.66 GB/s in the middle; 1 failed: node1 and node3 (5.955 GB/s).")
        self.assertIn("1 rank: 1 inconclusive. The slowest is rank 5 on node1", found["stragglers"])

    def test_of_scaling_with_what_is_published(self):
        self.assertIn("multi-ring 96.2 % (modelled), parameter-server 53.7 % (52.1 to 54.8, modelled), 94.7 % published.", self.findings("scale")["scaling"])

    def test_equal_pairs_look_equal_and_hosts_are_in_their_order(self):
        result = read_result(self.folder / "accept.json")
        for row in result.rows:
            row["hosts"] = [host.replace("node1", "node10") for host in row["hosts"]]
            if row["value"]:
                row["value"]["median"] = 11.6
        axes = checks.charts(result)[0].draw().axes[0]
        low, high = axes.get_images()[0].get_clim()
        self.assertLessEqual(low, 0.8 * high)
        self.assertEqual([label.get_text() for label in axes.get_yticklabels()], ["node0", "node2", "node3", "node10"])

    def test_what_is_expected_is_a_band(self):
        document = self.result("allreduce")
        result = read_result(self.write("run.json", document))
        for row in result.rows:
            row["expected_us"] = (1.5 * row["bound_us"], 2 * row["bound_us"])
        for chart in collectives.charts(result)[:2]:
            figure = chart.draw()
            self.assertIn("expected", [text.get_text() for text in figure.legends[0].get_texts()])
            without = collectives.charts(read_result(self.write("run2.json", document)))[0].draw()
            self.assertEqual(len(figure.axes[0].collections), len(without.axes[0].collections) + 1)

    def test_on_a_phone_panels_are_below_each_other(self):
        for kind in ("allreduce", "scale", "published", "train", "accept"):
            for chart in self.charts(kind):
                with style.drawn_for(style.PHONE):
                    figure = chart.draw()
                self.assertEqual(figure.get_figwidth(), style.PHONE.width)
                panels = [axes.get_position() for axes in figure.axes if axes.get_xlabel() or axes.get_title(loc="left")]
                self.assertLessEqual(len({round(panel.x0, 3) for panel in panels}), 1, chart.kind)

    def charts(self, kind):
        from plot import charts_of
        return charts_of(read_result(self.folder / f"{kind}.json"))


class TrendsTest(FolderTest):
    """Of rounds of `accept --duration`: in the example the pair of node1 and node3 becomes slower from round to round."""

    def accepted(self, change=None):
        result = read_result(self.folder / "accept.json")
        for row in result.rows if change else ():
            change(row)
        return result

    def test_the_words_name_what_got_worse(self):
        chart, = trends.charts(self.accepted())
        self.assertEqual(chart.finding, "8 rounds. busbw of 64MiB: that of node1 and node3 fell most, from 11.2 to 6.4 GB/s; 1 of 6 missed "
                         "the threshold in some round.")

        def flat(row):
            row["trend"] = [11.6, 11.2] if "trend" in row else []
        chart, = trends.charts(self.accepted(flat))
        self.assertEqual(chart.finding, "2 rounds. busbw of 64MiB: none of 6 got worse by more than 5 %.")

    def test_one_round_has_no_trend(self):
        def cut(row):
            row["trend"] = row.get("trend", [])[:1]
        self.assertEqual(trends.charts(self.accepted(cut)), [])

    def test_lines_and_thresholds(self):
        axes, = trends.charts(self.accepted())[0].draw().axes
        drawn = [list(line.get_ydata()) for line in axes.get_lines()]
        self.assertEqual(len(drawn), 7)
        self.assertIn([10.1, 10.1], drawn)
        self.assertEqual(sorted(len(values) for values in drawn), [2] + 6 * [8])
        low, high = axes.get_ylim()
        self.assertLess(low, 6)
        self.assertGreater(high, 11.64)

    def test_thresholds_that_differ_are_each_subjects_own(self):
        def differ(row):
            row["least"] = 10 + len(row["subject"]) if row["subject"] == "node1 and node3" else row["least"]
        axes, = trends.charts(self.accepted(differ))[0].draw().axes
        limits = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "--"]
        self.assertEqual(sorted(limits), 5 * [10.1] + [25])

    def test_of_many_the_worst_have_lines_and_the_others_a_band(self):
        result = self.accepted()
        pairs = [row for row in result.rows if "trend" in row]
        result.rows = pairs + [{**pairs[0], "subject": f"pair {number}", "trend": [11.6] * (number % 8 + 1)} for number in range(40)]
        chart, = trends.charts(result)
        axes, = chart.draw().axes
        self.assertEqual(len(axes.get_lines()), 3, "the worst, the median of the others, and the threshold")
        self.assertEqual(len(axes.collections), 1)
        self.assertEqual(trends.lined(result.rows[:6] + [row for row in result.rows[6:] if len(row["trend"]) > 1]), ["node1 and node3"])

    def test_what_must_be_small_gets_worse_upwards(self):
        row = {"subject": "node0", "quantity": "errors", "unit": "", "size_bytes": 0, "least": None, "most": 0, "trend": [0, 0, 0, 0, 4, 4]}
        self.assertEqual((trends.worsening(row), trends.misses(row)), (1, 2))
        self.assertEqual(trends.said_of([row]), "errors: that of node0 rose most, from 0 to 4; 1 of 1 missed the threshold in some round")
        self.assertEqual(trends.worsening({**row, "trend": [0, 0]}), 0)
        self.assertAlmostEqual(trends.worsening({**row, "least": 1, "most": None, "trend": [4, 3]}), 0.25)

    def test_a_damaged_trend_is_refused(self):
        for trend in ("up", ["up"], [-1], [True]):
            damaged = self.result("accept")
            damaged["rows"][0]["trend"] = trend
            self.refused("'rows[0].trend", self.write("damaged.json", damaged), "--out", self.out)


class PartsTest(unittest.TestCase):
    def test_gaps_between(self):
        self.assertEqual(timeline.gaps_between(0, 10, []), [(0, 10)])
        self.assertEqual(timeline.gaps_between(0, 10, [(0, 10)]), [])
        self.assertEqual(timeline.gaps_between(2, 10, [(0, 3), (5, 6), (9, 20)]), [(3, 5), (6, 9)])
        self.assertEqual(timeline.gaps_between(2, 4, [(5, 6)]), [(2, 4)])
        self.assertEqual(timeline.gaps_between(7, 9, [(5, 6)]), [(7, 9)])

    def test_colours_are_the_algorithms_and_told_apart(self):
        colours = style.colours_of([("ring 2x2", "ring"), ("ring 4x1", "ring"), ("direct", "direct"), ("x", "x")])
        self.assertEqual(colours["ring 2x2"], style.ORANGE)
        self.assertEqual(colours["direct"], style.SKY)
        self.assertEqual(len(set(colours.values())), 4)

    def test_sizes_are_binary(self):
        self.assertEqual([contenders.size_text(size) for size in (8, 1020, 1024, 1536, 1_024_000, (1 << 20) - 4, 1 << 24, 1 << 31)],
                         ["8", "1020", "1K", "1.5K", "1000K", "1M", "16M", "2G"])

    def test_ticks_do_not_run_into_each_other(self):
        def ticks(*values):
            axes = style.Figure().subplots()
            axes.set_xscale("log")
            style.power_ticks(axes.xaxis, values, str)
            return list(axes.get_xticks())

        self.assertEqual(ticks(1020, 1024, 4092, 4096), [1024, 4096])
        self.assertEqual(ticks(*(1 << power for power in range(12))), [1 << power for power in range(1, 12, 2)])
        self.assertEqual(ticks(8), [8])

    def test_a_legend_fits(self):
        def columns(*letters):
            return style.columns_of([style.Line2D([], [], label="x" * count) for count in letters])

        self.assertEqual(columns(*[8] * 8), 8)
        self.assertEqual(columns(10, 4, 16, 18, 6, 4, 16, 3, 8), 5)
        self.assertEqual(columns(100, 100, 100), 1)
        self.assertEqual(columns(200), 1)

    def test_few_samples_are_admitted(self):
        def rows(*counts):
            return [{"time_us": {"samples": [1.0] * count}} for count in counts]
        self.assertIn("least to largest", collectives.band_text(rows(20, 5)))
        self.assertNotIn("least to largest", collectives.band_text(rows(20, 0, 6)))
        self.assertEqual(collectives.band_text(rows(0, 0)), "")

    def test_bus_bandwidth_of_another_time_is_in_proportion(self):
        self.assertAlmostEqual(collectives.bus_bandwidth({"busbw_GBps": 10, "time_us": {"median": 150}}, 100), 15)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
