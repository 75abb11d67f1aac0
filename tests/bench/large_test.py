"""The largest plans and tables that people ask for: they come, and in little memory. How quickly: scripts/bench_budget."""

import os
import subprocess

from program import ProgramTest, command, main

LIMIT_BYTES = 2 << 30
SUMMIT = ("scale", "--machine", "summit", "--gpus", "27648", "--compute-ms", "100", "--algorithm")


class Large(ProgramTest):
    def in_little_memory(self, *words):
        """What it prints."""
        with subprocess.Popen(command(*words), cwd=self.folder, stdout=subprocess.PIPE, text=True) as process:
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertLess(usage.ru_maxrss * 1024, LIMIT_BYTES)
        return output

    def test_plan_of_27648_ranks(self):
        self.assertRegex(self.in_little_memory("plan", "--machine", "summit", "--ranks", "27648"), "^27648 ranks on 4608 hosts")

    def test_plan_of_27648_ranks_in_given_dimensions(self):
        self.assertIn("6x64x72", self.in_little_memory("plan", "--machine", "summit", "--dims", "6x64x72"))

    def test_scale_to_27648_gpus(self):
        # Those of a tree and NCCL's are all different to the simulator, the others' are mostly equal.
        for algorithm in ("multi-ring", "tree", "nccl", "in-network"):
            with self.subTest(algorithm=algorithm):
                self.assertRegex(self.in_little_memory(*SUMMIT, algorithm), rf"(?m)^{algorithm} .* 27648 +4608 ")

    def test_buckets_of_several_sizes(self):
        """Planning each size takes seconds there, so that all have the largest one's plan: the table says so."""
        words = ("scale", "--machine", "minsky", "--algorithm", "multi-ring", "--bucket", "fused:64MiB", "--gpus")
        note = "Above 4096 GPUs buckets of all sizes have the plan of the largest."
        self.assertIn(note, self.in_little_memory(*words, "8192"))
        self.assertNotIn(note, self.in_little_memory(*words, "4096"))


if __name__ == "__main__":
    main()
