"""polyring on a real Slurm, with a slurmd on each of three emulated hosts: by srun, by sbatch, and by polyring launch in an allocation.
Skipped where hosts cannot be emulated or Slurm is not installed; where it is, as after `scripts/setup --slurm`, it must start.
"""

import json
import re
import shutil
import time
import unittest

import must_run
from emulated import PROGRAM, ROOT, TIME_LIMIT_S, EmulateTest, main, shape

NODES = ["-N", "3", "--ntasks-per-node", "2"]
HOSTS = ["node0", "node0", "node1", "node1", "node2", "node2"]
BELOW = 8
SWEEP = ["-b", "64K", "-e", "64K", "-n", "2", "--algorithm", "ring"]


class EmulatedSlurm(EmulateTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mpi = ["--mpi", "none"]
        if not shutil.which("slurmctld", path="/usr/sbin:/sbin"):
            must_run.skip("slurm", "Slurm is not installed; run scripts/setup --slurm")

    def under_slurm(self, *command, rate="1gbit"):
        return self.run_job(shape(3, 2, rate), ROOT / "scripts/emulated/slurm", *command)

    def expect_result(self, path):
        result = json.loads(path.read_text())
        self.assertEqual([place["host"] for place in result["placement"]], HOSTS)
        for row in result["rows"]:
            self.assertEqual((row["ranks"], row["nodes"], row["ranks_per_node"], row["wrong"]), (6, 3, 2, 0))

    def test_srun(self):
        script = """
            "$@" allreduce $SWEEP -J allreduce.json && "$@" accept --checks hosts.alike,correct -J accept.json
        """
        code, output, errors = self.under_slurm(
            "env", f"SWEEP={' '.join(SWEEP)}", "sh", "-c", script, "sh", "srun", "--mpi=pmix", *NODES, PROGRAM)
        self.assertEqual(code, 0, output + errors)
        self.expect_result(self.folder / "allreduce.json")
        judged = json.loads((self.folder / "accept.json").read_text())
        self.assertEqual([place["host"] for place in judged["placement"]], HOSTS)
        self.assertEqual({row["verdict"] for row in judged["rows"]}, {"pass"})
        self.assertIn("PASS: all", output)

    def test_accept_drains_the_host_that_fails(self):
        # The last host has one rank less than the others: that fails on a busy machine, too, which makes other verdicts doubtful.
        # There is no time to train, and no data to read.
        script = """
            "$@" accept --budget 30s --drain -J accept.json >said; echo "exit code $?"
            grep ^scontrol said | tee drain && sh drain
            sinfo --noheader --Node --format="is %N %t"
        """
        places = self.folder / "places"
        places.write_text("\n".join(HOSTS[:-1]) + "\n")
        code, output, errors = self.under_slurm("env", f"SLURM_HOSTFILE={places}", "sh", "-c", script, "sh", "srun", "--mpi=pmix", "-n", "5",
                                                "-m", "arbitrary", PROGRAM, rate="200mbit")
        said = (self.folder / "said").read_text()
        self.assertEqual(code, 0, output + errors + said)
        self.assertIn(f"exit code {BELOW}\n", output, errors + said)
        self.assertRegex(said, r"(?m)^FAIL  hosts.alike, node2: ")
        self.assertRegex(said, r"(?m)^FAIL: \d+ of \d+ judgements failed: .*hosts.alike of node2")
        drained = re.findall(r'^scontrol update NodeName=(\S+) State=DRAIN Reason="polyring: (.*)"$', output, re.MULTILINE)
        self.assertIn("hosts.alike", dict(drained)["node2"])
        # Slurm knows them by these names.
        states = dict(re.findall(r"^is (node[012]) (\w+)$", output, re.MULTILINE))
        self.assertEqual({host for host, state in states.items() if state.startswith("dr")}, {host for host, _ in drained}, output)
        self.assertEqual(set(states), {"node0", "node1", "node2"})
        self.expect_all_checks(json.loads((self.folder / "accept.json").read_text()))

    def expect_all_checks(self, result):
        """Each has a row, and what can be measured on these hosts was; of what comes late, or the budget was over: a busy machine
        repeats much.
        """
        self.assertEqual([place["host"] for place in result["placement"]], HOSTS[:-1])
        rows = {}
        for row in result["rows"]:
            rows.setdefault(row["check"], []).append(row)
        self.assertEqual([one["value"] for one in result["inputs"] if one["name"] == "check"], list(rows))
        self.assertEqual({row["verdict"] for row in rows["correct"]}, {"pass"})
        self.assertEqual({row["verdict"] for row in rows["data"] + rows["train"]}, {"skipped"})
        pairs = {row["subject"] for row in rows["pairs.allreduce"] if row["value"]}
        self.assertEqual(pairs, {"node0 and node1", "node0 and node2", "node1 and node2"}, rows["pairs.allreduce"])
        self.assertTrue(any(row["value"] for row in rows["host.allreduce"]), rows["host.allreduce"])
        for check in ("all.allreduce", "dips", "stragglers", "repeatability"):
            self.assertTrue(any(row["value"] or "the budget" in row["why"] for row in rows[check]), rows[check])

    def test_what_was_measured_when_a_rank_is_killed(self):
        # --kill-on-bad-exit=0 does not help here: Slurm's PMIx ends all ranks when one is gone.
        words = ("allreduce", "-b", "64K", "-e", "4G", "-n", "2", "--algorithm", "ring", "-J", "allreduce.json")
        script = """
            [ $SLURM_PROCID = 3 ] && {
              for i in $(seq 600); do grep -q 65536 allreduce.json.part && break; sleep 0.1; done 2>/dev/null
              kill -9 $$
            } &
            exec "$@"
        """
        code, output, errors = self.under_slurm(
            "srun", "--mpi=pmix", "--kill-on-bad-exit=0", *NODES, "sh", "-c", script, "sh", PROGRAM, *words)
        self.assertEqual(code, 128 + 9, output + errors)
        self.assertIn("node1: task 3: Killed", errors)
        self.assertIn("65536", (self.folder / "allreduce.json.part").read_text())

    def test_a_batch_job(self):
        # Accepting takes minutes, and has tests of its own.
        stand_in = self.folder / "polyring"
        stand_in.write_text(f"""#!/bin/sh
            [ "$1" = accept ] || exec {PROGRAM} "$@"
            echo "$SLURM_PROCID: $*" >>accept.$SLURM_PROCID
            exit 8
        """)
        stand_in.chmod(0o755)
        # sbatch --wait looks too seldom.
        script = """
            id=$(sbatch --parsable "$@") || exit
            while scontrol show job $id | grep -qE 'JobState=(PENDING|RUNNING|COMPLETING)'; do sleep 0.1; done
            scontrol show job $id
        """
        code, output, errors = self.under_slurm(
            "env", f"POLYRING={stand_in}", f"POLYRING_ALLREDUCE={' '.join(SWEEP)}", "SLURM_MPI_TYPE=pmix",
            "sh", "-c", script, "sh", *NODES, ROOT / "scripts/slurm/accept.sbatch", "--budget", "1min")
        (said,) = self.folder.glob("polyring-*.txt")
        self.assertIn("ExitCode=8:0", output, errors + said.read_text())
        results = self.folder / said.stem
        self.expect_result(results / "allreduce.json")
        probe = json.loads((results / "probe.json").read_text())
        self.assertEqual([host["name"] for group in probe["hosts"] for host in group["members"]], ["node0", "node1", "node2"])
        for rank in range(6):
            words = f"{rank}: accept --budget 1min -J {results}/accept.json\n"
            self.assertEqual((self.folder / f"accept.{rank}").read_text(), words)

    def test_launch_in_an_allocation(self):
        script = """
            for launcher in mpirun srun; do
              "$@" --launcher $launcher -- polyring allreduce $SWEEP -J $launcher.json || exit
            done
        """
        code, output, errors = self.under_slurm(
            "env", f"SWEEP={' '.join(SWEEP)}", "SLURM_MPI_TYPE=pmix", "salloc", *NODES, "sh", "-c", script, "sh", PROGRAM, "launch")
        self.assertEqual(code, 0, output + errors)
        for launcher in ("mpirun", "srun"):
            with self.subTest(launcher=launcher):
                self.expect_result(self.folder / f"{launcher}.json")

    def test_nothing_survives_a_cluster_that_is_killed(self):
        job = self.start(shape(3, 2, "1gbit"), ROOT / "scripts/emulated/slurm", "srun", "-N", "3", "sh", "-c", "touch $SLURM_PROCID; sleep 61")
        deadline = time.monotonic() + TIME_LIMIT_S
        while len(list(self.folder.iterdir())) < 3:
            self.assertIsNone(job.poll())
            self.assertLess(time.monotonic(), deadline, "the job did not start")
            time.sleep(0.05)
        job.kill()
        job.wait(timeout=20)
        self.nothing_left()


if __name__ == "__main__":
    main()
