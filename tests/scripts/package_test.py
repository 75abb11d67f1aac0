"""Programs outside of the tree that use an installed Polyring: by the CMake package, by pkg-config, and by its man pages.

Environment, set by CTest: POLYRING_PROGRAM.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAM = pathlib.Path(os.environ["POLYRING_PROGRAM"])
CACHE = (PROGRAM.parents[1] / "CMakeCache.txt").read_text(encoding="utf-8")
COMPILERS = {language: re.search(rf"^CMAKE_{language}_COMPILER:\w+=(.+)", CACHE, re.MULTILINE)[1] for language in ("C", "CXX")}
MPICXX = re.search(r"^MPI_CXX_COMPILER:\w+=(.+)", CACHE, re.MULTILINE)[1]

PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C CXX)
find_package(polyring 99 QUIET)
if(polyring_FOUND)
  message(FATAL_ERROR "version 99 was found")
endif()
find_package(polyring 0.1 REQUIRED)
add_executable(in_c in_c.c)
add_executable(in_cxx in_cxx.cpp)
add_executable(example_in_cxx example.cpp)
target_compile_features(example_in_cxx PRIVATE cxx_std_20)
foreach(program in_c in_cxx example_in_cxx)
  target_link_libraries(${program} PRIVATE polyring::polyring)
endforeach()
find_package(MPI REQUIRED COMPONENTS CXX)
add_executable(of_ddl of_ddl.cpp)
target_link_libraries(of_ddl PRIVATE polyring::ddl MPI::MPI_CXX)
"""
OF_DDL = """
#include <ddl.hpp>
#include <ddl_mpi.hpp>

#include <iostream>

int main() {
  float three = 3;
  if (ddl_init("") != DDL_SUCCESS || ddl_allreduce(&three, 1) != DDL_SUCCESS ||
      ddl_allreduce_mpi("", &three, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != DDL_SUCCESS) {
    std::cerr << ddl_error_text() << '\\n';
    return 1;
  }
  std::cout << three << '\\n';
  return ddl_finalize();
}
"""
IN_CXX = """
#include <polyring.h>

#include <iostream>
#include <vector>

int main() {
  polyring_unique_id id;
  polyring_comm comm = POLYRING_COMM_NULL;
  std::vector<float> values(1000, 3.0F);
  if (polyring_get_unique_id(&id) != POLYRING_SUCCESS || polyring_comm_create(&comm, &id, 0, 1, nullptr) != POLYRING_SUCCESS ||
      polyring_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_FLOAT32, POLYRING_SUM) != POLYRING_SUCCESS) {
    std::cerr << polyring_error_text() << '\\n';
    return 1;
  }
  std::cout << polyring_version() << ' ' << values.front() << '\\n';
  return polyring_comm_free(comm);
}
"""


def run(*words, folder=None, **environment):
    return subprocess.run([str(word) for word in words], cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, encoding="utf-8", check=False, timeout=100)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="with spaces ")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name).resolve()
        before = PROGRAM.stat().st_mtime_ns
        manifest = PROGRAM.parents[1] / "install_manifest.txt"
        ran = run("cmake", "--install", PROGRAM.parents[1], "--prefix", cls.folder / "first", DESTDIR="")
        manifest.unlink(missing_ok=True)
        assert ran.returncode == 0, ran.stderr
        assert PROGRAM.stat().st_mtime_ns == before, "installing has built something"
        cls.prefix = (cls.folder / "first").rename(cls.folder / "moved")
        (cls.library,) = (path.parent for path in cls.prefix.rglob("libpolyring.so"))
        sources = cls.folder / "sources"
        sources.mkdir()
        for example, name in {"allreduce.c": "in_c.c", "allreduce.cpp": "example.cpp"}.items():
            shutil.copy(cls.prefix / "share/doc/polyring/docs/examples" / example, sources / name)
        (sources / "in_cxx.cpp").write_text(IN_CXX, encoding="utf-8")
        (sources / "of_ddl.cpp").write_text(OF_DDL, encoding="utf-8")
        (sources / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
        cls.sources = sources

    def succeed(self, *words, **options):
        ran = run(*words, **options)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def check_programs(self, folder, **environment):
        """Two ranks of the example, and the others' one rank."""
        ranks = [subprocess.Popen([folder / "in_c", str(rank), "2", folder / "id"], env={**os.environ, **environment},
                                  stdout=subprocess.PIPE, text=True) for rank in range(2)]
        for rank, process in enumerate(ranks):
            said = process.communicate(timeout=60)[0]
            self.assertEqual(process.returncode, 0)
            self.assertRegex(said, rf"^rank {rank} of 2 over .*: 0 of 1000000 sums wrong\n$")
        self.assertRegex(self.succeed(folder / "in_cxx", **environment), r"^\d+\.\d+\.\d+ 3\n$")
        self.assertEqual(self.succeed(folder / "of_ddl", **environment), "3\n")

    def test_cmake_package(self):
        build = self.folder / "by cmake"
        self.succeed("cmake", "-S", self.sources, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                     *(f"-DCMAKE_{language}_COMPILER={compiler}" for language, compiler in COMPILERS.items()))
        self.succeed("cmake", "--build", build)
        self.check_programs(build)

    def test_debians_package_says_what_its_libraries_are_called(self):
        sonames = {path.name.removesuffix(".so") + f" {version[1]}" for path in self.library.glob("*.so")
                   if (version := re.search(r"SONAME.*\.so\.(\d+)\]", run("readelf", "-d", path).stdout))}
        self.assertEqual(sonames, {"libpolyring 0", "libddl 1"})
        shlibs = (PROGRAM.parents[1] / "scripts/packaging/shlibs").read_text(encoding="utf-8")
        self.assertEqual({" ".join(line.split()[:2]) for line in shlibs.splitlines()}, sonames)

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config here")
    def test_pkg_config(self):
        path = {"PKG_CONFIG_PATH": str(self.library / "pkgconfig")}
        flags = shlex.split(self.succeed("pkg-config", "--cflags", "--libs", "polyring", **path))
        self.assertEqual(self.succeed("pkg-config", "--modversion", "polyring", **path).strip(),
                         run(self.prefix / "bin/polyring", "--version").stdout.split()[1])
        build = self.folder / "by pkg-config"
        build.mkdir()
        self.succeed(COMPILERS["C"], "-std=c99", "-D_POSIX_C_SOURCE=200809L", "in_c.c", *flags, "-o", build / "in_c", folder=self.sources)
        self.succeed(COMPILERS["CXX"], "in_cxx.cpp", *flags, "-o", build / "in_cxx", folder=self.sources)
        of_ddl = shlex.split(self.succeed("pkg-config", "--cflags", "--libs", "ddl", **path))
        self.succeed(MPICXX, "of_ddl.cpp", *of_ddl, "-o", build / "of_ddl", folder=self.sources)
        self.check_programs(build, LD_LIBRARY_PATH=str(self.library))
        self.succeed(MPICXX, "of_ddl.cpp", *of_ddl, f"-Wl,-rpath,{self.library}", "-o", build / "alone", folder=self.sources)
        self.assertEqual(self.succeed(build / "alone"), "3\n")

    def test_man_pages_have_all_that_help_says(self):
        program = self.prefix / "bin/polyring"
        names = re.findall(r"(?m)^  ([a-z-]+) ", self.succeed(program, "--help").split("Subcommands:")[1])
        self.assertIn("allreduce", names)
        pages = {path.name: path.read_text(encoding="utf-8") for path in (self.prefix / "share/man/man1").iterdir()}
        self.assertEqual(set(pages), {"polyring.1", *(f"polyring-{name}.1" for name in names)})
        for name in names:
            page = pages[f"polyring-{name}.1"].replace("\\-", "-")
            shown = self.succeed(program, name, "--help").split("Example:")[0]
            for option in re.findall(r"(?m)^  (-[\w,-]+)", shown):
                self.assertIn(", ".join(f"\\fB{one}\\fR" for one in option.split(",")), page, name)
            self.assertNotRegex(page, r"Default: [A-Z]{2}")
            self.assertNotRegex(page, r"Excludes:|REQUIRED|:INT|\[\d+ - ")
            self.assertIn(shown.split("\n")[0].rstrip("."), page.replace("\\(aq", "'"))
        self.assertRegex(pages["polyring-allreduce.1"].replace("\\-", "-"), r"\\fB--lanes\\fR \\fIN\\fR\nRings .* payload\. From 1 to 1024\.\n")
        codes = re.findall(r"(?m)^\| ([\d, ]+) \|", (ROOT / "docs/measuring.md").read_text(encoding="utf-8"))
        for code in codes:
            self.assertIn(f".TP\n{code}\n", pages["polyring.1"])

    @unittest.skipUnless(shutil.which("man"), "no man here")
    def test_man_pages_are_well_formed(self):
        for page in sorted((self.prefix / "share/man/man1").iterdir()):
            ran = run("man", "--warnings=w", "--local-file", page, LC_ALL="C.UTF-8", MANWIDTH="100")
            self.assertEqual((ran.returncode, ran.stderr), (0, ""), page.name)
            self.assertIn("EXIT STATUS", ran.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
