"""probe, plan and scale of several hosts from their files, and of a fabric from ibnetdiscover's output."""

import json
import os
import unittest
from pathlib import Path

from hosts import fabric, host_xml
from program import ProgramTest, main

TOPOLOGIES = os.environ.get("POLYRING_TOPOLOGIES")


class ProbeCluster(ProgramTest):
    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def hosts(self, *names):
        return [self.write(f"{name}.xml", host_xml(name)) for name in names]

    def known_host(self, name, change=lambda host: None):
        """JSON of a preset's host under another name."""
        cluster = json.loads(self.succeed("probe", "--machine", "minsky", "--format", "json"))
        cluster["name"] = cluster["hosts"][0]["name"] = name
        change(cluster["hosts"][0])
        return self.write(f"{name}.json", json.dumps(cluster))

    def test_alike_hosts_are_one_group(self):
        files = self.hosts("node0", "node1", "node2")
        text = self.succeed("probe", "--from", *files)
        self.assertIn("node0 and 2 more: 3 hosts", text)
        self.assertIn("hosts\n  3 equal: node0, node1 and node2\n", text)
        cluster = json.loads(self.succeed("probe", "--format", "json", "--from", *files))
        self.assertEqual([group["count"] for group in cluster["hosts"]], [3])
        self.assertEqual([host["name"] for host in cluster["hosts"][0]["members"]], ["node0", "node1", "node2"])
        self.write("all.json", json.dumps(cluster))
        self.assertEqual(json.loads(self.succeed("probe", "--format", "json", "--from", "all.json")), cluster)
        self.assertIn("node0, 3 equal", self.succeed("probe", "--format", "matrix", "--from", *files))

    def test_differences_are_named(self):
        def down(host):
            host["nics"][1]["ports"][0]["up"] = False

        def slower(host):
            link = next(link for link in host["links"] if link["kind"] == "nvlink")
            link["GBps"] -= 20

        files = [self.known_host("node1"), self.known_host("node2"), self.known_host("node3", down),
                 self.known_host("node4", slower), self.known_host("node5", down)]  # fmt: skip
        text = self.succeed("probe", "--from", *files)
        self.assertIn("  2 equal: node1 and node2\n", text)
        self.assertRegex(text, r"\n  on node3 and node5 \w+ is down\n")
        self.assertRegex(text, r"\n  node4 has one NVLink less between \w+ and \w+ \(20\.0 GB/s, not 40\.0 GB/s\)\n")
        self.assertEqual(text.count("\nhost "), 1)
        found = json.loads(self.succeed("probe", "--format", "json", "--from", *files))
        self.assertEqual([group["count"] for group in found["hosts"]], [2, 1, 1, 1])
        self.assertEqual([of["hosts"] for of in found["differences"]], [["node3", "node5"], ["node4"]])

    def test_plan_and_scale_take_the_same_files(self):
        files = [self.known_host(f"node{i}") for i in range(4)]
        self.assertIn("16 ranks on 4 hosts", self.succeed("plan", "--from", *files))
        self.assertTrue(self.succeed("scale", "--from", *files, "--gpus", "4,16"))

    def test_one_bad_file_is_named(self):
        files = self.hosts("node0", "node1")
        self.write("bad.xml", "GPU0 GPU1\n")
        for words in (("probe",), ("plan",), ("scale",)):
            self.refused(*words, "--from", *files, "bad.xml", naming="bad.xml")
            self.refused(*words, "--from", *files, "missing.xml", naming="missing.xml")

    def test_many_files(self):
        files = self.hosts(*(f"node{i:03}" for i in range(1000)))
        self.assertIn("1000 equal: node[000-999]", self.succeed("probe", "--from", *files))

    def test_a_fabric_alone(self):
        self.write("net.out", fabric(4, 3))
        text = self.succeed("probe", "--fabric", "net.out")
        self.assertIn("fabric net.out: 5 switches, 12 channel adapters\n", text)
        self.assertIn("level 1, leaves: 4 switches: leaf0, leaf1, leaf2 and leaf3\n", text)
        self.assertIn("level 2: 1 switch: spine\n", text)
        self.assertIn("host to level 1: 12 4xHDR (24.2 GB/s)\n", text)
        self.assertIn("  3   1       3.00  4 leaves", text)
        for words in (("--format", "matrix"), ("--format", "nccl-xml"), ("--picture", "net.svg"), ("--expect",), ("--hosts", "2")):
            option = " ".join(words) if words[0] == "--format" else words[0]
            self.refused("probe", "--fabric", "net.out", *words, naming=f"{option} is for hosts, and --fabric alone has none")
        self.refused("probe", "--fabric", "missing.out", naming="missing.out")
        self.write("bad.out", "GPU0 GPU1\n")
        self.refused("probe", "--fabric", "bad.out", naming="'bad.out', line 1")

    def test_a_fabric_alone_as_json(self):
        self.write("net.out", fabric(4, 3, uplink="4xEDR"))
        found = json.loads(self.succeed("probe", "--fabric", "net.out", "--format", "json"))
        self.assertEqual((found["schema"], found["source"]), ("polyring-fabric", "net.out"))
        names = {end["guid"]: end["name"] for end in found["switches"] + found["adapters"]}
        self.assertEqual([at["name"] for at in found["switches"] if at["level"] == 2], ["spine"])
        self.assertEqual([at["host"] for at in found["adapters"]], [f"node{i}" for i in range(12)])
        up = [link for link in found["links"] if link["rate"] == "4xEDR"]
        self.assertEqual({names[end["guid"]] for link in up for end in link["ends"]}, {"spine", *(f"leaf{i}" for i in range(4))})
        self.assertEqual({round(link["GBps"], 1) for link in up}, {12.1})
        self.assertEqual(len(found["links"]), 12 + 4)
        self.assertEqual([(leaf["adapters"], leaf["uplinks"], leaf["oversubscription"]) for leaf in found["leaves"]], [(3, 1, 6)] * 4)
        self.assertEqual(found["neighbourhoods"][1]["hosts"], ["node3", "node4", "node5"])
        self.assertEqual(found["findings"], [])

    def test_nccls_format_is_of_one_kind_of_host(self):
        def down(host):
            host["nics"][1]["ports"][0]["up"] = False

        equal = [self.known_host(f"node{i}") for i in range(1, 3)]
        text = self.succeed("probe", "--format", "nccl-xml", "--from", *equal)
        self.assertEqual(text.count("<system "), 1)
        self.assertIn("<!-- For each of 2 hosts that are equal", text)
        # Also where hosts of one kind stand on both sides of another.
        files = [equal[0], self.known_host("node5", down), equal[1]]
        self.refused("probe", "--format", "nccl-xml", "--from", *files, naming="are of 2 kinds, but a file for NCCL_TOPO_FILE describes one host")

    def test_hosts_on_their_leaves(self):
        self.write("net.out", fabric(4, 2))
        files = [self.known_host(f"node{i}") for i in (0, 2, 1, 3)]
        text = self.succeed("probe", "--fabric", "net.out", "--from", *files)
        self.assertIn("leaf switches\n  leaf0: node0 and node1\n  leaf1: node2 and node3\n", text)
        self.assertIn("fabric: leaves of 2 hosts with 24.2 GB/s to the spine", text)
        # Near and far hosts become dimensions where it matters.
        self.write("net.out", fabric(4, 2, uplink="1xSDR"))
        ran = self.run_program("plan", "--fabric", "net.out", "--from", *files)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("hosts are in the order of their leaf switches", ran.stderr)
        self.assertIn("multi-ring 4x2x2", ran.stdout)
        self.assertIn("(2 hosts of a leaf switch share its uplinks: 250 MB/s)", ran.stdout)
        self.assertTrue(self.succeed("scale", "--fabric", "net.out", "--from", *files, "--gpus", "4,16"))
        # Each rail may be a network of its own.
        other = fabric(4, 2).replace("0" * 12, "a" + "0" * 11).replace("leaf", "other").replace("mlx5_0", "mlx5_1")
        self.write("other.out", other)
        text = self.succeed("probe", "--fabric", "net.out", "--fabric", "other.out", "--from", *files)
        self.assertIn("leaf switches\n  leaf0 and other0: node0 and node1\n", text)
        self.refused("probe", "--fabric", "net.out", "--fabric", "net.out", "--from", *files, naming="both have the switch")
        self.assertIn("fabric net.out, other.out: 10 switches, 16 channel adapters\n", self.succeed("probe", "--fabric", "net.out", "--fabric", "other.out"))
        stranger = self.known_host("stranger")
        self.refused("probe", "--fabric", "net.out", "--from", stranger, naming="none of the hosts (stranger)")
        self.assertIn("not in 'net.out': stranger", self.succeed("probe", "--fabric", "net.out", "--from", *files, stranger))


@unittest.skipUnless(TOPOLOGIES, "POLYRING_TOPOLOGIES is not set")
class RealClusters(ProgramTest):
    def test_sierra(self):
        files = [Path(TOPOLOGIES) / "hwloc" / f"flux-sched-sierra2-4n-{i}.xml" for i in range(4)]
        text = self.succeed("probe", "--from", *files)
        self.assertIn("sierra3682 and 3 more: 4 hosts, 16 ranks\n", text)
        self.assertIn("4 equal: sierra3682, sierra3179, sierra3683 and sierra3178\n", text)
        self.assertIn("taken as equal although sierra3683's package0 has 64KiB more memory\n", text)
        self.assertEqual(text.count("\nhost "), 1)

    def test_a_fat_tree(self):
        text = self.succeed("probe", "--fabric", Path(TOPOLOGIES) / "fabric" / "topograph-ibnetdiscover-example.out")
        self.assertIn("40 switches, 582 channel adapters", text)
        self.assertIn("level 1, leaves: 31 switches", text)
        self.assertIn("level 2: 9 switches", text)
        self.assertIn(" 16  14       1.14  1 leaf: A09-P1-IBLEAF-01-02\n", text)


if __name__ == "__main__":
    main()
