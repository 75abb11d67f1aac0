#include "bench/launch/hosts.hpp"

#include <map>

#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::usage_sentence;

using Hosts = std::vector<ListedHost>;

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string list_fault(const std::string& text) {
  return usage_sentence([&] { parse_host_list(text); });
}

std::string file_fault(const std::string& text) {
  return usage_sentence([&] { parse_hostfile(text, "hosts.txt"); });
}

TEST(HostList, HasNamesAndRanks) {
  EXPECT_EQ(parse_host_list("a"), (Hosts{{"a", 0}}));
  EXPECT_EQ(parse_host_list("node0,node1:4,10.0.0.7:2"),
            (Hosts{{"node0", 0}, {"node1", 4}, {"10.0.0.7", 2}}));
  EXPECT_EQ(parse_host_list("r[1-2]n[08-10]:8").size(), 6U);
  EXPECT_EQ(parse_host_list("r[1-2]n[08-10]:8")[4], (ListedHost{"r2n09", 8}));
}

TEST(HostList, AddsUpHostsThatAreNamedAgain) {
  EXPECT_EQ(parse_host_list("a,b,a"), (Hosts{{"a", 2}, {"b", 0}}));
  EXPECT_EQ(parse_host_list("a:4,b,a:4"), (Hosts{{"a", 8}, {"b", 0}}));
}

TEST(HostList, RefusesMoreRanksThanALauncherStarts) {
  std::string again = "a:100000";
  for (int i = 1; i < 10; ++i) again += ",a:100000";
  EXPECT_EQ(parse_host_list(again), (Hosts{{"a", 1'000'000}}));
  EXPECT_THAT(list_fault(again + ",a"), HasSubstr("more than 1000000 ranks"));
  for (int i = 0; i < 30'000; ++i) again += ",a:100000";  // more than an int counts
  EXPECT_THAT(list_fault(again), HasSubstr("more than 1000000 ranks"));
  EXPECT_THAT(list_fault("a[1-99999]:99999"), HasSubstr("more than 1000000 ranks"));
  EXPECT_THAT(file_fault("a[1-99] slots=99999"), HasSubstr("more than 1000000 ranks"));
  EXPECT_THAT(usage_sentence([] { expand_tasks_per_node("100000(x30000)"); }),
              HasSubstr("more than 1000000 ranks"));
}

TEST(HostList, RefusesWhatIsNoHost) {
  for (const char* text :
       {"",    "a,",    ",a", "a:", "a:0", "a:x", "a:-1",   "a:99999999999", "a b",   "-oProxyCommand=x",
        "a;b", "a$(b)", "^a", "a[", "a[]", "a[1", "a[2-1]", "a[x]",          "a[1-2", "a]"}) {
    SCOPED_TRACE(text);
    list_fault(text);
  }
  EXPECT_THAT(list_fault("a,me@b"), HasSubstr("~/.ssh/config"));
  EXPECT_THAT(list_fault("a:x"), HasSubstr("number of ranks"));
  EXPECT_THAT(list_fault("a[0-999999999]"), HasSubstr("not a list of hosts"));
  EXPECT_THAT(list_fault("a[0-99999]b[0-99999]"), HasSubstr("not a list of hosts"));
  std::string many = "a[0-99999]";
  for (int i = 0; i < 5000; ++i) many += ",a[0-99999]";
  EXPECT_THAT(list_fault(many), HasSubstr("more than 100000 hosts"));
  // 100,000 names of 20,000 characters each.
  const std::string long_name(20'000, 'a');
  EXPECT_THAT(list_fault(long_name + "[0-99999]"), HasSubstr("253 are allowed"));
  EXPECT_THAT(list_fault("a[" + std::string(20'000, '0') + "1-99999]"), HasSubstr("253 are allowed"));
  EXPECT_LT(list_fault(long_name + ']').size(), 300u);
}

TEST(Hostfile, ReadsOpenMpisAndMpichs) {
  EXPECT_EQ(parse_hostfile("# two racks\n"
                           "a slots=4 max_slots=8 # the first\n"
                           "\n"
                           "\tb\tslots=2\r\n"
                           "c max-slots=3\n"
                           "d:6\n"
                           "e",
                           "hosts.txt"),
            (Hosts{{"a", 4}, {"b", 2}, {"c", 3}, {"d", 6}, {"e", 0}}));
  EXPECT_EQ(parse_hostfile("a\na\nb\n", "hosts.txt"), (Hosts{{"a", 2}, {"b", 0}}));
}

TEST(Hostfile, NamesTheLineThatIsWrong) {
  EXPECT_THAT(file_fault(""), HasSubstr("hosts.txt"));
  EXPECT_THAT(file_fault("# nothing\n"), HasSubstr("names no host"));
  EXPECT_THAT(file_fault("a\nb slots=0\n"), HasSubstr("line 2 of 'hosts.txt' has 'slots=0'"));
  EXPECT_THAT(file_fault("a\n\nb slots\n"), HasSubstr("line 3 of 'hosts.txt' has 'slots'"));
  EXPECT_THAT(file_fault("a gpus=4\n"), HasSubstr("line 1 of 'hosts.txt' has 'gpus=4'"));
  EXPECT_THAT(file_fault("a:2 slots=4\n"), HasSubstr("a:2"));
  EXPECT_THAT(file_fault("a\n-oX\n"), HasSubstr("line 2"));
}

TEST(Nodelist, ExpandsBrackets) {
  EXPECT_THAT(expand_nodelist("login"), ElementsAre("login"));
  EXPECT_THAT(expand_nodelist("n[1-3,7],login"), ElementsAre("n1", "n2", "n3", "n7", "login"));
  EXPECT_THAT(expand_nodelist("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(expand_nodelist("a[1-2]b[3-4]c"), ElementsAre("a1b3c", "a1b4c", "a2b3c", "a2b4c"));
  for (const char* text : {"", "a,,b", "n[1-", "n[1-2", "n[3-2]"}) {
    SCOPED_TRACE(text);
    usage_sentence([&] { expand_nodelist(text); });
  }
}

TEST(TasksPerNode, ExpandsRepetitions) {
  EXPECT_THAT(expand_tasks_per_node("4"), ElementsAre(4));
  EXPECT_THAT(expand_tasks_per_node("4(x2),3"), ElementsAre(4, 4, 3));
  for (const char* text : {"", "4(x0)", "4(x2", "x", "4,", "0"}) {
    SCOPED_TRACE(text);
    usage_sentence([&] { expand_tasks_per_node(text); });
  }
}

TEST(SlurmHosts, AreThoseOfTheAllocation) {
  EXPECT_THAT(slurm_hosts(environment({})), IsEmpty());
  EXPECT_EQ(slurm_hosts(environment({{"SLURM_JOB_NODELIST", "n[1-2]"}})), (Hosts{{"n1", 0}, {"n2", 0}}));
  EXPECT_EQ(
      slurm_hosts(environment(
          {{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "4(x2),2"}, {"SLURM_NTASKS", "10"}})),
      (Hosts{{"n1", 4}, {"n2", 4}, {"n3", 2}}));
}

TEST(SlurmHosts, TakesNoProcessorsForTasks) {
  EXPECT_EQ(slurm_hosts(environment({{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "128"}})),
            (Hosts{{"n1", 0}}));
}

TEST(SlurmHosts, MustFitTogether) {
  EXPECT_THAT(
      usage_sentence([] {
        slurm_hosts(environment(
            {{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "4"}, {"SLURM_NTASKS", "4"}}));
      }),
      HasSubstr("has 2 hosts"));
}

}  // namespace
}  // namespace polyring
