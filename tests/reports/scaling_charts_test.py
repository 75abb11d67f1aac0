"""The charts of scaling: published training runs beside the model, bars for one GPU count, titles, and tables over one another.

usage: scaling_charts_test.py EXAMPLES_PROGRAM PLOT_SCRIPT
"""

import json
import sys
import unittest

import charts_test

PROGRAM, SCRIPT = sys.argv[1:3]

from plots import contenders, published_runs, scaling, style  # noqa: E402
from plots.lettering import fitted  # noqa: E402
from plots.results import InputError, read_result  # noqa: E402


def texts_of(figure):
    return [text.get_text() for text in figure.texts] + [text.get_text() for axes in figure.axes for text in axes.texts]


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def changed(document, **keys):
    return {**document, "rows": [{**row, **keys} for row in document["rows"]]}


class PublishedRunsTest(charts_test.FolderTest):
    def chart(self, **keys):
        result = read_result(self.write("published.json", {**self.result("published"), **keys}))
        chart, = published_runs.charts(result)
        return chart

    def test_each_run_is_told_by_shape_and_colour(self):
        axes, = self.chart().draw().axes
        markers = {(line.get_marker(), line.get_color()): 0 for line in axes.get_lines()}
        for line in axes.get_lines():
            markers[line.get_marker(), line.get_color()] += 1
        self.assertEqual(markers["o", published_runs.INSIDE], 4)
        self.assertEqual(markers["X", published_runs.OUTSIDE], 1)
        self.assertEqual(markers["|", style.INK], 5, "the middle of each")

    def test_runs_stand_in_groups_with_the_highest_first_and_each_at_its_most_gpus(self):
        axes, = self.chart().draw().axes
        self.assertEqual([text.get_text() for text in axes.texts],
                         ["Held out: 2 of 3 inside", "h100-resnet50, 8 GPUs", "horovod-16x4-resnet101, 64 GPUs", "bert-512, 512 GPUs",
                          "Seen before the model's costs were set: 1 of 1 inside", "dlperf-resnet50, 32 GPUs",
                          "Not everything published, range of all combinations: 1 of 1 inside",
                          "DDL, Caffe, ResNet-101 on…: 16 days became 7 hours, 256 GPUs"])
        heights = [text.get_position()[1] for text in axes.texts]
        self.assertEqual(heights, sorted(heights))

    def test_of_two_rows_with_as_many_gpus_the_first_counts(self):
        rows = self.result("published")["rows"]
        again = {**next(row for row in rows if row["published_run"] == "bert-512"), "published_efficiency": 0.98}
        self.assertEqual(self.chart(rows=[*rows, again]).finding, self.chart().finding)
        self.assertIn("Held out: 3 of 3 inside", self.chart(rows=[again, *rows]).finding)

    def test_everything_drawn_is_inside_the_axes(self):
        for sheet in (style.FILE, style.PHONE):
            with style.drawn_for(sheet):
                axes, = self.chart().draw().axes
            low, high = axes.get_xlim()
            across = [x for line in axes.get_lines() if line.get_marker() != "None" for x in line.get_xdata()]
            self.assertGreater(min(across), low)
            self.assertLess(max(across), high)

    def test_the_words_count_what_lies_inside(self):
        chart = self.chart()
        self.assertEqual(chart.finding, "Held out: 2 of 3 inside, the middle off by 8.7 points on average (+8.0 with its sign); seen "
                         "before: 1 of 1 inside, the middle off by 4.0 points on average (+4.0 with its sign); with something "
                         "unpublished: 1 of 1 inside. Nothing in the model is fitted to them.")
        self.assertEqual(chart.title, "What others published")
        self.assertIn("Published training runs beside the model; each", self.chart().draw().get_label())

    def test_long_names_keep_what_tells_them_apart(self):
        self.assertEqual(published_runs.short("x" * 50), "x" * 50)
        self.assertEqual(published_runs.short(40 * "x" + ": 88 % as stated"), 33 * "x" + "…: 88 % as stated")
        self.assertEqual(len(published_runs.short("x: " + 80 * "y")), 50)

    def test_a_group_without_runs_is_left_out(self):
        rows = [row for row in self.result("published")["rows"] if row["held_out"]]
        self.assertNotIn("Seen before", "".join(texts_of(self.chart(rows=rows).draw())))

    def test_tables_of_scaling_do_not_have_them(self):
        both = self.result("scale")
        both["rows"] += self.result("published")["rows"]
        result = read_result(self.write("both.json", both))
        self.assertEqual(len(published_runs.charts(result)), 1)
        self.assertEqual([chart.finding for chart in scaling.charts(result)],
                         [chart.finding for chart in scaling.charts(read_result(self.folder / "scale.json"))])
        self.assertEqual(published_runs.charts(read_result(self.folder / "scale.json")), [])

    def test_a_run_without_its_figures_is_refused(self):
        for key in ("held_out", "efficiency_low"):
            damaged = self.result("published")
            del damaged["rows"][1][key]
            self.refused(f"'rows[1].{key}' is missing", self.write("damaged.json", damaged), "--out", self.out)


class BarsTest(charts_test.FolderTest):
    def bars(self, rows, sheet=style.FILE):
        chart, = scaling.charts(read_result(self.write("bars.json", {**self.result("scale"), "rows": rows})))
        with style.drawn_for(sheet):
            return chart.draw()

    def rows(self):
        first = next(row for row in self.result("scale")["rows"] if row["gpus"] == 64)
        return [{**first, "strategy": f"data={64 // tensor},tensor={tensor},sequence-parallel,micro-batch=1,recompute=selective,near=data",
                 "efficiency": efficiency, "speedup": 16 * efficiency, "efficiency_low": efficiency - 0.1,
                 "efficiency_high": efficiency + 0.05, "published_efficiency": None, "published_speedup": None}
                for tensor, efficiency in ((2, 0.7), (4, 0.8), (8, 0.6))]

    def test_of_one_gpu_count_each_strategy_has_one_the_best_first(self):
        axes, = self.bars(self.rows()).axes
        lengths = [patch.get_width() for patch in sorted(axes.patches, key=lambda patch: patch.get_y())]
        self.assertEqual(lengths, [0.8, 0.7, 0.6])
        names = [text.get_text() for text in axes.texts if text.get_text().startswith("data")]
        self.assertEqual([name.split(", ")[1] for name in names], ["tensor=4", "tensor=2", "tensor=8"])
        self.assertEqual(axes.get_title(loc="left"), "efficiency with 64 GPUs, over 4 GPUs")

    def test_strategies_with_other_buckets_share_a_chart(self):
        rows = self.rows()
        rows[1].update(bucket="fused:25MiB", overlap=not rows[1]["overlap"])
        figure = self.bars(rows)
        self.assertEqual(len(figure.axes[0].patches), 3)
        self.assertIn("each strategy with its own buckets and overlap", " ".join(texts_of(figure)))

    def test_whiskers_are_the_range(self):
        axes, = self.bars(self.rows()).axes
        ends = sorted(round(float(x), 3) for whisker in axes.collections for segment in whisker.get_segments() for x, _ in segment)
        self.assertEqual(ends, [0.5, 0.6, 0.65, 0.7, 0.75, 0.85])

    def test_rows_without_a_range_have_no_whiskers(self):
        rows = [{key: value for key, value in row.items() if key not in ("efficiency_low", "efficiency_high")} for row in self.rows()]
        figure = self.bars(rows)
        self.assertEqual(len(figure.axes[0].collections), 0)
        self.assertEqual(legend_of(figure), ["multi-ring"])

    def test_names_fit_a_phone(self):
        figure = self.bars(self.rows(), style.PHONE)
        axes, = figure.axes
        figure.draw_without_rendering()
        lines = [text.get_text() for text in axes.texts if "=" in text.get_text()]
        self.assertGreater(len(lines), 3, "long names have several lines")
        self.assertTrue(all(line.endswith((",", "=data")) for line in lines), lines)
        for text in axes.texts:
            self.assertLessEqual(text.get_window_extent().x1, figure.bbox.x1, text.get_text())

    def test_several_counts_have_lines(self):
        figure = self.bars([{**row, "gpus": gpus, "strategy": f"data={gpus // 4},tensor=4"} for row in self.rows()[:1] for gpus in (64, 128)])
        self.assertEqual(len(figure.axes), 2)


class TitleTest(charts_test.FolderTest):
    def test_a_result_may_say_its_own(self):
        chart, = scaling.charts(read_result(self.write("named.json", {**self.result("scale"), "title": "Offer B: two $NICs"})))
        self.assertEqual(chart.title, "Offer B: two $NICs")
        self.assertTrue(chart.draw().get_label().startswith("Scaling of resnet50 on minsky; batch 32"))
        self.assertIn("Offer B: two $NICs", texts_of(chart.draw()))

    def test_several_charts_have_it_before_their_own(self):
        result = {**self.result("scale"), "title": "Both batches"}
        result["rows"] += [{**row, "batch": 64} for row in result["rows"]]
        self.assertEqual([chart.title for chart in scaling.charts(read_result(self.write("two.json", result)))],
                         2 * ["Both batches: Scaling of resnet50 on minsky"])

    def test_a_title_of_a_wrong_type_is_refused(self):
        self.refused("'file.title' has a wrong type", self.write("bad.json", {**self.result("scale"), "title": 7}), "--out", self.out)

    def test_long_ones_are_smaller_and_then_cut(self):
        self.assertEqual((fitted("short", 5, 14, 10).text, fitted("short", 5, 14, 10).size), ("short", 14))
        middle = fitted("x" * 60, 6, 14, 10)
        self.assertEqual(middle.text, "x" * 60)
        self.assertLess(middle.size, 14)
        long = fitted("word " * 60, 6, 14, 10)
        self.assertTrue(long.text.endswith("…"))
        for line in (middle, long):
            self.assertLessEqual(line.width, 6.001)


class OverlayTest(charts_test.FolderTest):
    def overlaid(self, *documents):
        results = [read_result(self.write(f"{name}.json", document)) for name, document in zip("abcde", documents)]
        contenders.check_comparable(results)
        chart, = scaling.overlaid_charts(results)
        return chart

    def test_machines_tell_runs_apart(self):
        chart = self.overlaid(changed(self.result("scale"), machine="4 NICs"), changed(self.result("scale"), machine="1 NIC", batch=64))
        self.assertEqual(chart.title, "Scaling of resnet50 on 4 NICs and 1 NIC")
        figure = chart.draw()
        for name in ("4 NICs: multi-ring", "1 NIC: multi-ring", "1 NIC: parameter-server"):
            self.assertIn(name, legend_of(figure))
        self.assertIn("batch 32 per GPU and batch 64 per GPU", figure.get_label())
        looks = {line.get_label(): (line.get_color(), line.get_marker(), line.get_markerfacecolor()) for legend in figure.legends for line in legend.get_lines()}
        self.assertEqual(len({looks[name] for name in looks}), len(looks), "no two look the same")

    def test_files_tell_runs_of_one_machine_apart(self):
        chart = self.overlaid(self.result("scale"), changed(self.result("scale"), overlap=True))
        self.assertIn("a: multi-ring", legend_of(chart.draw()))
        self.assertIn("b: multi-ring", legend_of(chart.draw()))
        self.assertIn("without overlap and with overlap", chart.draw().get_label())

    def test_nics_tell_lines_of_a_run_apart(self):
        whole = self.result("scale")
        rows = [{**row, "rails": rails} for rails in (1, 2) for row in whole["rows"]]
        legend = legend_of(self.overlaid(whole, {**whole, "rows": rows}).draw())
        for name in ("a: multi-ring", "b: multi-ring, 1 NIC a host", "b: multi-ring, 2 NICs a host"):
            self.assertIn(name, legend)

    def test_models_tell_runs_apart(self):
        chart = self.overlaid(self.result("scale"), changed(self.result("scale"), model="vgg16"))
        self.assertEqual(chart.title, "Scaling of resnet50 and vgg16 on minsky")
        self.assertIn("vgg16: multi-ring", legend_of(chart.draw()))

    def test_plot_and_page_draw_it(self):
        first, other = (self.write(f"{name}.json", changed(self.result("scale"), machine=name)) for name in "ab")
        run = self.plot(first, other, "--overlay", "--out", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([line.split("\t")[:3] for line in run.stdout.splitlines()],
                         [["a", "a-scaling", "scaling"], ["b", "b-scaling", "scaling"], ["", "overlay-scaling", "scaling"]])

    def test_what_cannot_be_compared_is_refused(self):
        def refusal(*documents):
            with self.assertRaises(InputError) as raised:
                self.overlaid(*documents)
            return str(raised.exception)
        whole = self.result("scale")
        over_one = json.loads(json.dumps(whole))
        for row in over_one["rows"]:
            row["speedup"] *= 4
        self.assertIn("they are over 4 GPUs and over 1 GPU", refusal(whole, over_one))
        self.assertIn("'b' has published results", refusal(whole, self.result("published")))
        self.assertIn("'b' has no rows", refusal(whole, {**whole, "rows": []}))
        self.assertIn("name two or more", refusal(whole))
        self.assertIn("cannot be told apart", refusal(*5 * [whole]))
        # One file with several machines is as many runs.
        machines = [{**row, "machine": name} for name in "wxyz" for row in whole["rows"]]
        self.assertIn("5 machines over one another", refusal({**whole, "rows": machines}, whole))
        self.assertIn("'b' has more of resnet50 on minsky than one line can show: batch 32 per GPU and batch 64 per GPU, buckets: ",
                      refusal(whole, {**whole, "rows": [{**row, "batch": batch} for batch in (32, 64) for row in whole["rows"]]}))
        self.assertIn("and with overlap; write", refusal({**whole, "rows": whole["rows"] + changed(whole, overlap=True)["rows"]}, whole))
        self.assertIn("and only runs of one collective, or only tables of scale", refusal(whole, self.result("train")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
