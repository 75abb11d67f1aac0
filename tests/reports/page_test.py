"""The page of a report: what it says and in which order, that nothing in it acts, and that all it links is there; and how it
looks in a browser (page_browser.py), since both need the same reports.

usage: page_test.py EXAMPLES_PROGRAM PRESETS_PROGRAM
"""

import html.parser
import re
import sys
import tempfile
import unittest
from pathlib import Path

from page_examples import ATTACK, KINDS, Examples
import page_browser

TEMPORARY = tempfile.TemporaryDirectory()
EXAMPLES = page_browser.EXAMPLES = Examples(*sys.argv[1:3], TEMPORARY.name)
BrowserTest = page_browser.BrowserTest
VOID = {"meta", "link", "br", "img", "hr"}
ALL = ["Bandwidth and latency", "Multi-ring, NCCL and MPI side by side", "Speedup and efficiency", "Training step", "Tuning",
       "Pairs of hosts", "Stragglers", "Round after round", "Checks", "Environment", "Conditions", "Inputs", "How each number was obtained"]


class Page(html.parser.HTMLParser):
    """All elements with their attributes, the texts of headings, and whether everything is closed."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.open, self.headings, self.verdict = [], [], [], ""
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if "h2" in self.open and data.strip():
            self.headings.append(data.strip())
        if self.open[-1:] == ["p"] and not self.verdict and len(self.headings) > 0:
            self.verdict = data

    def attributes(self, *names):
        return [attributes[name] for _, attributes in self.elements for name in names if name in attributes]


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.examples = EXAMPLES
        cls.folder = cls.examples.all_kinds
        cls.page = Page(cls.folder / "index.html")

    def report(self, name, *results):
        """Of a report without charts."""
        return Page(self.examples.report(name, *results, without="matplotlib")[0] / "index.html")

    def test_the_verdict_is_first_and_all_else_in_order(self):
        self.assertEqual(self.page.headings, ["✕", "FAIL", *ALL])
        self.assertEqual(self.page.verdict, "2 of 12 judgements failed: links of node2; pairs.allreduce of node1 and node3. 1 more "
                         "broke. 1 more were inconclusive.")
        for said in ("Check the cable of mlx5_1.", "exchange the cable between them", "InfiniBand Trade Association, EDR",
                     "polyring scale --machine minsky", "Open MPI 4.1.4", "2 ranks a core: timings are noisy"):
            self.assertIn(said, self.page.text)
        self.assertIn("<title>Polyring report: FAIL</title>", self.page.text)

    def test_sections_without_data_are_left_out_and_no_verdict_is_invented(self):
        page = self.report("scale-alone", "scale")
        self.assertEqual(page.headings, ["modelled", "Speedup and efficiency", "Environment", "Inputs",
                                         "How each number was obtained"])
        self.assertEqual(page.verdict, "resnet50 on minsky: multi-ring reaches an efficiency of 96.2 % at 256 GPUs, modelled; 94.7 % is published.")
        self.assertIn("so it gives no verdict", page.text)
        self.assertNotIn("PASS", page.text)
        measured = self.report("allreduce-alone", "allreduce").verdict
        self.assertEqual(measured, "Allreduce of 4MiB on 4 ranks of 2 hosts: multi-ring is 1.57 times as fast as mpi (95 % interval 1.54 "
                         "to 1.6): 676 us, 9.3 GB/s of bus bandwidth, 51.2 % of the bound.")

    def test_published_runs_come_first_with_what_they_are_for(self):
        page = self.report("published-alone", "published", "scale")
        self.assertIn("<h1>What others published</h1>", page.text)
        self.assertIn("<title>What others published: modelled</title>", page.text)
        self.assertEqual(page.headings[:3], ["modelled", "Published training runs beside the model", "Speedup and efficiency"])
        self.assertTrue(page.verdict.startswith("2 of 3 published training runs that were held out lie inside"), page.verdict)
        self.assertTrue(page.verdict.endswith("They only check the model: nothing in it is fitted to them."), page.verdict)
        self.assertIn("Scaling: What others published", page.text)

    def test_what_passed_passes_but_not_a_run_that_was_interrupted(self):
        def good(result):
            result["rows"] = [row for row in result["rows"] if row["verdict"] == "pass"]

        def cut(result):
            good(result)
            result["partial"] = "8 of 12 measurements"
        self.examples.changed("accept", "good", good)
        self.examples.changed("accept", "cut", cut)
        self.assertEqual(self.report("good-report", "good").headings[:2], ["✓", "PASS"])
        page = self.report("cut-report", "cut")
        self.assertEqual(page.headings[:2], ["?", "INCOMPLETE"])
        self.assertIn("The run ended after 8 of 12 measurements", page.verdict)
        both = self.report("worst-first", "good", "accept")
        self.assertEqual(both.headings[:2], ["✕", "FAIL"])
        self.assertIn("accept: 2 of 12 judgements failed", both.verdict)
        self.assertIn("good: all 8 judgements passed", both.text)

    def test_wrong_results_come_before_speed(self):
        self.examples.changed("allreduce", "wrong", lambda result: result["rows"][3].update(wrong=7))
        page = self.report("wrong-report", "wrong")
        self.assertEqual(page.headings[:2], ["✕", "WRONG"])
        self.assertEqual(page.verdict, "1 of 30 rows have wrong results (wrong).")

    def test_charts_say_in_words_what_they_show(self):
        drawings = [attributes for tag, attributes in self.page.elements if tag == "svg"]
        self.assertGreaterEqual(len(drawings), 14)  # wide and narrow
        for attributes in drawings:
            self.assertEqual(attributes["role"], "img")
            self.assertRegex(attributes["aria-label"], r"\d.*\.$")
        self.assertEqual([tag for tag, _ in self.page.elements if tag == "img"], [])

    def test_everything_linked_is_there_and_everything_there_is_linked(self):
        links = {link for link in self.page.attributes("href") if not link.startswith(("#", "data:"))}
        self.assertEqual(links | {"index.html"}, {path.name for path in self.folder.iterdir()})
        targets = {link[1:] for link in self.page.attributes("href") if link.startswith("#")}
        identities = self.page.attributes("id")
        self.assertLessEqual(targets, set(identities))
        self.assertEqual(len(identities), len(set(identities)))

    def test_nothing_acts(self):
        folder = self.examples.hostile
        page = Page(folder / "index.html")
        self.assertNotIn("\x1b", page.text)
        self.assertNotIn("\u202e", page.text)
        self.assertNotIn(ATTACK[:20], page.text)
        self.assertIn("&lt;script&gt;document.title", page.text)
        self.assertIn("{{ 7*7 }}", page.text)
        allowed = {"html", "head", "meta", "title", "link", "style", "body", "header", "main", "nav", "section", "footer", "div", "span",
                   "h1", "h2", "h3", "h4", "p", "a", "ul", "ol", "li", "dl", "dt", "dd", "code", "strong", "figure", "figcaption", "table",
                   "thead", "tbody", "tr", "th", "td", "svg", "g", "defs", "path", "use", "clippath", "rect", "text", "tspan", "image"}
        self.assertLessEqual({tag for tag, _ in page.elements}, allowed)
        self.assertEqual([name for _, attributes in page.elements for name in attributes if name.startswith("on")], [])
        for link in page.attributes("href", "xlink:href", "src"):
            self.assertRegex(link, r"^(#[a-z0-9-]+|data:,|data:image/png;base64,.*|[\w.-]+)$", link[:80])
        policy = next(attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv"))
        self.assertTrue(policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'"))

    def test_a_report_of_64_hosts_is_small(self):
        folder = self.examples.large
        self.assertLess(sum(path.stat().st_size for path in folder.iterdir()), 5e6)
        page = Page(folder / "index.html")
        self.assertIn("66 of 2592 judgements failed", page.verdict)
        self.assertEqual([path.name for path in folder.glob("*-topology.svg")], ["accept64-topology.svg"])
        self.assertIn("The machine of accept64, allreduce64.", page.text)
        self.assertIn("Its machine is drawn above: [accept64-topology.svg]", (folder / "report.md").read_text(encoding="utf-8"))
        self.assertIn("2016 pairs, ", page.text)
        self.assertIn("64 failed", page.text)
        self.assertIn("rank 100 on node12", page.text)
        self.assertLess(page.text.count("<tr"), 800)
        self.assertIn("Topology", page.headings)
        self.assertEqual(page.text.count('aria-label="dgx-a100. '), 1, "two results have the same machine")

    def test_without_jinja2_there_is_all_else(self):
        folder, said = self.examples.report("no-jinja", "scale", without="jinja2")
        self.assertRegex(said, r"^no page: install python3-jinja2 \(.* has no Jinja2: not here\), or name another Python in POLYRING_PYTHON\n$")
        self.assertTrue((folder / "scale-scaling.png").exists())
        self.assertIn("> no page: install python3-jinja2", (folder / "report.md").read_text(encoding="utf-8"))
        self.assertFalse([path for path in folder.iterdir() if path.name.startswith(".") or path.name == "index.html"])

    def test_without_matplotlib_there_is_a_page_without_charts(self):
        folder, said = self.examples.report("no-charts", "scale", without="matplotlib")
        self.assertIn("the report has no charts: ", said)
        self.assertNotIn("no page", said)
        page = Page(folder / "index.html")
        self.assertNotIn("svg", [tag for tag, _ in page.elements])
        self.assertIn("the report has no charts: ", page.text)
        self.assertIn("Speedup and efficiency", page.headings)

    def test_numbers_are_those_of_the_tables(self):
        markdown = (self.folder / "report.md").read_text(encoding="utf-8")
        row = re.search(r"^\| multi-ring \| 4x64 \|.*$", markdown, re.MULTILINE)[0]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        lines = [re.findall(r">([^<>]*)</td>", line) for line in self.page.text.splitlines() if "4x64</td>" in line]
        self.assertIn(cells, lines)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
