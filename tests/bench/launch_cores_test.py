"""polyring launch where it may use only some cores: on hosts that say so, and for real on this one. Either MPI."""

import os
from pathlib import Path

from launching import LaunchTest
from program import MPIEXEC, TIME_LIMIT_S, USAGE, main


class AllowedCores(LaunchTest):
    def test_ranks_are_bound_to_them(self):
        ran = self.launch("--polyring", self.fake, "--dry-run", "-H", "bound0,node1,bound2", "--", "./train")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("--host bound0:4,node1:4,bound2:4 ", ran.stdout)
        slots = [line.split("slot=")[1] for line in (self.folder / "polyring.rankfile").read_text(encoding="utf-8").splitlines()]
        bound = ["3", "10", "11", "12"]
        self.assertEqual(slots, [*bound, "0-4", "5-9", "10-14", "15-19", *bound])
        self.assertIn("\ncores\n  bound0 and bound2: 4 of 20 cores are allowed (affinity), 4 are used; too few are near gpu1, "
                      "and the next nearest are taken\n", ran.stderr)

    def test_ranks_are_as_many(self):
        command, rankfile = self.dry("-H", "slow0")
        self.assertIn("--host slow0:3 ", command)
        self.assertEqual(rankfile, "".join(f"rank {rank}=slow0 slot={slot}\n" for rank, slot in enumerate(("0-1", "2-3", "4-5"))))
        self.fault(USAGE, "-H", "slow0:4", naming="4 ranks are asked for on slow0, which has 3 allowed cores")


class ForReal(LaunchTest):
    """On this host, by the MPI that the program was built with."""

    def test_only_cores_that_are_allowed_are_used(self):
        own = os.sched_getaffinity(0)
        siblings = Path(f"/sys/devices/system/cpu/cpu{max(own)}/topology/thread_siblings_list").read_text(encoding="utf-8").strip()
        ends = [part.split("-") for part in siblings.split(",")]
        last = {cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)}
        if not last < own:
            self.skipTest("this process may use one core only")
        script = "sed -n 's/^Cpus_allowed_list:[[:blank:]]*//p' /proc/self/status"
        job = self.started("--launcher", MPIEXEC, "-H", "localhost", "--", "sh", "-c", script, shell=False, cores=last)
        output, errors = job.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(job.returncode, 0, errors)
        self.assertEqual(output.split(), [siblings])
        self.assertRegex(errors, r"\n  localhost: 1 of \d+ cores is allowed \(.*affinity\), 1 is used\n")


if __name__ == "__main__":
    main()
