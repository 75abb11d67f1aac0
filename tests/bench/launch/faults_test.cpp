#include "bench/launch/faults.hpp"

#include "tests/topology/support.hpp"
#include "topology/inventory/formats/probe_json.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::small_machine;

constexpr const char* kPolyring = "polyring 1.2.3 (abc)";

Questions questions() { return {"/opt/polyring", "mpirun", RemoteShell::ssh(), {10}}; }

HostAnswer good(const std::string& host) {
  HostAnswer answer;
  answer.host = host;
  answer.polyring = kPolyring;
  answer.mpi = "Open MPI 4.1.4";
  answer.machine = small_machine();
  return answer;
}

std::vector<Fault> faults(const std::vector<HostAnswer>& answers) {
  return find_faults(answers, questions(),
                     {kPolyring, {"mpirun", LauncherKind::open_mpi, "Open MPI 4.1.4", 4}});
}

std::vector<Fault> faults_among(const std::vector<HostAnswer>& answers) {
  return faults_of(host_differences(inventory_of(answers), answers));
}

/// The only fault, which has this code.
std::string only_fault(const std::vector<HostAnswer>& answers, ExitCode code) {
  const std::vector<Fault> found = faults(answers);
  EXPECT_EQ(found.size(), 1U);
  EXPECT_EQ(found.at(0).code, code);
  return found.at(0).sentence;
}

ProcessResult printed(const std::string& version, const std::string& mpi, const std::string& probe) {
  return {0,
          "Welcome to node1\n@polyring:begin@\n" + version + "@\n" + mpi +
              "@\n1a2b-3c\nnode1\n@polyring:0@\n/usr/lib64/libnccl.so.2.21.5\n\n@polyring:0@\n" + probe +
              "@\n",
          "", false};
}

std::string section(const std::string& text, int code = 0) {
  return fmt::format("{}\n@polyring:{}", text, code);
}

std::string probed() { return section(probe_json(cluster_of(small_machine(), 1))); }

TEST(Answers, AreRead) {
  const auto answer =
      read_answer("node1", questions(),
                  printed(section(kPolyring), section("mpirun (Open MPI) 4.1.4\n\nReport bugs"), probed()));
  EXPECT_EQ(answer.polyring, kPolyring);
  EXPECT_EQ(answer.mpi, "Open MPI 4.1.4");
  EXPECT_THAT(answer.system, HasSubstr("1a2b-3c\nnode1"));
  EXPECT_EQ(answer.nccl, "2.21.5");
  ASSERT_TRUE(answer.machine);
  EXPECT_EQ(answer.machine->gpus.size(), 2U);
  EXPECT_THAT(faults({answer}), IsEmpty());
}

/// Below it stands what the build has, above it perhaps a warning.
TEST(Answers, HaveTheVersionInALineByItself) {
  const std::string text =
      std::string("warning: no locale\n") + kPolyring + "\n  compiler  GNU 12\n  NCCL      none";
  EXPECT_EQ(
      read_answer("node1", questions(), printed(section(text), section("mpirun (Open MPI) 4.1.4"), probed()))
          .polyring,
      kPolyring);
  const std::string failed = std::string(kPolyring) + "\nkilled";
  EXPECT_EQ(read_answer("node1", questions(), printed(section(failed, 137), section(""), probed())).polyring,
            "");
}

TEST(Answers, SayWhatIsMissing) {
  const auto answer = read_answer("node1", questions(),
                                  printed(section("sh: 1: /opt/polyring: not found", 127),
                                          section("sh: 1: mpirun: not found", 127), section("", 127)));
  EXPECT_EQ(answer.no_polyring, "sh: 1: /opt/polyring: not found");
  EXPECT_EQ(answer.no_mpi, "sh: 1: mpirun: not found");
  EXPECT_FALSE(answer.machine);
  const auto failing = read_answer("node1", questions(),
                                   {0, printed(section(kPolyring), section("", 3), section("", 6)).output,
                                    "warning\npolyring: no such thing\n", false});
  EXPECT_EQ(failing.no_mpi, "exit code 3");
  EXPECT_EQ(failing.no_machine, "polyring: no such thing");
}

TEST(Answers, SayWhyThereAreNone) {
  const auto words = [](const ProcessResult& result) {
    return read_answer("a", questions(), result).unreachable;
  };
  EXPECT_EQ(words({255, "", "ssh: connect to host a port 22: Connection refused\n", false}),
            "ssh: connect to host a port 22: Connection refused");
  EXPECT_EQ(words({1, "This account is not available.\n", "", false}), "This account is not available.");
  EXPECT_EQ(words({255, "", "", false}), "exit code 255");
  // The connection broke after the first answer.
  EXPECT_EQ(words({255, "@polyring:begin@\n" + section(kPolyring) + "@\n", "Broken pipe\n", false}),
            "Broken pipe");
}

TEST(Faults, NameAMachineThatIsListedTwice) {
  HostAnswer first = good("localhost");
  HostAnswer second = good("node0");
  HostAnswer other = good("node1");
  first.system = second.system = "1a2b-3c\nnode0";
  other.system = "1a2b-3c\nnode1";  // another name on the same kernel, as emulated hosts have
  EXPECT_EQ(only_fault({first, second, other}, ExitCode::usage),
            "localhost and node0 are one machine; name it once, with the ranks of all behind a colon: "
            "node0:8");
  second.system = "4d5e-6f\nnode0";  // of the same name, booted by itself
  EXPECT_THAT(faults({first, second, other}), IsEmpty());
  second.system = first.system = other.system = "";
  EXPECT_THAT(faults({first, second, other}), IsEmpty()) << "nothing is known";
}

TEST(Answers, SayWhatHangs) {
  const auto silent = read_answer("a", questions(), {143, "", "", true});
  EXPECT_TRUE(silent.timed_out);
  EXPECT_EQ(silent.busy_with, "");
  const std::string two = printed(section(kPolyring), section("mpirun (Open MPI) 4.1.4"), "").output;
  const auto busy = read_answer("a", questions(), {143, two, "", true});
  EXPECT_EQ(busy.busy_with, "/opt/polyring probe --format json");
  // What has all been said counts, though the connection is not closed.
  auto late = printed(section(kPolyring), section("mpirun (Open MPI) 4.1.4"), probed());
  late.timed_out = true;
  EXPECT_FALSE(read_answer("a", questions(), late).timed_out);
}

TEST(Answers, AreAskedForByShellsWords) {
  const std::string script = question_script({"/my polyring", "mpirun", RemoteShell::ssh(), {1}});
  EXPECT_THAT(script, HasSubstr("'/my polyring' --version 2>&1;"));
  EXPECT_THAT(script, HasSubstr("'/my polyring' probe --format json;"));
}

TEST(Faults, AreNoneWhenAllIsWell) { EXPECT_THAT(faults({good("a"), good("b")}), IsEmpty()); }

TEST(Faults, NameUnreachableHosts) {
  HostAnswer answer = good("b");
  answer.unreachable = "ssh: connect to host b port 22: No route to host";
  const std::string sentence = only_fault({good("a"), answer}, ExitCode::not_available);
  EXPECT_THAT(sentence, HasSubstr("cannot reach b: ssh: connect to host b port 22: No route to host"));
  EXPECT_THAT(sentence, HasSubstr("ssh b true"));
}

TEST(Faults, NameHostsThatAreSilentTogether) {
  HostAnswer silent = good("b");
  silent.timed_out = true;
  HostAnswer other = silent;
  other.host = "c";
  const std::string sentence = only_fault({good("a"), silent, other}, ExitCode::timeout);
  EXPECT_THAT(sentence, HasSubstr("no answer from b and c within 10.0 s: a firewall"));
  silent.busy_with = "mpirun --version";
  EXPECT_THAT(only_fault({silent}, ExitCode::timeout),
              HasSubstr("'mpirun --version' did not end within 10.0 s on b"));
}

TEST(Faults, NameAMissingOrAnotherPolyring) {
  HostAnswer answer = good("b");
  answer.polyring = "polyring 1.2.3 (def-dirty)";
  EXPECT_THAT(only_fault({good("a"), answer}, ExitCode::not_available),
              HasSubstr("b has polyring 1.2.3 (def-dirty), but this is polyring 1.2.3 (abc)"));
  answer.polyring.clear();
  answer.no_polyring = "not found";
  EXPECT_THAT(only_fault({good("a"), answer}, ExitCode::not_available),
              HasSubstr("b cannot run '/opt/polyring': not found; install"));
}

TEST(Faults, NameAMissingOrAnotherMpi) {
  HostAnswer answer = good("b");
  answer.mpi = "MPICH 4.0.2";
  EXPECT_THAT(only_fault({good("a"), answer}, ExitCode::mpi),
              HasSubstr("b has MPICH 4.0.2, but the ranks are started by Open MPI 4.1.4"));
  answer.mpi.clear();
  answer.no_mpi = "sh: mpirun: not found";
  EXPECT_THAT(only_fault({good("a"), answer}, ExitCode::not_available),
              HasSubstr("b has no MPI: 'mpirun --version' says sh: mpirun: not found"));
}

TEST(Faults, NameAProbeThatFails) {
  HostAnswer answer = good("b");
  answer.machine.reset();
  answer.no_machine = "hwloc cannot read this machine's topology";
  EXPECT_EQ(only_fault({good("a"), answer}, ExitCode::not_available),
            "polyring probe fails on b: hwloc cannot read this machine's topology; run it there");
}

TEST(Faults, WantNoMpiWhereTheLauncherNeedNotBeThere) {
  HostAnswer answer = good("a");
  answer.mpi.clear();
  const Questions of_slurm{"/opt/polyring", "", RemoteShell::srun(), {10}};
  EXPECT_THAT(
      find_faults(std::vector{answer}, of_slurm, {kPolyring, {"srun", LauncherKind::slurm, "Slurm 23", 23}}),
      IsEmpty());
}

TEST(Faults, NameHostsThatAreNotAlike) {
  HostAnswer fewer = good("b");
  fewer.machine->gpus.pop_back();
  std::erase_if(fewer.machine->links, [](const Link& link) {
    return link.from == DeviceId{DeviceKind::gpu, 1};
  });
  HostAnswer down = good("c");
  down.machine->nics[0].ports[0].up = false;
  HostAnswer too = down;
  too.host = "d";
  HostAnswer unknown = good("e");
  unknown.machine.reset();
  const std::vector<Fault> found = faults_among({fewer, good("a"), down, good("f"), too, unknown, good("g")});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].code, ExitCode::usage);
  EXPECT_EQ(found[0].sentence,
            "the hosts differ: b has 1 GPU, not 2; leave the odd ones out, mend them, or go on with "
            "--allow-different");
  EXPECT_THAT(found[1].sentence, HasSubstr("on c and d mlx5_0 is down;"));
  EXPECT_THAT(faults_among({good("a"), good("b")}), IsEmpty());
}

TEST(Faults, NameOtherDriversAndLibrariesOfGpus) {
  std::vector<HostAnswer> answers;
  for (const char* host : {"a", "b", "c", "d"}) {
    answers.push_back(good(host));
    answers.back().machine->gpu_driver = "NVIDIA 550.54.15";
    answers.back().nccl = "2.21.5";
  }
  EXPECT_THAT(faults_among(answers), IsEmpty());
  answers[1].machine->gpu_driver = "NVIDIA 535.104.05";
  answers[0].nccl = answers[3].nccl = "2.18.3";
  answers.push_back(answers[2]);
  answers.back().host = "e";
  answers.push_back(answers[2]);  // brings its own NCCL
  answers.back().host = "f";
  answers.back().nccl.clear();
  const std::vector<Fault> found = faults_among(answers);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[0].sentence, HasSubstr("b's GPUs have driver NVIDIA 535.104.05, not NVIDIA 550.54.15;"));
  EXPECT_THAT(found[1].sentence, HasSubstr("a and d have NCCL 2.18.3, not 2.21.5;"));
}

TEST(Inventories, OfAnswersHaveTheNamesByWhichHostsWereAsked) {
  HostAnswer usual = good("a");
  usual.machine->packages[0].memory = {1'000'000'000};
  HostAnswer larger = good("b.example.org");
  larger.machine->packages[0].memory = {1'000'000'001};  // which nobody wants to read about
  const Inventory hosts = inventory_of(std::vector{usual, larger});
  ASSERT_EQ(hosts.members.size(), 1U);
  ASSERT_EQ(hosts.members[0].size(), 2U);
  EXPECT_EQ(hosts.members[0][0].name, "a");
  EXPECT_EQ(hosts.members[0][1].name, "b.example.org");
  EXPECT_EQ(hosts.cluster.host(0).name, "a");
  EXPECT_THAT(hosts.notes, IsEmpty());
}

}  // namespace
}  // namespace polyring
