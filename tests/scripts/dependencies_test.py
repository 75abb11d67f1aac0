"""scripts/packaging/archive and scripts/setup --prefix, up to the building of libraries, with stand-ins for what takes long; and
Spack's recipe, read with stand-ins for Spack.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
UNAVAILABLE, USAGE = 5, 6


class Dependencies(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.tree = self.folder / "tree"
        (self.tree / "scripts").mkdir(parents=True)
        for name in ("common.sh", "setup"):
            shutil.copy(ROOT / "scripts" / name, self.tree / "scripts")
        shutil.copytree(ROOT / "scripts/packaging", self.tree / "scripts/packaging")
        # Debian's archive with two packages, as the list of sources names them.
        rows = []
        for name in ("one", "libtwo"):
            file = self.folder / f"debian/pool/main/{name[:4] if name.startswith('lib') else name[0]}/{name}/{name}_1+ds.orig.tar.gz"
            file.parent.mkdir(parents=True)
            with tarfile.open(file, "w:gz") as made:
                made.add(ROOT / "LICENSE", f"{name}-1/LICENSE")
            rows.append(f"{name} debian {name} {file.name} {hashlib.sha256(file.read_bytes()).hexdigest()} .\n")
        (self.tree / "scripts/packaging/sources").write_text("# a list\n" + "".join(rows), encoding="utf-8")
        (self.folder / "bin").mkdir()

    def fake(self, name, body):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_script(self, script, *words):
        return subprocess.run([self.tree / "scripts" / script, *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=60, env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})

    def builds_libtwo(self, body):
        """Adds a function that builds it to the script's."""
        script = self.tree / "scripts/packaging/dependencies"
        text = script.read_text(encoding="utf-8")
        script.write_text(text.replace("build_fmt()", f"build_libtwo() {{ {body}; }}\nbuild_fmt()"), encoding="utf-8")

    def archive(self, *words):
        return self.run_script("packaging/archive", *words, "--mirror", f"file://{self.folder}/debian")

    def refused(self, ran, code, *parts):
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        for part in parts:
            self.assertIn(part, ran.stderr)

    @unittest.skipUnless(shutil.which("curl"), "no curl here")
    def test_archive_holds_the_files_of_the_list(self):
        ran = self.archive("a.tar")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with tarfile.open(self.folder / "a.tar") as made:
            self.assertEqual(set(made.getnames()) - {"."}, {"./one_1+ds.orig.tar.gz", "./libtwo_1+ds.orig.tar.gz"})

        (self.folder / "debian/pool/main/o/one/one_1+ds.orig.tar.gz").write_bytes(b"another file")
        self.refused(self.archive("b.tar"), USAGE, "one_1+ds.orig.tar.gz is not the file that scripts/packaging/sources names")
        (self.folder / "debian/pool/main/o/one/one_1+ds.orig.tar.gz").unlink()
        self.refused(self.archive("b.tar"), UNAVAILABLE, "cannot download one_1+ds.orig.tar.gz")
        self.assertFalse((self.folder / "b.tar").exists())

    def test_only_what_is_missing_is_built(self):
        """CMake, as if libtwo were missing at first; it needs no other program to unpack."""
        self.fake("gzip", "exit 1")
        self.fake("cmake", f"""[[ $1 != -E ]] || exec {shutil.which("cmake")} "$@"
[[ -e {self.folder}/built ]] || echo "missing libtwo"; echo "$@" >> {self.folder}/cmake.log""")
        self.builds_libtwo(f'test -r "$1/LICENSE" && touch {self.folder}/built')
        words = ("setup", "--prefix", "libs", "--archive", "a.tar")
        self.refused(self.run_script(*words), USAGE, "missing: libtwo.", f"'{self.folder}/a.tar'", "scripts/packaging/archive")
        with tarfile.open(self.folder / "a.tar", "w") as made:
            made.add(ROOT / "LICENSE", "./libtwo_1+ds.orig.tar.gz")
        self.refused(self.run_script(*words), USAGE, "libtwo_1+ds.orig.tar.gz in", "is damaged")
        with tarfile.open(self.folder / "a.tar", "w") as made:
            made.add(self.folder / "debian/pool/main/libt/libtwo/libtwo_1+ds.orig.tar.gz", "./libtwo_1+ds.orig.tar.gz")
        ran = self.run_script(*words)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("libtwo: building", ran.stdout)
        self.assertNotIn("one:", ran.stdout)
        self.assertTrue((self.folder / "built").exists())
        configured = (self.folder / "cmake.log").read_text(encoding="utf-8").splitlines()[-1]
        for option in (f"-DCMAKE_PREFIX_PATH={self.folder}/libs", f"-DCMAKE_INSTALL_PREFIX={self.folder}/libs", "-DPOLYRING_TESTS=OFF"):
            self.assertIn(option, configured.split())
        self.assertIn("CMake finds all", self.run_script(*words, "--tests").stdout)
        self.assertIn("-DPOLYRING_TESTS=ON", (self.folder / "cmake.log").read_text(encoding="utf-8").splitlines()[-1].split())

    def test_a_build_ends_with_its_first_failure(self):
        self.fake("cmake", f"""[[ $1 != -E ]] || exec {shutil.which("cmake")} "$@"
echo "missing libtwo\"""")
        self.builds_libtwo(f'echo "no compiler"; false; touch {self.folder}/went-on')
        with tarfile.open(self.folder / "a.tar", "w") as made:
            made.add(self.folder / "debian/pool/main/libt/libtwo/libtwo_1+ds.orig.tar.gz", "./libtwo_1+ds.orig.tar.gz")
        self.refused(self.run_script("setup", "--prefix", "libs", "--archive", "a.tar"), UNAVAILABLE, "no compiler\n",
                     "libtwo cannot be built here")
        self.assertFalse((self.folder / "went-on").exists())

    def test_no_mpi_and_failing_builds(self):
        self.fake("cmake", 'echo "missing MPI"')
        self.refused(self.run_script("setup", "--prefix", "libs"), UNAVAILABLE, "mpicxx")
        self.fake("cmake", 'echo "no compiler"; exit 1')
        self.refused(self.run_script("setup", "--prefix", "libs"), UNAVAILABLE, "no compiler", "CMake 3.25 or later")

    def test_mistakes(self):
        (self.folder / "file").write_text("", encoding="utf-8")
        for words, sentence in {
            ("setup", "--prefix"): "--prefix needs a value",
            ("setup", "--archive", "a.tar"): "--archive goes with --prefix DIR",
            ("setup", "--tests"): "--tests goes with --prefix DIR",
            ("setup", "--prefix", "libs", "--mpich"): "--mpich installs packages as root",
            ("setup", "--prefix", "file"): f"cannot write to '{self.folder}/file'",
            ("packaging/dependencies",): "--prefix DIR must say where to install",
            ("packaging/archive", "a", "b"): "two files are named, 'a' and 'b'",
            ("packaging/archive", "none/a"): "cannot write",
            ("packaging/archive", "--mirror"): "--mirror needs a URL",
            ("packaging/deb", "--frobnicate"): "unknown option '--frobnicate'; see scripts/packaging/deb --help",
            ("packaging/deb", "a", "b"): "two folders are named",
        }.items():
            with self.subTest(words=words):
                self.refused(self.run_script(*words), USAGE, sentence)

    def test_the_list_names_what_is_known_how_to_build(self):
        rows = [line.split() for line in (ROOT / "scripts/packaging/sources").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
        self.assertGreater(len(rows), 6)
        script = (ROOT / "scripts/packaging/dependencies").read_text(encoding="utf-8")
        looked_for = (ROOT / "scripts/packaging/missing/CMakeLists.txt").read_text(encoding="utf-8")
        for row in rows:
            self.assertEqual(len(row), 6, row)
            self.assertRegex(row[4], r"^[0-9a-f]{64}$")
            self.assertIn(f"\nbuild_{row[0]}() {{", script)
            self.assertRegex(looked_for, rf"\b{row[0]}\b")

    def test_spacks_recipe_has_what_cmake_looks_for(self):
        said = []

        def directive(name):
            return lambda *words, when="", **options: said.append((name, words[0], when))

        fakes = {"spack_repo": {}, "spack_repo.builtin": {}, "spack_repo.builtin.build_systems": {}, "spack": {},
                 "spack_repo.builtin.build_systems.cmake": {"CMakePackage": type("CMakePackage", (), {}), "generator": directive("generator")},
                 "spack_repo.builtin.build_systems.cuda": {"CudaPackage": type("CudaPackage", (), {"cuda_arch_values": ("75", "90")})},
                 "spack.package": {name: directive(name) for name in ("license", "version", "variant", "conflicts", "depends_on")}}
        for name, members in fakes.items():
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update(members)
            self.addCleanup(sys.modules.pop, name)
        recipe = ROOT / "scripts/packaging/spack_repo/polyring/packages/polyring/package.py"
        exec(compile(recipe.read_text(encoding="utf-8"), recipe, "exec"), {})  # pylint: disable=exec-used
        project = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        self.assertIn(("version", re.search(r"project\(polyring VERSION (\S+)", project)[1], ""), said)
        # Spack's nccl is for the architectures that it is told, and refuses to be built for none.
        self.assertIn(("conflicts", "cuda_arch=none", "+cuda"), said)
        self.assertEqual({when for _, words, when in said if words.startswith("nccl")}, {f"+cuda cuda_arch={arch}" for arch in (75, 90)})
        packages = {words.split("@")[0].replace("-", "_") for name, words, _ in said if name == "depends_on"}
        own = {"Eigen3": "eigen", "Threads": "c"}
        for library in re.findall(r"find_package\((\w+)[ \w.]* REQUIRED", project):
            self.assertIn(own.get(library, library.lower()), packages)


if __name__ == "__main__":
    unittest.main(verbosity=2)
