"""--help and --version: every subcommand shows an example and all of its options."""

import re

from program import COLLECTIVES, GLOO, SUBCOMMANDS, USAGE, ProgramTest, main

OPTIONS = {
    "probe": "--machine --from --sysfs --fabric --assume --rails --nics --oversubscription --gpus-per-host --without --format --picture --expect --hosts --gpus --timeout",
    "plan": "--machine --from --sysfs --fabric --assume --rails --nics --oversubscription --gpus-per-host --without --algorithm --dims --ddl-options --patterns --lanes --chunk --orders --datatype --partials --ranks --size "
    "--calibration --explain",
    "verify": "--algorithm --collective --dims --ddl-options --patterns --lanes --chunk --orders --ranks --count",
    "allreduce": "--algorithm --tcp-interface --transport --tuned --calibration --plan-for --partials --dims --ddl-options --patterns --lanes --chunk --orders --datatype --op "
    "--minbytes --maxbytes --stepfactor --stepbytes --model --iters --warmup_iters --timing --blocking --cudagraph --check --payload --buffers --local_register --output_file",
    **dict.fromkeys(("reduce-scatter", "allgather", "alltoall"), "--algorithm --tcp-interface --transport --dims --ddl-options --patterns --lanes --chunk --orders "
    "--datatype --minbytes --maxbytes --stepfactor --stepbytes --iters --warmup_iters --timing --blocking --cudagraph --check --payload --buffers --local_register --output_file"),
    "train": "--ranks --model --batch --compute-ms --gpu --precision --utilisation --step --algorithm --tcp-interface --transport --tuned --calibration --plan-for --partials --dims --ddl-options --patterns "
    "--lanes --chunk --orders --datatype --op --bucket --no-overlap --iters --output_file",
    "scale": "--explain --published --machine --from --sysfs --fabric --assume --rails --nics --oversubscription --gpus-per-host --without --model --batch --compute-ms --gpu --precision --utilisation --step --algorithm --dims --ddl-options --patterns "
    "--lanes --chunk --orders --gpus --scaling --global-batch --framework --ideal --bucket --overlap --no-overlap --baseline --name --title --strategy --micro-batches --unfused-attention --sample-bytes --filesystem --nvme --jitter --seed --message-overhead --reduction-rate --datatype --partials --from-run --calibration "
    "--output_file",
    "calibrate": "--check --points --output_file",
    "accept": "--checks --algorithm --fabric --like --data --model --budget --duration --attempts --baseline --tolerance --save-baseline --resume --junit --prometheus --drain --nagios --tcp-interface --transport --output_file",
    "tune": "--minbytes --maxbytes --stepfactor --stepbytes --tcp-interface --transport --buffers --iters --tuned",
    "compare": "--baseline --ranks --machine --from --sysfs --fabric --assume --rails --nics --oversubscription --gpus-per-host --without --chart --output_file",
    "report": "--out --overlay",
    "completion": "",
    "launch": "--host --hostfile --fabric --ranks --ranks-per-host --oversubscribe --allow-different --rsh --launcher --launcher-args --polyring "
    "--rankfile --timeout --no-trial --dry-run --offline",
}
for collective in COLLECTIVES:
    OPTIONS[collective] += " --device --gpus --share-gpu"
for on_gpus in ("train", "tune", "accept"):
    OPTIONS[on_gpus] += " --device --gpus --share-gpu"
OPTIONS["reduce-scatter"] += " --partials --op"
for showing in (*COLLECTIVES, "train", "tune", "scale", "calibrate", "accept", "compare"):
    OPTIONS[showing] += " --format --wide --quiet"
for computing in ("plan", "verify"):
    OPTIONS[computing] += " --format"
for measuring in (*COLLECTIVES, "train", "tune", "accept"):
    OPTIONS[measuring] += " --nthreads --ngpus --timeout"
# nccl-tests' letters.
LETTERS = {name: letters + "q" * ("--quiet" in OPTIONS[name]) for name, letters in {"allreduce": "befinwzcodRtgGTJ", "reduce-scatter": "befinwzcodRtgGTJ", "allgather": "befinwzcdRtgGTJ", "alltoall": "befinwzcdRtgGTJ", "train": "dnotgTJ", "scale": "dJ", "plan": "d", "verify": "", "probe": "T", "tune": "befintgT", "calibrate": "J", "accept": "tgTJ", "compare": "J", "report": "", "completion": "", "launch": "HnT"}.items()}


class Help(ProgramTest):
    def test_of_the_program_lists_the_subcommands(self):
        text = self.succeed("--help")
        for name in SUBCOMMANDS:
            self.assertRegex(text, rf"(?m)^ +{name} +\w")

    def test_of_each_subcommand(self):
        for name in SUBCOMMANDS:
            with self.subTest(name=name):
                text = self.succeed(name, "--help")
                self.assertRegex(text, rf"Example:\n +(mpirun -np \d+ )?polyring {name} ")
                options = text.split("Example:")[0]
                shown = set(re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", options)) - {"--help"}
                self.assertEqual(shown, set(OPTIONS[name].split()))
                letters = set(re.findall(r"(?m)^  -(\w),", options)) - {"h"}
                self.assertEqual(letters, set(LETTERS[name]))

    def test_help_is_a_word_too(self):
        self.assertEqual(self.succeed("help"), self.succeed("--help"))
        for name in SUBCOMMANDS:
            self.assertEqual(self.succeed("help", name), self.succeed(name, "--help"))
        self.refused("help", "alreduce", naming="unknown subcommand 'alreduce'; did you mean allreduce?")

    def test_beside_a_bad_value(self):
        self.assertEqual(self.succeed("allreduce", "--algorithm", "foo", "--help"), self.succeed("allreduce", "--help"))

    def test_alone_it_says_what_there_is(self):
        ran = self.run_program()
        self.assertEqual((ran.returncode, ran.stdout), (USAGE, ""))
        self.assertEqual(ran.stderr, self.succeed("--help"))

    def test_examples_are_accepted(self):
        for name in ("probe", "plan", "verify", "scale"):
            with self.subTest(name=name):
                examples = re.findall(r"(?m)^ +polyring (.*)", self.succeed(name, "--help").split("Example:")[1])
                self.assertTrue(examples)
                for example in examples:
                    if ".json" in example:
                        continue  # there are no results here to go on from
                    self.assertTrue(self.succeed(*example.split()))

    def test_version(self):
        lines = self.succeed("--version").splitlines()
        self.assertRegex(lines[0], r"^polyring \d+\.\d+\.\d+ \(\S+\)$")
        parts = dict(line.split(maxsplit=1) for line in lines[1:])
        self.assertEqual(list(parts), ["compiler", "build", "MPI", "Gloo", "hwloc", "vectors", "CUDA", "NCCL"])
        self.assertRegex(parts["build"], r"^\w+, sanitizers: [a-z,]+$")
        self.assertRegex(parts["MPI"], r"^((Open MPI|MPICH) \d[\w.]+), built with \1$")
        self.assertRegex(parts["hwloc"], r"^interface \d+\.\d+\.\d+, built with \d+\.\d+\.\d+$")
        self.assertEqual(parts["Gloo"] == "none in this build", not GLOO)


if __name__ == "__main__":
    main()
