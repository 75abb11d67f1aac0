#include "bench/launch/launcher.hpp"

#include "bench/launch/shell.hpp"
#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::usage_sentence;

const std::vector<std::string> kProgram{"./train", "--name", "a b"};

Launcher open_mpi(const char* version = "4.1.4") {
  return identify_launcher("mpirun", fmt::format("mpirun (Open MPI) {}\n\nReport bugs to …\n", version));
}

Launcher mpich() {
  return identify_launcher("mpiexec",
                           "HYDRA build details:\n    Version:                                 4.0.2\n");
}

Launcher intel_mpi() {
  return identify_launcher("mpirun", "Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619\n");
}

Launcher slurm() { return identify_launcher("srun", "slurm-wlm 22.05.8\n"); }

Placement two_hosts() {
  const std::vector<std::vector<int>> cores{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}};
  return {{{"a", 2, cores}, {"b", 2, cores}}};
}

Placement unbound() { return {{{"a", 3, {}}, {"b", 1, {}}}}; }

std::string text_of(const Launcher& launcher, const Placement& placement, const LaunchOptions& options) {
  const std::string file = placement_file(launcher, placement, options).empty() ? "" : "the file";
  return launch_command(launcher, placement, options, file, kProgram).text();
}

TEST(Launcher, IsKnownByItsVersion) {
  EXPECT_EQ(open_mpi().kind, LauncherKind::open_mpi);
  EXPECT_EQ(open_mpi("5.0.3").name, "Open MPI 5.0.3");
  EXPECT_EQ(open_mpi("5.0.3").major, 5);
  EXPECT_EQ(identify_launcher("mpiexec", "mpiexec (OpenRTE) 4.1.4\n").name, "Open MPI 4.1.4");
  EXPECT_EQ(mpich().kind, LauncherKind::mpich);
  EXPECT_EQ(mpich().name, "MPICH 4.0.2");
  EXPECT_EQ(intel_mpi().name, "Intel MPI 2021.10");
  EXPECT_EQ(slurm().name, "Slurm 22.05.8");
  EXPECT_EQ(identify_launcher("srun", "slurm 23.11.4\n").kind, LauncherKind::slurm);
  for (const char* text : {"", "GNU bash, version 5.2", "slurm", "(Open MPI)"})
    EXPECT_EQ(identify_launcher("x", text).kind, LauncherKind::unknown) << text;
}

TEST(Launcher, StartsItsOwnMpi) {
  EXPECT_TRUE(starts(open_mpi(), "Open MPI 4.1.6"));
  EXPECT_FALSE(starts(open_mpi("5.0.3"), "Open MPI 4.1.6"));
  EXPECT_FALSE(starts(open_mpi(), "MPICH 4.0.2"));
  EXPECT_TRUE(starts(mpich(), "MPICH 3.4"));
  EXPECT_FALSE(starts(mpich(), "Open MPI 4.1.4"));
  EXPECT_TRUE(starts(slurm(), "Open MPI 4.1.4"));
}

TEST(OpenMpi, GetsARankfile) {
  EXPECT_EQ(placement_file(open_mpi(), two_hosts(), {}),
            "rank 0=a slot=0-4\nrank 1=a slot=5-9\nrank 2=b slot=0-4\nrank 3=b slot=5-9\n");
  EXPECT_EQ(placement_file(open_mpi(), {{{"a", 1, {{7}}}}}, {}), "rank 0=a slot=7\n");
  EXPECT_EQ(placement_file(open_mpi(), {{{"a", 1, {{1, 4, 5}}}}}, {}), "rank 0=a slot=1,4-5\n");
  EXPECT_EQ(text_of(open_mpi(), two_hosts(), {}),
            "mpirun \\\n  --host a:2,b:2 \\\n  -n 4 \\\n  --rankfile 'the file' \\\n  ./train --name 'a b'");
  EXPECT_THAT(text_of(open_mpi("5.0.3"), two_hosts(), {}), HasSubstr("--map-by 'rankfile:file=the file'"));
}

TEST(OpenMpi, BindsNothingWhereRanksShareCores) {
  EXPECT_EQ(placement_file(open_mpi(), unbound(), {}), "");
  LaunchOptions options;
  EXPECT_THAT(text_of(open_mpi(), unbound(), options), HasSubstr("--map-by slot --bind-to none \\\n"));
  options.oversubscribe = true;
  EXPECT_THAT(text_of(open_mpi(), unbound(), options), HasSubstr("--bind-to none --oversubscribe"));
  EXPECT_THAT(text_of(open_mpi("5.0.3"), unbound(), options),
              HasSubstr("--map-by slot:oversubscribe --bind-to none"));
}

/// One core of each host, number 0 for its launcher.
Placement with_cpusets(const std::vector<std::vector<int>>& cpusets) {
  Placement placement;
  for (const std::vector<int>& cpuset : cpusets)
    placement.hosts.push_back({fmt::format("node{}", placement.hosts.size()), 1, {{0}}, 0, cpuset});
  return placement;
}

TEST(OpenMpi, BindsNothingWhereItMixesUpCpusets) {
  const Placement mixed = with_cpusets({{0}, {0}, {1}});
  EXPECT_EQ(placement_file(open_mpi(), mixed, {}), "");
  EXPECT_THAT(text_of(open_mpi(), mixed, {}), HasSubstr("--map-by slot --bind-to none"));
  EXPECT_EQ(why_not_bound(open_mpi(), mixed),
            "node0 and node2 may use different cores (cpuset), which Open MPI mixes up: ranks are not bound");
  // With other numbers of cores each has a topology of its own.
  for (const Placement& fine : {with_cpusets({{1}, {1}}), with_cpusets({{0}, {0, 1}, {0}})}) {
    EXPECT_NE(placement_file(open_mpi(), fine, {}), "");
    EXPECT_EQ(why_not_bound(open_mpi(), fine), "");
  }
}

/// A rank with every second of 128 cores.
Placement scattered() {
  std::vector<int> odd;
  for (int i = 1; i < 128; i += 2) odd.push_back(i);
  return {{{"a", 1, {odd}}}};
}

TEST(OpenMpi, BindsNothingWhereARankfileCannotListTheCores) {
  EXPECT_EQ(placement_file(open_mpi(), scattered(), {}), "");
  EXPECT_EQ(why_not_bound(open_mpi(), scattered()),
            "a rankfile cannot list the cores of a, of so many ranges: ranks are not bound");
}

TEST(Launcher, HasRankfilesOnlyWhereItIsOpenMpi) {
  for (const Placement& placement : {scattered(), with_cpusets({{0}, {1}})}) {
    for (const Launcher& launcher : {mpich(), intel_mpi(), slurm()})
      EXPECT_EQ(why_not_bound(launcher, placement), "") << launcher.name;
    EXPECT_THAT(text_of(slurm(), placement, {}), HasSubstr("--cpu-bind=cores"));
  }
  EXPECT_THAT(text_of(mpich(), with_cpusets({{0}, {1}}), {}), HasSubstr("-bind-to core:1"));
}

TEST(Binding, IsThePlacementsWhereTheLauncherCanBeToldIt) {
  EXPECT_EQ(binding(open_mpi(), two_hosts()), Binding::placed);
  EXPECT_EQ(binding(open_mpi(), scattered()), Binding::none);
  EXPECT_EQ(binding(open_mpi(), unbound()), Binding::none);
  EXPECT_EQ(binding(mpich(), two_hosts()), Binding::placed);
  EXPECT_EQ(binding(mpich(), scattered()), Binding::none);
  EXPECT_EQ(binding(mpich(), unbound()), Binding::none);
  EXPECT_EQ(binding(slurm(), two_hosts()), Binding::own);
  EXPECT_EQ(binding(slurm(), unbound()), Binding::none);
  EXPECT_EQ(binding(intel_mpi(), two_hosts()), Binding::own);
}

TEST(OpenMpi, GetsTheRemoteShellAndMoreWords) {
  LaunchOptions options;
  options.shell = RemoteShell::other({"enter", "-x"});
  options.extra = {"--mca", "btl", "tcp,self"};
  EXPECT_THAT(text_of(open_mpi(), two_hosts(), options),
              HasSubstr("--mca plm_rsh_agent 'enter -x' \\\n  --mca btl tcp,self"));
  EXPECT_THAT(text_of(open_mpi("5.0.3"), two_hosts(), options),
              HasSubstr("--prtemca plm_ssh_agent 'enter -x'"));
}

TEST(Mpich, GetsAHostfile) {
  EXPECT_EQ(placement_file(mpich(), unbound(), {}), "a:3\nb:1\n");
  EXPECT_EQ(text_of(mpich(), two_hosts(), {}),
            "mpiexec \\\n  -f 'the file' \\\n  -n 4 \\\n  -bind-to core:5 \\\n  ./train --name 'a b'");
  EXPECT_THAT(text_of(mpich(), unbound(), {}), HasSubstr("-bind-to none"));
}

TEST(Mpich, BindsBlocksOfCoresOnly) {
  const auto binding = [](const Placement& placement) { return text_of(mpich(), placement, {}); };
  EXPECT_THAT(binding({{{"a", 2, {{0, 1, 2, 3}, {4, 5, 6, 7}}}}}), HasSubstr("-bind-to core:4"));
  // The GPUs are near the second package, or their ranks have not equally many cores.
  EXPECT_THAT(binding({{{"a", 1, {{4, 5, 6, 7}}}}}), HasSubstr("-bind-to none"));
  EXPECT_THAT(binding({{{"a", 2, {{0, 1, 2, 3}, {4, 5}}}}}), HasSubstr("-bind-to none"));
  EXPECT_THAT(binding({{{"a", 2, {{4, 5, 6, 7}, {0, 1, 2, 3}}}}}), HasSubstr("-bind-to none"));
  EXPECT_THAT(binding({{{"a", 1, {{0, 2}}}}}), HasSubstr("-bind-to none"));
}

TEST(Mpich, TakesARemoteShellOfOneWord) {
  LaunchOptions options;
  options.shell = RemoteShell::other({"enter"});
  EXPECT_THAT(text_of(mpich(), two_hosts(), options), HasSubstr("-launcher rsh -launcher-exec enter"));
  options.shell = RemoteShell::other({"enter", "-x"});
  EXPECT_THAT(usage_sentence([&] { text_of(mpich(), two_hosts(), options); }), HasSubstr("write a script"));
}

TEST(IntelMpi, BindsByItself) {
  EXPECT_THAT(text_of(intel_mpi(), two_hosts(), {}), HasSubstr("-machinefile 'the file'"));
  EXPECT_THAT(text_of(intel_mpi(), two_hosts(), {}), Not(HasSubstr("-bind-to")));
}

TEST(Slurm, GetsTheHostOfEachRank) {
  EXPECT_EQ(placement_file(slurm(), unbound(), {}), "a\na\na\nb\n");
  EXPECT_EQ(text_of(slurm(), unbound(), {}),
            "SLURM_HOSTFILE='the file' srun \\\n  --ntasks=4 --distribution=arbitrary --cpu-bind=none \\\n"
            "  --kill-on-bad-exit=1 \\\n  ./train --name 'a b'");
}

TEST(Slurm, NeedsNoFileForItsOwnOrder) {
  LaunchOptions options;
  options.as_allocated = true;
  EXPECT_EQ(placement_file(slurm(), two_hosts(), options), "");
  EXPECT_THAT(
      text_of(slurm(), two_hosts(), options),
      HasSubstr("srun \\\n  --ntasks=4 --nodes=2 --ntasks-per-node=2 --distribution=block --cpu-bind=cores"));
  EXPECT_NE(placement_file(slurm(), unbound(), options), "");
}

TEST(LaunchCommand, HasAllWordsAndTheEnvironment) {
  const LaunchCommand command = launch_command(slurm(), unbound(), {}, "file", kProgram);
  EXPECT_THAT(command.environment,
              ElementsAre(std::pair<std::string, std::string>("SLURM_HOSTFILE", "file")));
  EXPECT_EQ(command.words().front(), "srun");
  EXPECT_EQ(command.words().back(), "a b");
}

TEST(RemoteShell, CallsSshSrunAndOthers) {
  EXPECT_THAT(
      RemoteShell::ssh().command("a", "echo 'x'", {2.5}),
      ElementsAre("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=3", "a", "sh -c 'echo '\\''x'\\'''"));
  EXPECT_EQ(RemoteShell::ssh().by_hand("a"), "ssh a true");
  EXPECT_THAT(RemoteShell::ssh().chosen(), IsEmpty());
  EXPECT_THAT(RemoteShell::srun().command("a", "echo x", {1}),
              ElementsAre("env", "-u", "SLURM_CPUS_PER_TASK", "-u", "SRUN_CPUS_PER_TASK", "-u", "SLURM_EXACT",
                          "srun", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--nodelist=a",
                          "sh", "-c", "echo x"));
  EXPECT_EQ(RemoteShell::srun().by_hand("a"),
            "srun --overlap --nodes=1 --ntasks=1 --cpu-bind=none --nodelist=a true");
  EXPECT_THAT(RemoteShell::other({"enter", "-x"}).command("a", "true", {1}),
              ElementsAre("enter", "-x", "a", "sh -c true"));
  EXPECT_THAT(RemoteShell::other({"enter", "-x"}).chosen(), ElementsAre("enter", "-x"));
}

TEST(Shell, QuotesAndSplits) {
  EXPECT_EQ(shell_quoted("a-b_c.d/e:f,g=h"), "a-b_c.d/e:f,g=h");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_line(std::vector<std::string>{"a", "b c"}), "a 'b c'");
  EXPECT_THAT(split_words("  a  b\tc\n"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split_words(" "), IsEmpty());
  EXPECT_EQ(last_line("first\n  second  \n\n"), "second");
  EXPECT_EQ(last_line("\n \n"), "");
}

}  // namespace
}  // namespace polyring
