"""POLYRING_MUST_RUN: tests that are skipped where hosts cannot be emulated, and fail where it says that they must run."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import must_run

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
# All tests that find out by scripts/emulate whether hosts can be emulated.
ON_EMULATED_HOSTS = sorted(
    path for path in (ROOT / "tests/scripts").glob("*_test.py")
    if re.search(r'^from emulated import|must_run\.skip\("emulation"', path.read_text(encoding="utf-8"), re.MULTILINE)
)
WITHOUT_RIGHTS = ["setpriv", "--bounding-set", "-sys_admin"] if os.geteuid() == 0 else []
SAYS = "POLYRING_MUST_RUN names emulation, so that this may not be skipped: "
SKIPPED = 77


class MustRun(unittest.TestCase):
    def setUp(self):
        self.addCleanup(os.environ.update, {"POLYRING_MUST_RUN": os.environ.get("POLYRING_MUST_RUN", "")})

    def test_only_what_is_named_fails(self):
        for named, kind, ends in (("", "slurm", unittest.SkipTest), ("browser emulation", "slurm", unittest.SkipTest),
                                  ("slurm", "slurm", AssertionError), ("browser  slurm", "browser", AssertionError)):
            os.environ["POLYRING_MUST_RUN"] = named
            with self.subTest(named=named, kind=kind), self.assertRaisesRegex(ends, "it is gone"):
                must_run.skip(kind, "it is gone")

    def run_test(self, path, named):
        variables = {"POLYRING_MUST_RUN": named, "POLYRING_PROGRAM": sys.executable, "POLYRING_MPIEXEC": "true",
                     "POLYRING_EXAMPLE": sys.executable}
        chosen = ["EmulatedHosts"] if path.name == "without_mpi_test.py" else []
        return subprocess.run([*WITHOUT_RIGHTS, sys.executable, "-B", path, ROOT, *chosen],
                              env=os.environ | variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)

    def test_those_on_emulated_hosts(self):
        self.assertGreater(len(ON_EMULATED_HOSTS), 5)
        for path in ON_EMULATED_HOSTS:
            with self.subTest(test=path.name):
                ran = self.run_test(path, "browser slurm")
                self.assertIn(ran.returncode, (0, SKIPPED), ran.stderr)
                self.assertIn("skipped", ran.stderr)
                self.assertNotIn(SAYS, ran.stderr)
                ran = self.run_test(path, "emulation")
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertIn(SAYS, ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
