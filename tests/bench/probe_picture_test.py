"""probe --picture: what is drawn is whole, nothing is replaced, and what is missing is said."""

import json
import os
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

from program import NOT_AVAILABLE, ProgramTest, main

TOPOLOGIES = os.environ.get("POLYRING_TOPOLOGIES")
MINSKY = ("probe", "--machine", "minsky")


def real_files():
    files = sorted((Path(TOPOLOGIES) / "hwloc").glob("*.xml"))
    assert files, TOPOLOGIES
    return files


class Picture(ProgramTest):
    def draw(self, *arguments):
        """The line that names the file."""
        ran = self.run_program(*arguments)
        if ran.returncode == NOT_AVAILABLE:
            self.skipTest(ran.stderr.strip())
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), ran.stdout)
        return ran.stdout

    def texts(self, name):
        root = xml.etree.ElementTree.parse(self.folder / name).getroot()
        return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]

    def test_of_a_preset_says_so(self):
        self.assertEqual(self.draw(*MINSKY, "--picture", "minsky.svg"), "The picture is in minsky.svg\n")
        texts = self.texts("minsky.svg")
        for name in ("minsky", "package0", "package1", "gpu0", "gpu3", "mlx5_1", "NVLink 40.0 GB/s"):
            self.assertIn(name, texts)
        self.assertRegex(" ".join(texts), r"Source: preset minsky, polyring \d")

    def test_of_this_machine_says_when(self):
        self.draw("probe", "--picture", "here.svg")
        self.assertRegex(" ".join(self.texts("here.svg")), r"Source: probed on \S+, 20\d\d-\d\d-\d\d, polyring \d")

    def test_an_existing_file_is_kept(self):
        (self.folder / "m.png").write_bytes(b"mine")
        self.assertEqual(self.draw(*MINSKY, "--picture", "m.png"), "The picture is in m.png.1\n")
        self.assertEqual((self.folder / "m.png").read_bytes(), b"mine")
        self.assertTrue((self.folder / "m.png.1").read_bytes().startswith(b"\x89PNG"))
        self.assertEqual(len(self.files()), 2)

    def test_ports_that_are_down_are_named(self):
        self.draw(*MINSKY, "--rails", "1", "--picture", "m.svg")
        self.assertEqual(self.texts("m.svg").count("DOWN"), 1)

    def test_bad_names_are_refused(self):
        for name in ("m.gif", "m", "m.svg.txt"):
            self.refused(*MINSKY, "--picture", name, naming=".svg or .png")
        self.refused(*MINSKY, "--picture", "missing/m.svg", naming="missing/m.svg")
        self.refused(*MINSKY, "--picture", "m.svg", "--format", "json", naming="--format")

    def test_without_matplotlib_there_is_none(self):
        bare = self.folder / "python"
        bare.write_text("#!/bin/sh\nexec python3 -S \"$@\"\n", encoding="utf-8")  # without the folders of packages
        bare.chmod(0o755)
        for python, naming in ((bare, "install python3-matplotlib"), ("/nonexistent/python", "/nonexistent/python")):
            with mock.patch.dict(os.environ, {"POLYRING_PYTHON": str(python)}):
                self.refused(*MINSKY, "--picture", "m.svg", naming=naming, code=NOT_AVAILABLE)

    @unittest.skipUnless(TOPOLOGIES, "POLYRING_TOPOLOGIES is not set")
    def test_of_every_real_machine(self):
        for path in real_files():
            with self.subTest(path=path.name):
                self.draw("probe", "--from", path, "--picture", f"{path.stem}.svg")
                texts = self.texts(f"{path.stem}.svg")
                host = json.loads(self.succeed("probe", "--from", path, "--format", "json"))["hosts"][0]
                for group in ("packages", "switches", "gpus", "nics"):
                    for device in host[group]:
                        self.assertIn(device["name"], texts)


if __name__ == "__main__":
    main()
