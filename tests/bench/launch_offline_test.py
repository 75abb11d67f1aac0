"""polyring launch --dry-run --offline: a command for hosts of which only the list is known."""

from hosts import fabric
from launching import SRUN, LaunchTest
from program import USAGE, main


class Offline(LaunchTest):
    """Nothing is started but the launcher here."""

    def setUp(self):
        super().setUp()
        for name in ("rsh", "polyring", "ssh"):
            self.script(name, f'#!/bin/sh\necho "$0" >> {self.folder}/asked\n')

    def dry(self, *words, **more):
        found = super().dry("--offline", *words, **more)
        self.assertFalse((self.folder / "asked").exists())
        return found

    def test_open_mpi(self):
        command, rankfile = self.dry("-H", "node0:4,hang1:2", shell=False)
        self.assertEqual(command, "mpirun \\\n  --host node0:4,hang1:2 \\\n  -n 6 \\\n  --map-by slot --bind-to none \\\n  ./train -x\n")
        self.assertEqual(rankfile, "")
        self.assertIn("--host node0:4 \\\n  -n 4", self.dry("-H", "node0:4,node1:2", "-n", 4)[0])
        self.assertIn("--host node0:3,node1:1 ", self.dry("-H", "node0,node1:1", "--ranks-per-host", 3)[0])
        self.assertIn("--map-by slot --bind-to none --oversubscribe", self.dry("-H", "node0:4", "-n", 9, "--oversubscribe")[0])

    def test_mpich(self):
        self.launcher('printf "HYDRA build details:\\n    Version:   4.0.2\\n"; exit')
        command, hostfile = self.dry("-H", "node0:4,node1:2")
        self.assertIn("mpirun \\\n  -f polyring.rankfile \\\n  -n 6 \\\n  -bind-to none \\\n", command)
        self.assertEqual(hostfile, "node0:4\nnode1:2\n")

    def test_slurm(self):
        self.script("srun", SRUN.format(run="exit 9"))
        tasks = {"SLURM_JOB_NODELIST": "node[0-1]", "SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "2(x2)"}
        command, _ = self.dry("--launcher", "srun", variables=tasks, shell=False)
        self.assertIn("srun \\\n  --ntasks=4 --nodes=2 --ntasks-per-node=2 --distribution=block --cpu-bind=none", command)

    def test_hosts_follow_the_fabric(self):
        (self.folder / "net.out").write_text(fabric(2, 2), encoding="utf-8")
        command, _ = self.dry("--fabric", "net.out", "-H", "node[2,0,3]:4")
        self.assertIn("--host node2:4,node3:4,node0:4 ", command)

    def test_what_is_not_known_is_said(self):
        ran = self.launch("--offline", "--dry-run", "-H", "node0:4", "--", "./train")
        self.assertRegex(ran.stderr, r"(?m)^node0 +0-3 +\? +any$")
        self.assertIn("\nnot known, since no host was asked\n  their cores, sockets and GPUs, so ranks are placed by host and not bound\n"
                      "  whether they answer, are equal, and have this polyring and Open MPI 4.1.4\n", ran.stderr)
        self.assertNotIn("Written", ran.stderr)

    def test_refusals(self):
        self.fault(USAGE, "--offline", "--dry-run", "-H", "node0,node1:2,node2", naming="how many ranks node0 and node2 can have is not known "
                   "without asking; list hosts with their ranks, as in node0:4, give --ranks-per-host, or leave --offline out")
        self.fault(USAGE, "--offline", "-H", "node0:4", naming="and so starts nothing; add --dry-run to print the command, or leave --offline out")
        self.fault(USAGE, "--offline", "--dry-run", "-H", "node0:4", "-n", 5, naming="-n 5 are more ranks than the 4 ranks of 1 host")


if __name__ == "__main__":
    main()
