"""No process is started after MPI_Init, where that is not safe with all networks: see fork_watch.cpp, which watches, and
has GPUs look worth asking for.

Environment, set by CTest: POLYRING_FORK_WATCH.
"""

import os
import subprocess
import unittest

from program import MPIEXEC, NOT_AVAILABLE, TIME_LIMIT_S, PROGRAM, SANITIZED, ProgramTest, main

WATCH = os.environ["POLYRING_FORK_WATCH"]
BEFORE = "before MPI_Init"


@unittest.skipIf(SANITIZED, "a sanitizer wants to be the first library that is loaded")
class Forks(ProgramTest):
    def forks(self, *words, ranks=2, code=0):
        log = self.folder / "forks"
        log.unlink(missing_ok=True)
        ran = subprocess.run(
            [*([MPIEXEC, "-n", str(ranks)] if ranks else []), "env", f"LD_PRELOAD={WATCH}", f"POLYRING_FORKS={log}", PROGRAM, *words],
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S,
        )
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def test_a_probe_asks_drivers_in_a_child(self):
        self.assertEqual(self.forks("probe", ranks=0), [BEFORE])

    def test_one_rank_of_a_host_asks_before_mpi(self):
        # The probe is a child, which asks the driver in one of its own.
        self.assertEqual(self.forks("probe", ranks=3), [BEFORE, BEFORE])

    def test_gpus_are_watched_from_before_mpi(self):
        # The watch, the probe, and the driver's child. There is no NVML to watch with.
        self.assertEqual(self.forks("accept", "--checks", "gpu.health", code=NOT_AVAILABLE), [BEFORE] * 3)
        self.assertEqual(self.forks("accept", "--checks", "hosts.alike"), [BEFORE] * 2)

    def test_benchmarks_ask_no_driver(self):
        small = ("-b", "1K", "-e", "1K", "-n", "1")
        self.assertEqual(self.forks("tune", *small, "--file", "tuned.json"), [])
        self.assertEqual(self.forks("allreduce", *small, "--tuned", "tuned.json"), [])
        self.assertEqual(self.forks("train", "--model", "resnet50", "--compute-ms", "1", "-n", "1", "--algorithm", "ring"), [])


if __name__ == "__main__":
    main()
