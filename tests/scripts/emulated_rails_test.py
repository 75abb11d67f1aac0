"""Hosts with several links, by scripts/emulate --rails: who reaches whom by which, and what polyring accept says of one that is
slow or dead. Skipped where namespaces are not permitted.
"""

import json

from emulated import PROGRAM, EmulateTest, main, shape

BELOW, INCONCLUSIVE = 8, 9
TWO_RAILS = ("--rails", "2", "--mpi-rails", "1")


class EmulatedRails(EmulateTest):
    def judged(self, *fault, code=BELOW):
        """Subjects and verdicts of the check `rails` on three hosts."""
        path = self.folder / "accept.json"
        path.unlink(missing_ok=True)
        words = ("accept", "--checks", "rails", "--attempts", "1", "-J", path)
        # So slow that a busy machine has the time for it, too.
        ended, output, errors = self.run_job(shape(3, 1, "50mbit", *TWO_RAILS, *fault), PROGRAM, *words)
        self.assertEqual(ended, code, output + errors)
        self.rows = {row["subject"]: row for row in json.loads(path.read_text())["rows"]}
        return {subject: row["verdict"] for subject, row in self.rows.items()}

    def test_each_rail_has_a_subnet_of_its_own(self):
        script = "for i in eth0 eth1 eth2; do ip -4 -o address show dev $i | grep -o '10[.0-9/]*' | head -n 1; done"
        output = self.succeed(shape(2, 1, "200mbit", "--rails", "3"), "sh", "-c", script)
        self.assertEqual(sorted(output.split()), [f"10.{rail}.0.{host}/16" for rail in (77, 78, 79) for host in (1, 2)])

    def test_what_mpi_is_told(self):
        told = {}
        for options in (("--rails", "2"), TWO_RAILS, ()):
            output = self.succeed(shape(1, 1, "200mbit", *options), "env")
            told[options] = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
        variables = [[of.get(name) for name in ("POLYRING_EMULATED_RAILS", "UCX_NET_DEVICES")] for of in told.values()]
        self.assertEqual(variables, [["2", None], ["1", "eth0"], [None, None]])
        self.assertIn("at 200mbit on each of 2 rails, MPI on the first 1, TCP", told[TWO_RAILS]["POLYRING_EMULATED"])
        if "openmpi" in self.mpi:
            subnets = [of["OMPI_MCA_btl_tcp_if_include"] for of in told.values()]
            self.assertEqual(subnets, ["10.77.0.0/16,10.78.0.0/16", "10.77.0.0/16", "10.77.0.0/16"])

    def test_what_an_mpi_is_told_that_the_command_starts(self):
        self.mpi = ["--mpi", "none"]
        variables = ("OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "UCX_NET_DEVICES")
        output = self.succeed(shape(2, 1, "200mbit", "--rails", "3", "--mpi-rails", "2"), "printenv", *variables)
        self.assertEqual(output.split(), ["10.77.0.0/16,10.78.0.0/16", "10.77.0.0/16", "eth0,eth1"])

    def test_the_bound_is_of_the_rails_that_mpi_uses(self):
        bounds = []
        for options in (("--rails", "2"), TWO_RAILS):
            result = self.allreduce(shape(2, 1, "200mbit", *options), "-b", "64K", "-e", "64K", "-n", "2", "--algorithm", "ring")
            self.assertEqual({row["wrong"] for row in result["rows"]}, {0})
            bounds.append(result["rows"][0]["bound_us"])
        head_start = 65536 / 25 - bounds[1]
        self.assertAlmostEqual(bounds[0], 65536 / 50 - head_start)

    def test_mpi_sends_by_all_rails_or_by_the_first(self):
        script = """"$@" >&2; [ $(hostname) = node1 ] && cat /sys/class/net/eth[01]/statistics/tx_bytes || true"""
        words = ("allreduce", "-b", "1M", "-e", "1M", "-n", "2", "--algorithm", "mpi", "--timeout", "60")
        for options, sends in (((), [True, True]), (("--mpi-rails", "1"), [True, False])):
            with self.subTest(options=options):
                output = self.succeed(shape(2, 1, "200mbit", "--rails", "2", *options), "sh", "-c", script, "sh", PROGRAM, *words)
                self.assertEqual([int(sent) > 500_000 for sent in output.split()], sends, output)

    def test_accept_passes_two_good_rails(self):
        path = self.folder / "accept.json"
        code, output, errors = self.run_job(shape(3, 1, "50mbit", *TWO_RAILS), PROGRAM, "accept", "--checks", "rails", "-J", path)
        rows = json.loads(path.read_text())["rows"]
        self.assertEqual({row["subject"] for row in rows}, {"eth0", "eth1"}, output + errors)
        # On a busy machine it may not be sure.
        verdicts = {row["verdict"] for row in rows}
        self.assertIn((verdicts == {"pass"}, code), ((True, 0), (False, INCONCLUSIVE)), output)
        self.assertLessEqual(verdicts, {"pass", "inconclusive"})

    def test_accept_names_the_host_of_a_slow_rail(self):
        verdicts = self.judged("--slow-rail", "1/1:10mbit")
        self.assertEqual((verdicts["eth1"], verdicts["eth1 of node1"]), ("fail", "fail"))
        self.assertIn("75 % of the median of the other rails", self.rows["eth1"]["why"])
        self.assertEqual(set(verdicts), {"eth0", "eth1", "eth1 of node1"})

    def test_accept_names_the_host_of_a_dead_rail(self):
        for how, says in (("down", "It is down or has no address, and 2 of 3 hosts have one there."),
                          ("silent", "This host and the others cannot reach each other over this rail: no answer.")):
            with self.subTest(how=how):
                verdicts = self.judged("--dead-rail", f"1/1:{how}")
                self.assertEqual({subject for subject in verdicts if " of " in subject}, {"eth1 of node1"})
                self.assertEqual(verdicts["eth1 of node1"], "fail")
                self.assertEqual(self.rows["eth1 of node1"]["why"], says)
                self.assertEqual(len(self.rows["eth1"]["hosts"]), 2)

    def test_accept_shows_a_rail_that_is_down_everywhere(self):
        dead = [word for host in range(3) for word in ("--dead-rail", f"{host}/1:down")]
        self.assertEqual(self.judged(*dead, code=INCONCLUSIVE), {"eth1": "shown", "": "missing"})
        self.assertEqual(self.rows["eth1"]["why"], "It is down on all hosts.")


if __name__ == "__main__":
    main()
