"""probe of this machine, and of copies of /sys."""

import json
import os
import subprocess
import unittest
from pathlib import Path

from program import TIME_LIMIT_S, ProgramTest, command, environment, main, may_mount

RECORD = Path(__file__).resolve().parents[2] / "scripts" / "record_sysfs"
TOPOLOGIES = os.environ.get("POLYRING_TOPOLOGIES")


class ProbeSysfs(ProgramTest):
    def host(self, *options):
        return json.loads(self.succeed("probe", *options, "--format", "json"))["hosts"][0]

    def test_this_machine(self):
        sources = {source["name"]: source for source in self.host()["sources"]}
        self.assertEqual(list(sources), ["hwloc", "sysfs", "NVML", "ROCm"])
        self.assertTrue(sources["hwloc"]["read"])
        self.assertTrue(all(source["detail"] for source in sources.values()))
        text = self.succeed("probe")
        self.assertIn("  probed\n    read   hwloc: ", text)
        if not sources["NVML"]["read"]:
            self.assertIn("    absent NVML: ", text)

    @unittest.skipUnless(may_mount(), "no file system can be mounted here")
    def test_this_machine_without_sysfs(self):
        shell = "mount -t tmpfs none /sys && exec \"$@\""
        ran = subprocess.run(["unshare", "-m", "sh", "-c", shell, "sh", *command("probe")], env=environment("probe"), cwd=self.folder,
                             capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("    absent sysfs: /sys is empty; mount it with: ", ran.stdout)

    def test_a_copy_of_this_machine(self):
        tar = subprocess.run([RECORD], capture_output=True, check=True, timeout=120).stdout
        (self.folder / "copy").mkdir()
        subprocess.run(["tar", "-x", "-C", self.folder / "copy"], input=tar, check=True, timeout=120)
        live, copy = self.host(), self.host("--sysfs", "copy")
        self.assertEqual(copy["name"], "copy")
        self.assertEqual([p["numa"] for p in copy["packages"]], [p["numa"] for p in live["packages"]])
        self.assertEqual([p["cores"] for p in copy["packages"]], [p["cores"] for p in live["packages"]])
        self.assertEqual([gpu["pci"] for gpu in copy["gpus"]], [gpu["pci"] for gpu in live["gpus"]])
        self.assertEqual([(n["name"], n["pci"], n["kind"], n["ports"]) for n in copy["nics"]],
                         [(n["name"], n["pci"], n["kind"], n["ports"]) for n in live["nics"]])
        self.assertNotIn("not recorded: processors", copy["sources"][0]["detail"])

    def test_a_copy_has_the_gpus_driver(self):
        (self.folder / "fake/module/nvidia").mkdir(parents=True)
        (self.folder / "fake/module/nvidia/version").write_text("550.54.15\n", encoding="utf-8")
        tar = subprocess.run([RECORD, self.folder / "fake"], capture_output=True, check=True, timeout=120).stdout
        listed = subprocess.run(["tar", "-t"], input=tar, capture_output=True, check=True, timeout=120).stdout
        self.assertIn("sys/module/nvidia/version", listed.decode().split())

    def test_its_json_is_read_again(self):
        (self.folder / "tree/class/infiniband/mlx5_0/ports/1").mkdir(parents=True)
        port = self.folder / "tree/class/infiniband/mlx5_0/ports/1"
        for name, text in {"state": "1: DOWN", "phys_state": "2: Polling", "rate": "100 Gb/sec (4X EDR)",
                           "link_layer": "InfiniBand"}.items():
            (port / name).write_text(text + "\n", encoding="utf-8")
        document = self.succeed("probe", "--sysfs", "tree", "--format", "json")
        self.assertIn("mlx5_0 port 1 is DOWN (Polling)", document)
        (self.folder / "again.json").write_text(document, encoding="utf-8")
        self.assertEqual(self.succeed("probe", "--from", "again.json", "--format", "json"), document)
        self.assertIn("  look at\n    mlx5_0 port 1 is DOWN", self.succeed("probe", "--sysfs", "tree"))

    @unittest.skipUnless(TOPOLOGIES, "POLYRING_TOPOLOGIES is not set")
    def test_a_recorded_tree(self):
        folder = Path(TOPOLOGIES) / "fabric" / "sysfs-prometheus"
        text = self.succeed("probe", "--sysfs", folder)
        self.assertIn("mlx4_0", text)
        self.assertIn("port 2 up 4.00 GB/s", text)
        self.assertIn("not recorded: processors (devices/system/cpu)", text)


if __name__ == "__main__":
    main()
