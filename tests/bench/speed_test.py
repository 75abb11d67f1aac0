"""Nothing is silly: upper limits, with a wide margin for slow machines, on time and memory of the largest plans."""

import os
import subprocess
import time
import unittest

from program import SANITIZED, ProgramTest, command, main

LIMIT_BYTES = 2 << 30


@unittest.skipIf(SANITIZED, "sanitizers take time and memory of their own")
class Speed(ProgramTest):
    def within(self, seconds, *words):
        begin = time.monotonic()
        with subprocess.Popen(command(*words), cwd=self.folder, stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - begin
        print(f"{took:.2f} s, {usage.ru_maxrss / 1024:.0f} MiB: polyring {' '.join(words)}", flush=True)
        self.assertEqual(process.returncode, 0)
        self.assertLess(took, seconds)
        self.assertLess(usage.ru_maxrss * 1024, LIMIT_BYTES)

    def test_minsky_table_with_five_algorithms(self):
        algorithms = "multi-ring,ring,halving-doubling,tree,parameter-server"
        self.within(10, "scale", "--machine", "minsky", "--gpus", "4..256", "--algorithm", algorithms)

    def test_plan_of_27648_ranks(self):
        self.within(60, "plan", "--machine", "summit", "--ranks", "27648")

    def test_plan_of_27648_ranks_in_given_dimensions(self):
        self.within(60, "plan", "--machine", "summit", "--dims", "6x64x72")

    def test_scale_to_27648_gpus(self):
        self.within(
            60, "scale", "--machine", "summit", "--gpus", "27648", "--algorithm", "multi-ring", "--compute-ms", "100"
        )

    def test_scale_to_27648_gpus_that_are_all_different(self):
        for algorithm in ("tree", "nccl"):
            words = ("--gpus", "27648", "--algorithm", algorithm, "--compute-ms", "100")
            self.within(60, "scale", "--machine", "summit", *words)

    def test_in_network_reduction_on_27648_gpus(self):
        words = ("--gpus", "27648", "--algorithm", "in-network", "--compute-ms", "100")
        self.within(30, "scale", "--machine", "summit", *words)


if __name__ == "__main__":
    main()
