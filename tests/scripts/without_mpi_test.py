"""Runs the example of an allreduce without MPI: as processes of this host, and on emulated hosts."""

import contextlib
import os
import random
import re
import socket
import subprocess
import unittest

from emulated import TIME_LIMIT_S, EmulateTest, main, shape

EXAMPLE = os.environ["POLYRING_EXAMPLE"]
USAGE = 6


def free_port():
    """One that nobody uses, and that is no connection's own meanwhile: Linux gives those from 32768 on."""
    while True:
        port = random.randrange(20000, 32000)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


def place(rank, size, port, address="127.0.0.1"):
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": address, "MASTER_PORT": str(port)}


class OneHost(unittest.TestCase):
    def start(self, variables, command=(EXAMPLE,)):
        job = subprocess.Popen(
            command, env=os.environ | variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.addCleanup(job.communicate)
        self.addCleanup(job.kill)
        return job

    def end(self, job):
        output, errors = job.communicate(timeout=TIME_LIMIT_S)
        return job.returncode, output, errors

    def test_it_knows_neither_mpi_nor_the_prober(self):
        needed = subprocess.run(["ldd", EXAMPLE], capture_output=True, text=True, check=True).stdout
        self.assertIn("libfmt", needed)
        for library in ("mpi", "hwloc", "pugixml", "gloo", "ucp"):
            self.assertNotIn(library, needed)

    def test_sums_between_processes(self):
        for size in (1, 3):
            port = free_port()
            for code, output, errors in map(self.end, [self.start(place(rank, size, port)) for rank in range(size)]):
                self.assertEqual((code, errors), (0, ""))
                self.assertRegex(output, rf"rank \d of {size}: 1 hosts over .*, 0 of 1000000 sums wrong")

    def test_what_cannot_be(self):
        for variables, said in (
            (place(3, 3, 4711), "there is no rank 3 of 3"),
            (place(0, 0, 4711), "there is no rank 0 of 0"),
            (place(0, 2, "x"), "'127.0.0.1:x' is not an address"),
        ):
            code, output, errors = self.end(self.start(variables))
            self.assertEqual((code, output), (USAGE, ""))
            self.assertRegex(errors, rf"^allreduce: {re.escape(said)}.*\n$")


class EmulatedHosts(EmulateTest):
    def test_sums_between_hosts(self):
        for hosts, ranks, over in ((shape(2, 2), 4, "shared memory and TCP"), (shape(3, 1), 3, "TCP")):
            with self.subTest(hosts=hosts):
                script = f"""export RANK=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} WORLD_SIZE={ranks}
                    export MASTER_ADDR=node0 MASTER_PORT=4711; exec {EXAMPLE}"""
                lines = sorted(self.succeed(hosts, "sh", "-c", script).splitlines())
                self.assertEqual(
                    lines,
                    [f"rank {r} of {ranks}: {hosts[1]} hosts over {over}, 0 of 1000000 sums wrong" for r in range(ranks)],
                )


if __name__ == "__main__":
    main()
