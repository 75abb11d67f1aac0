"""A race: works, each with its launches, heats and rounds, and what came of them."""

import collections
import dataclasses
import functools

from racing import launching, results, tables, works

HEAT_FACTOR = 2  # who needs longer than this times the fastest in a heat does not race
QUICK_ITERATIONS = 3
FAULTS = {launching.NOT_AVAILABLE: "left out", launching.WRONG_RESULT: "wrong result"}
BUSY = 0.2  # cores; with more, what is measured is also the work of others


@dataclasses.dataclass
class Outcome:
    """What came of a work."""

    work: works.Work
    launches: list  # one dictionary for each that was tried
    contests: list  # of all launches and rounds
    busy: dict  # cores that others used just before, {launch: the most}
    rounds: int
    faults: dict = dataclasses.field(default_factory=dict)  # {launch: why it does not count in full}

    def verdicts(self):
        names = [launch.name for launch in self.work.launches]
        lacking = results.lacking(self.contests, self.work.placements, names, self.rounds, self.faults)
        return results.verdicts(self.work.goal, self.contests, lacking)

    def standing(self):
        return results.worst([verdict.standing for verdict in self.verdicts()])


class Race:
    """`programs` has polyring built with each MPI, or a sentence why there is none; results go to `folder`."""

    def __init__(self, programs, folder, quick, rounds, say):
        self.programs = programs
        self.folder = folder
        self.quick = quick
        self.rounds = rounds
        self.say = say
        self.outcomes = []
        self.left_out = collections.Counter()  # sentences
        self.failed = []  # (sentence, exit code)
        self.wrong = []  # sentences
        self.commits = {}
        self.versions = {}

    def run(self, work, place):
        outcome = Outcome(work, [], [], {}, self.rounds)
        heats = {}  # {launch: the contenders that race in it and in those that share its heat}
        self.outcomes.append(outcome)
        for round_number in range(1, self.rounds + 1):
            for launch in work.launches:
                self.say(f"[{place}] {work.name}, {launch.name}" + (f", round {round_number}" if self.rounds > 1 else ""))
                try:
                    self.race(outcome, launch, round_number, heats)
                except launching.Failed as failure:
                    self.take_failure(outcome, launch, failure)

    def take_failure(self, outcome, launch, failure):
        sentence = f"{outcome.work.name}, {launch.name}: {failure}"
        self.say(f"  {'left out' if failure.code == launching.NOT_AVAILABLE else 'failed'}: {failure}")
        outcome.launches.append({"launch": launch.name, "failed": str(failure), "code": failure.code})
        outcome.faults[launch.name] = FAULTS.get(failure.code, "failed")
        if failure.code == launching.NOT_AVAILABLE:
            self.left_out[f"{launch.name}: {failure}"] += 1
        elif failure.code == launching.WRONG_RESULT:
            self.wrong.append(sentence)
        else:
            self.failed.append((sentence, failure.code))

    def race(self, outcome, launch, round_number, heats):
        work = outcome.work
        self.check(launch, work.hosts)
        contenders = self.promising(outcome, launch, heats) if work.heat and not self.quick else launch.contenders
        words = list(work.quick if self.quick else work.command)
        words += ["-n", str(min(work.iterations, QUICK_ITERATIONS) if self.quick else work.iterations)]
        if words[0] == "allreduce" and work.warmup is not None:
            words += ["-w", str(work.warmup)]
        name = f"{work.name}-{launch.name}" + (f"-{round_number}" if self.rounds > 1 else "")
        ran = self.launch(outcome, launch, name, words, [results.POLYRING, *contenders])
        found = results.contests(launch.name, ran.result)
        if not found:
            raise launching.Failed("there is no right result of Polyring beside one of a contender", launching.WRONG_RESULT)
        outcome.contests += found

    def promising(self, outcome, launch, heats):
        """The contenders that a heat of this launch, or one that it shares, gives a chance; and the library's own choice."""
        work = outcome.work
        held = next((other for other in heats if work.shares_heat(launch, other)), None)
        if held is None:
            ran = self.launch(outcome, launch, f"{work.name}-{launch.name}-heat", work.heat, launch.contenders)
            heats[launch] = outcome.launches[-1]["promising"] = results.promising(ran.result, HEAT_FACTOR)
        own = [name for name in launch.contenders if name == works.OWN_CHOICE]
        return list(dict.fromkeys([*own, *heats[held or launch]]))

    def launch(self, outcome, launch, name, words, racing):
        path = self.folder / f"{name}.json"
        words = [*words, "--algorithm", ",".join(racing)]
        ran = launching.run(launch, outcome.work.hosts, self.programs[launch.mpi], words, path)
        outcome.launches.append({"launch": launch.name, "command": ran.command, "seconds": round(ran.seconds, 1),
                                 "busy_cores": round(ran.busy, 2), "result": path.name, "wrong": ran.wrong})
        outcome.busy[launch.name] = max(ran.busy, outcome.busy.get(launch.name, 0))
        if ran.wrong:
            outcome.faults[launch.name] = FAULTS[launching.WRONG_RESULT]
        self.wrong += [f"{outcome.work.name}, {launch.name}: {sentence}" for sentence in ran.wrong]
        self.commits[launch.mpi] = ran.result["commit"]
        self.versions |= {launch.mpi: ran.result["versions"]["mpi"], "compiler": ran.result["versions"]["compiler"]}
        return ran

    def check(self, launch, hosts):
        """Throws Failed where this cannot be launched."""
        program = self.programs[launch.mpi]
        why = program if isinstance(program, str) else ""
        if not why and launch.has_gloo:
            why = why_no_gloo(program)
        if not why and hosts.emulated and (why_not := why_not_emulated(launch.mpi)):
            why = f"between emulated hosts: {why_not}"
        if why:
            raise launching.Failed(why, launching.NOT_AVAILABLE)

    def commit(self):
        """Of the programs that raced, whatever is checked out here now."""
        if len(set(self.commits.values())) > 1:
            return ", ".join(f"{commit} with {mpi}" for mpi, commit in self.commits.items())
        return next(iter(self.commits.values()), "unknown")

    def exit_code(self):
        if self.wrong:
            return launching.WRONG_RESULT
        if self.failed:
            return self.failed[0][1]
        return launching.NOT_AVAILABLE if self.left_out else 0

    def goals(self):
        """How many works meet theirs, how many miss one, and of how many what raced cannot tell."""
        return collections.Counter(outcome.standing() for outcome in self.outcomes)

    def report(self, head):
        """The tables, and all that was left out, failed or was wrong."""
        machine = head["machine"]
        versions = ", ".join(self.versions.values())
        parts = [
            f"# Polyring {head['commit']} against its contenders, {head['created']}\n",
            f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; {versions or 'nothing ran'}; {head['command']}\n",
            tables.summary([(outcome.work, outcome.verdicts()) for outcome in self.outcomes]),
            tables.count(self.goals()) + (", but --quick is no measurement" if self.quick else "") + ".\n",
            "Each launch, and how many of the cores others kept busy just before it. Gloo has one of its own,\n"
            "since small payloads of all others take longer beside its threads:\n",
            tables.launches([(outcome.work, results.by_launch(outcome.contests), outcome.busy) for outcome in self.outcomes]),
        ]
        faults = [f"Wrong: {sentence}" for sentence in self.wrong] + [f"Failed: {sentence}" for sentence, _ in self.failed]
        faults += [f"Left out {count} time{'s' if count > 1 else ''}: {sentence}" for sentence, count in self.left_out.items()]
        busiest = max((busy for outcome in self.outcomes for busy in outcome.busy.values()), default=0)
        if busiest > BUSY:
            faults.append(f"Others kept up to {busiest:.1f} cores busy: repeat this when the machine has nothing else to do.")
        if not head["complete"]:
            faults.append("Interrupted: not all works were raced.")
        return "\n".join([*parts, *(f"- {fault}" for fault in faults)]) + ("\n" if faults else "")

    def as_json(self):
        goals = self.goals()
        made = []
        for outcome in self.outcomes:
            work = outcome.work
            made.append({
                "work": work.name, "what": work.what, "goal": dataclasses.asdict(work.goal), "standing": outcome.standing(),
                "launches": outcome.launches,
                "contests": [dataclasses.asdict(contest) for contest in results.by_launch(outcome.contests)],
                "verdicts": [verdict_as_json(verdict) for verdict in outcome.verdicts()],
            })
        return {"versions": self.versions, "works": made, "goals": goals.total(), "goals_met": goals[results.MET],
                "goals_missed": goals[results.MISSED], "goals_incomplete": goals[results.INCOMPLETE], "wrong": self.wrong,
                "failed": [sentence for sentence, _ in self.failed], "left_out": dict(self.left_out)}


def verdict_as_json(verdict):
    closest, farthest = verdict.closest, verdict.farthest
    return {
        "placement": verdict.placement, "standing": verdict.standing, "lacking": verdict.lacking, "ratio_goal": verdict.ratio,
        "launch": closest and closest.launch, "best_contender": closest and closest.best.algorithm, "bound_goal": verdict.of_bound,
        "of_bound_launch": farthest and farthest.launch, "of_bound": farthest and farthest.of_bound,
    }


why_not_emulated = functools.cache(launching.why_not_emulated)
why_no_gloo = functools.cache(launching.why_no_gloo)
