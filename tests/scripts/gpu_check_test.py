"""scripts/gpu_check on stand-ins of a GPU's programs and on the software GPU, and a bundle of scripts/gpu_bundle in an empty root.

Environment, set by CTest: POLYRING_PROGRAM.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import must_run

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
BUILD = pathlib.Path(os.environ["POLYRING_PROGRAM"]).parents[1]
SOFTWARE = BUILD / "software_gpu"
NOT_AVAILABLE, USAGE, WRONG, BELOW, INCONCLUSIVE = 5, 6, 7, 8, 9

# What the script calls, and what a machine with the driver alone has.
TOOLS = ("bash", "cat", "chmod", "date", "dirname", "env", "getconf", "grep", "head", "mkdir", "realpath", "sed", "sh", "sort", "tail",
         "timeout")
OF_LIBC = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")

# A GPU that meets all goals: 1000 GB/s of copies, an empty launch of 5 us, pinned copies of 50 GB/s.
GOOD = {
    "micro": {"device_copy": (2 << 30, 2147.5), "reduce": (3 << 30, 3400), "launch": (0, 5), "to_host": (1 << 28, 5368.7),
              "from_host": (1 << 28, 5300), "staged": (1 << 28, 6000)},
    "one-gpu": 0.9, "small": 9.9, "nccl": "2.28.9", "wrong": 0, "exit": {}, "gpu": "NVIDIA H100 80GB HBM3", "sleep": 0,
}

STAND_IN = """#!{python} -IS
import json, os, pathlib, sys, time
given = json.loads(pathlib.Path("{folder}/given.json").read_text())
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
def option(flag): return words[words.index(flag) + 1]
if name == "polyring" and words == ["--version"]:
    print("polyring 0.1.0 (abc)\\n  NCCL      " + (given["nccl"] or "none: it could not be loaded"))
elif "--gtest_list_tests" in words:
    print("Ranks.\\n  One")
elif name == "polyring_gpu_micro":
    if given["gpu"] is None:
        print("polyring_gpu_micro: no NVIDIA driver is loaded here; run this elsewhere", file=sys.stderr)
        sys.exit(5)
    measures = [dict(name=key, bytes=size, repetitions=5, median_us=us) for key, (size, us) in given["micro"].items()]
    print(json.dumps(dict(gpu=given["gpu"], gpus=1, cuda_runtime="13.0", measures=measures), indent=2))
elif name == "polyring" and words[0] in ("train", "accept"):
    sys.exit(given["exit"].get(words[0], 0))
elif name == "polyring":
    ranks, nccl, file = int(option("-g") if "-g" in words else 2), "nccl" in option("--algorithm"), option("-J")
    if nccl and ranks == 2 and not os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE"):
        print("polyring: NCCL " + given["nccl"] + " refuses ranks 0 and 1 on h, since both use GPU 0", file=sys.stderr)
        sys.exit(5)
    size = 1 << 28
    us = given["small"] if "back-to-back" in words else 2 * ranks * size / 1e6 / given["one-gpu"]
    rows = [dict(algorithm="a", implementation="i", ranks=ranks, size_bytes=size, in_place=place, wrong=given["wrong"],
                 time_us=dict(median=us), busbw_GBps=1.0) for place in (False, True)]
    pathlib.Path(file).write_text(json.dumps(dict(rows=rows)))
else:
    time.sleep(given["sleep"])
    print("said by " + name)
sys.exit(given["exit"].get(name, 0))
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="with spaces ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        shutil.copytree(ROOT / "scripts", self.folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (self.folder / "tests").symlink_to(ROOT / "tests")
        shutil.copy(ROOT / "LICENSE", self.folder)

    def run_here(self, *words, **environment):
        return subprocess.run(list(words), cwd=self.folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=100)

    def check(self, code, *options, **environment):
        """Returns what is printed."""
        ran = self.run_here("scripts/gpu_check", *options, **environment)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout + ran.stderr

    def verdicts(self, printed):
        """Of the table, by goal."""
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line.startswith("| ")]
        return {row[0]: row[3] for row in rows if len(row) == 4 and row[0] not in ("goal", "step")}


class OnStandIns(Scripts):
    def setUp(self):
        super().setUp()
        self.bin = self.folder / "build/bin"
        self.bin.mkdir(parents=True)
        (self.folder / "build/CMakeCache.txt").write_text("POLYRING_CUDART:FILEPATH=/nowhere/libcudart.so.13\n")
        for name in ("polyring", "polyring_conformance", "polyring_gpu_micro", "software_gpu_collectives_test",
                     "software_gpu_stream_test", "software_gpu_nccl_test"):
            self.stand_in(self.bin / name)
        self.given()

    def stand_in(self, path):
        path.write_text(STAND_IN.format(python=sys.executable, folder=self.folder))
        path.chmod(0o755)

    def given(self, **changes):
        (self.folder / "given.json").write_text(json.dumps({**GOOD, **changes}))

    def measured(self, **changes):
        return {**GOOD["micro"], **changes}

    def check_goals(self, code, *options):
        goals = ("--only", "micro,one-gpu,small,nccl-goals")
        return self.verdicts(self.check(code, *goals, *options))

    def test_all_goals_met(self):
        path = self.folder / "path"
        path.mkdir()
        self.stand_in(path / "compute-sanitizer")
        (path / "mpirun").write_text("#!/bin/sh\nshift 2\nexec \"$@\"\n")
        (path / "mpirun").chmod(0o755)
        printed = self.check(0, PATH=f"{path}:{os.environ['PATH']}")
        self.assertRegex(printed, r"NVIDIA H100 80GB HBM3 \(1 in this machine\), driver \S+, CUDA 13\.0, polyring 0\.1\.0 \(abc\), 20\d\d-\d\d-\d\d\.")
        for step in ("conformance", "collectives", "streams", "nccl", "micro", "one-gpu-8", "small", "nccl-two", "processes", "train", "accept",
                     "sanitizer-memcheck", "sanitizer-ranks"):
            self.assertRegex(printed, rf"\| {step} +\| passed ")
        self.assertRegex(printed, r"\| gpus +\| skipped \| 0 +\| there is one GPU")
        self.assertIn("95 % of 1000 GB/s, 1 GiB", printed)
        self.assertIn("| 90 % out of place, 90 % in place, 256 MiB ", printed)
        self.assertIn("| at most 1.98 x 5.0 us (256 MiB ", printed)
        self.assertIn("89 % of 50.0 GB/s, 256 MiB", printed)
        self.assertIn("NCCL 2.28.9 refuses ranks 0 and 1", printed)
        goals = [line for line in printed.splitlines() if line.startswith("| ")][1:9]
        self.assertTrue(all(line.endswith("| yes |") for line in goals), goals)
        self.assertIn((self.folder / "gpu-check/table.md").read_text(), printed)

    def test_each_goal_missed(self):
        for changes, goal, missed in (
            ({"micro": self.measured(reduce=(3 << 30, 3600))}, "sum of 2", 1),
            ({"one-gpu": 0.79}, "ranks on one GPU, of the bound", 3),
            ({"small": 10.1}, "8 B to 64 KiB", 1),
            ({"micro": self.measured(staged=(1 << 28, 6400))}, "through the host", 1),
        ):
            with self.subTest(goal=goal):
                self.given(**changes)
                verdicts = self.check_goals(BELOW)
                self.assertEqual([goal in name for name, verdict in verdicts.items() if verdict == "NO"], [True] * missed, verdicts)

    def test_a_wrong_result_has_no_verdict(self):
        self.given(wrong=3)
        printed = self.check(INCONCLUSIVE, "--only", "micro,one-gpu")
        self.assertEqual(printed.count("not measured (one-gpu-"), 3)

    def test_nccl(self):
        self.given(nccl="2.30.1")
        self.assertIn("| ran: ", self.check(0, "--only", "nccl-goals"))
        self.given(nccl="")
        printed = self.check(0, "--only", "nccl,nccl-goals,micro")
        self.assertRegex(printed, r"\| nccl-goals +\| skipped \| 0 +\| NCCL is not installed")
        self.assertEqual(printed.count("NCCL, one rank"), 1)
        self.assertRegex(printed, r"\| NCCL, one rank +\| not measured ")

    def test_a_failed_test_is_shown(self):
        self.given(exit={"polyring_conformance": 1})
        printed = self.check(WRONG, "--only", "conformance,streams")
        self.assertRegex(printed, r"conformance +failed +\d+ s +exit code 1; see .*/gpu-check/conformance\.log\n    said by polyring_conformance\n")
        self.assertRegex(printed, r"\| streams +\| passed ")

    def test_what_accept_says(self):
        for code, state, ended in ((9, "passed", 0), (8, "failed", WRONG)):
            self.given(exit={"accept": code})
            self.assertRegex(self.check(ended, "--only", "accept"), rf"\| accept +\| {state} ")

    def test_what_the_sanitizer_finds_is_a_failure(self):
        path = self.folder / "path"
        path.mkdir()
        self.stand_in(path / "compute-sanitizer")
        self.given(exit={"compute-sanitizer": 99})
        self.assertIn("exit code 99", self.check(WRONG, "--only", "sanitizer", PATH=f"{path}:{os.environ['PATH']}"))
        self.assertRegex(self.check(0, "--only", "sanitizer", "--quick"), r"\| sanitizer +\| skipped \| 0 +\| --quick")

    def test_what_does_not_end(self):
        # As 60 seconds would take too long here.
        script = self.folder / "scripts/gpu_check"
        script.write_text(script.read_text().replace("step conformance 60 ", "step conformance 1 "))
        self.given(sleep=30)
        self.assertRegex(self.check(INCONCLUSIVE, "--only", "conformance"), r"\| conformance +\| late +\| \d+ +\| no end within 1 s")

    def test_without_a_gpu(self):
        self.given(gpu=None)
        printed = self.check(NOT_AVAILABLE)
        self.assertIn("No GPU: no NVIDIA driver is loaded here; run this elsewhere. Nothing was measured, and nothing is claimed.", printed)
        self.assertEqual(len(re.findall(r"\| not measured \|", printed)), 8)
        self.assertIn("\ngpu_check: no NVIDIA driver is loaded here; run this elsewhere\n", printed)

    def test_results_are_kept(self):
        for name in ("gpu-check", "gpu-check.1"):
            self.check(0, "--only", "micro")
            self.assertTrue((self.folder / name / "table.md").exists())

    def test_options(self):
        for words, said in ((("--only", "nosuch"), "there is no step 'nosuch'; use some of conformance, "), (("--fast",), "unknown option"),
                            (("--out",), "--out needs a value"), (("--software-gpu", "scripts"), "there is no software GPU in")):
            self.assertIn(said, self.check(USAGE, *words))
        shutil.rmtree(self.folder / "build")
        self.assertIn("nothing is built for GPUs here", self.check(NOT_AVAILABLE))


class OnTheSoftwareGpu(Scripts):
    def setUp(self):
        super().setUp()
        (self.folder / "build").symlink_to(BUILD)

    def test_from_a_build(self):
        printed = self.check(0, "--only", "micro,nccl-goals,train,accept", "--software-gpu", str(SOFTWARE))
        self.assertIn("Times on the software GPU mean nothing: no goal is judged.", printed)
        self.assertRegex(printed, r"\| sum of 2 float32 operands, of the GPU's copy rate +\| \d+ % of \d+ GB/s, 1 MiB ")
        self.assertRegex(printed, r"\| NCCL, one rank +\| [\d.]+ \w+ out of place, ")
        self.assertNotIn("| yes |", printed)
        self.assertNotIn("| NO |", printed)


class Bundle(Scripts):
    def setUp(self):
        super().setUp()
        (self.folder / "build").symlink_to(BUILD)

    def empty_root(self):
        """With the tools that the script calls, and nothing else."""
        root = self.folder / "root"
        files = [pathlib.Path(shutil.which(tool)) for tool in TOOLS]
        said = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
        files += [pathlib.Path(path) for path in re.findall(r"(?:=> |^\t)(/\S+) \(", said, re.MULTILINE)]
        libc = next(file for file in files if file.name == "libc.so.6")
        files += [libc.parent / name for name in OF_LIBC]
        for file in set(files):
            to = root / file.relative_to("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to)
        for name in ("proc", "dev", "sys", "tmp", "opt"):
            (root / name).mkdir()
        return root

    def run_in(self, root, *words):
        """As its own machine without a network."""
        inside = ('ip link set lo up; mount -t proc proc "$0/proc"; for folder in dev sys; do mount --rbind "/$folder" "$0/$folder"; done; '
                  'exec chroot "$0" env -i PATH="$PATH" "$@"')
        return self.run_here("unshare", "--map-root-user", "--mount", "--net", "--pid", "--fork", "bash", "-c", inside, str(root), *words)

    def test_in_an_empty_root(self):
        if self.run_here("unshare", "--map-root-user", "--mount", "--net", "--pid", "--fork", "ip", "link", "set", "lo", "up").returncode != 0:
            must_run.skip("emulation", "namespaces are not permitted here")
        packed = self.run_here("scripts/gpu_bundle", "--out", "b.tar.gz")
        self.assertEqual(packed.returncode, 0, packed.stderr)
        self.assertRegex(packed.stdout, r"/b\.tar\.gz: \d+ MiB, for machines with an NVIDIA driver and glibc 2\.\d+ or later\n")
        self.assertLessEqual((self.folder / "b.tar.gz").stat().st_size, 50 << 20)
        root = self.empty_root()
        self.assertEqual(self.run_here("tar", "-xzf", "b.tar.gz", "-C", str(root / "opt")).returncode, 0)
        libraries = {path.name for path in (root / "opt/polyring-gpu/build").rglob("*.so*")}
        self.assertFalse([name for name in libraries if re.match(r"lib(c|m|cuda|nccl)\.so", name)])

        check = "/opt/polyring-gpu/scripts/gpu_check"
        ran = self.run_in(root, check)
        self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stdout + ran.stderr)
        self.assertRegex(ran.stderr, r"\Agpu_check: no NVIDIA driver is loaded here; [^\n]+\n\Z")

        shutil.copytree(SOFTWARE, root / "software_gpu")
        ran = self.run_in(root, check, "--quick", "--software-gpu", "/software_gpu", "--only", "streams,nccl,micro,nccl-goals,processes")
        self.assertEqual(ran.returncode, INCONCLUSIVE, ran.stdout + ran.stderr)  # there is no python3
        for step in ("streams", "nccl", "micro", "nccl-one", "nccl-two", "processes"):
            self.assertRegex(ran.stdout, rf"(?m)^{step} +passed ")
        self.assertIn('"name": "device_copy"', ran.stdout)

        (root / "opt/polyring-gpu/build/glibc").write_text("99.1\n")
        ran = self.run_in(root, check)
        self.assertEqual((ran.returncode, ran.stdout), (NOT_AVAILABLE, ""))
        self.assertRegex(ran.stderr, r"\Agpu_check: this bundle needs glibc 99\.1 or later, and this machine has 2\.\d+; [^\n]+\n\Z")

    def test_too_large(self):
        # Small programs, since Open MPI alone is larger than the limit.
        (self.folder / "build").unlink()
        for name in ("bin/polyring", "bin/polyring_conformance", "bin/polyring_gpu_micro", "bin/software_gpu_collectives_test",
                     "bin/software_gpu_stream_test", "bin/software_gpu_stream_rank", "lib/polyring/libpolyring_cuda.so"):
            file = self.folder / "build" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(shutil.which("true"), file)
        shutil.copy(BUILD / "CMakeCache.txt", self.folder / "build")
        ran = self.run_here("scripts/gpu_bundle", "--limit", "1")
        self.assertEqual((ran.returncode, ran.stdout), (BELOW, ""), ran.stderr)
        self.assertRegex(ran.stderr, r"\Agpu_bundle: the archive has \d+ MiB, more than 1; [^\n]+\n\Z")
        self.assertFalse((self.folder / "polyring-gpu.tar.gz").exists())

    def test_options(self):
        for words, code, said in ((("--limit", "x"), USAGE, "--limit needs a number of MiB"), (("--out", "no/such/file"), 11, "cannot write into"),
                                  (("x",), USAGE, "unknown option 'x'")):
            ran = self.run_here("scripts/gpu_bundle", *words)
            self.assertEqual((ran.returncode, ran.stdout), (code, ""), ran.stderr)
            self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
