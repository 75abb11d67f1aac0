"""polyring launch from one emulated host to both, over a remote shell that enters them; and with a network between them
that lets nothing through, while the remote shell still does. Skipped where namespaces are not permitted.

Environment, set by CTest: POLYRING_PROGRAM, POLYRING_MPIEXEC.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import must_run

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
EMULATE = ROOT / "scripts/emulate"
ENTER = ROOT / "scripts/emulated/enter"
PROGRAM = os.environ["POLYRING_PROGRAM"]
NOT_AVAILABLE = 5
TIMEOUT = 4
TIME_LIMIT_S = 120

# As scripts/emulated/cluster cuts links: node1's station does not exist.
CUT = "ip neighbour replace 10.77.0.2 lladdr 02:00:00:00:00:01 nud permanent dev eth0"


class EmulatedLaunch(unittest.TestCase):
    SHAPE = ("--mpi", "none", "--nodes", "2", "--ranks-per-node", "1", "--rate", "1gbit")

    @classmethod
    def setUpClass(cls):
        tried = subprocess.run([EMULATE, *cls.SHAPE, "--", "true"], capture_output=True, text=True, check=False)
        if tried.returncode == NOT_AVAILABLE:
            must_run.skip("emulation", tried.stderr.strip())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        before = self.sessions()
        self.addCleanup(lambda: self.assertEqual(self.sessions(), before))

    def sessions(self):
        """What an MPI of an emulated host may leave behind."""
        return sorted(pathlib.Path(tempfile.gettempdir()).glob("ompi.node*/*"))

    def launch(self, *words, before="true"):
        return subprocess.run(
            [EMULATE, *self.SHAPE, "--", "sh", "-c", f'{before} && exec "$@"', "sh", PROGRAM,
             "launch", "-H", "node0,node1", "--ranks-per-host", "1", "--rsh", ENTER,
             "--launcher", os.environ["POLYRING_MPIEXEC"], *words],
            cwd=self.folder, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S, stdin=subprocess.DEVNULL,
        )

    def test_the_job_runs_on_both_hosts(self):
        ran = self.launch("--", "polyring", "allreduce", "-b", "8K", "-e", "8K", "-n", "2", "--algorithm", "ring")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertRegex(ran.stderr, r"(?m)^node0 +0 ")
        self.assertRegex(ran.stderr, r"(?m)^node1 +1 ")
        self.assertRegex(ran.stdout, r"(?m)^ *8192 ")

    def test_each_rank_is_where_it_should_be(self):
        ran = self.launch("--no-trial", "--", "hostname")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertEqual(sorted(ran.stdout.split()), ["node0", "node1"])

    def test_a_firewall_between_the_hosts(self):
        ran = self.launch("-T", "3", "--", "polyring", "allreduce", before=CUT)
        self.assertEqual(ran.returncode, TIMEOUT, ran.stdout + ran.stderr)
        self.assertIn("a trial run of all ranks hung", ran.stderr)
        self.assertIn("a firewall may block the ports", ran.stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun == 0 or len(result.skipped) == result.testsRun else 0)
