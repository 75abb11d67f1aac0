"""scripts/soak_library for a few seconds, and where a process has grown, which is a stand-in.

Environment, set by CTest: POLYRING_PROGRAM.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
BUILD = pathlib.Path(os.environ["POLYRING_PROGRAM"]).parents[1]
USAGE, WRONG = 6, 7


class SoakLibrary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="with spaces ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        shutil.copytree(ROOT / "scripts", self.folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))

    def soak(self, *options):
        return subprocess.run([self.folder / "scripts/soak_library", *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=100)

    def test_all_that_is_soaked(self):
        (self.folder / "build").symlink_to(BUILD)
        ran = self.soak("--communicators", "10", "--operations", "300")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertEqual(ran.stdout.count("10 communicators: grew by"), 6, ran.stdout)
        self.assertEqual(ran.stdout.count("300 operations: grew by") + ran.stdout.count("300 calls: grew by"), 4, ran.stdout)
        self.assertIn('"taken": {"MPI_Allreduce": 104, "MPI_Reduce_scatter_block": 103, "MPI_Allgather": 103}', ran.stdout)

    def test_says_how_to_repeat_what_failed(self):
        for program in ("bin/collectives_growth", "bin/collectives_mpi_growth", "lib/libpolyring_mpi.so"):
            path = self.folder / "build" / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#!/bin/sh\necho \"with $*\"\nexit 1\n")
            path.chmod(0o755)
        ran = self.soak("--communicators", "77")
        self.assertEqual((ran.returncode, ran.stdout), (WRONG, "The C library, ids over TCP:\nwith 77 1000000\n"))
        self.assertIn(f"exit code 1; repeat it in {self.folder} by ", ran.stderr)

    def test_options(self):
        for words, said in ((("--operations",), "--operations needs a value"), (("--operations", "1e6"), "give 100 to 999999999"),
                            (("--preset", "tsan"), "there is no preset 'tsan'"), (("--fast",), "unknown option '--fast'")):
            ran = self.soak(*words)
            self.assertEqual((ran.returncode, ran.stdout), (USAGE, ""))
            self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
