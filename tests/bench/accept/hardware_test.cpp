// Checks of what hosts are made of and of what they count: from made-up hosts, and from copies of /sys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/accept/acceptance.hpp"
#include "bench/accept/cpu_limits.hpp"
#include "bench/accept/data_reads.hpp"
#include "bench/accept/expected_least.hpp"
#include "bench/accept/machine_like.hpp"
#include "bench/accept/nic_counters.hpp"
#include "bench/accept/rail_reach.hpp"
#include "tests/bench/accept/fake_measurer.hpp"
#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeMeasurer;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_site;
using testing::NothingGiven;
using testing::row;
using testing::rows_of_check;
using ::testing::SizeIs;
using testing::TemporaryFolder;
using ::testing::UnorderedElementsAre;

/// So many hosts like the preset, after `change` has had each.
Site site_like(std::string_view preset_name, int hosts, const std::function<void(int, Machine&)>& change) {
  Site site = make_site(std::vector<int>(static_cast<std::size_t>(hosts), 2));
  std::vector<Inventory> parts;
  for (int host = 0; host < hosts; ++host) {
    Machine machine = preset(preset_name, 1).host(0);
    machine.name = site.hosts[static_cast<std::size_t>(host)];
    change(host, machine);
    parts.push_back(inventory_of(std::move(machine)));
  }
  site.inventory = merged(std::move(parts));
  return site;
}

TEST(Links, AreComparedWithThoseOfOtherHosts) {
  const Site site = site_like("dgx-a100", 4, [](int host, Machine& machine) {
    if (host == 1) machine.nics[3].ports[0].up = false;
    if (host == 2) machine.nics[0].ports[0].bandwidth = gigabytes_per_second(12.5);
    if (host == 2)
      std::erase_if(machine.links, [](const Link& link) {
        return link.kind == LinkKind::nvlink && link.from == DeviceId{DeviceKind::gpu, 5};
      });
    if (host == 3)
      machine.link_faults = {{"gpu2", "gpu2 (a) runs on 8 of 16 PCIe lanes: see whether it sits well"}};
  });
  FakeMeasurer measurer(site, 1);
  const std::vector<CheckRow> rows = rows_of_check("links", site, measurer);
  const std::string down = site.inventory.cluster.host(0).nics[3].name;
  const std::string slow = site.inventory.cluster.host(0).nics[0].name;
  ASSERT_THAT(rows,
              ElementsAre(row(down + " of node1", Verdict::fail), row(slow + " of node2", Verdict::fail),
                          row("nvswitch0 and gpu5 of node2", Verdict::fail),
                          row("gpu2 of node3", Verdict::fail), row("node0", Verdict::pass)));
  EXPECT_THAT(rows[0].why, HasSubstr(down + " is down."));
  EXPECT_THAT(rows[0].hosts, ElementsAre("node1"));
  EXPECT_EQ(rows[3].why, "gpu2 (a) runs on 8 of 16 PCIe lanes.");
  EXPECT_EQ(rows[3].remedy, "See whether it sits well.");
}

TEST(Links, ThatNobodyComparesDoNotPass) {
  Site site = site_like("dgx-a100", 3, [](int host, Machine& machine) {
    if (host != 1) return;
    machine.gpu_links_known = false;
    std::erase_if(machine.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
  });
  site.inventory.unprobed.push_back({"node9", "its probe did not end"});
  FakeMeasurer measurer(site, 1);
  EXPECT_THAT(rows_of_check("links", site, measurer),
              UnorderedElementsAre(row("node0", Verdict::pass), row("node1", Verdict::missing),
                                   row("node2", Verdict::pass), row("node9", Verdict::error)));
}

TEST(Links, OfNicsWithOtherNamesAreComparedInTheirOrder) {
  const Site site = site_like("dgx-a100", 2, [](int, Machine& machine) {
    for (std::size_t i = 0; i < machine.nics.size(); ++i) machine.nics[i].name = fmt::format("ibp{}", i);
    machine.nics[3].ports[0].bandwidth = gigabytes_per_second(12.5);
  });
  FakeMeasurer measurer(site, 1);
  CheckOptions options;
  options.like = "dgx-a100";
  EXPECT_THAT(rows_of_check("links", site, measurer, options),
              ElementsAre(row("ibp3 of node0", Verdict::fail), row("ibp3 of node1", Verdict::fail)));
}

TEST(Links, ThatAllHostsHaveAreComparedWithAMachine) {
  const Site site = site_like("dgx-a100", 2, [](int, Machine& machine) {
    machine.nics[3].ports[0].bandwidth = gigabytes_per_second(12.5);
  });
  FakeMeasurer measurer(site, 1);
  EXPECT_THAT(rows_of_check("links", site, measurer), Each(Field(&CheckRow::verdict, Verdict::pass)));
  CheckOptions options;
  options.like = "dgx-a100";
  const std::vector<CheckRow> rows = rows_of_check("links", site, measurer, options);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_THAT(rows, Each(Field(&CheckRow::verdict, Verdict::fail)));
  EXPECT_THAT(rows[0].why, HasSubstr("beside 'dgx-a100'"));
}

TEST(Links, OfGpusAndNicsThatAreMissingAreFaults) {
  const Site site = site_like("dgx-a100", 2, [](int, Machine& machine) {
    machine.nics.pop_back();
    machine.gpus.pop_back();
    std::erase_if(machine.links, [&](const Link& link) {
      const auto is_gone = [&](DeviceId id) {
        return (id.kind == DeviceKind::gpu && id.index == static_cast<int>(machine.gpus.size())) ||
               (id.kind == DeviceKind::nic && id.index == static_cast<int>(machine.nics.size()));
      };
      return is_gone(link.from) || is_gone(link.to);
    });
  });
  FakeMeasurer measurer(site, 1);
  CheckOptions options;
  options.like = "dgx-a100";
  const std::string nic = preset("dgx-a100", 1).host(0).nics.back().name;
  EXPECT_THAT(rows_of_check("links", site, measurer, options),
              ElementsAre(row("GPUs of node0", Verdict::fail), row(nic + " of node0", Verdict::fail),
                          row("GPUs of node1", Verdict::fail), row(nic + " of node1", Verdict::fail)));
}

TEST(Links, AreNoneOnHostsWithoutDevices) {
  const Site site = make_site({2, 2});
  FakeMeasurer measurer(site, 1);
  EXPECT_THAT(rows_of_check("links", site, measurer),
              ElementsAre(Field(&CheckRow::verdict, Verdict::skipped)));
}

TEST(MachineLike, IsAPresetOrAFile) {
  EXPECT_EQ(machine_like("minsky").gpus.size(), 4u);
  try {
    machine_like("nonsense");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("minsky"));
  }
}

/// A copy of what the kernel shows of a host with one InfiniBand port and one network interface.
class Counting {
 public:
  explicit Counting(int errors, int sent = 0, int again = 0) {
    write("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", 5 + errors);
    write("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", 7000 + sent);
    write("sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", 1);
    write("sys/class/net/eth0/device/vendor", 1);
    write("sys/class/net/eth0/statistics/rx_crc_errors", 3);
    write("sys/class/net/eth0/statistics/rx_bytes", 3 + sent);
    write("sys/class/net/eth0/carrier_changes", 2);
    write("sys/class/net/docker0/statistics/rx_errors", 4);
    folder_.write("proc/net/snmp",
                  fmt::format("Ip: Forwarding\nIp: 1\nTcp: MaxConn OutSegs RetransSegs InErrs\n"
                              "Tcp: -1 {} {} 9\n",
                              100 + sent, 10 + again));
  }
  NicCounters read() const { return read_nic_counters(folder_.path()); }
  HostReply reply() const { return {nlohmann::json{{"counters", read()}}.dump()}; }

 private:
  void write(const std::string& name, int value) const { folder_.write(name, fmt::format("{}\n", value)); }
  TemporaryFolder folder_;
};

TEST(NicCounters, AreThoseOfPortsThatAreDevices) {
  const NicCounters before = Counting(0).read();
  EXPECT_EQ(before, (NicCounters{{"mlx5_0 port 1", {{"symbol_error", 5}, {"out_of_sequence", 1}}},
                                 {"eth0", {{"rx_crc_errors", 3}, {"carrier_changes", 2}}},
                                 {"TCP", {{"OutSegs", 100}, {"RetransSegs", 10}}}}));
  EXPECT_EQ(grown(before, Counting(2, 50).read()),
            (NicCounters{{"mlx5_0 port 1", {{"symbol_error", 2}}}, {"TCP", {{"OutSegs", 50}}}}));
  EXPECT_EQ(grown(Counting(2).read(), before), (NicCounters{{"mlx5_0 port 1", {{"symbol_error", 5}}}}))
      << "of a counter that was reset";
}

std::vector<CheckRow> counters_of(Site& site, const HostReply& after) {
  FakeMeasurer measurer(site, 1);
  int asked = 0;
  measurer.reply = [&](int host, const std::string&, const std::string&) {
    return asked++ >= static_cast<int>(site.hosts.size()) && host == 1 ? after : Counting(0).reply();
  };
  return rows_of_check("nic.counters", site, measurer);
}

TEST(NicCounters, ThatGrowAreFaultsOfTheirPort) {
  Site site = make_site({2, 2});
  std::vector<CheckRow> rows = counters_of(site, Counting(2, 10'000, 20).reply());
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::pass), row("mlx5_0 port 1 of node1", Verdict::fail),
                                row("TCP of node1", Verdict::pass)));
  EXPECT_EQ(rows[1].why, "Counters grew while this ran: symbol_error by 2.");
  EXPECT_THAT(rows[1].remedy, HasSubstr("cable"));
  EXPECT_DOUBLE_EQ(rows[2].value->median, 0.2);
  rows = counters_of(site, Counting(0, 10'000, 200).reply());
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::pass), row("node1", Verdict::pass),
                                row("TCP of node1", Verdict::fail)));
  site.source = Source::emulated;
  rows = counters_of(site, Counting(0, 10'000, 200).reply());
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[2].verdict, Verdict::skipped);
  EXPECT_EQ(rows[2].why, "2 % of 10000 segments were sent again, as shapers of emulated hosts drop some.");
}

TEST(NicCounters, ThatSayNothingDoNotPass) {
  Site site = make_site({2, 2});
  EXPECT_THAT(counters_of(site, {"", "no /sys here"}),
              ElementsAre(row("node0", Verdict::pass), row("node1", Verdict::error)));
  const NicCounters port_gone{{"eth0", {{"rx_crc_errors", 3}, {"carrier_changes", 2}}}};
  EXPECT_THAT(counters_of(site, {nlohmann::json{{"counters", port_gone}}.dump()}),
              ElementsAre(row("node0", Verdict::pass), row("mlx5_0 port 1 of node1", Verdict::fail)));
  const std::vector<CheckRow> full = counters_of(site, Counting(65'530).reply());
  ASSERT_THAT(full, Contains(row("mlx5_0 port 1 of node1", Verdict::inconclusive)));
  EXPECT_TRUE(is_full("symbol_error", 65'535));
  EXPECT_FALSE(is_full("symbol_error", 65'534));
  EXPECT_FALSE(is_full("rx_crc_errors", 65'535));
}

TEST(CpuLimits, AreReadFromSysfs) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_cpu_limits(folder.path()), CpuLimits{});
  for (const int cpu : {0, 1}) {
    const std::string own = fmt::format("sys/devices/system/cpu/cpu{}/", cpu);
    folder.write(own + "cpufreq/cpuinfo_max_freq", "3000000\n");
    folder.write(own + "cpufreq/scaling_max_freq", cpu == 0 ? "3000000\n" : "1500000\n");
    folder.write(own + "thermal_throttle/core_throttle_count", "2\n");
    folder.write(own + "thermal_throttle/package_throttle_count", "1\n");  // of both
    folder.write(own + "topology/physical_package_id", "0\n");
  }
  EXPECT_EQ(read_cpu_limits(folder.path()), (CpuLimits{2, 1, 1500, 3000, 5}));
}

TEST(HostCpu, FailsForLimitedClocksAndDoubtsLoad) {
  Site site = make_site({2, 2, 2, 2});
  FakeMeasurer measurer(site, 1);
  for (const std::string& host : site.hosts) {
    HostConditions conditions;
    conditions.host = host;
    conditions.ranks = conditions.cpus = 2;
    conditions.elapsed_s = 10;
    conditions.governor = host == "node3" ? "powersave" : "performance";
    conditions.other_cpus = host == "node1" ? 1.5 : 0;
    measurer.of_hosts.push_back(conditions);
  }
  std::vector<CheckRow> rows = rows_of_check("host.cpu", site, measurer);
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::pass), row("node1", Verdict::inconclusive),
                                row("node2", Verdict::pass), row("node3", Verdict::fail)));
  EXPECT_EQ(
      rows[1].why,
      "Other programs used 1.5 of its 2 CPUs while 2 ranks measured: times measured beside it cannot be "
      "trusted.");
  EXPECT_EQ(rows[1].remedy, "Measure again when nothing else runs.");
  EXPECT_EQ(rows[3].why, "Its governor is powersave, and that of most hosts performance.");

  int asked = 0;
  measurer.reply = [&](int host, const std::string&, const std::string&) {
    const bool later = asked++ >= 4;
    return HostReply{
        fmt::format(R"({{"cpus": 2, "limited": {}, "least_MHz": 1500, "could_MHz": 3000, "throttled": {}}})",
                    host == 0 ? 2 : 0, host == 2 && later ? 9 : 4)};
  };
  rows = rows_of_check("host.cpu", site, measurer);
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::fail), row("node1", Verdict::inconclusive),
                                row("node2", Verdict::fail), row("node3", Verdict::fail)));
  EXPECT_EQ(rows[0].why, "2 of its 2 CPUs may run at 1500 MHz at most, and can do 3000.");
  EXPECT_EQ(rows[2].why, "Heat has slowed its CPUs down 5 times while this ran.");
  site.source = Source::emulated;
  EXPECT_THAT(rows_of_check("host.cpu", site, measurer)[1], row("node1", Verdict::skipped));
}

/// Of a host that reaches all others.
HostReply interfaces(const std::string& names, const std::string& question = "") {
  if (question.find("listen") != std::string::npos) return {"10.0.0.1:1"};
  if (question.find("connect") != std::string::npos) return {"[]"};
  const bool is_none =
      question == "sent" || question == "down" || question == "no carrier" || question == "verbs";
  return is_none ? HostReply{} : HostReply{names};
}

TEST(Rails, ThatAreSlowAreFoundWithTheirHost) {
  const Site site = make_site({2, 2, 2, 2, 2});
  FakeMeasurer measurer(site, 1);
  measurer.reply = [](int host, const std::string&, const std::string& question) {
    return interfaces(host == 4 ? R"({"eth0": 100000, "eth1": 100000, "mgmt": 1000})"
                                : R"({"eth0": 100000, "eth1": 100000, "eth2": 100000, "mgmt": 1000})",
                      question);
  };
  for (int host = 0; host < 5; ++host) measurer.rail_GBps[{"mgmt", host}] = 0.1;
  EXPECT_THAT(rows_of_check("rails", site, measurer),
              ElementsAre(row("eth2 of node4", Verdict::fail), row("eth0", Verdict::pass),
                          row("eth1", Verdict::pass), row("eth2", Verdict::pass)));
  measurer.rail_GBps[{"eth1", 3}] = 1;
  const std::vector<CheckRow> rows = rows_of_check("rails", site, measurer);
  ASSERT_THAT(rows, ElementsAre(row("eth2 of node4", Verdict::fail), row("eth0", Verdict::pass),
                                row("eth1", Verdict::fail), row("eth1 of node3", Verdict::fail),
                                row("eth2", Verdict::pass)));
  EXPECT_THAT(rows[2].why, HasSubstr("75 % of the median of the other rails"));
  EXPECT_THAT(rows[3].hosts, ElementsAre("node3"));
}

TEST(Rails, ThatTheKernelGoesAroundDoNotPass) {
  const Site site = make_site({2, 2, 2});
  FakeMeasurer measurer(site, 1);
  std::int64_t sent = 0;
  measurer.reply = [&](int host, const std::string&, const std::string& question) {
    if (question != "sent") return interfaces(R"({"eth0": 100000, "eth1": 100000})", question);
    sent += std::int64_t{1} << 32;
    return interfaces(fmt::format(R"({{"eth0": {0}, "eth1": {1}}})", sent, host == 1 ? 0 : sent));
  };
  const std::vector<CheckRow> rows = rows_of_check("rails", site, measurer);
  ASSERT_THAT(rows, ElementsAre(row("eth0", Verdict::pass), row("eth1", Verdict::inconclusive)));
  EXPECT_EQ(rows[1].why, "node1 sent what was meant for it through another interface.");
}

TEST(Rails, ThatOneOfTwoHostsLacksAreDown) {
  const Site site = make_site({2, 2});
  FakeMeasurer measurer(site, 1);
  measurer.reply = [](int host, const std::string&, const std::string& question) {
    return interfaces(host == 0 ? R"({"eth0": 100000, "eth1": 100000})" : R"({"eth0": 100000, "lan": -1})",
                      question);
  };
  EXPECT_THAT(rows_of_check("rails", site, measurer),
              ElementsAre(row("eth1 of node1", Verdict::fail), row("eth0", Verdict::missing)));
}

/// A rail whose switch is dead is none that hosts have.
TEST(Rails, ThatAreDownOnAllHostsAreShown) {
  const Site site = make_site({2, 2, 2});
  FakeMeasurer measurer(site, 1);
  measurer.reply = [](int host, const std::string&, const std::string& question) {
    if (question != "down") return interfaces(R"({"eth0": 100000, "eth1": 100000})", question);
    return HostReply{host == 2 ? R"({"eth2": 0})" : R"({"eth1": 0, "eth2": 0})"};  // eth1 is a rail by now
  };
  const std::vector<CheckRow> rows = rows_of_check("rails", site, measurer);
  ASSERT_THAT(
      rows, ElementsAre(row("eth2", Verdict::shown), row("eth0", Verdict::pass), row("eth1", Verdict::pass)));
  EXPECT_EQ(rows[0].why, "It is down on all hosts.");
  EXPECT_THAT(rows[0].remedy, HasSubstr("If it is to be a rail"));
}

TEST(Rails, OverWhichAHostIsNotReachedAreMeasuredWithoutIt) {
  const Site site = make_site({2, 2, 2, 2});
  FakeMeasurer measurer(site, 1);
  measurer.reply = [](int host, const std::string&, const std::string& question) {
    const bool connects =
        question.find("connect") != std::string::npos && question.find("10.0.1.") != std::string::npos;
    if (question.find("eth1") != std::string::npos) return HostReply{fmt::format("10.0.1.{}:1", host)};
    if (connects && host != 2)  // hosts reach the next one, and that half way round
      return HostReply{host == 1 || host == 0 ? R"([{"to": 2, "why": "no answer"}])" : "[]"};
    if (connects) return HostReply{R"([{"to": 3, "why": "no answer"}, {"to": 0, "why": "no answer"}])"};
    return interfaces(R"({"eth0": 100000, "eth1": 100000})", question);
  };
  const std::vector<CheckRow> rows = rows_of_check("rails", site, measurer);
  ASSERT_THAT(rows, ElementsAre(row("eth1 of node2", Verdict::fail), row("eth0", Verdict::pass),
                                row("eth1", Verdict::pass)));
  EXPECT_EQ(rows[0].why, "This host and the others cannot reach each other over this rail: no answer.");
  EXPECT_THAT(rows[2].hosts, SizeIs(3));
}

TEST(RailReach, IsOfThoseThatListen) {
  const std::string own = listen_on("lo");
  EXPECT_THAT(own, HasSubstr("127."));
  EXPECT_THAT(unreached_of({own, own}), IsEmpty());
  const auto unreached = unreached_of({own, "127.0.0.1:1"});
  ASSERT_THAT(unreached, SizeIs(1));
  EXPECT_THAT(unreached.at(1), HasSubstr("Connection refused"));
  stop_listening();
  EXPECT_THAT(unreached_of({own, "127.0.0.1:1"}), IsEmpty()) << "it does not listen there";
  EXPECT_THROW(listen_on("nonsense"), Error);
}

TEST(Rails, AreNotMeasuredWhereThereIsOne) {
  for (const std::vector<int>& hosts : {std::vector{2, 2}, {2}}) {
    const Site site = make_site(hosts);
    FakeMeasurer measurer(site, 1);
    measurer.reply = [](int, const std::string&, const std::string& question) {
      return interfaces(R"({"eth0": 100000, "mgmt": 1000})", question);
    };
    const std::vector<CheckRow> rows = rows_of_check("rails", site, measurer);
    ASSERT_THAT(rows, ElementsAre(Field(&CheckRow::verdict, Verdict::skipped)));
    EXPECT_THAT(rows[0].remedy, HasSubstr("UCX_NET_DEVICES"));
    EXPECT_EQ(measurer.orders, 0);
  }
}

TEST(DataReads, AreOfTheFilesThatAreThere) {
  const TemporaryFolder folder;
  folder.write("small", "x");
  EXPECT_THROW(find_data_files(folder.path()), Error);
  EXPECT_THROW(find_data_files(folder.path() / "missing"), Error);
  folder.write("below/large", std::string(5 << 20, 'x'));
  const std::vector<DataFile> files = find_data_files(folder.path());
  ASSERT_THAT(files, SizeIs(2));
  for (const ReadOrder order : {ReadOrder::sequential, ReadOrder::random}) {
    // The first read waits until the file is on the disk.
    const ReadRates rates = read_data(files, order, {100'000}, {1}, 7);
    EXPECT_EQ(rates.GBps.size(), 16u);
    EXPECT_GT(*std::ranges::max_element(rates.GBps), 0);
  }
  std::filesystem::remove(folder.path() / "small");
  std::filesystem::remove(folder.path() / "below/large");
  try {
    read_data(files, ReadOrder::random, {4096}, {0.1}, 7);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST(Data, MustBeAsFastAsTheGpusTrain) {
  const Site site = site_like("dgx1-p100", 2, [](int, Machine&) {});
  FakeMeasurer measurer(site, 1);
  EXPECT_EQ(rows_of_check("data", site, measurer).front().why, "No --data was given.");
  measurer.reply = [](int host, const std::string&, const std::string&) {
    const std::vector<double> rates(16, host == 0 ? 1.0 : 0.01);
    return HostReply{nlohmann::json{{"sequential", rates}, {"random", rates}, {"direct", host == 0}}.dump()};
  };
  CheckOptions options;
  options.data = "/data";
  std::vector<CheckRow> rows = rows_of_check("data", site, measurer, options);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_THAT(rows, Each(Field(&CheckRow::verdict, Verdict::missing)));
  EXPECT_THAT(rows[2].why, HasSubstr("refuses direct reads"));
  options.model = "resnet50";
  rows = rows_of_check("data", site, measurer, options);
  ASSERT_THAT(rows, ElementsAre(row("sequential reads of node0", Verdict::pass),
                                row("random reads of node0", Verdict::pass),
                                row("sequential reads of node1", Verdict::fail),
                                row("random reads of node1", Verdict::fail)));
  EXPECT_THAT(rows[0].threshold_source, HasSubstr("8 x "));
  measurer.reply = [](int, const std::string&, const std::string&) { return HostReply{"", "'/data': gone"}; };
  rows = rows_of_check("data", site, measurer, options);
  EXPECT_THAT(rows, ElementsAre(row("node0", Verdict::error), row("node1", Verdict::error)));
  EXPECT_EQ(rows[0].why, "The data cannot be read there: '/data': gone.");
}

/// A row of an error ends the run with a code, too.
TEST(RunChecks, HaveACodeForRowsOfErrors) {
  Site site = make_site({2, 2});
  site.inventory.unprobed = {{"node1", "it crashed"}};
  FakeMeasurer measurer(site, 1);
  const NothingGiven given;
  const ExpectedLeast expected = expected_least;
  const CheckOptions options;
  const Checking checking{measurer, site, given, expected, options, [](const std::string&) {}};
  EXPECT_EQ(run_checks({{find_check("hosts.alike"), false}}, checking, Budget({}, [] { return Seconds{}; }),
                       {[](const Check&) {}, [](const std::vector<CheckRow>&) {}}),
            ExitCode::not_available);
}

}  // namespace
}  // namespace polyring
