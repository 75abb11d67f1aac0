"""scripts/soak on the software GPU for a few seconds, and what it says where a program finds a fault, which is a stand-in.

Environment, set by CTest: POLYRING_PROGRAM.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
BUILD = pathlib.Path(os.environ["POLYRING_PROGRAM"]).parents[1]
USAGE, WRONG = 6, 7


class Soak(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="with spaces ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        shutil.copytree(ROOT / "scripts", self.folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (self.folder / "tests").symlink_to(ROOT / "tests")

    def soak(self, *options):
        return subprocess.run([self.folder / "scripts/soak", *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=100)

    def test_counts_cases(self):
        (self.folder / "build").symlink_to(BUILD)
        ran = self.soak("--time", "1s", "--first", "7")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), ran.stdout)
        said = re.fullmatch(r"(\d+) cases in \d+ s, no fault: (\d+) pieces of 5000, which have (\d+) cases\n", ran.stdout)
        cases, pieces, all_cases = (int(number) for number in said.groups())
        self.assertAlmostEqual(cases / pieces / (all_cases / 5000), 1, delta=0.5)  # pieces differ a little
        self.assertGreater(all_cases, 500_000)

    def test_says_how_to_repeat_a_fault(self):
        programs = self.folder / "build/bin"
        programs.mkdir(parents=True)
        for name, code in (("software_gpu_stream_test", 0), ("software_gpu_collectives_test", 1)):
            (programs / name).write_text(f"#!/bin/sh\necho \"$POLYRING_SOFTWARE_GPU_CASES is wrong in {name}\"\nexit {code}\n")
            (programs / name).chmod(0o755)
        ran = self.soak("--time", "1h", "--first", "4998")
        self.assertEqual(ran.returncode, WRONG)
        self.assertIn("4998/5000 is wrong in software_gpu_collectives_test\n", ran.stdout)
        command = re.fullmatch(r"soak: software_gpu_collectives_test found a fault, with exit code 1; repeat it in (.*?) by (.*)\n", ran.stderr)
        again = subprocess.run(["sh", "-c", command[2]], cwd=command[1], capture_output=True, text=True, check=False)
        self.assertEqual((again.returncode, again.stdout), (1, "4998/5000 is wrong in software_gpu_collectives_test\n"))

    def test_options(self):
        for words, said in ((("--time", "5"), "--time needs a time such as 30s"), (("--first", "5000"), "--first needs a number"),
                            (("--fast",), "unknown option '--fast'")):
            ran = self.soak(*words)
            self.assertEqual((ran.returncode, ran.stdout), (USAGE, ""))
            self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
