"""polyring launch where it may use only some cores: on hosts that say so, and for real on this one. Either MPI."""

import os
from pathlib import Path

from launching import OPEN_MPI, SRUN, LaunchTest
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

    def test_open_mpi_would_mix_up_other_cpusets(self):
        ran = self.launch("--polyring", self.fake, "--dry-run", "-H", "first0,second1", "--", "./train")
        self.assertIn("mpirun \\\n  --host first0:4,second1:4 \\\n  -n 8 \\\n  --map-by slot --bind-to none \\\n", ran.stdout)
        self.assertRegex(ran.stderr, r"(?m)^first0 +0-3 +4 +any$")
        self.assertIn("  first0 and second1: 10 of 20 cores are allowed (cpuset)\n"
                      "  first0 and second1 may use different cores (cpuset), which Open MPI mixes up: ranks are not bound\n", ran.stderr)
        self.assertNotIn("Written", ran.stderr)
        self.assertIn("--rankfile ", self.dry("-H", "first0,first1")[0])

    def test_other_launchers_do_not_use_what_was_counted(self):
        for version, cores in (("HYDRA build details:\\n    Version:   4.0.2\\n", "any"),
                               ("Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 1\\n", r"\?"),
                               ("slurm 23.02.6\\n", r"\?")):
            with self.subTest(version=version):
                self.launcher(f'printf "{version}"; exit')
                ran = self.launch("--polyring", self.fake, "--dry-run", "-H", "bound0", "--", "./train")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertRegex(ran.stderr, rf"(?m)^bound0 +0-3 +4 +{cores}$")
                self.assertIn("\ncores\n  bound0: 4 of 20 cores are allowed (affinity)\n\n", ran.stderr)

    def test_a_question_by_srun_is_not_confined(self):
        confining = ("SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_EXACT")
        seen = "".join(f"${{{{{name}+{name}}}}}" for name in confining)
        head, rest = SRUN.split("tasks=1\n", 1)
        check = f'[ -z "{seen}" ] || {{{{ echo "confined by {seen}" >&2; exit 1; }}}}\n'
        self.script("srun", (head + check + "tasks=1\n" + rest).format(run="exit 9"))
        for name in confining:
            command, _ = self.dry(variables={"SLURM_JOB_NODELIST": "node[0-1]", name: "1"}, shell=False)
            self.assertIn("--host node0:4,node1:4 ", command)


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
        # MPICH cannot be told to bind to the last core.
        used = ", 1 is used" if OPEN_MPI else ""
        self.assertRegex(errors, rf"\n  localhost: 1 of \d+ cores is allowed \(.*affinity\)(, for the time of \S+ \(quota\))?{used}\n")


if __name__ == "__main__":
    main()
