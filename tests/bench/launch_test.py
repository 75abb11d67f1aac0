"""polyring launch: with a remote shell that plays hosts with all kinds of faults, a srun that is none, and for real on
this host. Either MPI."""

import json
import os
import pathlib
import shutil
import signal
import sys
import time
import xml.etree.ElementTree as xml

from hosts import fabric
from job import START_S, ranks_below
from launching import OPEN_MPI, SRUN, LaunchTest
from program import MPIEXEC, NOT_AVAILABLE, TIME_LIMIT_S, TIMEOUT, USAGE, main

BELOW, MPI = 8, 10
HANGS = "exec sleep 1000"
ANSWERED = ("-T", "6")  # a time in which hosts that answer do so on a busy machine, too


class Commands(LaunchTest):
    def test_open_mpi(self):
        command, rankfile = self.dry("-H", "node0,noisy1")
        self.assertEqual(
            command,
            "mpirun \\\n  --host node0:4,noisy1:4 \\\n  -n 8 \\\n  --rankfile polyring.rankfile \\\n"
            f"  --mca plm_rsh_agent {self.rsh} \\\n  ./train -x\n",
        )
        # A minsky has two packages of ten cores, and two GPUs at each.
        ranks = [f"rank {4 * host + i}={name} slot={slot}\n" for host, name in enumerate(("node0", "noisy1"))
                 for i, slot in enumerate(("0-4", "5-9", "10-14", "15-19"))]
        self.assertEqual(rankfile, "".join(ranks))

    def test_another_launcher(self):
        self.launcher('printf "HYDRA build details:\\n    Version:   4.0.2\\n"; exit')
        command, hostfile = self.dry("-H", "node0,node1", "-n", 6, "--launcher", self.bin / "mpirun")
        self.assertIn(f"{self.bin}/mpirun \\\n  -f polyring.rankfile \\\n  -n 6 \\\n", command)
        self.assertIn("-launcher-exec", command)
        self.assertEqual(hostfile, "node0:3\nnode1:3\n")

    def test_a_hostfile(self):
        (self.folder / "hosts").write_text("node0 slots=4 # first\nnode1:2\n", encoding="utf-8")
        command, _ = self.dry("--hostfile", "hosts")
        self.assertIn("--host node0:4,node1:2 \\\n  -n 6 ", command)

    def test_ranks(self):
        self.assertIn("--host node0:2,node1:2 \\\n  -n 4", self.dry("-H", "node[0-1]", "-n", 4)[0])
        self.assertIn("--host node0:4 \\\n  -n 4", self.dry("-H", "node0:4,node1", "-n", 4)[0])
        self.assertIn("--host node0:3,node1:3", self.dry("-H", "node[0-1]", "--ranks-per-host", 3)[0])
        shared, rankfile = self.dry("-H", "node0:40", "--oversubscribe")
        self.assertIn("--map-by slot --bind-to none --oversubscribe", shared)
        self.assertEqual(rankfile, "")

    def test_more_words_for_the_launcher(self):
        command, _ = self.dry("-H", "node0", "--launcher-args", "--mca btl tcp,self")
        self.assertIn("  --mca btl tcp,self \\\n  ./train -x\n", command)

    def test_polyring_is_the_one_that_was_asked(self):
        if not OPEN_MPI:
            self.skipTest("this build is not Open MPI's")
        command, _ = self.dry("-H", "node0", program=("polyring", "allreduce", "-b", "8"))
        self.assertTrue(command.endswith(f"  {self.fake} allreduce -b 8\n"), command)

    def test_rankfiles_are_kept(self):
        names = []
        for hosts in ("node0", "node1", "node0"):
            ran = self.launch("--polyring", self.fake, "--dry-run", "-H", hosts, "--", "./train")
            names.append(ran.stdout.split("--rankfile ")[1].split()[0])
        self.assertEqual(names, ["polyring.rankfile", "polyring.rankfile.1", "polyring.rankfile"])
        self.assertIn("=node0 ", (self.folder / "polyring.rankfile").read_text(encoding="utf-8"))
        self.assertIn("=node1 ", (self.folder / "polyring.rankfile.1").read_text(encoding="utf-8"))

    def test_a_rankfile_that_others_may_change_is_not_used(self):
        words = ("--polyring", self.fake, "--dry-run", "-H", "node0", "--", "./train")
        self.launch(*words)
        rankfile = self.folder / "polyring.rankfile"
        rankfile.chmod(0o666)
        self.assertIn("--rankfile polyring.rankfile.1 ", self.launch(*words).stdout)
        rankfile.rename(self.folder / "theirs")
        rankfile.symlink_to(self.folder / "theirs")
        (self.folder / "theirs").chmod(0o644)
        self.assertIn("--rankfile polyring.rankfile.2 ", self.launch(*words).stdout)

    def test_hosts_follow_the_fabric(self):
        (self.folder / "net.out").write_text(fabric(2, 2), encoding="utf-8")
        words = ("--fabric", "net.out", "-H", "node2,node0,stranger,node3,node1:2")
        command, rankfile = self.dry(*words)
        self.assertIn("--host node2:4,node3:4,node0:4,node1:2,stranger:4 \\\n  -n 18 ", command)
        hosts = ["node2"] * 4 + ["node3"] * 4 + ["node0"] * 4 + ["node1"] * 2 + ["stranger"] * 4
        self.assertEqual([line.split()[1] for line in rankfile.splitlines()], [f"{i}={host}" for i, host in enumerate(hosts)])
        ran = self.launch("--polyring", self.fake, "--dry-run", *words, "--", "./train")
        self.assertIn("\nleaf switches\n  leaf1: node2 and node3\n  leaf0: node0 and node1\n", ran.stderr)
        self.assertIn("\n  not in 'net.out': stranger; counted after the others\n", ran.stderr)

    def test_what_is_shown(self):
        ran = self.launch("--polyring", self.fake, "--dry-run", "-H", "node[0-1]", "--", "./train")
        self.assertRegex(ran.stderr, r"(?m)^node1 +4-7 +4 +5$")
        self.assertIn("Written to polyring.rankfile", ran.stderr)


class Faults(LaunchTest):
    def test_unreachable(self):
        self.fault(NOT_AVAILABLE, "-H", "node0,dead1",
                   naming="cannot reach dead1: ssh: connect to host dead1 port 22: Connection refused")

    def test_rude_words(self):
        self.fault(NOT_AVAILABLE, "-H", "rude1", naming="cannot reach rude1: ssh: ␛]0;title␇␛[2Jgone; mend")

    def test_endless_words(self):
        self.fault(NOT_AVAILABLE, "-H", "node0,endless1", naming="cannot reach endless1: it printed more than 16MiB, and went on;")

    def test_silent(self):
        self.fault(TIMEOUT, "-H", "node0,hang1,hang2", *ANSWERED, naming="no answer from hang1 and hang2 within 6.00 s: a firewall")
        self.fault(TIMEOUT, "-H", "node0,busy1", *ANSWERED, naming="probe --format json' did not end within 6.00 s on busy1")

    def test_polyring(self):
        self.fault(NOT_AVAILABLE, "-H", "node0,none1", naming="polyring: not found; install the same build there")
        self.fault(USAGE, "-H", "localhost,127.0.0.1",
                   naming="localhost and 127.0.0.1 are one machine; name it once")
        self.fault(NOT_AVAILABLE, "-H", "node0,old1", naming="old1 has polyring 0.0.1 (old), but this is polyring ")

    def test_mpi(self):
        self.fault(NOT_AVAILABLE, "-H", "node0,bare1", naming="bare1 has no MPI: 'mpirun --version' says")
        self.fault(MPI, "-H", "node0,other1", naming="other1 has Open MPI 1.2.3, but the ranks are started by Open MPI 4.1.4")

    def test_hosts_that_are_not_alike(self):
        words = ("-H", "node0,few1,node2")
        self.fault(USAGE, *words, naming="the hosts differ: few1 has 3 GPUs, not 4; leave the odd ones out")
        command, _ = self.dry(*words, "--allow-different")
        self.assertIn("--host node0:4,few1:3,node2:4 \\\n  -n 11", command)

    def test_more_ranks_than_gpus(self):
        self.fault(USAGE, "-H", "node0,node1", "-n", 9, naming="-n 9 are more ranks than the 8 GPUs of 2 hosts")
        self.fault(USAGE, "-H", "node0:5", naming="5 ranks are asked for on node0, which has 4 GPUs")

    def test_several_at_once(self):
        self.fault(NOT_AVAILABLE, "-H", "dead1,node0,hang1,old1,other1", *ANSWERED,
                   naming=["cannot reach dead1", "no answer from hang1", "old1 has polyring", "other1 has Open MPI 1.2.3"])

    def test_the_wrong_fabric(self):
        (self.folder / "net.out").write_text(fabric(2, 2), encoding="utf-8")
        self.fault(USAGE, "--fabric", "net.out", "-H", "strange1,strange2", naming="none of the hosts (strange1 and strange2) is in 'net.out'")
        self.refused("launch", "--fabric", "missing.out", "-H", "a", "--", "x", naming="missing.out")

    def test_no_hosts(self):
        self.fault(USAGE, naming="there are no hosts to run './train' on")
        self.refused("launch", "-H", "node0", naming="name the program")
        self.refused("launch", "-H", "a", "--hostfile", "b", "--", "x", naming="--host")
        self.refused("launch", "--hostfile", "missing", "--", "x", naming="missing")
        self.refused("launch", "-H", "a:x", "--", "x", naming="a:x")
        for time_limit in ("0", "-1", "x"):
            self.refused("launch", "-H", "a", "-T", time_limit, "--", "x", naming="--timeout")
        for ranks in ("0", "-1", "x"):
            self.refused("launch", "-H", "a", "-n", ranks, "--", "x", naming="--ranks")

    def test_no_launcher(self):
        self.fault(NOT_AVAILABLE, "-H", "node0", "--launcher", "no-such-mpirun", naming="'no-such-mpirun --version' fails")
        self.launcher('echo "bash 5"; exit')
        self.fault(USAGE, "-H", "node0", naming="no launcher that is known")

    def test_the_launcher_of_another_mpi(self):
        if OPEN_MPI:
            self.launcher('printf "HYDRA build details:\\n    Version:   4.0.2\\n"; exit')
        ran = self.launch("-H", "node0", "--", "polyring", "allreduce")
        self.assertEqual(ran.returncode, MPI, ran.stderr)
        self.assertIn("each rank would run alone", ran.stderr)

    def test_an_unwritable_rankfile(self):
        self.fault(USAGE, "-H", "node0", "--rankfile", "missing/ranks", naming="missing/ranks")

    def test_a_trial_run_that_hangs(self):
        self.launcher(f'exec {shutil.which(MPIEXEC)} --version', HANGS)
        ran = self.launch("--polyring", self.fake, "-H", "node0", "-T", "3", "--", "./train")
        self.assertEqual(ran.returncode, TIMEOUT, ran.stderr)
        self.assertIn("polyring: a trial run of all ranks hung for 12.0 s", ran.stderr)
        self.assertIn("firewall", ran.stderr)

    def test_a_trial_run_that_fails(self):
        self.launcher(f'exec {shutil.which(MPIEXEC)} --version', 'echo "the words of mpirun" >&2; exit 213')
        ran = self.launch("--polyring", self.fake, "-H", "node0", "--", "./train")
        self.assertEqual(ran.returncode, MPI, ran.stderr)
        self.assertIn("\nthe words of mpirun\npolyring: a trial run of all ranks ended with exit code 213;", ran.stderr)

    def test_a_trial_run_that_prints_a_lot(self):
        run = 'yes "a line" | head -n 100000 >&2; printf "\\033[2Jthe end\\n" >&2; exit 213'
        self.launcher(f'exec {shutil.which(MPIEXEC)} --version', run)
        ran = self.launch("--polyring", self.fake, "-H", "node0", "--", "./train")
        self.assertEqual(ran.returncode, MPI, ran.stderr)
        self.assertIn("a line\n␛[2Jthe end\npolyring: a trial run", ran.stderr)
        self.assertLess(len(ran.stderr), 20_000)


class Slurm(LaunchTest):
    ALLOCATION = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[0-1]"}
    TASKS = {**ALLOCATION, "SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "2(x2)"}

    def srun(self, run="exit 9"):
        self.script("srun", SRUN.format(run=run))

    def test_its_hosts(self):
        self.srun()
        command, _ = self.dry(variables=self.ALLOCATION, shell=False)
        self.assertIn("mpirun \\\n  --host node0:4,node1:4 \\\n  -n 8", command)
        command, _ = self.dry(variables=self.TASKS, shell=False)
        self.assertIn("--host node0:2,node1:2", command)

    def test_srun_as_the_launcher(self):
        self.srun()
        command, ranks = self.dry("--launcher", "srun", variables=self.TASKS, shell=False)
        self.assertIn("srun \\\n  --ntasks=4 --nodes=2 --ntasks-per-node=2 --distribution=block --cpu-bind=cores", command)
        self.assertEqual(ranks, "")
        command, ranks = self.dry("--launcher", "srun", "-H", "node1,node0", variables=self.ALLOCATION, shell=False)
        self.assertTrue(command.startswith("SLURM_HOSTFILE=polyring.rankfile srun \\\n  --ntasks=8 --distribution=arbitrary"))
        self.assertEqual(ranks, "node1\n" * 4 + "node0\n" * 4)

    def test_another_order_than_the_allocation_s(self):
        self.srun()
        (self.folder / "net.out").write_text(fabric(2, 2), encoding="utf-8")
        words = ("--launcher", "srun", "--fabric", "net.out")
        command, ranks = self.dry(*words, variables={"SLURM_JOB_NODELIST": "node[0-3]"}, shell=False)
        self.assertIn("--distribution=block", command)
        self.assertEqual(ranks, "")
        # The leaf of which all hosts are there comes first.
        command, ranks = self.dry(*words, variables={"SLURM_JOB_NODELIST": "node[1-3]"}, shell=False)
        self.assertIn("--distribution=arbitrary", command)
        self.assertEqual(ranks, "node2\n" * 4 + "node3\n" * 4 + "node1\n" * 4)

    def test_a_host_that_srun_does_not_reach(self):
        self.script("srun", SRUN.format(run="exit 9").replace("--nodelist=*)", "--nodelist=node1) echo 'srun: error: Unable to create step' >&2; exit 1 ;;\n    --nodelist=*)"))
        self.fault(NOT_AVAILABLE, variables=self.ALLOCATION, shell=False,
                   naming="cannot reach node1: srun: error: Unable to create step")

    def test_it_runs_and_gets_the_file(self):
        self.srun('cat "$SLURM_HOSTFILE"; echo "$@"; exit 3')
        ran = self.launch("--polyring", self.fake, "--launcher", "srun", "-H", "node1,node0", "-n", 2, "--no-trial", "--",
                          "./train", variables=self.ALLOCATION, shell=False)
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertEqual(ran.stdout, "node1\nnode0\n./train\n")

    def test_ranks_that_do_not_find_each_other(self):
        # What srun does where it has no plugin for the program's MPI.
        self.srun('rank=0\nwhile [ $rank -lt $tasks ]; do SLURM_PROCID=$rank "$@" || code=$?; rank=$((rank + 1)); done\nexit ${code:-0}')
        ran = self.launch("--polyring", self.fake, "--launcher", "srun", "-n", 2, "--", "./train",
                          variables={"SLURM_JOB_NODELIST": "node[0-1]"}, shell=False)
        self.assertEqual(ran.returncode, MPI, ran.stderr)
        self.assertEqual(ran.stderr.count("polyring: srun has started 2 processes, but each of them runs alone"), 1, ran.stderr)
        self.assertIn("srun --mpi=pmix", ran.stderr)


class ForReal(LaunchTest):
    """On this host, by the MPI that the program was built with."""

    def real(self, *words):
        return self.launch("--launcher", MPIEXEC, "-H", "localhost:2", "--oversubscribe", *words, shell=False)

    def test_an_allreduce(self):
        ran = self.real("--", "polyring", "allreduce", "-b", "1K", "-e", "1K", "-n", "2", "--algorithm", "ring", "-J", "out.json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stderr, r"\n  \S*polyring allreduce -b 1K -e 1K ")
        rows = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))["rows"]
        self.assertEqual({row["ranks"] for row in rows}, {2})
        self.assertNotIn("launch", ran.stdout)

    def test_its_exit_code(self):
        self.assertEqual(self.real("--no-trial", "--", "sh", "-c", "exit 3").returncode, 3)

    def test_an_interrupt_ends_all(self):
        mark = str(self.folder / "mark")
        job = self.started("--launcher", MPIEXEC, "-H", "localhost:2", "--oversubscribe", "--no-trial", "--",
                           sys.executable, "-c", "import time; print('began', flush=True); time.sleep(1000)", mark, shell=False)
        self.addCleanup(lambda: job.poll() is None and job.kill())
        began = job.stdout.readline() + job.stdout.readline()  # of two ranks, whose lines mpirun may mix
        self.assertEqual(sorted(began), sorted(2 * "began\n"))
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=30)
        self.assertNotEqual(job.returncode, 0)
        deadline = time.monotonic() + 10
        while self.running(mark) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(self.running(mark), [])

    def accepting(self):
        """A job whose journal has rows, and its ranks."""
        output = self.folder / "accept.json"
        job = self.started("--launcher", MPIEXEC, "-H", "localhost:2", "--oversubscribe", "--no-trial", "--",
                           "polyring", "accept", "-J", output, f"--junit={self.folder / 'a.xml'}", shell=False)
        self.addCleanup(lambda: job.poll() is None and job.kill())
        journal = pathlib.Path(f"{output}.part")
        deadline = time.monotonic() + START_S
        while not (journal.exists() and '"row"' in journal.read_text(encoding="utf-8")):
            self.assertIsNone(job.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        ranks = ranks_below(job.pid)
        self.assertEqual(set(ranks), {0, 1})
        return job, ranks

    def test_a_verdict_where_rank_0_was_killed(self):
        job, ranks = self.accepting()
        os.kill(ranks[0], signal.SIGKILL)
        out, errors = job.communicate(timeout=TIME_LIMIT_S)
        self.assertRegex(out, r"(?m)^ERROR  [a-z.]+: The job ended while this ran: ", out)
        self.assertIn("MISSING  repeatability: The job ended before this ran.", out)
        if "BAD TERMINATION" in out + errors:  # MPICH's mpiexec kills all ranks at once
            return
        self.assertEqual(job.returncode, BELOW)
        self.assertIn("FAIL  ranks.alive, rank 0 on ", out)
        suites = {suite.get("name"): suite for suite in xml.parse(self.folder / "a.xml").getroot()}
        self.assertEqual(suites["ranks.alive"].get("failures"), "1")

    def test_a_verdict_where_all_ranks_were_killed(self):
        job, ranks = self.accepting()
        for process in ranks.values():
            os.kill(process, signal.SIGKILL)
        out, _ = job.communicate(timeout=TIME_LIMIT_S)
        self.assertNotEqual(job.returncode, 0)
        self.assertRegex(out, r"(?m)^ERROR  [a-z.]+: The job ended while this ran: ", out)
        self.assertIn("MISSING  repeatability: The job ended before this ran.", out)
        self.assertRegex(out, r"(?m)^(ERROR|FAIL): ")
        self.assertEqual(out.count("MISSING  repeatability"), 1)
        suites = {suite.get("name"): suite for suite in xml.parse(self.folder / "a.xml").getroot()}
        self.assertEqual(suites["repeatability"].get("errors"), "1")

    @staticmethod
    def running(mark):
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as words:
                    if mark.encode() in words.read():
                        found.append(int(name))
            except OSError:
                continue  # ended meanwhile
        return found


if __name__ == "__main__":
    main()
