"""probe --format paths, --expect, --hosts and --gpus, as a user calls them."""

import json
import os
import re
import unittest
from pathlib import Path

from program import ProgramTest, main

TOPOLOGIES = os.environ.get("POLYRING_TOPOLOGIES")
ALGORITHMS = 10


# What nvidia-smi topo -m says of a host, which has no speed but that of NVLinks, and no ports.
MATRIX = """GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity
GPU0\tX\tNV18\tSYS\tPIX\t0-55\t0
GPU1\tNV18\tX\tPIX\tSYS\t56-111\t1
NIC0\tSYS\tPIX\tX\tSYS
NIC1\tPIX\tSYS\tSYS\tX
  NIC0: mlx5_0
  NIC1: mlx5_1
"""


class ProbePaths(ProgramTest):
    def test_table(self):
        text = self.succeed("probe", "--machine", "dgx1-p100", "--format", "paths")
        self.assertRegex(text, r"(?m)^gpu0  gpu1 +NVL +20 +0.6 +gpu0 - gpu1 +direct 1 NVLink of 20.0 GB/s$")
        self.assertRegex(text, r"(?m)^gpu0  gpu5 +NVB +20 +1.2 +gpu0 - gpu1 - gpu5 +no NVLink between them, but two through gpu1")
        self.assertRegex(text, r"(?m)^gpu0  mlx5_0 \* +PIX ")
        self.assertNotIn("expected of an allreduce", text)

    def test_json_has_the_pairs(self):
        document = json.loads(self.succeed("probe", "--machine", "minsky", "--format", "json"))
        self.assertEqual([pair["type"] for pair in document["paths"][0]["gpus"]], ["NVL", "SYS", "SYS", "SYS", "SYS", "NVL"])
        self.assertEqual([pair["to"] for pair in document["paths"][0]["nics"] if pair["nearest"]],
                         ["mlx5_0", "mlx5_0", "mlx5_1", "mlx5_1"])
        self.assertEqual(document["expected"]["bounds"][0]["busbw_GBps"], 57.6)
        self.assertNotIn("algorithms", document["expected"])

    def test_text_ends_with_the_bounds(self):
        text = self.succeed("probe", "--machine", "minsky")
        self.assertIn("4 GPUs of a host share 2 x EDR InfiniBand: 24.2 GB/s", text)
        self.assertNotIn("multi-ring", text)

    def test_expect_simulates_each_algorithm(self):
        text = self.succeed("probe", "--machine", "minsky", "--expect", "--hosts", "4")
        self.assertIn("minsky: 4 hosts, 16 ranks", text)
        self.assertRegex(text, r"(?m)^between hosts +4 +16 +30\.[23] +4 GPUs of a host share 2 x EDR InfiniBand: 24.2 GB/s +modelled$")
        self.assertRegex(text, r"(?m)^multi-ring +\d")
        document = json.loads(self.succeed("probe", "--machine", "minsky", "--expect", "--gpus", "16", "--format", "json"))
        self.assertEqual(document["hosts"][0]["count"], 4)
        self.assertEqual(len(document["expected"]["algorithms"]), ALGORITHMS)
        for row in document["expected"]["algorithms"]:
            self.assertLessEqual(row["bound_fraction"], 1, row)
        part = json.loads(self.succeed("probe", "--machine", "minsky", "--gpus", "2", "--format", "json"))
        self.assertEqual(len(part["hosts"][0]["gpus"]), 2)

    def test_a_matrix_has_nearest_nics_but_no_times(self):
        (self.folder / "node07.txt").write_text(MATRIX, encoding="utf-8")
        paths = self.succeed("probe", "--from", "node07.txt", "--format", "paths")
        self.assertEqual(re.findall(r"(?m)^(gpu\d  mlx5_\d) \*", paths), ["gpu0  mlx5_1", "gpu1  mlx5_0"])
        self.assertRegex(self.succeed("probe", "--from", "node07.txt"), r"(?m)^between many hosts .*unknown: node07: the speed of ")
        remedy = "give it by --assume, "
        plan = self.succeed("plan", "--from", "node07.txt", "--ranks", "4")
        self.assertRegex(plan, r"node07: the speed of .* is unknown: there is no modelled time; " + remedy)
        self.refused("scale", "--from", "node07.txt", "--gpus", "4", "--compute-ms", "100", naming=remedy)
        # Then there is one.
        document = json.loads(self.succeed("probe", "--from", "node07.txt", "--format", "json"))
        for nic in document["hosts"][0]["nics"]:
            self.assertEqual(nic["ports"], [])
            nic["ports"] = [{"number": 1, "up": True, "GBps": 48.5}]
        for link in document["hosts"][0]["links"]:
            link["GBps"] = link["GBps"] or 63
        (self.folder / "node07.json").write_text(json.dumps(document), encoding="utf-8")
        self.assertIn("modelled time", self.succeed("plan", "--from", "node07.json", "--ranks", "4"))
        self.assertTrue(self.succeed("scale", "--from", "node07.json", "--gpus", "4", "--compute-ms", "100"))

    def test_rails_are_spread_over_the_processors(self):
        dgx = ("--machine", "dgx1-v100", "--rails", "2")
        used = "2 of 4 NICs are used: mlx5_0 (processor 0), mlx5_2 (processor 1)"
        text = self.succeed("probe", *dgx)
        self.assertIn(f"as asked for\n  {used}\n", text)
        self.assertEqual(re.findall(r"(mlx5_\d)  .* port 1 up ", text), ["mlx5_0", "mlx5_2"])
        self.assertIn(used, json.loads(self.succeed("probe", *dgx, "--format", "json"))["asked"])
        self.assertIn(used, self.succeed("probe", *dgx, "--gpus", "16", "--format", "paths"))
        self.assertIn(f"{used}\n", self.succeed("plan", *dgx, "--ranks", "16"))
        self.assertIn(f"{used}.\n", self.succeed("scale", *dgx, "--gpus", "8,16", "--algorithm", "ring", "--compute-ms", "100"))

    def test_plan_says_the_same(self):
        text = self.succeed("plan", "--machine", "minsky", "--ranks", "16")
        self.assertIn("(4 GPUs of a host share 2 x EDR InfiniBand: 24.2 GB/s); the plan reaches", text)

    def test_mistakes(self):
        self.refused("probe", "--machine", "minsky", "--hosts", "0", naming="--hosts")
        self.refused("probe", "--machine", "minsky", "--gpus", "6", naming="multiple of 4")
        self.refused("probe", "--machine", "minsky", "--gpus", "8", "--hosts", "2", naming="--hosts")

    @unittest.skipUnless(TOPOLOGIES, "POLYRING_TOPOLOGIES is not set")
    def test_every_real_machine_has_its_pairs(self):
        for path in sorted((Path(TOPOLOGIES) / "hwloc").glob("*.xml")):
            with self.subTest(path=path.name):
                document = json.loads(self.succeed("probe", "--from", path, "--format", "json"))
                host, paths = document["hosts"][0], document["paths"][0]
                gpus, nics = len(host["gpus"]), len(host["nics"])
                self.assertEqual(len(paths["gpus"]), gpus * (gpus - 1) // 2)
                self.assertEqual(len(paths["nics"]), gpus * nics)
                for pair in paths["gpus"] + paths["nics"]:
                    self.assertTrue(pair["reason"])
                    self.assertEqual((pair["way"][0], pair["way"][-1]), (pair["from"], pair["to"]))


if __name__ == "__main__":
    main()
