"""Runs programs on the emulated cluster of scripts/emulate. Skipped where namespaces are not permitted."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from emulated import NOT_AVAILABLE, TIME_LIMIT_S, PROGRAM, RDMA, ROOT, STREAM, TIMEOUT, FRAMED, EmulateTest, main, shape

BURST_US = 200  # of the rate of a link of 200 Mbit/s, which its shaper lets pass at once


class Emulate(EmulateTest):
    def test_hosts_have_their_own_name_and_memory(self):
        script = "touch /dev/shm/of-$(hostname); sleep 1; echo $(hostname): $(ls /dev/shm | grep ^of-)"
        output = self.succeed(shape(2, 2), "sh", "-c", script)
        self.assertEqual(sorted(output.splitlines()), 2 * ["node0: of-node0"] + 2 * ["node1: of-node1"])

    def test_a_number_of_ranks_for_each_host(self):
        output = self.succeed(shape(3, "3,1,2"), "hostname")
        self.assertEqual(sorted(output.split()), 3 * ["node0"] + ["node1"] + 2 * ["node2"])

    def test_allreduce_over_hosts_of_all_kinds(self):
        # What is right where on two hosts of two ranks need not be so on others.
        for hosts, per_node, dims in ((shape(3, "3,1,2"), 0, "6"), (shape(2, 3), 3, "3x2"), (shape(3, 1), 1, "3")):
            with self.subTest(hosts=hosts):
                result = self.allreduce(hosts, "-b", "1K", "-e", "256K", "-f", "16", "-n", "3")
                for row in result["rows"]:
                    self.assertEqual((row["ranks_per_node"], row["wrong"]), (per_node, 0))
                rows = [row for row in result["rows"] if row["algorithm"] == "multi-ring"]
                self.assertEqual({row["dims"] for row in rows}, {dims})
                between = ["doubling", "halving", "ring"]  # hosts, of 1, 16 and 256 KiB
                inside = ["star+", "star+", "direct+"] if "x" in dims else 3 * [""]
                patterns = [row["patterns"] for row in rows if not row["in_place"]]
                self.assertEqual(patterns, [first + second for first, second in zip(inside, between)])
                report = [PROGRAM, "report", self.folder / "allreduce.json", "--out", self.folder / "report"]
                subprocess.run(report, check=True, capture_output=True)

    def test_allreduce_knows_that_it_is_emulated(self):
        result = self.allreduce(shape(2, 2), "-b", "64K", "-e", "64K", "-n", "5")
        for row in result["rows"]:
            self.assertEqual((row["source"], row["nodes"], row["ranks_per_node"]), ("emulated", 2, 2))
            self.assertEqual(row["wrong"], 0)
            self.assertAlmostEqual(row["bound_us"], 2 * 1 / 2 * 65536 / 25 - BURST_US)
        self.assertTrue(any("2 hosts x 2 ranks at 200mbit" in note for note in result["notes"]), result["notes"])
        self.assertEqual([place["host"] for place in result["placement"]], ["node0", "node0", "node1", "node1"])

    def test_a_fault_is_not_told(self):
        # It is to be found: bounds and results know the cluster that was asked for.
        told = [
            {line for line in self.succeed(shape(3, 1, "200mbit", *fault), "env").splitlines() if line.startswith("POLYRING_")}
            - {self.mark} for fault in ((), ("--slow-host", "1:100mbit", "--slow-pair", "0-2:100mbit"))
        ]
        self.assertIn("POLYRING_EMULATED_RATE=200000000b/s", told[0])
        self.assertEqual(told[0], told[1])

    def test_allreduce_over_connections_of_our_own(self):
        for transport, used in (("shared+tcp", "shared memory and TCP"), ("tcp", "TCP")):
            with self.subTest(transport=transport):
                words = ("-b", "1K", "-e", "256K", "-f", "16", "-n", "3", "--algorithm", "multi-ring")
                result = self.allreduce(shape(2, 2), *words, "--transport", transport)
                told = {(row["implementation"], row["nodes"], row["wrong"]) for row in result["rows"]}
                self.assertEqual(told, {(f"polyring over {used}", 2, 0)})

    def test_payloads_that_fit_a_burst_have_no_bound(self):
        result = self.allreduce(shape(2, 1), "-b", "4K", "-e", "8K", "-n", "20", "--algorithm", "ring,halving-doubling")
        for row in result["rows"]:
            if row["size_bytes"] == 4096:  # in 163 us at the rate
                self.assertIsNone(row["bound_us"], row["algorithm"])
            else:
                self.assertAlmostEqual(row["bound_us"], 8192 / 25 - BURST_US)
        self.assertTrue(any("lets a burst pass at once" in note for note in result["notes"]), result["notes"])

    def probe(self, nodes, script):
        """Exit code, standard output and error of probe, two ranks on a host, after a line of the shell on each."""
        return self.run_job(shape(nodes, 2), "sh", "-c", f"{script}; exec {PROGRAM} probe --format json")

    def test_probe_finds_each_host_once(self):
        code, output, errors = self.probe(3, "true")
        self.assertEqual(code, 0, output + errors)
        groups = json.loads(output)["hosts"]
        self.assertEqual([host["name"] for group in groups for host in group["members"]], ["node0", "node1", "node2"])

    def test_probe_names_hosts_that_differ_or_fail(self):
        xml = ROOT / "tests/topology/fixtures/two_sockets.v2.xml"
        script = f"""case $(hostname) in
          node1) export HWLOC_COMPONENTS=stop ;; *) export HWLOC_XMLFILE={xml} ;; esac"""
        code, output, errors = self.probe(3, script)
        self.assertEqual(code, NOT_AVAILABLE, output + errors)
        self.assertRegex(errors, r"(?m)^polyring: node1 could not be probed: hwloc")
        cluster = json.loads(output[output.index("{") : output.rindex("}") + 1])
        self.assertEqual([group["count"] for group in cluster["hosts"]], [2])
        self.assertEqual([host["name"] for host in cluster["unprobed"]], ["node1"])

    def test_no_allreduce_finds_a_way_past_the_wire(self):
        # All hosts' memory is this machine's: an MPI that copies straight from it would beat the bound.
        result = self.allreduce(shape(2, 1), "-b", "4M", "-e", "4M", "-n", "3", "--algorithm", "ring,mpi")
        for row in result["rows"]:
            self.assertLess(row["bound_fraction"], 1.005 * FRAMED, row["algorithm"])

    def test_congestion_control_is_the_clusters_own(self):
        for options, name in ((), "cubic"), (("--tcp", "reno"), "reno"):
            with self.subTest(name=name):
                told = self.succeed(shape(2, 1, "200mbit", *options), sys.executable, STREAM, "node0", "node1", "1")
                self.assertRegex(told, f" {name} to {name}$")

    def test_a_congestion_control_that_the_kernel_lacks(self):
        code, output, errors = self.run_job(shape(1, 1, "200mbit", "--tcp", "nosuch"), "echo", "never")
        self.assertEqual((code, output), (NOT_AVAILABLE, ""), errors)
        known = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().strip()
        self.assertEqual(errors, f"emulate: this kernel has no TCP congestion control 'nosuch'; choose one of: {known}\n")

    def test_hosts_share_the_cores_in_one_session(self):
        if "mpich" in self.mpi:
            self.skipTest("MPICH starts a session for each rank")
        told = self.succeed(shape(2, 2), sys.executable, "-c", "import os; print(f'session {os.getsid(0)};')")
        sessions = re.findall(r"session (\d+);", told)
        self.assertEqual((len(sessions), len(set(sessions))), (4, 1), told)

    def test_the_bound_of_racks_is_their_uplink(self):
        racks = shape(4, 1, "200mbit", "--racks", "2", "--uplink-rate", "12.5MB/s")
        result = self.allreduce(racks, "-b", "64K", "-e", "64K", "-n", "2", "--algorithm", "ring")
        # tbf's least burst: 4009 B of it are whole.
        self.assertAlmostEqual(result["rows"][0]["bound_us"], 2 * 1 / 2 * 65536 / 12.5 - 4009 / 12.5)
        self.assertTrue(any("2 racks with uplinks at 12.5MB/s" in note for note in result["notes"]), result["notes"])

    def test_messages_between_hosts_are_short(self):
        algorithms = "multi-ring,ring,halving-doubling,tree"
        rows = self.allreduce(shape(2, 2), "-b", "1M", "-e", "1M", "-n", "1", "--algorithm", algorithms)["rows"]
        message = 1 << 20 if RDMA else 56 << 10  # a part of the chunk: that of one of 4 ranks, a half, and all
        whole = 0
        self.assertEqual({row["algorithm"]: row["chunk_bytes"] for row in rows},
                         {"multi-ring": whole if RDMA else 4 * message, "ring": 4 * message, "halving-doubling": 2 * message,
                          "tree": message})

    def test_ucx_over_ethernet_needs_no_rendezvous(self):
        rows = self.allreduce(shape(2, 2), "-b", "1M", "-e", "1M", "-n", "1", "--algorithm", "multi-ring")["rows"]
        short = " in messages of 16KiB" if "mpich" in self.mpi and not RDMA else ""
        self.assertEqual({row["implementation"] for row in rows}, {"polyring over shared memory and MPI" + short})

    def test_tables_and_plans_go_on_from_what_was_measured(self):
        for command, words in {
            "train": ("--model", "resnet50", "--compute-ms", "20", "-n", "1", "--bucket", "fused:16MiB", "--algorithm", "multi-ring", "--ranks", "2..4"),
            "allreduce": ("-b", "64K", "-e", "256K", "-f", "2", "-n", "2", "--algorithm", "multi-ring,ring"),
        }.items():
            self.measure(command, shape(2, 2, "1gbit"), *words)
        for words in (("calibrate", "allreduce.json", "-J", "calibration.json"),
                      ("scale", "--from-run", "train.json", "--calibration", "calibration.json", "--gpus", "16,4,8,2", "-J", "scale.json")):
            ran = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("Beyond 4 ranks nothing was measured", ran.stdout)
        rows = json.loads((self.folder / "scale.json").read_text())["rows"]
        self.assertEqual([(row["gpus"], row["nodes"], row["source"]) for row in rows],
                         [(16, 8, "modelled"), (4, 2, "emulated"), (8, 4, "modelled"), (2, 1, "emulated")])
        self.assertGreater(rows[0]["iteration_ms"], rows[2]["iteration_ms"])
        result = self.allreduce(shape(2, 2, "1gbit"), "-b", "1M", "-e", "1M", "-n", "1", "--algorithm", "multi-ring",
                                "--calibration", "calibration.json")
        self.assertEqual({row["wrong"] for row in result["rows"]}, {0})
        self.assertIn("least price on this machine as calibrated: calibration.json", " ".join(result["notes"]))

    def plan_of(self, rate, *words):
        """Which multi-ring it is that allreduce takes on 2 hosts x 2 ranks, and what is noted of it."""
        result = self.allreduce(shape(2, 2, rate), "-b", "64K", "-e", "64K", "-n", "1", "-w", "0", "--algorithm", "multi-ring", *words)
        row = result["rows"][0]
        self.assertEqual(row["wrong"], 0)
        return (row["patterns"], row["lanes"]), " ".join(result["notes"])

    def test_a_tuned_plan_is_for_its_network_alone(self):
        file = self.folder / "tuned.json"
        said = self.write(file, shape(2, 2), PROGRAM, "tune", "-b", "64K", "-e", "64K", "-n", "2", "--file", file)
        self.assertRegex(said, r"(?m)^ *65536 .*(default|other)$")
        document = json.loads(file.read_text())
        (choice,) = document["choices"]
        self.assertEqual((choice["ranks"], choice["nodes"], choice["transport"]), (4, 2, "shared memory and MPI"))
        self.assertIn("2 hosts x 2 ranks at 200mbit", choice["network"])
        self.assertLessEqual(choice["time_us"], choice["default_time_us"])
        # No search finds this one.
        choice.update(dims="2x2", patterns="ring+ring", lanes=3, chunk_bytes=0, is_default=False)
        file.write_text(json.dumps(document))
        plan, notes = self.plan_of("200mbit", "--tuned", file)
        self.assertEqual(plan, ("ring+ring", 3))
        self.assertIn(f"polyring tune chose: {file}", notes)
        plan, notes = self.plan_of("100mbit", "--tuned", file)
        self.assertNotEqual(plan, ("ring+ring", 3))
        self.assertNotIn("tune", notes)
        self.assertIn(f"nothing in '{file}' is for 4 ranks on 2 hosts and a network of this kind", self.said)

    def test_the_exit_code_is_the_commands(self):
        code, _, errors = self.run_job(shape(2, 1), "sh", "-c", "echo why >&2; exit 7")
        self.assertEqual(code, 7)
        self.assertIn("why\n", errors)

    def test_signals_end_all(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                job = self.started(shape(2, 2), "sleep", "61.25")
                os.killpg(job.pid, number)  # as a terminal does
                self.assertEqual(job.wait(timeout=20), 128 + number)
                self.nothing_left()

    def test_nothing_survives_a_run_that_is_killed(self):
        job = self.started(shape(2, 2), "sleep", "61.5")
        job.kill()
        self.assertEqual(job.wait(timeout=20), -signal.SIGKILL)
        self.nothing_left()
        self.assertEqual(self.succeed(shape(1, 1), "hostname"), "node0\n")

    def test_two_at_once_do_not_meet(self):
        jobs = [self.start(shape(2, 1), "sh", "-c", f"echo {name}; sleep 1; cat /sys/class/net/eth0/operstate") for name in "ab"]
        for job, name in zip(jobs, "ab"):
            output, errors = job.communicate(timeout=TIME_LIMIT_S)
            self.assertEqual(job.returncode, 0, errors)
            self.assertEqual(sorted(output.split()), sorted(2 * [name, "up"]))
        self.nothing_left()

    def killed_allreduce(self, late=None):
        """What is said when rank 2 is killed on node1, with many payloads on their way. Open MPI's daemon on the host `late`
        sleeps then, so that mpirun hears first of what happens on the other one."""
        words = ("allreduce", "-b", "1M", "-e", "1M", "-n", "1000000", "--timeout", "10", "--algorithm", "multi-ring")
        received = "/sys/class/net/eth0/statistics/rx_bytes"
        script = f"""
            after() {{ for i in $(seq 300); do [ $(cat {received}) -gt $1 ] && return; sleep 0.1; done; exit 1; }}
            sleeps() {{ [ "{late}" = $1 ] && kill -STOP $PPID; }}
            wakes() {{ sleep 4; kill -CONT $PPID; }}
            case "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" in
              0) {{ after 4000000; sleeps 0 && wakes; }} & ;;
              2) {{ after 16000000; sleeps 1; kill -9 $$; wakes; }} & ;;
            esac
            exec "$@"
        """
        code, output, errors = self.run_job(shape(2, 2), "sh", "-c", script, "sh", PROGRAM, *words)
        self.assertNotEqual(code, 0)
        return output + errors

    def test_a_killed_rank_ends_an_allreduce(self):
        mpirun_names_it = r"process rank 2 with PID \d+ on node node1 exited on signal 9"
        if "openmpi" in self.mpi:
            self.assertRegex(self.killed_allreduce(late=0), mpirun_names_it)
            # Open MPI ends a rank of node0 whose message to the killed one cannot be sent, and says no more than where in its
            # own code: mpirun hears of that first. What broke the connection is printed where writing to it failed, and not
            # where reading from it met its end.
            ended = r"\[node0:\d+\] \S*pml_ob1_sendreq\.c:\d+ FATAL"
            self.assertRegex(self.killed_allreduce(late=1), f"{mpirun_names_it}|{ended}")
            return
        said = self.killed_allreduce()
        # MPICH's launcher may be late: another rank misses it first, or rank 3, which the launcher ends with it, or UCX fails
        # an assertion in one of them.
        missed = r"polyring: rank [01] \(node0\): (a message|MPI_\w+) (from|to) rank [23] \(node1\) failed: "
        failed = r"uct_iface\.h:\d+ +Assertion `comp->count > 0' failed"
        if not re.search(f"{missed}|{failed}", said):
            self.assertRegex(said, r"BAD TERMINATION[\s\S]* RUNNING AT node1\n")
            self.assertRegex(said, rf"EXIT CODE: {signal.SIGKILL:d}\b")

    def test_a_message_may_take_longer_than_the_time_limit(self):
        # Of 6 MiB, which take over 3 s: its pieces arrive one after the other.
        words = ("-b", "6M", "-e", "6M", "-n", "1", "-w", "0", "--algorithm", "one-shot", "--chunk", "6M", "--timeout", "2")
        rows = self.allreduce(shape(2, 1, "16mbit"), *words)["rows"]
        self.assertEqual([row["wrong"] for row in rows], [0, 0])
        for row in rows:
            self.assertGreater(row["time_us"]["median"], 2e6)

    def test_a_cut_link_ends_an_allreduce(self):
        begun = self.folder / "allreduce.json.part"  # when all ranks have started
        options = shape(3, 2, "200mbit", "--cut-link", "1", "--after", begun)
        code, output, errors = self.run_job(options, PROGRAM, "allreduce", "-b", "1M", "-e", "1M", "-n", "1000000",
                                            "--timeout", "3", "--algorithm", "multi-ring", "-J", "allreduce.json")
        self.assertEqual(code, TIMEOUT, output + errors)
        self.assertIn("emulate: cut the link of node1\n", errors)
        # Whoever is first to say it: to the others those of node1 are gone, and the others to these.
        here = r"rank [0145] \(node[02]\): waited 3\.00 s for .*no answer from rank 2 \(node1\), rank 3 \(node1\):"
        there = r"rank [23] \(node1\): waited 3\.00 s for .*no answer from rank 0 \(node0\), rank 1 \(node0\), rank 4"
        self.assertRegex(output + errors, re.compile(f"^polyring: ({here}|{there})", re.MULTILINE))


if __name__ == "__main__":
    main()
