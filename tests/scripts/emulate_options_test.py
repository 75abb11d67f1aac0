"""What scripts/emulate refuses, and how it says so, with or without leave to make namespaces."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import must_run

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
EMULATE = str(ROOT / "scripts/emulate")
FINE = {"--nodes": "4", "--ranks-per-node": "2", "--rate": "200mbit"}
NOT_AVAILABLE = 5
USAGE = 6


def words(**changes):
    """All options that are needed, with these changed, added, or left out where None."""
    options = FINE | {"--" + name.replace("_", "-"): value for name, value in changes.items()}
    return [word for name, value in options.items() if value is not None for word in (name, value)]


class Options(unittest.TestCase):
    def run_script(self, *arguments, before=()):
        return subprocess.run(
            [*before, EMULATE, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )

    def refused(self, ran, code, naming):
        self.assertEqual(ran.returncode, code, ran.stderr)
        self.assertEqual(ran.stdout, "")
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        self.assertIn(naming, ran.stderr)

    def test_bad_values(self):
        for changes, naming in (
            ({"nodes": "0"}, "'0'"), ({"nodes": "201"}, "'201'"), ({"nodes": "-1"}, "'-1'"), ({"nodes": "two"}, "'two'"),
            ({"nodes": None}, "--nodes is missing"), ({"nodes": ""}, "--nodes is missing"),
            ({"ranks_per_node": None}, "--ranks-per-node is missing"), ({"ranks_per_node": "0"}, "'0'"),
            ({"ranks_per_node": "1,2"}, "one per host"), ({"ranks_per_node": "1,2,3,"}, "one per host"),
            ({"ranks_per_node": "1,2,x,1"}, "'x'"), ({"ranks_per_node": "1,,1,1"}, "''"),
            ({"rate": None}, "--rate is missing"), ({"rate": "fast"}, "'fast'"), ({"rate": "200"}, "'200'"),
            ({"rate": "-5mbit"}, "'-5mbit'"), ({"rate": "0mbit"}, "'0mbit'"), ({"rate": "1bit"}, "'1bit'"),
            ({"rate": "200gbit"}, "'200gbit'"),
            ({"racks": "3"}, "divides the 4 hosts"), ({"racks": "0"}, "'0'"), ({"racks": "8"}, "'8'"),
            ({"tcp": ""}, "''"), ({"tcp": "cubic reno"}, "'cubic reno'"), ({"tcp": "../x"}, "'../x'"),
            ({"uplink_rate": "100mbit"}, "no --racks"), ({"racks": "2", "uplink_rate": "slow"}, "--uplink-rate 'slow'"),
            ({"mpi": "lam"}, "openmpi, mpich or none, not 'lam'"), ({"cut_link": "1"}, "belong together"), ({"after": "1"}, "belong together"),
            ({"cut_link": "4", "after": "1"}, "'4'"), ({"cut_link": "1", "after": "soon"}, "'soon'"),
            ({"slow_host": "0"}, "'0' is not of the form 0:100mbit"), ({"slow_host": "4:1mbit"}, "not '4'"),
            ({"slow_host": "0-1:1mbit"}, "not of the form"), ({"slow_host": "x:1mbit"}, "not 'x'"), ({"slow_host": "0:slow"}, "'slow'"),
            ({"slow_host": "0:201mbit"}, "faster than --rate 200mbit"),
            ({"slow_pair": "0:1mbit"}, "'0:1mbit' is not of the form 0-1:100mbit"), ({"slow_pair": "0-1-2:1mbit"}, "not of the form"),
            ({"slow_pair": "0-4:1mbit"}, "not '4'"), ({"slow_pair": "2-2:1mbit"}, "two hosts that differ"),
            ({"slow_pair": "0-1:1gbit"}, "faster than --rate 200mbit"), ({"slow_pair": "0-:1mbit"}, "not ''"),
            ({"racks": "2", "slow_uplink": "0"}, "'0' is not of the form 0:100mbit"), ({"racks": "2", "slow_uplink": "2:1mbit"}, "not '2'"),
            ({"slow_uplink": "0:1mbit"}, "there are no --racks"), ({"racks": "2", "slow_uplink": "0:slow"}, "'slow'"),
            ({"racks": "2", "slow_uplink": "0:201mbit"}, "faster than --uplink-rate, here 200000kbit"),
            ({"nodes": "1", "cut_link": "0", "after": "1"}, "second host"),
            ({"rails": "0"}, "--rails needs a number of rails, 1 to 8, not '0'"), ({"rails": "9"}, "'9'"), ({"rails": "two"}, "'two'"),
            ({"mpi_rails": "2"}, "--mpi-rails needs a number of rails, 1 to 1, not '2'"), ({"rails": "2", "mpi_rails": "0"}, "'0'"),
            ({"rails": "2", "racks": "2"}, "do not go together"),
            ({"slow_rail": "0:1mbit"}, "'0:1mbit' is not of the form 0/1:100mbit"), ({"slow_rail": "0/1/1:1mbit"}, "not of the form"),
            ({"slow_rail": "4/0:1mbit"}, "a host from 0 to 3, not '4'"), ({"slow_rail": "0/1:1mbit"}, "a rail from 0 to 0, of the --rails 1, not '1'"),
            ({"slow_rail": "0/:1mbit"}, "not ''"), ({"slow_rail": "0/0:slow"}, "--slow-rail 'slow' is not a rate"),
            ({"slow_rail": "0/0:1gbit"}, "faster than --rate 200mbit"), ({"dead_rail": "0/0:gone"}, "needs down or silent, not 'gone'"),
            ({"dead_rail": "0/0:down"}, "would let MPI wait for ever"), ({"rails": "2", "dead_rail": "1/1:silent"}, "give --mpi-rails"),
        ):
            with self.subTest(changes=changes):
                self.refused(self.run_script(*words(**changes), "--", "true"), USAGE, naming)

    def test_bad_command_lines(self):
        for arguments, naming in (
            ((*words(), "--slow-pair", "0-1:1mbit", "--slow-pair", "1-0:2mbit", "--", "true"), "--slow-pair names 1-0 twice"),
            ((*words(), "--racks", "2", "--slow-uplink", "1:1mbit", "--slow-uplink", "1:2mbit", "--", "true"), "--slow-uplink names 1 twice"),
            ((*words(), "--slow-rail", "1/0:1mbit", "--slow-rail", "1/0:2mbit", "--", "true"), "--slow-rail names 1/0 twice"),
            ((*words(), "--latency", "1ms", "--", "true"), "'--latency'"), ((*words(), "true"), "'true'"),
            ((*words(), "--"), "no command"), (words(), "no command"), (("--nodes",), "needs a value"),
        ):
            with self.subTest(arguments=arguments):
                self.refused(self.run_script(*arguments), USAGE, naming)

    def test_help_is_the_header(self):
        ran = self.run_script("--help")
        self.assertEqual(ran.returncode, 0)
        self.assertTrue(ran.stdout.startswith("Usage: scripts/emulate"))
        self.assertNotIn("set -euo", ran.stdout)

    def test_without_root(self):
        before = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
        if not os.access(EMULATE, os.X_OK) or subprocess.run([*before, "test", "-x", EMULATE], check=False).returncode:
            self.skipTest("another user cannot reach the sources")
        if not (shutil.which("tc", path="/usr/sbin:/sbin") and shutil.which("ip", path="/usr/bin:/bin:/usr/sbin:/sbin")):
            must_run.skip("emulation", "no iproute2 here")
        self.refused(self.run_script(*words(), "--", "true", before=before), NOT_AVAILABLE, "need root; try: sudo")

    def test_without_leave_for_namespaces(self):
        if os.geteuid() != 0:
            must_run.skip("emulation", "needs root, to give up its rights one by one")
        for right in ("-sys_admin", "-net_admin"):
            with self.subTest(right=right):
                ran = self.run_script(*words(), "--", "true", before=["setpriv", "--bounding-set", right])
                self.refused(ran, NOT_AVAILABLE, "does not permit network namespaces with shaped links (")

    def test_without_iproute2(self):
        hide = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /usr/sbin && exec "$@"', "sh"]
        if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode != 0:
            must_run.skip("emulation", "cannot hide tc here")
        self.refused(self.run_script(*words(), "--", "true", before=hide), NOT_AVAILABLE, "run scripts/setup")


if __name__ == "__main__":
    unittest.main(verbosity=2)
