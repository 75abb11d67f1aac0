"""Runs scripts/install on the build that this test belongs to, into a folder of its own."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
BUILD = pathlib.Path(os.environ["POLYRING_PROGRAM"]).parents[1]
USAGE = 6


def charts_python():
    """The one that the build found, if any."""
    found = re.search(r"^POLYRING_PYTHON:FILEPATH=(.+)", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1] if found else None


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="with spaces ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        (self.folder / "scripts").mkdir()
        for script in ("install", "common.sh"):
            shutil.copy(ROOT / "scripts" / script, self.folder / "scripts")
        (self.folder / "build").symlink_to(BUILD)
        self.builds("exit 0")  # all of it is built before the tests run
        self.prefix = self.folder / "prefix"

    def builds(self, body):
        """A stand-in for scripts/build."""
        path = self.folder / "scripts/build"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run_here(self, *words, **environment):
        return subprocess.run(words, cwd=self.folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=100)

    def install(self, *options, **environment):
        ran = self.run_here("scripts/install", *options, **environment)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def files(self):
        return {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_file()}

    def test_what_is_installed_and_removed(self):
        said = self.install("--prefix", "prefix")
        self.assertRegex(said, rf"^Installed polyring \d.* in {self.prefix}:\n")
        self.assertRegex(said, rf"\n{self.prefix}/bin is not in PATH; add it: [^\n]+\n$")
        files = self.files()
        scripts = {f"share/polyring/{path.relative_to(ROOT / 'reports')}" for kind in ("py", "css", "jinja")
                   for path in (ROOT / "reports").rglob(f"*.{kind}")}
        self.assertLessEqual(scripts | {
            "bin/polyring", "share/doc/polyring/LICENSE", "share/doc/polyring/README.md", "share/doc/polyring/docs/probe.md",
            "share/bash-completion/completions/polyring", "share/zsh/site-functions/_polyring",
            "share/fish/vendor_completions.d/polyring.fish", "share/man/man1/polyring-allreduce.1", "include/polyring.h",
            "include/ddl.h", "include/ddl.hpp", "include/ddl_mpi.hpp",
        }, files)
        self.assertLessEqual({"libpolyring.so", "libpolyring_mpi.so", "libpolyring_topology.so", "libddl.so", "libddl_pack.so",
                              "polyring.pc", "ddl.pc"},
                             {pathlib.PurePath(file).name for file in files})
        for what in ("libpolyring and its headers", "libpolyring_mpi.so", "libddl.so, libddl_pack.so and ddl.h, ddl.hpp, ddl_mpi.hpp"):
            self.assertIn(f"\n  {what}", said)
        self.assertEqual([file for file in files if file.endswith((".pyc", "CMakeLists.txt"))],
                         ["share/doc/polyring/docs/examples/CMakeLists.txt"])
        printed = self.run_here(self.prefix / "bin/polyring", "completion", "bash").stdout
        self.assertEqual((self.prefix / "share/bash-completion/completions/polyring").read_text(), printed)

        (self.prefix / "bin/other").write_text("somebody else's")
        self.install("--prefix", "prefix")
        self.assertEqual(self.files(), files | {"bin/other"})
        self.install("--uninstall", "--prefix", self.prefix)
        self.assertEqual(self.files(), {"bin/other"})
        left = [str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*polyring*")]
        self.assertEqual(left, [])

    @unittest.skipUnless(charts_python(), "no Python here draws charts")
    def test_charts_are_drawn_by_the_installed_scripts(self):
        self.install("--prefix", "prefix")
        shutil.move(self.prefix, self.folder / "moved")
        program = self.folder / "polyring"
        program.symlink_to("moved/bin/polyring")
        python = self.folder / "python"
        python.write_text(f'#!/bin/sh\necho "$1" >> drawn_by\nexec {charts_python()} "$@"\n')
        python.chmod(0o755)
        for words in (("scale", "--machine", "minsky", "--gpus", "4,8", "-J", "scale.json"), ("report", "scale.json", "--out", "report")):
            ran = self.run_here(program, *words, POLYRING_PYTHON=str(python))
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertTrue(list((self.folder / "report").glob("**/*.png")))
        self.assertTrue((self.folder / "report/index.html").exists())
        drawn_by = [pathlib.Path(line) for line in (self.folder / "drawn_by").read_text().splitlines()]
        self.assertEqual([path.resolve() for path in drawn_by], [self.folder / f"moved/share/polyring/{name}.py" for name in ("plot", "page")])
        drawn_by[0].unlink()
        ran = self.run_here(program, "report", "scale.json", "--out", "report")
        self.assertIn("plot.py' is not there; install polyring with scripts/install", ran.stderr)

    def test_the_library_finds_its_plug_in(self):
        """From its own folder, which distributions call lib, lib64 or lib/x86_64-linux-gnu."""
        self.install("--prefix", "prefix")
        example = shutil.copy(BUILD / "bin/polyring_example_allreduce_c", self.folder)  # away from the build's plug-in
        library, = {path.parent for path in self.prefix.rglob("libpolyring.so.0")}
        (self.folder / "usr/lib").mkdir(parents=True)
        library = library.rename(self.folder / "usr/lib/any-linux-gnu")
        for plugin, code, sentence in (("", USAGE, "POLYRING_CLUSTER: cannot read '/nowhere'"),
                                       ("/absent", 5, "there is no /absent; install it, name it in POLYRING_TOPOLOGY_PLUGIN, or unset")):
            environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "POLYRING_CLUSTER": "/nowhere", "POLYRING_TOPOLOGY_PLUGIN": plugin}
            ranks = [subprocess.Popen([example, str(rank), "2", self.folder / f"id{len(plugin)}"], env=environment, text=True,
                                      stderr=subprocess.PIPE) for rank in range(2)]
            for rank in ranks:
                self.assertIn(sentence, rank.communicate(timeout=100)[1])
                self.assertEqual(rank.returncode, code)  # of its polyring_result

    def test_where_to_by_default(self):
        said = self.install(HOME=str(self.folder), PATH=f"{self.fake('id', 'echo 1000')}:{self.folder}/.local/bin:{os.environ['PATH']}")
        self.assertIn(f" in {self.folder}/.local:", said)
        self.assertNotIn("PATH", said)

    def fake(self, name, body):
        (self.folder / "fakes").mkdir()
        path = self.folder / "fakes" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path.parent

    def test_builds_before_anything_is_removed(self):
        (self.folder / "build").unlink()
        self.builds(f'echo "building $*"\nln -s "{BUILD}" build')
        self.assertTrue(self.install("--prefix", "prefix").startswith("building release polyring_installed\nInstalled "))
        files = self.files()
        self.builds('echo "no compiler" >&2\nexit 1')
        ran = self.run_here("scripts/install", "--prefix", "prefix")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (1, "", "no compiler\n"))
        self.assertEqual(self.files(), files)

    def test_what_is_installed_is_one_target(self):
        """All targets that a CMakeLists.txt installs."""
        found = set()
        for file in [*ROOT.glob("bench/**/CMakeLists.txt"), *ROOT.glob("collectives/**/CMakeLists.txt")]:
            found |= set(re.findall(r"install\(TARGETS (\w+)", file.read_text()))
        target = re.findall(r"(?:add_custom_target|add_dependencies)\(polyring_installed (?:DEPENDS )?(.*)\)",
                            (ROOT / "scripts/packaging/CMakeLists.txt").read_text())
        self.assertGreater(len(found), 4)
        self.assertEqual(found, set(" ".join(target).split()))

    def test_mistakes(self):
        (self.folder / "file").write_text("")
        for options, sentence in {
            ("--frobnicate",): "unknown option '--frobnicate'; see scripts/install --help",
            ("--prefix",): "--prefix needs a folder; see scripts/install --help",
            ("--prefix", "file"): f"cannot write to '{self.folder}/file'; install as root, or elsewhere with --prefix DIR",
            ("--prefix", "none", "--uninstall"): f"scripts/install has installed nothing in '{self.folder}/none'; name the folder with --prefix",
        }.items():
            with self.subTest(options=options):
                ran = self.run_here("scripts/install", *options)
                self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (USAGE, "", f"install: {sentence}\n"))

    def test_help_is_the_header(self):
        self.assertTrue(self.install("--help").startswith("Usage: scripts/install"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
