"""Runs scripts/race in a copy of the scripts whose set-up, build, mpiruns, hosts and polyring are stand-ins."""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
NOT_AVAILABLE, USAGE, WRONG_RESULT, MPI_FAILED = 5, 6, 7, 10
LAUNCHES = ["openmpi", "openmpi-no-cma", "mpich", "gloo"]
BETWEEN_HOSTS = [*LAUNCHES[:3], "mpich-no-rendezvous", "gloo"]

# Writes a result in which each algorithm takes as long as $TIMES says, or 30 us, in six samples; null is wrong.
POLYRING = """
import json, os, pathlib, sys, time
words = sys.argv[1:]
with open(os.environ["CALLS"], "a") as calls:
    print(os.environ.get("OMPI_ALLOW_RUN_AS_ROOT"), *words, file=calls)
if "gloo:ring" in words:
    sys.exit(0)  # only asked whether it is there
value = lambda option: words[words.index(option) + 1]
everyone = {"mpi:all": ["mpi:ring", "mpi:linear"], "gloo:all": ["gloo:bcube", "gloo:chunked"]}
names = [name for asked in value("--algorithm").split(",") for name in everyone.get(asked, [asked])]
times = {"multi-ring": 10.0} | json.loads(os.environ.get("TIMES", "{}"))
wrong_in_place = [name for name in names if times.get(name + " in place", 1) is None]
rows = []
for name in names:
    us = times.get(name, 30.0)
    if us is None:
        continue
    if words[0] == "train":
        rows.append({"algorithm": name, "compute_ms": 1.0, "iteration_ms": {"samples": [1 + us / 1e3] * 6}})
        continue
    for in_place in (False, True):
        if in_place and name in wrong_in_place:
            continue
        time_us = {"samples": [us] * 6, "median": us}
        rows.append({"algorithm": name, "in_place": in_place, "size_bytes": 64, "bound_us": 9.0, "time_us": time_us})
wrong = [f"Wrong results: {name} of 64 bytes gave 3 wrong elements and was not timed." for name in names if times.get(name, 1) is None]
wrong += [f"Wrong results: {name} of 64 bytes in place gave 3 wrong elements and was not timed." for name in wrong_in_place]
versions = {"mpi": "an MPI", "compiler": "a compiler"}
result = {"kind": words[0], "commit": os.environ.get("COMMIT", "abc"), "rows": rows, "notes": wrong, "versions": versions}
pathlib.Path(value("-J")).write_text(json.dumps(result))
if "HANG" in os.environ:
    time.sleep(300)
sys.exit(7 if wrong else 0)
"""


class Race(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "polyring"
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        self.set_seconds("LISTENING_S", 0.05)
        self.calls = self.root / "calls"
        self.out = self.root / "race"
        self.environment = os.environ | {"CALLS": str(self.calls), "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        self.fake("scripts/setup", "exit 0")
        self.fake("scripts/build", "exit 0")
        self.fake("scripts/emulate", 'while [[ $1 != */polyring && $1 != true ]]; do shift; done; exec "$@"')
        for name in ("mpirun.openmpi", "mpiexec.mpich"):
            self.fake(f"bin/{name}", 'while [[ $1 != */polyring ]]; do shift; done; exec "$@"')
        for folder in ("build", "build-mpich"):
            self.fake(f"{folder}/bin/polyring", f'exec {sys.executable} -c {shlex.quote(POLYRING)} "$@"')

    def fake(self, name, body):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    def start(self, *options, **changes):
        return subprocess.Popen([self.root / "scripts/race", *options], cwd=self.root, env=self.environment | changes,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def race(self, code, *options, **changes):
        """What it printed, after ending with this exit code."""
        job = self.start(*options, **changes)
        output, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, code, output + errors)
        self.assertEqual(list(self.root.glob(".race*")), [])
        return output + errors

    def result(self, folder="race"):
        return json.loads((self.root / folder / "race.json").read_text())

    def counts(self, folder="race"):
        """How many works meet their goals, miss one, and are incomplete."""
        return tuple(self.result(folder)[f"goals_{standing}"] for standing in ("met", "missed", "incomplete"))

    def launched(self):
        """The size, iterations and warm-ups of each launch, and who raced."""
        calls = [call.split() for call in self.calls.read_text().splitlines()]
        value = lambda words, option: words[words.index(option) + 1]
        return [(" ".join(value(words, option) for option in ("-e", "-n", "-w")), value(words, "--algorithm"))
                for words in calls if words[-1] != "gloo:ring"]

    def assert_incomplete(self, lacking, folder="race"):
        """The only work, in both placements, for what these launches lack."""
        (work,) = self.result(folder)["works"]
        self.assertEqual((work["standing"], self.counts(folder)), ("incomplete", (0, 0, 1)))
        self.assertEqual([(verdict["placement"], verdict["standing"], verdict["lacking"]) for verdict in work["verdicts"]],
                         [(placement, "incomplete", lacking) for placement in ("out-of-place", "in-place")])

    def test_a_work_in_all_launches(self):
        output = self.race(0, "--only", "host-8B", TIMES='{"mpi:ring": 20}')
        self.assertIn("1 of 1 works meet their goals.\n", output)
        self.assertIn(output[output.index("# Polyring"):output.index("\nWritten to")].strip(), (self.out / "race.md").read_text())
        (work,) = self.result()["works"]
        self.assertEqual([launch["launch"] for launch in work["launches"]], LAUNCHES)
        self.assertEqual({verdict["best_contender"] for verdict in work["verdicts"]}, {"mpi:ring"})
        self.assertEqual([(verdict["placement"], verdict["standing"], verdict["lacking"]) for verdict in work["verdicts"]],
                         [("out-of-place", "met", {}), ("in-place", "met", {})])
        for launch in work["launches"]:
            self.assertTrue((self.out / launch["result"]).exists())
            self.assertNotIn(str(self.root), launch["command"])
        self.assertIn("btl_vader_single_copy_mechanism none", work["launches"][1]["command"])
        self.assertEqual([algorithms for _, algorithms in self.launched()], [*["multi-ring,mpi,mpi:all"] * 3, "multi-ring,gloo:all"])
        self.assertTrue(all(call.startswith("1 ") for call in self.calls.read_text().splitlines()))

    def test_goals_that_are_missed_are_no_failure(self):
        output = self.race(0, "--only", "host-64M-library,host-8B", TIMES='{"mpi": 10}')
        self.assertIn("1 of 2 works meet their goals.\n", output)
        self.assertRegex(output, r"host-64M-library .*\| 1\.00 \[1\.00, 1\.00\] +\| >= 3\.5 +\| NO +"
                                 r"\| 1\.11 \(openmpi\) +\| <= 1\.43 \| yes")
        self.assertEqual(self.counts(), (1, 1, 0))

    def test_the_mpi_with_the_best_rival_does_not_hide_how_far_the_other_is_from_the_bound(self):
        of_mpich = 'export TIMES=\'{"multi-ring": 14.4, "mpi": 36, "mpi:ring": 36, "mpi:linear": 36}\'\n'
        self.fake("build-mpich/bin/polyring", f'{of_mpich}exec {sys.executable} -c {shlex.quote(POLYRING)} "$@"')
        output = self.race(0, "--only", "cluster-4x4-16M", TIMES='{"multi-ring": 9.9, "mpi": 17.82}')
        self.assertIn("0 of 1 works meet their goals.\n", output)
        self.assertRegex(output, r"mpi \(openmpi\) .*\| 1\.80 .*\| >= 1\.7 +\| yes +\| 1\.60 \(mpich\) +\| <= 1\.15 +\| NO +\| - ")
        self.assertEqual(self.counts(), (0, 1, 0))
        verdict = self.result()["works"][0]["verdicts"][0]
        self.assertEqual((verdict["ratio_goal"], verdict["launch"]), ("met", "openmpi"))
        self.assertEqual((verdict["bound_goal"], verdict["of_bound_launch"]), ("missed", "mpich"))

    def test_heats_between_hosts(self):
        times = {"mpi": 100, "mpi:ring": 20, "mpi:linear": 41, "gloo:bcube": 90, "gloo:chunked": 181}
        self.race(0, "--only", "cluster-2x2", TIMES=json.dumps(times))
        heat, full = ("4M 1 0", "mpi,mpi:all"), ("16M 12 1", "multi-ring,mpi,mpi:ring")
        # Gloo has its own heat: the one that is promising is slow beside MPI's.
        gloo = [("4M 1 0", "gloo:all"), ("16M 12 1", "multi-ring,gloo:bcube")]
        self.assertEqual(self.launched(), [heat, full, full, heat, full, full, *gloo])
        launches = self.result()["works"][0]["launches"]
        self.assertEqual([launch["launch"] for launch in launches],
                         ["openmpi", "openmpi", "openmpi-no-cma", "mpich", "mpich", "mpich-no-rendezvous", "gloo", "gloo"])
        self.assertEqual([launch["launch"] for launch in launches if "UCX_RNDV_THRESH inf" in launch["command"]],
                         ["mpich-no-rendezvous"])

    def test_heats_on_this_host(self):
        of_mpich = 'export TIMES=\'{"mpi:linear": 59}\'\n'
        self.fake("build-mpich/bin/polyring", f'{of_mpich}exec {sys.executable} -c {shlex.quote(POLYRING)} "$@"')
        self.race(0, "--only", "host-64M-malloc", TIMES='{"mpi": 31, "mpi:ring": 61, "mpi:linear": 20, "gloo:chunked": 61}')
        launches = (("mpi", ["mpi", "mpi:linear"]), ("mpi", ["mpi", "mpi:linear"]), ("mpi", ["mpi", "mpi:ring", "mpi:linear"]),
                    ("gloo", ["gloo:bcube"]))
        expected = []  # a heat at the same size for each launch, also for the one without CMA
        for library, racing in launches:
            expected.append(("64M 2 1", "mpi,mpi:all" if library == "mpi" else "gloo:all"))
            expected.append(("64M 20 3", ",".join(["multi-ring", *racing])))
        self.assertEqual(self.launched(), expected)
        recorded = [launch["promising"] for launch in self.result()["works"][0]["launches"] if "promising" in launch]
        self.assertEqual(recorded, [racing for _, racing in launches])
        for call in self.calls.read_text().splitlines():
            self.assertEqual("--buffers malloc" in call, "gloo:ring" not in call)

    def test_rounds_share_their_heats(self):
        self.race(0, "--only", "host-1M", "--rounds", "2")
        self.assertEqual(len(self.launched()), 4 + 2 * 4)

    def test_rounds(self):
        self.race(0, "--only", "host-8B", "--rounds", "2")
        (work,) = self.result()["works"]
        self.assertEqual(len({launch["result"] for launch in work["launches"]}), 8)
        self.assertEqual(len(work["contests"]), 8)  # 4 launches, 2 placements
        self.assertEqual(work["standing"], "met")

    def test_a_round_that_fails_leaves_its_work_incomplete(self):
        self.fake("build-mpich/bin/polyring", '[[ "$*" != *mpich-2.json* ]] || { echo "polyring: rank 1 is gone" >&2; exit 10; }\n'
                  f'exec {sys.executable} -c {shlex.quote(POLYRING)} "$@"')
        self.race(MPI_FAILED, "--only", "host-8B", "--rounds", "2")
        self.assertEqual(len(self.result()["works"][0]["contests"]), 8)
        self.assert_incomplete({"mpich": "failed"})

    def test_training_steps(self):
        output = self.race(0, "--only", "cluster-4x4-resnet50-per-tensor", TIMES='{"mpi": 5}')
        self.assertIn("0 of 1 works meet their goals.\n", output)
        self.assertRegex(output, r"\| step +\| 10 us +\| mpi \(openmpi\) +\| 5 us +\| 0\.50 ")

    def test_wrong_results(self):
        output = self.race(WRONG_RESULT, "--only", "host-8B", TIMES='{"mpi:linear": null}')
        self.assertIn("- Wrong: host-8B, openmpi: mpi:linear of 64 bytes gave 3 wrong elements", output)
        self.assert_incomplete(dict.fromkeys(("openmpi", "openmpi-no-cma", "mpich"), "wrong result"))
        self.race(WRONG_RESULT, "--only", "host-8B", "--out", "of-gloo", TIMES='{"gloo:bcube": null}')
        self.assert_incomplete({"gloo": "wrong result"}, "of-gloo")
        output = self.race(WRONG_RESULT, "--only", "host-8B", TIMES='{"multi-ring": null}')
        self.assertIn("0 of 1 works meet their goals, 1 is incomplete.\n", output)
        self.assertRegex(output, r"host-8B +\| in-place +\| - .*\| incomplete .*\| openmpi \(wrong result\), ")

    def test_a_placement_in_which_polyring_was_wrong(self):
        output = self.race(WRONG_RESULT, "--only", "host-8B", TIMES='{"multi-ring in place": null}')
        self.assertIn("0 of 1 works meet their goals, 1 is incomplete.\n", output)
        self.assertEqual(len(self.result()["works"][0]["contests"]), 4)
        self.assertRegex(output, r"host-8B +\| in-place +\| - .*\| incomplete ")
        self.assert_incomplete(dict.fromkeys(LAUNCHES, "wrong result"))

    def test_what_is_not_there_is_left_out_and_told(self):
        (self.root / "bin/mpiexec.mpich").unlink()
        output = self.race(NOT_AVAILABLE, "--only", "host-8B", PATH=f"{self.root}/bin:{self.tools('git', 'bash', 'env', 'uname')}")
        self.assertIn("- Left out 1 time: mpich: there is no mpiexec.mpich; run scripts/setup --mpich\n", output)
        self.assertIn("0 of 1 works meet their goals, 1 is incomplete.\n", output)
        self.assertRegex(output, r"host-8B .*\| >= 1 +\| incomplete \| .*\| mpich \(left out\) +\|")
        self.assertEqual(len(self.result()["works"][0]["contests"]), 6)
        self.assert_incomplete({"mpich": "left out"})

    def test_without_emulated_hosts(self):
        self.fake("scripts/emulate", "echo 'emulate: network namespaces need root' >&2; exit 5")
        output = self.race(NOT_AVAILABLE, "--only", "cluster-2x2,host-8B")
        self.assertIn("- Left out 1 time: mpich: between emulated hosts: emulate: network namespaces need root\n", output)
        self.assertRegex(output, r"cluster-2x2 .*\| - .*\| incomplete .*\| incomplete \| openmpi \(left out\), ")
        self.assertIn("1 of 2 works meet their goals, 1 is incomplete.\n", output)

    def test_without_gloo(self):
        self.fake("build/bin/polyring", '[[ "$*" != *gloo:ring* ]] || { echo "polyring: no Gloo here" >&2; exit 5; }\n'
                  f'exec {sys.executable} -c {shlex.quote(POLYRING)} "$@"')
        output = self.race(NOT_AVAILABLE, "--only", "host-8B,cluster-2x2")
        self.assertIn("- Left out 2 times: gloo: polyring: no Gloo here\n", output)
        self.assertEqual(output.count("\n- Left out"), 1)
        self.assertNotIn("gloo:all", self.calls.read_text())
        for work, launches in zip(self.result()["works"], (LAUNCHES, BETWEEN_HOSTS)):
            self.assertEqual({contest["launch"] for contest in work["contests"]}, set(launches) - {"gloo"})
            self.assertEqual([(verdict["ratio_goal"], verdict["lacking"]) for verdict in work["verdicts"]],
                             [("incomplete", {"gloo": "left out"})] * 2)

    def test_a_goal_that_gloo_alone_misses_is_missed(self):
        output = self.race(0, "--only", "host-8B", TIMES='{"gloo:chunked": 9}')
        self.assertRegex(output, r"host-8B .*\| gloo:chunked \(gloo\) +\| 9 us +\| 0\.90 .*\| NO ")
        self.assertEqual(self.counts(), (0, 1, 0))

    def test_a_launch_that_fails(self):
        self.fake("build-mpich/bin/polyring", "echo 'polyring: rank 1 is gone' >&2; exit 10")
        output = self.race(MPI_FAILED, "--only", "host-8B")
        self.assertIn("- Failed: host-8B, mpich: polyring: rank 1 is gone\n", output)
        self.assertEqual(len(self.result()["works"][0]["contests"]), 6)
        self.assert_incomplete({"mpich": "failed"})

    def test_a_launch_that_fails_does_not_hide_what_another_misses(self):
        self.fake("build-mpich/bin/polyring", "echo 'polyring: rank 1 is gone' >&2; exit 10")
        output = self.race(MPI_FAILED, "--only", "host-8B", TIMES='{"mpi": 9}')
        self.assertRegex(output, r"host-8B .*\| NO +\| .*\| mpich \(failed\) +\|")
        self.assertEqual(self.counts(), (0, 1, 0))

    def set_seconds(self, name, seconds):
        path = self.root / "scripts/racing/launching.py"
        text, changes = re.subn(rf"^{name} = [\d.]+", f"{name} = {seconds}", path.read_text(), flags=re.MULTILINE)
        self.assertEqual(changes, 1)
        path.write_text(text)

    def test_an_mpi_that_hangs_when_its_result_is_written(self):
        self.set_seconds("PARTING_S", 0.3)
        self.race(0, "--only", "host-8B", HANG="1")
        self.assertEqual(len(self.result()["works"][0]["contests"]), 8)

    def test_an_interrupted_race_reports_what_is_done(self):
        self.fake("build-mpich/bin/polyring", f"echo $$ > {self.root}/waiting; exec sleep 300")
        job = self.start("--only", "host-8B,host-1K")
        deadline = time.monotonic() + 50
        while not (self.root / "waiting").exists() and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        job.send_signal(signal.SIGTERM)
        output, errors = job.communicate(timeout=30)
        self.assertEqual(job.returncode, 130, output + errors)
        self.assertIn("- Interrupted: not all works were raced.\n", output)
        self.assertFalse(self.result()["complete"])
        self.assert_incomplete({"mpich": "no result", "gloo": "no result"})
        self.ends((self.root / "waiting").read_text().strip())

    def ends(self, process):
        deadline = time.monotonic() + 10  # a signal that was sent takes its time
        while self.runs(process) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(self.runs(process))

    @staticmethod
    def runs(process):
        """Whether it does, and is not dead and waiting for somebody to take its exit code."""
        try:
            status = pathlib.Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] != "Z"

    def test_results_are_kept(self):
        for expected in ("race", "race.1", "race.2"):
            self.assertIn(f"Written to {self.root}/{expected}\n", self.race(0, "--only", "host-8B"))
            self.assertEqual(self.result(expected)["goals_met"], 1)

    def test_given_programs_are_not_built(self):
        self.fake("scripts/build", "exit 1")
        output = self.race(NOT_AVAILABLE, "--only", "host-8B", "--openmpi-program", "build/bin/polyring")
        self.assertIn("- Left out 1 time: mpich: no --mpich-program is given\n", output)
        self.assert_incomplete({"mpich": "left out"})

    def test_the_commit_is_that_of_the_programs(self):
        self.assertIn("# Polyring abc against its contenders", self.race(0, "--only", "host-8B"))
        self.assertEqual(self.result()["commit"], "abc")
        self.fake("build-mpich/bin/polyring", f'export COMMIT=def-dirty\nexec {sys.executable} -c {shlex.quote(POLYRING)} "$@"')
        self.assertIn("# Polyring abc with openmpi, def-dirty with mpich against", self.race(0, "--only", "host-8B"))

    def test_a_failing_build_stops_with_its_code(self):
        self.fake("scripts/build", "exit 3")
        self.race(3, "--only", "host-8B")
        self.assertFalse(self.out.exists())

    def test_quick(self):
        output = self.race(0, "--quick", "--only", "host-64M-malloc,cluster-2x2")
        self.assertIn(", but --quick is no measurement.\n", output)
        self.assertEqual({options for options, _ in self.launched()}, {"1M 3 3", "1M 3 1"})
        self.assertEqual(len(self.launched()), len(LAUNCHES) + len(BETWEEN_HOSTS))

    def test_works_are_chosen_by_patterns(self):
        self.race(0, "--only", "host-1K,host-?[BM],host-8B")
        self.assertEqual([work["work"] for work in self.result()["works"]], ["host-1K", "host-1M", "host-8B"])

    def test_list_has_every_line_of_the_goals(self):
        output = self.race(0, "--list")
        near, ahead = r"> 1, sure +\| <= 1\.25", r"> 1, sure +\| -"
        goals = {
            "host-64M-library": r">= 3\.5 +\| <= 1\.43", "host-64M-malloc": r">= 2 +\| -", "host-1M": r">= 1\.5 +\| -",
            "host-8B": r">= 1 +\| -", "host-1K": r">= 1 +\| -", "host-16M-4ranks": r">= 1\.5 +\| -",
            "host-16M-8ranks": r">= 1\.5 +\| -", "cluster-4x4-16M": r">= 1\.7 +\| <= 1\.15", "cluster-2x2": near,
            "cluster-4x2": near, "cluster-8x2": near, "cluster-8x2-50mbit": near, "cluster-3x3": near, "cluster-racks": near,
            "cluster-4x4-8K": ahead, "cluster-4x4-64K": ahead, "cluster-4x4-resnet50-fused": ahead,
            "cluster-4x4-resnet50-per-tensor": ahead,
        }
        self.assertEqual(re.findall(r"^\| ([a-z]+-\S+) ", output, re.MULTILINE), list(goals))
        for name, goal in goals.items():
            self.assertRegex(output, rf"(?m)^\| {name} +\| .* \| {goal} +\|$")
        self.assertFalse(self.calls.exists())

    def test_bad_options_are_refused_before_any_work(self):
        self.fake("scripts/build", f"touch {self.calls}")
        for options, naming in ((["--only", "host-2M"], "'host-2M'"), (["--only", ""], "''"), (["--only", "host-8B,rack-*"], "'rack-*'"), (["--rounds", "0"], "'0'"),
                                (["--rounds", "many"], "'many'"), (["--out"], "--out"), (["--fast"], "--fast"), (["race"], "race"),
                                (["--openmpi-program", "README.md"], "'README.md'"), (["--onl", "host-8B"], "--onl")):
            with self.subTest(options=options):
                output = self.race(USAGE, *options)
                self.assertEqual(len(output.splitlines()), 1, output)
                self.assertIn(naming, output)
                self.assertFalse(self.calls.exists())

    def tools(self, *names):
        """A folder with these tools alone, and this Python."""
        folder = self.root / "tools"
        folder.mkdir()
        for name in names:
            if found := shutil.which(name):
                (folder / name).symlink_to(found)
        (folder / "python3").symlink_to(sys.executable)
        return folder


if __name__ == "__main__":
    unittest.main(verbosity=2)
