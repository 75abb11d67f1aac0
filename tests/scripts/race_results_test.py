"""The arithmetic of scripts/race, on recorded results of polyring allreduce, and that no job of it outlives it."""

import collections
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import unittest.mock

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "scripts"))
RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"

from racing import launching, results, tables, works  # noqa: E402  # found by the line above


def recorded(name):
    return json.loads((RECORDED / f"{name}.json").read_text())


def times(**samples):
    """A result file with these samples of each algorithm, in us, where _ stands for the colon."""
    rows = [
        {"algorithm": name.replace("_", ":").replace("multi:ring", "multi-ring"), "in_place": False, "size_bytes": 64,
         "bound_us": 5.0, "time_us": {"samples": of_row, "median": results.estimate(of_row).median}}
        for name, of_row in samples.items()
    ]
    return {"kind": "allreduce", "rows": rows}


def steps(**samples):
    rows = [{"algorithm": name.replace("_", "-"), "compute_ms": 1.0, "iteration_ms": {"samples": of_row}}
            for name, of_row in samples.items()]
    return {"kind": "train", "rows": rows}


def verdicts(goal, found, faults=(), rounds=1):
    """Of a work whose launches and placements are those of `found`, beside those with faults."""
    placements = list(dict.fromkeys(contest.placement for contest in found))
    launches = list(dict.fromkeys(contest.launch for contest in found))
    return results.verdicts(goal, found, results.lacking(found, placements, launches, rounds, dict(faults)))


class Statistics(unittest.TestCase):
    def test_medians_and_intervals_are_those_of_polyring(self):
        for name, count in (("host", 20), ("cluster", 9)):
            for row in recorded(name)["rows"]:
                with self.subTest(name=name, algorithm=row["algorithm"]):
                    time = row["time_us"]
                    self.assertEqual(len(time["samples"]), count)
                    estimate = results.estimate(time["samples"])
                    self.assertAlmostEqual(estimate.median, time["median"])
                    self.assertEqual((estimate.low, estimate.high), (time["ci_low"], time["ci_high"]))

    def test_ranks_of_the_interval(self):
        # From binomial(n, 1/2).
        for count, low in ((1, 1), (5, 1), (6, 1), (9, 2), (10, 2), (20, 6), (100, 40), (1000, 469)):
            self.assertEqual(results.low_rank(count), low, count)

    def test_ratios_are_of_pairs(self):
        # Medians apart, the contender is as fast; pair by pair it is twice as slow in most.
        ratio = results.pairwise([2, 4, 8, 16, 1], [1, 2, 4, 8, 16])
        self.assertEqual((ratio.median, ratio.low, ratio.high), (2, 1 / 16, 2))
        with self.assertRaises(ValueError):
            results.pairwise([1, 2], [1])


class Contests(unittest.TestCase):
    def test_a_rival_that_is_faster(self):
        goal = works.Goal(of_bound=1.25)
        made = verdicts(goal, results.contests("openmpi", recorded("cluster")))
        self.assertEqual([verdict.placement for verdict in made], ["out-of-place", "in-place"])
        for verdict in made:
            self.assertEqual(verdict.closest.best.algorithm, "mpi")
            self.assertLess(verdict.closest.best.ratio.high, 1)
            self.assertEqual((verdict.ratio, verdict.of_bound), (results.MISSED, results.MISSED))

    def test_contenders_that_are_slower(self):
        for verdict in verdicts(works.Goal(1.5), results.contests("openmpi", recorded("host"))):
            self.assertGreater(verdict.closest.best.ratio.median, 1.5)
            self.assertEqual(verdict.ratio, results.MET)
            self.assertIsNone(verdict.of_bound)

    def test_the_best_rival_of_all_launches_is_the_closest(self):
        first = results.contests("openmpi", times(multi_ring=[10.0] * 6, mpi=[30.0] * 6, gloo_ring=[40.0] * 6))
        # A faster time, but beside a Polyring that was faster too.
        second = results.contests("mpich", times(multi_ring=[5.0] * 6, mpi=[20.0] * 6))
        (verdict,) = verdicts(works.Goal(3.0, of_bound=2.0), first + second)
        self.assertEqual((verdict.closest.launch, verdict.closest.best.algorithm), ("openmpi", "mpi"))
        self.assertEqual(verdict.closest.best.ratio.median, 3)
        self.assertEqual(verdict.farthest.of_bound, 2)
        self.assertEqual(verdict.standing, results.MET)

    def test_being_ahead_is_being_so_of_every_contender(self):
        steady = results.contests("openmpi", times(multi_ring=[10.0] * 6, mpi=[12.0] * 6))
        unsteady = results.contests("mpich", times(multi_ring=[10.0] * 7, mpi=[9.0, 15.0, 15.0, 15.0, 15.0, 15.0, 15.0]))
        self.assertEqual(verdicts(works.Goal(), steady)[0].ratio, results.MET)
        (verdict,) = verdicts(works.Goal(), steady + unsteady)
        self.assertEqual(verdict.closest.launch, "openmpi")
        self.assertEqual(verdict.ratio, results.MISSED)

    def test_rounds(self):
        rounds = [contest for ours in (10.0, 20.0, 12.0)
                  for contest in results.contests("openmpi", times(multi_ring=[ours] * 6, mpi=[24.0] * 6))]
        (contest,) = results.by_launch(rounds)
        self.assertEqual(contest.time_us, results.Estimate(12, 10, 20))
        self.assertEqual(contest.best.ratio, results.Estimate(2, 1.2, 2.4))
        self.assertEqual(contest.rounds, 3)

    def test_a_rival_that_was_wrong_in_a_round_does_not_race(self):
        rounds = [contest for result in (times(multi_ring=[1.0], mpi=[2.0], mpi_ring=[0.1]), times(multi_ring=[1.0], mpi=[2.0]))
                  for contest in results.contests("openmpi", result)]
        (contest,) = results.by_launch(rounds)
        self.assertEqual([contender.algorithm for contender in contest.contenders], ["mpi"])

    def test_no_contest_without_polyring_or_without_contenders(self):
        self.assertEqual(results.contests("openmpi", times(mpi=[1.0])), [])
        self.assertEqual(results.contests("openmpi", times(multi_ring=[1.0])), [])

    def test_several_sizes_are_no_contest(self):
        twice = times(multi_ring=[1.0])
        twice["rows"] *= 2
        with self.assertRaises(ValueError):
            results.contests("openmpi", twice)

    def test_training_steps_are_without_their_computation(self):
        (contest,) = results.contests("openmpi", steps(multi_ring=[11.0, 11.0], mpi=[31.0, 31.0]))
        self.assertEqual((contest.placement, contest.time_us.median, contest.bound_us), ("step", 10000, None))
        self.assertEqual(contest.best.ratio.median, 3)

    def test_who_goes_on_after_a_heat(self):
        heat = times(mpi=[10.0], mpi_ring=[20.0], mpi_linear=[20.1], gloo_ring=[50.0])
        self.assertEqual(results.promising(heat, 2), ["mpi", "mpi:ring"])
        self.assertEqual(results.promising(times(mpi=[10.0, 11.0], mpi_ring=[400.0, 19.0]), 2), ["mpi", "mpi:ring"])
        small = times(mpi_linear=[1.0], mpi=[3.0])
        for row in small["rows"]:
            row["size_bytes"] = 8
        heat["rows"] += small["rows"]
        self.assertEqual(sorted(results.promising(heat, 2)), ["mpi", "mpi:linear", "mpi:ring"])


class Goals(unittest.TestCase):
    def test_what_meets_them(self):
        for goal, low, median, high, met in (
            (works.Goal(), 1.01, 1.1, 1.2, True), (works.Goal(), 0.99, 1.1, 1.2, False), (works.Goal(), 0.8, 0.9, 0.99, False),
            (works.Goal(1.0), 0.9, 1.0, 1.2, True), (works.Goal(1.0), 0.9, 0.98, 1.2, False), (works.Goal(1.5), 1.4, 1.49, 1.6, False),
        ):
            with self.subTest(goal=goal, median=median):
                self.assertEqual(goal.met_by(results.Estimate(median, low, high)), met)

    def test_an_unknown_bound_is_not_met_silently(self):
        contest = dataclasses.replace(results.contests("openmpi", recorded("host"))[0], bound_us=1.0)
        unknown = dataclasses.replace(contest, bound_us=None)
        goal = works.Goal(0.1, of_bound=1e9)
        self.assertEqual(verdicts(goal, [contest])[0].standing, results.MET)
        for name, found in (("alone", [unknown]), ("in one launch", [contest, dataclasses.replace(unknown, launch="mpich")])):
            with self.subTest(name):
                (verdict,) = verdicts(goal, found)
                self.assertEqual((verdict.ratio, verdict.of_bound), (results.MET, results.INCOMPLETE))
                self.assertEqual(verdict.lacking, {found[-1].launch: "no bound"})
        (verdict,) = verdicts(goal, [contest, unknown], rounds=2)
        self.assertEqual(verdict.of_bound, results.INCOMPLETE)

    def test_every_goal_of_a_work_counts(self):
        found = results.contests("openmpi", times(multi_ring=[10.0] * 6, mpi=[20.0] * 6))
        for goal, standing in ((works.Goal(2, 2.0), results.MET), (works.Goal(2, 1.9), results.MISSED),
                               (works.Goal(2.1, 2.0), results.MISSED), (works.Goal(2), results.MET)):
            with self.subTest(goal=goal):
                self.assertEqual(verdicts(goal, found)[0].standing, standing)

    def test_the_bound_counts_in_every_launch(self):
        # The bound is 5 us. The launch with the best contender is near it, the other is not.
        near = results.contests("openmpi", times(multi_ring=[5.5] * 6, mpi=[9.9] * 6))
        far = results.contests("mpich", times(multi_ring=[8.0] * 6, mpi=[20.0] * 6))
        goal = works.Goal(1.7, 1.15)
        self.assertEqual(verdicts(goal, near)[0].standing, results.MET)
        for found in (near + far, far + near):
            (verdict,) = verdicts(goal, found)
            self.assertEqual((verdict.ratio, verdict.of_bound), (results.MET, results.MISSED))
            self.assertEqual((verdict.closest.launch, verdict.farthest.launch), ("openmpi", "mpich"))
            work = dataclasses.replace(works.WORKS[0], goal=goal)
            self.assertRegex(tables.summary([(work, [verdict])]), r"\| mpi \(openmpi\) .*\| yes \| 1\.60 \(mpich\) .*\| NO +\| - ")

    def test_a_launch_that_lacks_leaves_a_goal_incomplete(self):
        found = results.contests("openmpi", times(multi_ring=[5.0] * 6, mpi=[10.0] * 6))
        for why in ("failed", "left out", "wrong result"):
            with self.subTest(why):
                (verdict,) = verdicts(works.Goal(2, 1.15), found, {"mpich": why})
                self.assertEqual((verdict.ratio, verdict.of_bound), (results.INCOMPLETE, results.INCOMPLETE))
                work = dataclasses.replace(works.WORKS[0], goal=works.Goal(2, 1.15))
                self.assertRegex(tables.summary([(work, [verdict])]), rf"\| incomplete .*\| incomplete \| mpich \({why}\) \|")
                self.assertEqual(verdicts(works.Goal(2.1), found, {"mpich": why})[0].standing, results.MISSED)

    def test_each_launch_must_be_in_each_placement_and_round(self):
        found = results.contests("openmpi", times(multi_ring=[5.0] * 6, mpi=[10.0] * 6))
        lacking = results.lacking(found * 2, ["out-of-place", "in-place"], ["openmpi", "mpich"], 3, {})
        self.assertEqual(lacking, {"out-of-place": {"openmpi": "2 of 3 rounds", "mpich": "no result"},
                                   "in-place": {"openmpi": "no result", "mpich": "no result"}})
        self.assertEqual(results.lacking(found * 3, ["out-of-place"], ["openmpi"], 3, {}), {"out-of-place": {}})
        of_placements = results.verdicts(works.Goal(2), found, {"out-of-place": {}, "in-place": {"openmpi": "no result"}})
        self.assertEqual([verdict.standing for verdict in of_placements], [results.MET, results.INCOMPLETE])

    def test_nothing_that_raced_is_nothing_met(self):
        (verdict,) = results.verdicts(works.Goal(1.0, 1.15), [], {"step": {}})
        self.assertEqual((verdict.ratio, verdict.of_bound), (results.INCOMPLETE, results.INCOMPLETE))


class Tables(unittest.TestCase):
    def test_durations(self):
        for us, text in ((0.5, "0.5 us"), (12.345, "12.3 us"), (999.4, "999 us"), (1000, "1 ms"), (1007000, "1.01 s"), (6.4e7, "64 s")):
            self.assertEqual(tables.duration(us), text)

    def test_how_many_works_meet_their_goals(self):
        for met, missed, incomplete, text in ((1, 1, 0, "1 of 2 works meet their goals"),
                                              (1, 1, 1, "1 of 3 works meet their goals, 1 is incomplete"),
                                              (0, 0, 2, "0 of 2 works meet their goals, 2 are incomplete")):
            goals = collections.Counter({results.MET: met, results.MISSED: missed, results.INCOMPLETE: incomplete})
            self.assertEqual(tables.count(goals), text)

    def test_a_goal_that_is_missed_stands_out(self):
        work = works.Work("here", "", works.host(2), works.Goal(of_bound=1.25), (), 1)
        made = verdicts(work.goal, results.contests("openmpi", recorded("cluster")))
        lines = tables.summary([(work, made)]).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertEqual({len(line) for line in lines}, {len(lines[0])})
        self.assertRegex(lines[2], r"here +\| out-of-place +\| .* mpi \(openmpi\) .*\| > 1, sure \| NO +\| .*\| <= 1.25 \| NO")


class Jobs(unittest.TestCase):
    def test_an_interrupt_while_a_job_starts_leaves_none(self):
        jobs = []

        class Interrupted(subprocess.Popen):
            def __init__(self, *words, **options):
                super().__init__(*words, **options)
                jobs.append(self)
                os.kill(os.getpid(), signal.SIGINT)

        with unittest.mock.patch.object(subprocess, "Popen", Interrupted), self.assertRaises(KeyboardInterrupt):
            with launching.started(["sleep", "300"]):
                self.fail("the interrupt is lost")
        job, = jobs
        self.addCleanup(job.kill)
        self.assertEqual(job.poll(), -signal.SIGTERM)
        self.assertEqual(signal.pthread_sigmask(signal.SIG_BLOCK, ()), set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
