"""What the tests on emulated hosts share: runs programs on the cluster of scripts/emulate, and sees that nothing stays behind.

Environment, set by CTest: POLYRING_PROGRAM, POLYRING_MPIEXEC. The repository's root is the first argument.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import must_run

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
EMULATE = ROOT / "scripts/emulate"
STREAM = pathlib.Path(__file__).resolve().parent / "stream.py"
PROGRAM = os.environ["POLYRING_PROGRAM"]
NOT_AVAILABLE = 5
TIMEOUT = 4
TIME_LIMIT_S = 100
RDMA = any(pathlib.Path("/sys/class/infiniband").glob("*"))
FRAMED = 1448 / 1514  # of the rate, what the headers of a full Ethernet frame leave to a TCP stream


def mpi_options():
    version = subprocess.run([os.environ["POLYRING_MPIEXEC"], "--version"], capture_output=True, text=True, check=False)
    return ["--mpi", "mpich" if "HYDRA" in version.stdout else "openmpi"]


def shape(nodes, ranks, rate="200mbit", *options):
    return ["--nodes", str(nodes), "--ranks-per-node", str(ranks), "--rate", rate, *options]


def marked(mark):
    """The processes that a run with this mark in its environment has left or still has."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark.encode() in pathlib.Path(f"/proc/{name}/environ").read_bytes():
                found.append(pathlib.Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode())
    return [command for command in found if command]  # without those that are ending


def traces():
    """Where a run could leave something behind."""
    state = pathlib.Path("/run/polyring-emulate")
    return {
        "links": sorted(name for _, name in socket.if_nameindex()),
        "mounts": sorted(pathlib.Path("/proc/self/mounts").read_text().splitlines()),
        "state": sorted(path.name for path in state.iterdir()) if state.exists() else [],
    }


class EmulateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mpi = mpi_options()
        tried = subprocess.run([EMULATE, *cls.mpi, *shape(1, 1), "--", "true"], capture_output=True, text=True, check=False)
        if tried.returncode == NOT_AVAILABLE:
            must_run.skip("emulation", tried.stderr.strip())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.mark = f"POLYRING_TEST_MARK={uuid.uuid4()}"
        self.before = traces()

    def start(self, options, *command):
        job = subprocess.Popen(
            ["env", self.mark, EMULATE, *self.mpi, *options, "--", *map(str, command)], cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.addCleanup(self.end, job)
        return job

    def end(self, job):
        if job.poll() is None:
            job.kill()
        job.communicate()

    def run_job(self, options, *command):
        job = self.start(options, *command)
        output, errors = job.communicate(timeout=TIME_LIMIT_S)
        self.nothing_left()
        return job.returncode, output, errors

    def succeed(self, options, *command):
        code, output, errors = self.run_job(options, *command)
        self.assertEqual(code, 0, output + errors)
        return output

    def allreduce(self, options, *words):
        """The result of polyring allreduce."""
        return self.measure("allreduce", options, *words)

    def measure(self, command, options, *words):
        """The result of allreduce or train, which stays in the folder under its name."""
        path = self.folder / f"{command}.json"
        path.unlink(missing_ok=True)
        self.said = self.write(path, options, PROGRAM, command, *words, "-J", path)
        return json.loads(path.read_text())

    def write(self, path, options, *command):
        """Runs the command, which writes the file, and returns what it printed."""
        code, output, errors = self.run_job(options, *command)
        self.assertEqual(code, 0, output + errors)
        self.assertTrue(path.exists(), output + errors)
        return output + errors

    def nothing_left(self):
        deadline = time.monotonic() + 5
        while marked(self.mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(marked(self.mark), [])
        self.assertEqual(traces(), self.before)

    def started(self, options, *command):
        """The job, once all of its 4 ranks run."""
        job = self.start(options, *command)
        words = " ".join(map(str, command)) + " "
        deadline = time.monotonic() + TIME_LIMIT_S
        while marked(self.mark).count(words) < 4:
            self.assertIsNone(job.poll())
            self.assertLess(time.monotonic(), deadline, "the ranks did not start")
            time.sleep(0.05)
        return job


def main():
    """unittest.main(), but with CTest's code for skipped where all tests were."""
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    # Where hosts cannot be emulated no test runs at all.
    sys.exit(77 if len(result.skipped) >= result.testsRun else 0)
