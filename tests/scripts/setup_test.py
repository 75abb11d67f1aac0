"""Runs scripts/setup with stand-ins for apt-get, dpkg-query, sudo and id, and checks what it does and says."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
TOOLS = ("bash", "env", "dirname", "sed", "mktemp", "rm", "tail")
DEBIAN = "ID=debian\nVERSION_ID=12\n"


class World:
    """A folder that is all of PATH, with the tools that setup needs and the stand-ins that a test asks for."""

    def __init__(self, folder, installed, os_release=DEBIAN, root=False, sudo=False, apt=True):
        self.folder = pathlib.Path(folder)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        (self.folder / "os-release").write_text(os_release)
        self.log = self.folder / "apt.log"
        self.fake("id", f"echo {0 if root else 1000}")
        known = "*" if installed == "all" else "|".join([*installed, "-"])
        self.fake("dpkg-query", f'case ${{!#}} in {known}) echo "ii " ;; *) exit 1 ;; esac')
        self.fake("apt-get", f'echo "$DEBIAN_FRONTEND $*" >> {self.log}; exit {0 if apt else 100}')
        if sudo:
            self.fake("sudo", 'echo "$*" >> ' + f'{self.log}.sudo; [[ $1 == -n ]] || exec env "$@"')

    def fake(self, name, body):
        path = self.bin / name
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    def setup(self, *options):
        environment = {"PATH": str(self.bin), "POLYRING_OS_RELEASE": str(self.folder / "os-release")}
        return subprocess.run(
            [shutil.which("bash"), ROOT / "scripts/setup", *options],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )

    def apt_calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


class Setup(unittest.TestCase):
    def world(self, *arguments, **options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return World(folder.name, *arguments, **options)

    def test_nothing_missing_calls_no_apt(self):
        world = self.world("all", root=True)
        ran = world.setup()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, r"packages: all \d+ are installed")
        self.assertEqual(world.apt_calls(), [])

    def test_root_installs_exactly_what_is_missing(self):
        world = self.world(["g++", "cmake"], root=True)
        ran = world.setup()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        update, install = world.apt_calls()
        self.assertIn("noninteractive update", update)
        self.assertIn("--no-install-recommends", install)
        self.assertIn(" libhwloc-dev ", install)
        self.assertNotIn(" cmake", install)
        self.assertNotIn(" mpich", install)

    def test_options_add_packages(self):
        world = self.world([], root=True)
        self.assertEqual(world.setup("--mpich", "--style", "--slurm").returncode, 0)
        added = "libmpich-dev mpich ccache clang-format shellcheck slurmctld slurmd slurm-client munge"
        self.assertTrue(world.apt_calls()[-1].endswith(added))

    def test_simgrid_is_installed_when_asked_for(self):
        world = self.world("all", root=True)
        world.fake("dpkg-query", f'[[ ${{!#}} == libsimgrid-dev ]] && [[ ! -e {world.log} ]] && exit 1; echo "ii "')
        self.assertEqual(world.setup().returncode, 0)
        self.assertEqual(world.apt_calls(), [])
        self.assertEqual(world.setup("--simgrid").returncode, 0)
        self.assertTrue(world.apt_calls()[-1].endswith(" libsimgrid-dev"))
        self.assertEqual(world.setup("--simgrid").returncode, 0)
        self.assertEqual(len(world.apt_calls()), 2, "it is there now")

    def test_a_browser_is_installed_when_asked_for(self):
        world = self.world("all", root=True)
        world.fake("dpkg-query", '[[ ${!#} == chromium ]] && exit 1; echo "ii "')
        self.assertEqual(world.setup().returncode, 0)
        self.assertEqual(world.apt_calls(), [])
        self.assertEqual(world.setup("--browser").returncode, 0)
        self.assertTrue(world.apt_calls()[-1].endswith(" chromium"))

    def test_pytorch_is_installed_when_asked_for(self):
        world = self.world("all", root=True)
        world.fake("dpkg-query", '[[ ${!#} == python3-torch ]] && exit 1; echo "ii "')
        self.assertEqual(world.setup().returncode, 0)
        self.assertEqual(world.apt_calls(), [])
        self.assertEqual(world.setup("--torch").returncode, 0)
        self.assertTrue(world.apt_calls()[-1].endswith(" python3-torch"))

    def test_without_simgrid_all_goes_on(self):
        for options in ({"root": True, "apt": False}, {}):
            with self.subTest(**options):
                world = self.world("all", **options)
                world.fake("dpkg-query", '[[ ${!#} == libsimgrid-dev ]] && exit 1; echo "ii "')
                ran = world.setup("--simgrid")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("libsimgrid-dev: skipped", ran.stdout)
                self.assertIn("CUDA: ", ran.stdout)

    def test_sudo_is_used_when_not_root(self):
        world = self.world([], sudo=True)
        ran = world.setup()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(len(world.apt_calls()), 2)

    def test_neither_root_nor_sudo_prints_the_command_and_stops(self):
        world = self.world(["cmake"])
        ran = world.setup()
        self.assertEqual(ran.returncode, 5)
        self.assertIn("neither as root nor through sudo", ran.stderr)
        self.assertRegex(ran.stderr, r"\n  apt-get install --no-install-recommends g\+\+ ninja-build .*jsonschema iproute2\n$")
        self.assertEqual(world.apt_calls(), [])

    def test_sudo_that_wants_a_password_without_a_terminal_counts_as_none(self):
        world = self.world([])
        world.fake("sudo", "exit 1")
        self.assertEqual(world.setup().returncode, 5)

    def test_a_failing_apt_is_reported(self):
        ran = self.world([], root=True, apt=False).setup()
        self.assertEqual(ran.returncode, 5)
        self.assertIn("apt-get could not install", ran.stderr)

    def test_other_distributions_get_the_list(self):
        for os_release in ("ID=fedora\nVERSION_ID=41\n", "ID=debian\nVERSION_ID=11\n", 'ID=ubuntu\nVERSION_ID="22.04"\n'):
            with self.subTest(os_release=os_release):
                world = self.world("all", os_release=os_release, root=True)
                ran = world.setup()
                self.assertEqual(ran.returncode, 5)
                self.assertIn("libhwloc-dev", ran.stderr)
                self.assertEqual(world.apt_calls(), [])

    def test_other_distributions_go_on_when_cmake_finds_everything(self):
        world = self.world([], os_release="ID=fedora\nVERSION_ID=41\n")
        world.fake("cmake", "exit 0")
        world.fake("ninja", "exit 0")
        self.assertEqual(world.setup().returncode, 0)
        world.fake("cmake", "echo 'Could NOT find fmt' ; exit 1")
        ran = world.setup()
        self.assertEqual(ran.returncode, 5)
        self.assertIn("Could NOT find fmt", ran.stderr)

    def test_newer_releases_are_known(self):
        for os_release in ("ID=debian\nVERSION_ID=13\n", "ID=debian\n", 'ID=ubuntu\nVERSION_ID="24.04"\n'):
            with self.subTest(os_release=os_release):
                self.assertEqual(self.world("all", os_release=os_release).setup().returncode, 0)

    def test_says_what_it_found_of_cuda(self):
        world = self.world("all")
        world.fake("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.99'")
        self.assertRegex(world.setup().stdout, r"CUDA: found .*/nvcc, release 12\.4")

    def test_unknown_options_are_refused(self):
        ran = self.world("all").setup("--frobnicate")
        self.assertEqual(ran.returncode, 6)
        self.assertIn("'--frobnicate'", ran.stderr)

    def test_help_is_the_header(self):
        ran = self.world("all").setup("--help")
        self.assertEqual(ran.returncode, 0)
        self.assertTrue(ran.stdout.startswith("Usage: scripts/setup"))
        self.assertNotIn("set -euo", ran.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
