"""probe on small inputs from public reports; their MANIFEST.md says what is right. Skipped without POLYRING_CASES."""

import json
import os
import unittest
from pathlib import Path

from program import ProgramTest, main

CASES = Path(os.environ.get("POLYRING_CASES", "/nonexistent"))


@unittest.skipUnless(CASES.is_dir(), "POLYRING_CASES is not set")
class Cases(ProgramTest):
    def probe(self, *words):
        return self.succeed("probe", *words)

    def matrix(self, *words):
        """Cells by their row and column."""
        lines = self.probe(*words, "--format", "matrix").split("\n\n")[0].splitlines()[1:]
        columns = lines[0].split()
        return {(row.split()[0], column): cell for row in lines[1:] for column, cell in zip(columns, row.split()[1:])}

    def test_c2c_is_the_way_to_nics_where_it_is_wider(self):
        for name in ("t16_gh200_two_nics.xml", "t16b_gh200_gpu_pcie_x1.xml"):
            with self.subTest(name=name):
                words = ("--from", CASES / name)
                document = json.loads(self.probe(*words, "--hosts", 2, "--expect", "--format", "json"))
                rates = {row["algorithm"]: row["busbw_GBps"] for row in document["expected"]["algorithms"]}
                self.assertAlmostEqual(rates["multi-ring"], 97, delta=0.1)
                self.assertNotIn("(pcie)", " ".join(row["busiest"] for row in document["expected"]["algorithms"]))
                cells = self.matrix(*words)
                for nic in ("mlx5_0", "mlx5_1"):
                    self.assertEqual((cells["gpu0", nic], cells[nic, "gpu0"]), ("P2C", "P2C"))

    def test_xgmi_that_the_driver_does_not_measure_is_unknown(self):
        text = self.probe("--sysfs", CASES / "fail_mi308x_cpx_sysfs")
        self.assertIn("its GPUs have NVLinks or xGMI links, which are not known", text)
        self.assertIn("unknown: fail_mi308x_cpx_sysfs: which NVLinks or xGMI links its GPUs have", text)

    def test_hosts_that_differ_are_shown_or_named(self):
        words = ("--from", CASES / "t04_gb300_two_trays_rank5_lost.xml")
        for form in ("matrix", "paths"):
            self.assertRegex(self.probe(*words, "--format", form), r"not shown, as it differs little\n  \S+ has no NVLink between nvswitch0 and gpu1\n")
        self.assertRegex(self.probe(*words), r"has no NVLink between nvswitch0 and gpu1")
        self.assertNotRegex(self.probe(*words, "--expect"), r"\de[+-]\d|\binf\b")

    def test_processors_are_those_of_the_cpu_affinity(self):
        words = ("--from", CASES / "t08_gb200_8nic_sys.txt")
        host = json.loads(self.probe(*words, "--format", "json"))["hosts"][0]
        self.assertEqual([package["model"] for package in host["packages"]], ["CPUs 0-71", "CPUs 72-143"])
        self.assertIn("nothing tells which package mlx5_0, ", self.probe(*words))
        self.assertEqual(self.matrix(*words)["mlx5_2", "mlx5_3"], "PIX")

    def test_ports_that_were_not_recorded_are_unknown(self):
        text = self.probe("--sysfs", CASES / "fail_ib_ports_unrecorded_sysfs", "--hosts", 4, "--expect")
        self.assertRegex(text, r"between hosts +4 +4 +\? ")
        self.assertIn("no ports are known", text)

    def test_other_tools_files_are_refused_with_advice_that_fits(self):
        self.refused("probe", "--from", CASES / "c04_rocm_showtopo.txt", naming="a table of AMD's tools")
        self.refused("probe", "--from", CASES / "c08_graph.xml", naming="NCCL_TOPO_DUMP_FILE")


if __name__ == "__main__":
    main()
