"""The picture of a machine: everything is in it, nothing is cut off or covered, and nothing that exists is replaced.

usage: picture_test.py PICTURE_SCRIPT PROGRAM_THAT_WRITES_PRESETS
"""

import itertools
import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

SCRIPT, WRITE_PRESETS = map(Path, sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))

from matplotlib import colors  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402

from plots import machine  # noqa: E402
from plots.lettering import clean  # noqa: E402
from plots.machine_layout import Box, HostLayout, package_lines  # noqa: E402
from plots.probe import bandwidth_text, kinds_of, parents_of, read_probe  # noqa: E402
import probes  # noqa: E402

TOUCHING = 1e-6  # inches


def all_presets():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([WRITE_PRESETS, folder], check=True)
        return {path.stem: read_probe(path) for path in sorted(Path(folder).glob("*.json"))}


def all_probes():
    """Every preset, and what no preset has."""
    presets = all_presets()
    made_up = probes.documents()
    for document in made_up.values():
        for host in document["hosts"]:
            host["kinds"] = kinds_of(host)
    assert len(presets) >= 8 and not presets.keys() & made_up.keys()
    return {**presets, **made_up}


def layouts():
    for name, document in all_probes().items():
        for host in document["hosts"]:
            yield f"{name}: {clean(host['name'])}", host, HostLayout(host, machine.varied_kinds(document))


def inside(inner, outer, slack=TOUCHING):
    return (inner.x0 >= outer.x0 - slack and inner.x1 <= outer.x1 + slack and inner.y0 >= outer.y0 - slack and
            inner.y1 <= outer.y1 + slack)


def crosses(points, box):
    """Whether a wire, of straight pieces, enters the inside of a box."""
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if (min(x0, x1) < box.right - TOUCHING and max(x0, x1) > box.x + TOUCHING and
                min(y0, y1) < box.bottom - TOUCHING and max(y0, y1) > box.y + TOUCHING):
            return True
    return False


def luminance(colour):
    red, green, blue = colors.to_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class LayoutTest(unittest.TestCase):
    def texts(self, host, device):
        return [line.text for line in HostLayout(host, set()).boxes[device].lines]

    def test_says_what_is_shared_and_whose_package_is_unknown(self):
        host = all_presets()["ac922"]["hosts"][0]
        self.assertIn("one link with mlx5_1", self.texts(host, "mlx5_0"))
        self.assertNotIn("package ?", self.texts(host, "gpu0"))
        host["gpus"][0]["package_known"] = False
        self.assertIn("package ?", self.texts(host, "gpu0"))
        self.assertNotIn("package ?", self.texts(host, "gpu1"))

    def test_every_device_and_every_link_is_there_once(self):
        for name, host, layout in layouts():
            with self.subTest(name):
                self.assertEqual(set(layout.boxes), set(host["kinds"]))
                drawn = [id(wire.link) for wire in layout.wires]
                self.assertEqual(sorted(drawn), sorted(map(id, host["links"])))
                self.assertEqual(sum(port.up for port in layout.ports),
                                 sum(port["up"] for nic in host["nics"] for port in nic["ports"]))

    def test_boxes_are_apart_and_inside_the_host(self):
        for name, _, layout in layouts():
            with self.subTest(name):
                for box in layout.boxes.values():
                    self.assertGreaterEqual(min(box.x, box.y), -TOUCHING)
                    self.assertLessEqual(box.right, layout.width + TOUCHING)
                    self.assertLessEqual(box.bottom, layout.height + TOUCHING)
                for one, other in itertools.combinations(layout.boxes.values(), 2):
                    apart = (one.right <= other.x or other.right <= one.x or one.bottom <= other.y or
                             other.bottom <= one.y)
                    self.assertTrue(apart, (one.name, other.name))

    def test_wires_end_at_their_devices_and_pass_no_other(self):
        for name, _, layout in layouts():
            for wire in layout.wires:
                ends = [layout.boxes[wire.link[end]] for end in ("from", "to")]
                with self.subTest(name, ends=[box.name for box in ends]):
                    for point in (wire.points[0], wire.points[-1]):
                        self.assertTrue(any(box.x <= point[0] <= box.right and
                                            box.y - TOUCHING <= point[1] <= box.bottom + TOUCHING for box in ends))
                    for box in layout.boxes.values():
                        if box.kind != "nvswitches":
                            self.assertFalse(crosses(wire.points, box), box.name)

    def test_wires_do_not_cross_the_names_of_nvswitches(self):
        for name, _, layout in layouts():
            for bar in layout.of_kind("nvswitches"):
                width = bar.lines[0].width
                text = Box("text", bar.name, [], x=bar.text_x - width / 2, y=bar.y, width=width, height=bar.height)
                for wire in layout.wires:
                    self.assertFalse(crosses(wire.points, text), (name, wire.link))

    def test_wires_run_nowhere_on_each_other(self):
        for name, _, layout in layouts():
            pieces = [(index, piece) for index, wire in enumerate(layout.wires)
                      for piece in zip(wire.points, wire.points[1:])]
            with self.subTest(name):
                for (one, (a, b)), (other, (c, d)) in itertools.combinations(pieces, 2):
                    for along, across in ((0, 1), (1, 0)):
                        if one == other or len({round(point[across], 6) for point in (a, b, c, d)}) > 1:
                            continue
                        overlap = min(max(a[along], b[along]), max(c[along], d[along])) - max(
                            min(a[along], b[along]), min(c[along], d[along]))
                        self.assertLessEqual(overlap, TOUCHING, (layout.wires[one].link, layout.wires[other].link))

    def test_what_hangs_under_what(self):
        host = probes.four_sockets()
        host["kinds"] = kinds_of(host)
        parents = parents_of(host)
        self.assertEqual(parents["eth0"], ["package0", "package3"])
        self.assertEqual(parents["switch1"], ["switch0"])
        self.assertEqual(parents["gpu1"], ["switch1"])
        self.assertNotIn("loose0", parents)

    def test_what_is_unknown_of_a_package_is_left_out(self):
        package = {"name": "package0", "model": None, "cores": None, "numa": []}
        self.assertEqual([line.text for line in package_lines(package, 2)], ["package0"])
        package.update(cores=1, numa=[0, 8])
        self.assertEqual([line.text for line in package_lines(package, 2)], ["package0", "1 core, NUMA 0,8"])

    def test_a_gpu_without_pcie_hangs_on_its_nvlink(self):
        host = all_presets()["minsky"]["hosts"][0]
        self.assertEqual(parents_of(host)["gpu3"], ["package1"])


class PictureTest(unittest.TestCase):
    def test_labels_are_inside_their_boxes_and_apart(self):
        for name, document in all_probes().items():
            figure = machine.draw(document, "test")
            renderer = FigureCanvasAgg(figure).get_renderer()
            figure.draw(renderer)
            axes, = figure.axes
            labels = [(text.get_text(), text.get_window_extent(renderer)) for text in axes.texts]
            frames = [patch.get_window_extent(renderer) for patch in axes.patches
                      if patch.get_zorder() in (0, 1, 5) and patch.get_fill()]
            with self.subTest(name):
                for text, extent in labels:
                    self.assertTrue(inside(extent, figure.bbox), text)
                    middle = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
                    for frame in frames:
                        if frame.contains(*middle):
                            self.assertTrue(inside(extent, frame, slack=1), text)
                for (one, extent), (other, another) in itertools.combinations(labels, 2):
                    apart = (extent.x1 <= another.x0 or another.x1 <= extent.x0 or extent.y1 <= another.y0 + 1 or
                             another.y1 <= extent.y0 + 1)
                    self.assertTrue(apart, (one, other))

    def test_pods_are_frames_around_their_leaves(self):
        def texts_of(name):
            axes, = machine.draw(all_probes()[name], "test").axes
            return {text.get_text(): text.get_position()[0] for text in axes.texts}

        texts = texts_of("two_pods")
        self.assertEqual([name for name in sorted(texts, key=texts.get) if name.startswith("leaf ")],
                         [f"leaf {number}" for number in range(1, 5)])
        for leaf, pod in zip(range(1, 5), (1, 1, 2, 2)):
            apart = {number: abs(texts[f"leaf {leaf}"] - texts[f"pod {number}"]) for number in (1, 2)}
            self.assertEqual(min(apart, key=apart.get), pod, leaf)
        self.assertIn("uplinks of a pod 300 GB/s", texts)
        texts = texts_of("many_pods")
        for name in ("leaf 1", "leaf 8", "pod 1", "pod 8", "leaf 57", "leaf 64", "…", "spine"):
            self.assertIn(name, texts)
        self.assertFalse({"leaf 2", "leaf 9", "pod 2", "pod 9"} & texts.keys())
        self.assertNotIn("pod 1", texts_of("cluster"))

    def test_a_latency_of_0_is_one_that_is_unknown(self):
        fabric = {"latency_us": 1.7, "spine_latency_us": 0.18}
        text = machine.FabricStrip.latency_text
        self.assertEqual(text(fabric), "1.70 µs from NIC to NIC, 180 ns more over the spine")
        self.assertEqual(text({**fabric, "spine_latency_us": 0}), "1.70 µs from NIC to NIC")
        self.assertEqual(text({"latency_us": 0, "spine_latency_us": 0}), "latency unknown, taken as 0")

    def test_wider_lines_carry_more(self):
        for name, document in all_probes().items():
            speeds = sorted({link["GBps"] for host in document["hosts"] for link in host["links"] if link["GBps"]})
            canvas = machine.Canvas(1, 1, max(speeds, default=1))
            widths = [canvas.line_width(speed) for speed in speeds]
            with self.subTest(name):
                for narrow, wide in zip(widths, widths[1:]):
                    self.assertGreater(wide, narrow)

    def test_kinds_are_told_apart_in_grey(self):
        for (one, a), (other, b) in itertools.combinations(machine.KINDS.items(), 2):
            grey = abs(luminance(a.colour) - luminance(b.colour)) > 0.08
            self.assertTrue(grey or a.dashes != b.dashes or a.double != b.double, (one, other))

    def test_the_legend_names_each_kind_and_bandwidth_once(self):
        document = all_probes()["cube_mesh_of_two_speeds"]
        legend = machine.Legend(document["hosts"][0]["links"], 8)
        self.assertEqual([line.text for _, line in legend.entries],
                         ["NVLink 50.0 GB/s", "NVLink 25.0 GB/s", "PCIe 15.8 GB/s", "socket bus 38.4 GB/s"])
        self.assertEqual(machine.Legend.label("pcie", 0), "PCIe, bandwidth unknown")

    def test_bandwidths_are_written_as_in_the_tables(self):
        texts = {450: "450 GB/s", 40: "40.0 GB/s", 12.12: "12.1 GB/s", 1555.2: "1.56 TB/s", 0.125: "125 MB/s",
                 None: "? GB/s"}
        self.assertEqual({speed: bandwidth_text(speed) for speed in texts}, texts)


class ScriptTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)

    def picture(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def draw(self, document, name):
        path = self.folder / "probe.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        out = self.folder / name
        ran = self.picture(path, "--source", "preset & test", "--out", out)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return out

    def test_svg_has_every_name_as_text(self):
        for name in ("strangely_named", "cluster"):
            document = probes.documents()[name]
            svg = xml.etree.ElementTree.parse(self.draw(document, f"{name}.svg")).getroot()
            texts = ["".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
            for host in document["hosts"]:
                for device_name in kinds_of(host):
                    self.assertIn(clean(device_name), texts)
            self.assertTrue(any("preset & test" in text for text in texts))
            self.assertIn("DOWN" if name == "cluster" else "12.1 GB/s", " ".join(texts))

    def test_the_same_input_gives_the_same_svg(self):
        document = probes.documents()["mesh"]
        self.assertEqual(self.draw(document, "a.svg").read_bytes(), self.draw(document, "b.svg").read_bytes())

    def test_png_is_whole_and_nothing_is_left_behind(self):
        data = self.draw(probes.documents()["laptop"], "a.png").read_bytes()
        self.assertTrue(data.startswith(b"\x89PNG\r\n\x1a\n") and data[-8:-4] == b"IEND")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.png", "probe.json"])

    def refused(self, expected, *arguments):
        before = {path: path.read_bytes() for path in self.folder.iterdir()}
        ran = self.picture(*arguments)
        self.assertEqual(ran.returncode, 6, ran.stderr)
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        self.assertIn(expected, ran.stderr)
        self.assertEqual({path: path.read_bytes() for path in self.folder.iterdir()}, before)

    def test_bad_input_is_refused(self):
        out = ("--source", "x", "--out", self.folder / "new.svg")
        whole = probes.probe(probes.laptop())
        broken = {"cut.json": json.dumps(whole)[:100], "other.json": "{}", "list.json": "[]",
                  "newer.json": json.dumps({**whole, "version": 2}),
                  "hostless.json": json.dumps({**whole, "hosts": 3}),
                  "linked.json": json.dumps(probes.probe(probes.host("x", 1, links=[probes.link("a", "b", "pcie", 1)])))}
        for name, text in broken.items():
            (self.folder / name).write_text(text, encoding="utf-8")
            self.refused(name, self.folder / name, *out)
        self.refused("cannot read", self.folder / "none.json", *out)
        good = self.draw(whole, "old.svg").with_name("probe.json")
        self.refused("exists already", good, "--source", "x", "--out", self.folder / "old.svg")
        self.refused(".svg or .png", good, "--source", "x", "--out", self.folder / "a.gif")
        self.refused("cannot write", good, "--source", "x", "--out", self.folder / "none/a.svg")
        self.refused("--source", good)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
