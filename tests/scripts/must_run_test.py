"""POLYRING_MUST_RUN: tests that are skipped where hosts cannot be emulated, and fail where it says that they must run."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import must_run

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
# They say something of emulated hosts, and need none.
NEED_NONE = {
    "accept_trial_test.py": "results that are made up",
    "gpu_check_test.py": "namespaces, which need no rights where a user may make his own",
    "gpu_test.py": "the software GPU, whose rows' source is `emulated`",
    "must_run_test.py": "this",
    "race_test.py": "a stand-in for scripts/emulate",
    "run_test.py": "a stand-in for scripts/emulate",
    "same_names_test.py": "results of the program on one host",
    "test_test.py": "stand-ins for all tests",
}
MENTION = sorted(path for path in (ROOT / "tests").rglob("*_test.py") if re.search("emulat", path.read_text(encoding="utf-8"), re.IGNORECASE))
ON_EMULATED_HOSTS = [path for path in MENTION if path.name not in NEED_NONE]
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
        self.assertLessEqual(set(NEED_NONE), {path.name for path in MENTION})
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
