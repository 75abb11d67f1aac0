"""Hosts of one name, and several names on one kernel: what is a host of its own, under mpiexec.

A host is played by a process that sees another boot of the kernel, or another name. Both need a root's rights.
"""

import json
import socket
import subprocess
import unittest

from program import MPIEXEC, TIME_LIMIT_S, PROGRAM, ProgramTest, main

BOOT = "/proc/sys/kernel/random/boot_id"
OTHER_BOOT = ["unshare", "--mount", "sh", "-c", f'mount --bind "$1" {BOOT} || exit 77; shift; exec "$@"', "sh"]
OTHER_NAME = ["unshare", "--uts", "sh", "-c", 'hostname "$1" || exit 77; shift; exec "$@"', "sh"]
FIRST = [f"{name}=0" for name in ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")]  # as of a host of its own
SIZE = 1 << 16


class SameNames(ProgramTest):
    def setUp(self):
        super().setUp()
        for wrapper, argument in ((OTHER_BOOT, self.boot("a")), (OTHER_NAME, "other")):
            tried = subprocess.run([*wrapper, argument, "cat", BOOT], capture_output=True, text=True, check=False)
            if tried.returncode != 0:
                raise unittest.SkipTest(tried.stderr.strip() or f"{wrapper[0]} is not permitted")
        self.name = socket.gethostname()

    def boot(self, letter):
        path = self.folder / f"boot-{letter}"
        path.write_text(f"{8 * letter}-0000-4000-8000-000000000000\n", encoding="utf-8")
        return path

    def run_hosts(self, *words, hosts):
        """One rank on each of the hosts: the words that make it, and variables."""
        line = []
        for around, variables in hosts:
            line += [":" if line else MPIEXEC, "-n", "1", *around, "env", *FIRST, *variables, PROGRAM, *words]
        ran = subprocess.run(
            [str(word) for word in line], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=TIME_LIMIT_S,
        )
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def other_boots(self, *letters, variables=()):
        return [([*OTHER_BOOT, self.boot(letter)], variables) for letter in letters]

    def allreduce(self, hosts):
        (self.folder / "out.json").unlink(missing_ok=True)
        words = ("allreduce", "-b", SIZE, "-e", SIZE, "-n", "20", "--algorithm", "ring", "-J", "out.json")
        said = self.run_hosts(*words, hosts=hosts)
        self.assertIn(f"{len(hosts)} ranks on ", said)
        return json.loads((self.folder / "out.json").read_text(encoding="utf-8"))

    def test_two_kernels_are_two_hosts(self):
        result = self.allreduce(self.other_boots("a", "b", "a"))
        names = [f"{self.name}#1", f"{self.name}#2", f"{self.name}#1"]
        self.assertEqual([place["host"] for place in result["placement"]], names)
        self.assertEqual({row["nodes"] for row in result["rows"]}, {2})
        for row in result["rows"]:  # MPICH on UCX may add how long its messages are
            self.assertRegex(row["implementation"], r"^polyring over shared memory and MPI( in messages of \w+)?$")
        self.assertEqual(sum(host["count"] for host in result["machine"]["hosts"]), 2)

    def test_one_kernel_is_one_host(self):
        result = self.allreduce(self.other_boots("a", "a"))
        self.assertEqual([place["host"] for place in result["placement"]], [self.name, self.name])
        self.assertEqual({row["nodes"] for row in result["rows"]}, {1})

    def test_two_names_on_one_kernel_are_two_hosts(self):
        result = self.allreduce([([*OTHER_NAME, name], ()) for name in ("red", "blue", "red")])
        self.assertEqual([place["host"] for place in result["placement"]], ["red", "blue", "red"])
        self.assertEqual({row["nodes"] for row in result["rows"]}, {2})

    def test_probe_tells_them_apart(self):
        cluster = json.loads(self.run_hosts("probe", "--format", "json", hosts=self.other_boots("a", "b")))
        members = [member["name"] for host in cluster["hosts"] for member in host["members"]]
        self.assertEqual(members, [f"{self.name}#1", f"{self.name}#2"])
        self.assertNotIn("unprobed", cluster)

    def unlike(self, *rates):
        """Hosts whose links have these rates, as far as they know."""
        return [([*OTHER_NAME, f"n{i}"], ("POLYRING_SOURCE=emulated", f"POLYRING_EMULATED_RATE={rate}"))
                for i, rate in enumerate(rates)]

    def test_the_bound_is_of_the_slowest_host(self):
        result = self.allreduce(self.unlike("80Gb/s", "80Gb/s", "40Gb/s"))
        rates = [(host["count"], host["nics"][0]["ports"][0]["GBps"]) for host in result["machine"]["hosts"]]
        self.assertEqual(rates, [(2, 10), (1, 5)])
        for row in result["rows"]:
            self.assertAlmostEqual(row["bound_us"], SIZE / 5e3)

    def test_a_bound_that_is_beaten_is_none(self):
        # A link of which nobody knows: messages do not take it.
        result = self.allreduce(self.unlike("1Mb/s", "1Mb/s"))
        for row in result["rows"]:
            self.assertEqual((row["bound_us"], row["bound_fraction"]), (None, None))
        self.assertTrue(any("took less than the time that the links allow" in note for note in result["notes"]), result["notes"])


if __name__ == "__main__":
    main()
