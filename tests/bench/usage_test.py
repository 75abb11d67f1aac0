"""Bad input: one sentence, exit code 6, nothing on standard output, nothing written, no hang."""

import copy
import json
from pathlib import Path

from program import GLOO, NOT_AVAILABLE, SUBCOMMANDS, ProgramTest, main

MINSKY = ("--machine", "minsky")
TRAIN = ("train", "--compute-ms", "5")
ANY_PLAN = (("plan", *MINSKY), ("verify",), ("scale", *MINSKY), ("allreduce",), TRAIN)
WRITERS = (("allreduce",), TRAIN, ("scale", *MINSKY))
STEPS = Path(__file__).resolve().parent.parent / "fuzz" / "seeds" / "step"
VGG_STEP = STEPS / "vgg16.json"
HWLOC = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'


class Usage(ProgramTest):
    def test_subcommands_and_options(self):
        self.refused("nonsense", naming="nonsense")
        self.refused("--nonsense", naming="--nonsense")
        self.refused("", naming="empty")
        for name in SUBCOMMANDS:
            words = {"compare": ["x.json"], "report": ["x.json"], "completion": ["bash"]}.get(name, [])
            self.refused(name, *words, "--nonsense", naming="--nonsense")
            if name not in ("accept", "compare", "report"):  # it is a file's name there
                self.refused(name, *words, "stray", naming="stray")
        self.refused("probe", "--machine", naming="--machine")
        self.refused("plan", *MINSKY, "--dims", "", naming="empty")

    def test_what_is_mistyped(self):
        """The words in the order given, and the nearest that there is."""
        for words, sentence in {
            ("alreduce", "-b", "8"): "unknown subcommand 'alreduce'; did you mean allreduce? see polyring --help",
            ("--verison",): "polyring has no option --verison; did you mean --version? see polyring --help",
            ("allreduce", "--algoritm", "ring"): "polyring allreduce has no option --algoritm; did you mean --algorithm? see polyring allreduce --help",
            ("allreduce", "--algoritm=ring", "-b", "8"): "has no option --algoritm; did you mean --algorithm?",
            ("allreduce", "-Q"): "polyring allreduce has no option -Q; see polyring allreduce --help",
            ("--timing", "osu", "allreduce"): "--timing is an option of polyring allreduce; write it behind these words",
            ("plan", *MINSKY, "-d", "flaot"): "unknown type 'flaot'; did you mean float?",
            ("scale", "zz", "yy", "xx"): "unexpected arguments zz yy xx; see polyring scale --help",
            ("accept", "-G", "1"): "has no -G, which in nccl-tests means 'calls are launched as a CUDA graph'",
            ("allreduce", "-z", "2", "--timing", "osu"): "--timing osu is one way of timing, and -z 2 another; leave one out",
            ("allreduce", "-R", "1"): "nccl is not among the algorithms; add --algorithm nccl",
            ("allreduce", "-z", "4"): "to 3",
            ("accept", "-z", "1"): "has no -z, which in nccl-tests means 'whether and where each call is waited for'",
            ("allreduce", "-G", "1"): "the ranks' data are in host memory; add --device cuda",
            ("train", "--cudagraph", "1"): "has no --cudagraph, which in nccl-tests means",
            ("allreduce", "--algorithm", "multiring"): "unknown algorithm 'multiring'; did you mean multi-ring? choose from multi-ring, ring, ",
            ("allreduce", "-d", "flaot"): "unknown type 'flaot'; did you mean float?",
            ("allreduce", "-o", "summ"): "unknown operation 'summ'; did you mean sum?",
            ("allreduce", "--timing", "osuu"): "unknown timing 'osuu'; did you mean osu? choose from isolated, osu, back-to-back",
            ("allreduce", "--transport", "shard"): "unknown transport 'shard'; did you mean shared?",
            ("scale", "--machine", "dgx-h10"): "unknown machine 'dgx-h10'; did you mean dgx-h100?",
            ("scale", *MINSKY, "--model", "bert"): "unknown model 'bert'; did you mean bert-large?",
            ("scale", *MINSKY, "--model", "llama3"): "unknown model 'llama3'",
            ("scale", *MINSKY, "--precision", "singel"): "unknown precision 'singel'; did you mean single? choose from single, mixed",
            ("scale", *MINSKY, "--utilisation", "0"): "utilisation '0' is not a part of the GPU's peak, above 0 and up to 100 %; write it as 40% or 0.4",
            ("scale", *MINSKY, "--gpu", "GTX480"): "--gpu: unknown GPU 'GTX480'; choose from P100, ",
            ("scale", *MINSKY, "--gpu", "H10O"): "unknown GPU 'H10O'; did you mean H100? choose from",
            ("scale", *MINSKY, "--gpu", "8..64"): "--gpu '8..64' is no product; name one, such as H100, or say how many GPUs there are by --ranks 8..64",
            ("scale", *MINSKY, "--gpus", "8", "--gpus", "16"): "--gpus is given 2 times; give it once, with a list such as 8,16",
            ("plan", *MINSKY, "--machine", "ac922"): "--machine is given 2 times; give it once",
            ("scale", *MINSKY, "--machine", "Minsky"): "--machine minsky is given twice; give it once, or another machine beside it",
            ("scale", "--gpus"): "--gpus needs a value (LIST); add it, or leave --gpus out",
            ("scale", *MINSKY, "--gpus", "8-64"): "--gpus '8-64' is not a list of numbers above 0; write it as 4,8,16 or 4..256,1024",
            ("scale", *MINSKY, "--batch", "1.5"): "--batch '1.5' is not a whole number from 1 to 1048576; give one that is",
            ("scale", *MINSKY, "--rails", "x"): "--rails 'x' is not a whole number; give one, such as 4",
            ("scale", *MINSKY, "--compute-ms", "1ms"): "--compute-ms '1ms' is not a number; give one, such as 2.5",
            ("scale", *MINSKY, "--seed", "-1", "--jitter", "5%"): "--seed '-1' is not a whole number of 0 or more; give one that is",
            ("scale", *MINSKY, "--seed", "1"): "--seed is nothing without --jitter; add it, or leave --seed out",
            ("scale", *MINSKY, "--from", "x.json"): "--machine and --from exclude each other; leave one of them out",
            ("scale", *MINSKY, "--oversubscription", "2:x"): "--oversubscription '2:x' is not a ratio; write it as 2 or 2:1",
            ("scale", *MINSKY, "--oversubscription", "2:0"): "--oversubscription '2:0' is not a ratio; write it as 2 or 2:1",
            ("scale", *MINSKY, "--strategy", "pipeline=2,schedule=foo"): "strategy 'pipeline=2,schedule=foo': unknown schedule 'foo'; choose from 1f1b, gpipe",
            ("scale", *MINSKY, "--strategy", "pipline=2"): "unknown factor 'pipline'; did you mean pipeline? choose from data, zero, ",
            ("plan", "DGX-h100"): "unexpected argument DGX-h100; did you mean --machine dgx-h100? see polyring plan --help",
            ("scale", *MINSKY, "--utilisation", "40%", "--compute-ms", "5"): "--compute-ms",
            ("scale", *MINSKY, "--scaling", "string"): "unknown scaling 'string'; did you mean strong? choose from weak, strong",
            ("plan", *MINSKY, "--patterns", "rign"): "unknown pattern 'rign'; did you mean ring?",
            ("verify", "--collective", "all-reduce"): "unknown collective 'all-reduce'; did you mean allreduce?",
            ("probe", "--format", "jsn"): "unknown format 'jsn'; did you mean json?",
        }.items():
            self.refused(*words, naming=sentence)

    def test_lists_in_errors_are_complete(self):
        names = self.refused("allreduce", "--algorithm", "none")
        for name in ("multi-ring", "chain-tree", "mpi", "mpi:NAME", "mpi:all", "gloo:ring", "gloo:all"):
            self.assertIn(f", {name}", ", " + names.split("choose from ")[1])
        for name in ("nccl", "mpi", "in-network"):
            self.assertIn(name, self.refused("scale", *MINSKY, "--algorithm", "none").split("choose from ")[1])

    def test_what_can_only_be_modelled(self):
        for words in (("allreduce",), TRAIN):
            for name in ("nccl", "In-Network"):
                self.refused(*words, "--algorithm", name, naming=f"polyring scale --algorithm {name.lower()} models it", code=NOT_AVAILABLE)

    def test_dimensions(self):
        counted = (("verify", "--ranks", "6"), ("plan", *MINSKY, "--ranks", "16"))
        for words in (*counted, ("scale", *MINSKY), ("allreduce",), TRAIN):
            self.refused(*words, "--dims", "4x8", naming="4x8 make 32 ranks")
            self.refused(*words, "--ddl-options", "-mode p:4x8", naming="4x8 make 32 ranks")
        for words in ANY_PLAN:
            for dims in ("0x4", "-4", "4xx", "x", "4x", "four", "4.5x2", "65536x65536"):
                self.refused(*words, "--dims", dims, naming=dims)
            self.refused(*words, "--ddl-options", "-mode q:4x8", naming="q:4x8")
            self.refused(*words, "--ddl-options", "nonsense", naming="nonsense")
            self.refused(*words, "--dims", "1", "--ddl-options", "-mode p:1", naming="--ddl-options")

    def test_plans(self):
        for words in ANY_PLAN:
            self.refused(*words, "--algorithm", "nonsense", naming="nonsense")
            self.refused(*words, "--lanes", "0", naming="--lanes")
            self.refused(*words, "--lanes", "-1", naming="--lanes")
            self.refused(*words, "--chunk", "0", naming="--chunk")
            self.refused(*words, "--chunk", "-1", naming="--chunk")
            self.refused(*words, "--chunk", "5Q", naming="5Q")
            self.refused(*words, "--algorithm", "ring", "--patterns", "ring", naming="--patterns")
        for name in (("plan", *MINSKY), ("verify",)):
            for vendor in ("mpi", "nccl", "in-network"):
                self.refused(*name, "--algorithm", vendor, naming=f"polyring scale --algorithm {vendor}")
        for choice in (("--lanes", "2"), ("--chunk", "1M"), ("--dims", "4"), ("--patterns", "ring")):
            self.refused("scale", *MINSKY, "--algorithm", "nccl,mpi", *choice, naming="choose their own plans")
        for choice in (("--dims", "4"), ("--ddl-options", "-mode p:4"), ("--patterns", "ring")):
            self.refused("scale", *MINSKY, "--algorithm", "in-network,nccl", *choice, naming="inside hosts and then between")
        self.refused("plan", *MINSKY, "--patterns", "nonsense", naming="nonsense")
        for orders in ("0-1-2", "0-1-2-2", "0,1,2,3", "0-1-2-3/"):
            self.refused("plan", *MINSKY, "--orders", orders, naming=orders.split("/")[0])
        self.refused("plan", *MINSKY, "--algorithm", "tree", "--orders", "0-1-2-3", naming="--orders is for rings")
        self.refused("plan", *MINSKY, "--ranks", "8", "--dims", "4x2", "--patterns", "ring", naming="patterns")

    def test_baselines(self):
        for words in (("allreduce",), TRAIN):
            for name in ("mpi:", "mpi:nonsense"):
                self.refused(*words, "--algorithm", name, naming="mpi:recursive_doubling, ")
            if GLOO:
                for name in ("gloo:", "gloo:nonsense", "gloo:all,gloo:none"):
                    self.refused(*words, "--algorithm", name, naming="gloo:ring, gloo:bcube, ")
            self.refused(*words, "--algorithm", "gloo", naming="unknown algorithm 'gloo'")
        for words in (("plan", *MINSKY), ("verify",), ("scale", *MINSKY)):
            for name in ("mpi:all", "gloo:ring"):
                self.refused(*words, "--algorithm", name, naming=name)

    def test_more_than_gloo_counts(self):
        if not GLOO:
            self.skipTest("this build has no Gloo")
        self.refused("allreduce", "--algorithm", "gloo:halving-doubling", "-b", "2G", "-e", "2G", naming="2 GiB")

    def test_plan_and_verify(self):
        for ranks in ("0", "-4", "1.5", "x", "99999999999"):
            self.refused("plan", *MINSKY, "--ranks", ranks, naming="--ranks")
        self.refused("plan", *MINSKY, "--ranks", "6", naming="hosts of 4")
        for size in ("0", "-1", "3", "5Q"):
            self.refused("plan", *MINSKY, "--size", size, naming="--size")
        self.refused("plan", *MINSKY, "--datatype", "nonsense", naming="nonsense")
        self.refused("plan", *MINSKY, "--ranks", "256", "--chunk", "1", naming="chunks of 1B")
        for ranks in ("0", "-3", "x", "4..", "4,,8"):
            self.refused("verify", "--ranks", ranks, naming=ranks)
        self.refused("verify", "--ranks", "4..2", naming="ends before it begins")
        self.refused("verify", "--ranks", "4,2147483647", naming="2147483647")
        self.refused("verify", "--ranks", "4", "--algorithm", "ring,nonsense", naming="nonsense")
        for count in ("-1", "x", "99999999999999999999"):
            self.refused("verify", "--count", count, naming="--count")

    def test_machines(self):
        for words in (("probe",), ("plan",), ("scale",)):
            self.refused(*words, "--machine", "nonsense", naming="nonsense")
            self.refused(*words, *MINSKY, "--from", "x", naming="--from")
            self.refused(*words, *MINSKY, "--sysfs", "/sys", naming="--sysfs")
            self.refused(*words, "--sysfs", "missing", naming="missing")
            for rails in ("0", "-1", "3", "x"):
                self.refused(*words, *MINSKY, "--rails", rails, naming="rails")
            self.refused(*words, *MINSKY, "--fabric", "x", naming="--fabric")
        self.refused("probe", "--format", "nonsense", naming="nonsense")
        for timeout in ("0", "-1", "x"):
            self.refused("probe", *MINSKY, "--timeout", timeout, naming="--timeout")

    def test_what_ifs(self):
        probe = ("probe", *MINSKY)
        for nics in ("x", "0", "-1", "4x", "x400Gb/s", "65xndr", "2xnrd", "2x400GB/s", "2.5xndr"):
            self.refused(*probe, "--nics", nics, naming="--nics")
        for gpus in ("0", "-1", "5", "x"):
            self.refused(*probe, "--gpus-per-host", gpus, naming="gpus-per-host" if gpus != "5" else "has 4")
        for ratio, naming in (("2", "hosts_per_leaf"), ("0.5", "give 1"), ("x", "--oversubscription")):
            self.refused(*probe, "--oversubscription", ratio, naming=naming)
        for device in ("mlx5_7", "gpu9", "gpu0-gpu2", "package0", "leaf-uplink"):
            self.refused(*probe, "--without", device)

    def test_files_of_machines(self):
        whole = HWLOC + '<topology version="2.0">\n  <object type="Machine" os_index="0"/>\n</topology>\n'
        broken = {
            "empty.xml": "",
            "not.xml": "GPU0 GPU1\n",
            "html.xml": "<html><body>404</body></html>\n",
            "truncated.xml": whole[:140],
            "nccl.xml": '<system version="1"><cpu numaid="0">',
            "nan.xml": '<system version="1"><cpu numaid="NaN"/></system>',
            "bomb.xml": '<!DOCTYPE system [<!ENTITY a "aa">]><system version="1"><cpu numaid="&a;"/></system>',
            "matrix.txt": "\tGPU0\tGPU1\nGPU0\tX\tNV1\n",
            "not.json": '{"hosts": [',
            "other.json": '{"name": "x"}',
        }
        third = HWLOC.replace("hwloc2", "hwloc3") + '<topology version="3.0">\n</topology>\n'
        for name, text in {**broken, "third.xml": third}.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        (self.folder / "folder.xml").mkdir()
        for words in (("probe",), ("plan",), ("scale",)):
            for path in ("missing.xml", "folder.xml", *broken):
                self.refused(*words, "--from", path, naming=path)
            self.refused(*words, "--from", "third.xml", naming="format 3")

    def test_published_results_have_their_own_machines(self):
        for words in (("--machine", "minsky"), ("--gpus", "4"), ("--overlap",), ("--batch", "64"), ("--algorithm", "ring"),
                      ("--scaling", "strong"), ("--global-batch", "256"), ("--jitter", "5%"), ("--filesystem", "1GB/s"),
                      ("--strategy", "data=4"), ("--explain",), ("--compute-ms", "5"), ("--lanes", "2"), ("--datatype", "half"),
                      ("--message-overhead", "1us")):
            self.refused("scale", "--published", *words, naming=words[0])

    def test_scale_needs_gpus(self):
        machine = json.loads(self.succeed("probe", "--machine", "minsky", "--format", "json"))
        for host in machine["hosts"]:
            gone = {gpu["name"] for gpu in host["gpus"]}
            host["gpus"] = []
            host["links"] = [link for link in host["links"] if not gone & {link["from"], link["to"]}]
        (self.folder / "bare.json").write_text(json.dumps(machine), encoding="utf-8")
        self.assertTrue(self.succeed("probe", "--from", "bare.json"))
        self.refused("scale", "--from", "bare.json", naming="no GPUs")

    def test_scale_needs_links(self):
        machine = json.loads(self.succeed("probe", *MINSKY, "--format", "json"))

        def refused(naming, change):
            changed = copy.deepcopy(machine)
            change(changed["hosts"][0])
            (self.folder / "changed.json").write_text(json.dumps(changed), encoding="utf-8")
            self.refused("scale", "--from", "changed.json", "--gpus", "4,8", naming=naming)

        def without(host, device):
            host["links"] = [link for link in host["links"] if device not in (link["from"], link["to"])]

        def link(rate):
            return lambda host: host["links"][0].update(GBps=rate)

        def nic(rate):
            return lambda host: host["nics"][0]["ports"][0].update(GBps=rate)

        refused("no path from gpu0 to gpu1", lambda host: without(host, "gpu0"))
        for rate in (-5, 1e308):
            refused("the bandwidth of the nvlink link", link(rate))
            refused("the bandwidth of mlx5_0", nic(rate))
        for rate in (0, None):
            refused("the speed of NVLink gpu0 - package0 is unknown", link(rate))
            refused("the speed of mlx5_0 is unknown", nic(rate))
        refused("the latency of the nvlink link", lambda host: host["links"][0].update(latency_us=-1))
        refused("no network port that is up", lambda host: [port.update(up=False) for nic in host["nics"] for port in nic["ports"]])

    def test_scale(self):
        for gpus in ("0", "-4", "x", "4..", "4,,8", "99999999999"):
            self.refused("scale", *MINSKY, "--gpus", gpus, naming="--gpus")
        self.refused("scale", *MINSKY, "--gpus", "256..4", naming="ends before it begins")
        self.refused("scale", *MINSKY, "--gpus", "6", naming="hosts of 4")
        self.refused("scale", *MINSKY, "--datatype", "nonsense", naming="nonsense")

    def test_strong_scaling(self):
        strong = ("scale", *MINSKY, "--scaling", "strong")
        self.refused("scale", *MINSKY, "--scaling", "nonsense", naming="nonsense")
        for batch in ("0", "-1", "x", "1.5", "99999999999"):
            self.refused("scale", *MINSKY, "--global-batch", batch, naming="--global-batch")
        self.refused("scale", *MINSKY, "--scaling", "weak", "--global-batch", "256", naming="--scaling weak")
        # 32 for each of 4 GPUs are 128.
        self.refused(*strong, "--gpus", "4..256", naming="global batch of 128 does not divide among 256 GPUs;")
        self.refused(*strong, "--global-batch", "100", "--gpus", "4,8", naming="100 does not divide among 8 GPUs;")
        self.refused("scale", *MINSKY, "--global-batch", "6", "--gpus", "1,2", naming="among the 4 GPUs of one host")
        self.refused(*strong, "--gpus", "4", "--strategy", "inter-model=4", naming="inter-model")

    def test_feeding_and_jitter(self):
        for size in ("0", "-1", "x", "5Q", "mnist", ""):
            self.refused("scale", *MINSKY, "--sample-bytes", size, naming=size or "empty")
        for option in ("--filesystem", "--nvme"):
            for rate in ("0GB/s", "-1GB/s", "5GB", "x"):
                self.refused("scale", *MINSKY, option, rate, naming=option)
            self.refused("scale", *MINSKY, "--model", "gpt2-xl", "--compute-ms", "5", option, "5GB/s", naming="--sample-bytes")
        for jitter in ("-1%", "5", "101%", "x", "nan"):
            self.refused("scale", *MINSKY, "--jitter", jitter, naming=jitter)
        for seed in ("-1", "x", "1.5"):
            self.refused("scale", *MINSKY, "--jitter", "5%", "--seed", seed, naming="--seed")
        self.refused("scale", *MINSKY, "--seed", "1", naming="--jitter")

    def test_costs(self):
        for time in ("-1us", "x", "1us,", ",1us", "1us,2us,3us", "nan"):
            self.refused("scale", *MINSKY, "--message-overhead", time, naming="--message-overhead")
        for rate in ("0GB/s", "-1GB/s", "5GB", "x"):
            self.refused("scale", *MINSKY, "--reduction-rate", rate, naming="--reduction-rate")
        for option, value in (("--message-overhead", "1us"), ("--reduction-rate", "5GB/s")):
            self.refused("scale", *MINSKY, "--algorithm", "nccl,mpi", option, value, naming="have their own")

    def test_frameworks(self):
        self.refused("scale", *MINSKY, "--framework", "dpp", naming="ddp")
        self.refused("scale", *MINSKY, "--baseline", "hosts", naming="host")
        self.refused("scale", *MINSKY, "--overlap", "--no-overlap", naming="--no-overlap")
        self.refused("scale", *MINSKY, "--framework", "ddp", "--bucket", "none", "--overlap", naming="add --bucket")
        self.refused("scale", "--from-run", "x.json", "--ideal", naming="--ideal")

    def test_strategies(self):
        for strategy in ("", "x", "data", "data=0", "data=4x", "model=4", "data=4,data=4", "data=4,inter-model=2"):
            self.refused("scale", *MINSKY, "--strategy", strategy, naming=strategy or "empty")
        self.refused("scale", *MINSKY, "--gpus", "128", "--strategy", "data=64,pipeline=4", naming="= 256 GPUs and not for 128")
        self.refused("scale", *MINSKY, "--strategy", "data=3,pipeline=2", naming="hosts of 4")
        self.refused("scale", *MINSKY, "--gpus", "64", "--strategy", "pipeline=64", naming="18 blocks")
        self.refused("scale", *MINSKY, "--model", "gpt2-xl", "--gpus", "20", "--strategy", "pipeline=5", naming="choose a divisor of 48")
        deeplab = ("--model", "deeplabv3plus", "--compute-ms", "1150", "--gpus", "4")
        self.refused("scale", *MINSKY, *deeplab, "--strategy", "pipeline=4", naming="1 block and")
        self.refused("scale", *MINSKY, "--gpus", "8", "--strategy", "intra-model=2", naming="resnet50")
        self.refused("scale", *MINSKY, "--strategy", "pipeline=4", "--overlap", "--bucket", "per-tensor", naming="--overlap")
        self.refused("scale", *MINSKY, "--overlap", naming="add --bucket")
        self.refused("scale", *MINSKY, "--strategy", "pipeline=4", "--jitter", "5%", naming="--jitter")
        words = ("--algorithm", "in-network", "--strategy", "pipeline=4")
        self.refused("scale", *MINSKY, *words, naming="in-network is modelled for data-parallel steps only")
        self.refused("scale", *MINSKY, "--micro-batches", "8", naming="--strategy")
        best = ("scale", *MINSKY, "--gpus", "4", "--strategy", "best")
        self.refused(*best, "--micro-batches", "8", naming="--strategy best chooses the micro-batches; leave --micro-batches out")
        self.refused(*best, "--no-overlap", naming="leave --no-overlap out")
        for strategy in ("zero=1", "zero=3", "pipeline=2,zero=2"):
            self.refused("scale", *MINSKY, "--gpus", "4", "--strategy", strategy, "--no-overlap", naming="leave out --no-overlap, or zero")
        for count in ("0", "-1", "x"):
            self.refused("scale", *MINSKY, "--strategy", "pipeline=4", "--micro-batches", count, naming="--micro-batches")
        self.refused("scale", *MINSKY, "--gpus", "4", "--strategy", "pipeline=4", "--micro-batches", "129", naming="a replica has 128")
        self.refused("scale", *MINSKY, "--model", "gpt2-xl", "--compute-ms", "500", naming="does not fit")
        self.refused("scale", *MINSKY, "--batch", "100000", naming="use a batch of at most 149")
        self.refused("scale", *MINSKY, "--strategy", "data=4,micro-batch=25000", "--batch", "100000", naming="use a micro-batch of at most")

    def test_training_steps(self):
        for words in (("scale", *MINSKY), ("train",)):
            for ms in ("0", "-1", "nan", "inf", "x"):
                self.refused(*words, "--compute-ms", ms, naming="--compute-ms")
            self.refused(*words, "--compute-ms", "5", "--gpu", "P100", naming="--gpu")
            self.refused(*words, "--gpu", "nonsense", naming="nonsense")
            self.refused(*words, "--compute-ms", "5", "--precision", "mixed", naming="--precision")
            self.refused(*words, "--batch", "0", naming="--batch")
            self.refused(*words, "--batch", "-1", naming="--batch")
            for bucket in ("nonsense", "fused:0", "fused:", "fused:x"):
                self.refused(*words, "--bucket", bucket, "--compute-ms", "5", naming="buckets")
            self.refused(*words, "--model", "nonsense", "--compute-ms", "5", naming="nonsense")
        self.refused("train", naming="--compute-ms")

    def test_measured_steps(self):
        (self.folder / "broken.json").write_text('{"schema": "polyring-step", "version": 1', encoding="utf-8")
        for words in (("scale", *MINSKY), ("train",)):
            self.refused(*words, "--step", "missing.json", naming="missing.json")
            self.refused(*words, "--step", "broken.json", naming="'broken.json' is no measured step, or damaged")
            self.refused(*words, "--step", VGG_STEP, naming="was measured for vgg16, and --model is resnet50; give --model vgg16, or give a file of resnet50")
            own = ("--step", STEPS / "own.json")
            self.refused(*words, "--model", "resnet50", *own, naming="and --model is resnet50; leave --model out, or give a file of resnet50")
            vgg = (*words, "--model", "vgg16", "--step", VGG_STEP)
            self.refused(*vgg, "--batch", "32", naming="was measured with batch 64, and --batch is 32; leave --batch out")
            self.refused(*vgg, "--precision", "single", naming="was measured in mixed precision, and --precision is single")
            for option in (("--compute-ms", "5"), ("--gpu", "P100"), ("--utilisation", "40%")):
                self.refused(*vgg, *option, naming="--step")

    def test_measuring(self):
        for words in (("allreduce",), TRAIN):
            for count in ("0", "-1", "x"):
                self.refused(*words, "--iters", count, naming="--iters")
            for time in ("0", "-1", "x"):
                self.refused(*words, "--timeout", time, naming="--timeout")
            self.refused(*words, "--datatype", "nonsense", naming="nonsense")
            self.refused(*words, "--op", "nonsense", naming="nonsense")
        self.refused("allreduce", "--warmup_iters", "-1", naming="--warmup_iters")
        self.refused("allreduce", "--check", "2", naming="--check")
        self.refused("allreduce", "--model", "nonsense", naming="nonsense")
        self.refused("allreduce", "--model", "resnet50", "-b", "1K", naming="--minbytes")

    def test_sizes(self):
        for size in ("0", "-1", "5Q"):
            self.refused("allreduce", "-b", size, naming="--minbytes")
            self.refused("allreduce", "-e", size, naming="--maxbytes")
        self.refused("allreduce", "-b", "2K", "-e", "1K", naming="above --maxbytes")
        for factor in ("1", "0", "-2", "x"):
            self.refused("allreduce", "-f", factor, naming="--stepfactor")
        for step in ("0", "-1", "x"):
            self.refused("allreduce", "-i", step, naming="--stepbytes")
        self.refused("allreduce", "-i", "1K", "-f", "2", naming="--stepbytes")
        self.refused("allreduce", "-b", "1", "-e", "1T", "-i", "1", naming="--stepbytes")

    def test_unwritable_results(self):
        (self.folder / "file").write_text("in the way", encoding="utf-8")
        for words in WRITERS:
            self.refused(*words, "-J", "file/x.json", naming="file/x.json")
            self.refused(*words, "-J", "missing/x.json", naming="missing/x.json")
            self.refused(*words, "-J", ".", naming="folder")
            self.refused(*words, "-J", "", naming="empty")

    def test_reports(self):
        self.succeed("scale", *MINSKY, "--gpus", "4", "-J", "good.json")
        good = (self.folder / "good.json").read_text(encoding="utf-8")
        (self.folder / "truncated.json").write_text(good[: len(good) // 2], encoding="utf-8")
        document = json.loads(good)
        for name, change in {
            "other.json": {"format": "other"},
            "newer.json": {"version": document["version"] + 1},
            "rowless.json": {"rows": "none"},
        }.items():
            (self.folder / name).write_text(json.dumps({**document, **change}), encoding="utf-8")
        self.refused("report", naming="files")
        for path in ("missing.json", "truncated.json", "other.json", "newer.json", "rowless.json"):
            self.refused("report", path, "--out", "r", naming=path)
            self.refused("report", "good.json", path, "--out", "r", naming=path)
        self.refused("report", "good.json", "--out", "good.json/r", naming="good.json/r")
        self.refused("report", "good.json", "--out", "", naming="empty")


if __name__ == "__main__":
    main()
