"""scripts/container/Containerfile: has the packages that the program needs, and what scripts/kubernetes/mpijob.yaml starts.

Environment, set by CTest: POLYRING_PROGRAM.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
RECIPE = (ROOT / "scripts/container/Containerfile").read_text()
MANIFEST = (ROOT / "scripts/kubernetes/mpijob.yaml").read_text()
# What others of the recipe depend on.
COME_WITH_OTHERS = {"libc6", "libgcc-s1", "libstdc++6", "libopenmpi3"}


class Container(unittest.TestCase):
    def test_has_the_libraries_that_the_program_needs(self):
        release = pathlib.Path("/etc/os-release")
        if not shutil.which("dpkg-query") or 'VERSION_ID="12"' not in release.read_text():
            self.skipTest("the recipe's packages are those of Debian 12")
        linked = subprocess.run(["readelf", "-d", os.environ["POLYRING_PROGRAM"]], capture_output=True, text=True, check=True)
        libraries = re.findall(r"NEEDED.*\[(.*)\]", linked.stdout)
        owners = subprocess.run(["dpkg-query", "--search", *libraries], capture_output=True, text=True, check=True)
        # Others, for 32 bits, are in other folders.
        packages = {
            line.split(":")[0] for line in owners.stdout.splitlines()
            if any(re.search(rf": (/usr)?/lib/([\w-]+-linux-gnu/)?{re.escape(library)}$", line) for library in libraries)
        }
        self.assertGreater(len(packages), 5)
        self.assertEqual(packages - COME_WITH_OTHERS - set(RECIPE[RECIPE.rindex("FROM"):].split()), set())

    def test_builds_all_that_is_installed(self):
        self.assertIn("scripts/build release polyring_installed", RECIPE)

    def test_has_what_the_manifest_starts(self):
        self.assertIn("command: [/usr/sbin/sshd]", MANIFEST)
        self.assertIn(" openssh-server ", RECIPE)
        home = re.search(r"sshAuthMountPath: (\S+)", MANIFEST)[1]
        self.assertIn(f"HostKey {home}/id_rsa", RECIPE)
        configuration = re.search(r"args: \[-De, -f, (\S+)\]", MANIFEST)[1]
        self.assertIn(f">{configuration}", RECIPE)
        (user,) = set(re.findall(r"runAsUser: (\d+)", MANIFEST))
        self.assertIn(f"--uid {user} ", RECIPE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
