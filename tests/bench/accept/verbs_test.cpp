// Ports of InfiniBand: recorded hosts with eight, one of them bad. MPI chooses among them before it starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/accept/checks/checks.hpp"
#include "bench/accept/expected_least.hpp"
#include "bench/accept/verbs_ports.hpp"
#include "tests/bench/accept/fake_measurer.hpp"
#include "tests/topology/sysfs_tree.hpp"
#include "topology/inventory/probe/remarks.hpp"
#include "topology/inventory/probe/sysfs_machine.hpp"

namespace polyring {
namespace {

using ::testing::AnyOf;
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
using ::testing::SizeIs;
using testing::SysfsTree;

constexpr int kPorts = 8;
constexpr std::uint64_t kGigabyte = 1'000'000'000;

/// Eight NICs of one port below a PCIe switch with a GPU, and one for storage away from it, which is down.
class EightPorts {
 public:
  EightPorts() {
    tree_.bridge(kRoot);
    tree_.bridge(kSwitch);
    tree_.bridge(kSwitch + "/0000:02:00.0");
    tree_.pci(kSwitch + "/0000:02:00.0/0000:03:00.0", {.device_class = "0x030200"});
    for (int port = 0; port < kPorts; ++port) {
      const std::string bridge = fmt::format("{}/0000:02:0{}.0", kSwitch, port + 1);
      tree_.bridge(bridge);
      add(port, fmt::format("{}/0000:1{}:00.0", bridge, port));
    }
    tree_.bridge("pci0000:80/0000:80:01.0");
    add(kPorts, "pci0000:80/0000:80:01.0/0000:81:00.0");
    set_state(kPorts, "1: DOWN");
    write(kPorts, "phys_state", "2: Polling");
  }

  void set_state(int port, const std::string& state) { write(port, "state", state); }
  void set_counter(int port, const std::string& text) { write(port, "counters/port_xmit_data", text); }
  VerbsPorts read() const { return read_verbs_ports(tree_.path()); }

  /// What is probed of it while these ports are down.
  Machine machine(const std::string& name, const std::vector<int>& down,
                  const std::string& physical = "2: Polling") {
    for (const int port : down) {
      set_state(port, "1: DOWN");
      write(port, "phys_state", physical);
    }
    const probe::Sysfs sysfs(tree_.path());
    Machine machine = probe::machine_from(sysfs);
    machine.remarks = probe::port_remarks(machine, sysfs, machine.link_faults);
    for (const int port : down) {
      set_state(port, "4: ACTIVE");
      write(port, "phys_state", "5: LinkUp");
    }
    machine.name = name;
    machine.gpu_links_known = true;
    return machine;
  }

 private:
  inline static const std::string kRoot = "pci0000:00/0000:00:01.0";
  inline static const std::string kSwitch = kRoot + "/0000:01:00.0";

  void add(int port, const std::string& place) {
    places_.push_back(place);
    tree_.pci(place, {.device_class = "0x020700", .vendor = "0x15b3"});
    tree_.openfabrics(fmt::format("mlx5_{}", port), place, fmt::format("506b:4b03:0000:000{}", port),
                      fmt::format("506b:4b03:0000:001{}", port));
    set_counter(port, "1000");
  }
  void write(int port, const std::string& file, const std::string& text) {
    const std::string& place = places_[static_cast<std::size_t>(port)];
    tree_.write(fmt::format("devices/{}/infiniband/mlx5_{}/ports/1/{}", place, port, file), text);
  }

  SysfsTree tree_;
  std::vector<std::string> places_;
};

std::string name_of(int port) { return fmt::format("mlx5_{} port 1", port); }

class Verbs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { recorded = std::make_unique<EightPorts>(); }
  static void TearDownTestSuite() { recorded.reset(); }
  inline static std::unique_ptr<EightPorts> recorded;

  std::vector<CheckRow> run(const Check& check) {
    const NothingGiven given;
    const ExpectedLeast expected = expected_least;
    const CheckOptions options;
    return check.run({measurer_, site_, given, expected, options, [](const std::string&) {},
                      [](int) { return true; }, before_});
  }

  static HostReply reply_of(const VerbsPorts& ports) {
    return {nlohmann::json{{"counters", nlohmann::json::object()}, {"verbs", json_of(ports)}}.dump()};
  }

  /// What nic.counters finds when each of the eight has sent a gigabyte, except for what `change` changes.
  std::vector<CheckRow> after(const std::function<void(std::vector<VerbsPorts>&)>& change) {
    const VerbsPorts first = recorded->read();
    std::vector<VerbsPorts> hosts(site_.hosts.size(), first);
    for (VerbsPorts& host : hosts)
      for (int port = 0; port < kPorts; ++port) *host.at(name_of(port)).sent += kGigabyte;
    change(hosts);
    before_.assign(site_.hosts.size(), reply_of(first));
    measurer_.reply = [&](int host, const std::string&, const std::string&) {
      return reply_of(hosts[static_cast<std::size_t>(host)]);
    };
    std::vector<CheckRow> rows = run(kNicCounters);
    // Neither counters of errors nor of TCP were recorded.
    std::erase_if(rows, [](const CheckRow& row) { return row.verdict == Verdict::skipped; });
    return rows;
  }

  /// What links finds where these ports of the hosts are down.
  std::vector<CheckRow> links_where(const std::vector<std::vector<int>>& down,
                                    const std::string& physical = "2: Polling") {
    std::vector<Machine> machines;
    for (std::size_t host = 0; host < down.size(); ++host)
      machines.push_back(recorded->machine(site_.hosts[host], down[host], physical));
    return links_of(std::move(machines));
  }
  std::vector<CheckRow> links_of(std::vector<Machine> machines) {
    std::vector<Inventory> parts;
    for (Machine& machine : machines) parts.push_back(inventory_of(std::move(machine)));
    site_.inventory = merged(std::move(parts));
    return run(kLinks);
  }

  Site site_ = make_site({2, 2, 2});
  FakeMeasurer measurer_{site_, 1};
  std::vector<HostReply> before_;
};

TEST_F(Verbs, AreReadFromSysfs) {
  recorded->set_counter(5, "4294967295");
  const VerbsPorts ports = recorded->read();
  recorded->set_counter(5, "1000");
  ASSERT_THAT(ports, SizeIs(9));
  EXPECT_EQ(ports.at("mlx5_0 port 1").state, "ACTIVE");
  EXPECT_EQ(ports.at("mlx5_0 port 1").sent, 4000u);
  EXPECT_EQ(ports.at("mlx5_8 port 1").state, "DOWN");
  EXPECT_EQ(ports.at("mlx5_5 port 1").sent, std::nullopt) << "a counter of 32 bits that is full";
  EXPECT_EQ(json_of(verbs_ports_of(json_of(ports))), json_of(ports));
  EXPECT_EQ(verbs_ports_of(json_of(ports)).at("mlx5_8 port 1").sent, 4000u);
}

TEST_F(Verbs, ThatAllCarryMessagesPass) {
  const std::vector<CheckRow> rows = after([](auto&) {});
  ASSERT_THAT(rows, ElementsAre(row("what ports sent", Verdict::pass), row("unused ports", Verdict::shown)));
  EXPECT_EQ(rows[0].why, "8 ports carried messages on each host that has them.");
  EXPECT_THAT(
      rows[1].why,
      HasSubstr(
          "mlx5_8 port 1 (DOWN) carried almost nothing that could be counted, compared with 8 other ports."));
}

TEST_F(Verbs, ThatAreDownOrCarryNothingAreNamed) {
  const std::vector<CheckRow> rows = after([](std::vector<VerbsPorts>& hosts) {
    hosts[1].at(name_of(3)) = {"DOWN", 4000};
    hosts[2].at(name_of(6)).sent = 12'000;
  });
  ASSERT_THAT(rows,
              ElementsAre(row("mlx5_3 port 1 of node1", Verdict::fail),
                          row("mlx5_6 port 1 of node2", Verdict::fail), row("unused ports", Verdict::shown)));
  EXPECT_THAT(rows[0].hosts, ElementsAre("node1"));
  EXPECT_THAT(rows[0].why, HasSubstr("It is DOWN and sent 0"));
  EXPECT_THAT(rows[0].why, HasSubstr("that port of 2 other hosts sent "));
  EXPECT_THAT(rows[0].remedy, HasSubstr("cable"));
  EXPECT_THAT(rows[1].why, HasSubstr("It is ACTIVE and sent 8kB"));
  EXPECT_THAT(rows[1].remedy, HasSubstr("MPI of this host may use"));
}

TEST_F(Verbs, ThatDoNotSayWhatTheySentDoNotPass) {
  const std::vector<CheckRow> rows = after([](auto& hosts) { hosts[0].at(name_of(2)).sent.reset(); });
  ASSERT_THAT(rows, ElementsAre(row("mlx5_2 port 1 of node0", Verdict::inconclusive),
                                row("unused ports", Verdict::shown)));
  EXPECT_THAT(rows[0].why, HasSubstr("does not say what it sent"));
}

/// Which ports MPI uses is its choice.
TEST_F(Verbs, ThatNoHostUsesAreShown) {
  std::vector<CheckRow> rows = after([](auto& hosts) {
    for (VerbsPorts& host : hosts) host.at(name_of(3)).sent = 4000;
  });
  ASSERT_THAT(rows, ElementsAre(row("what ports sent", Verdict::pass), row("unused ports", Verdict::shown)));
  EXPECT_THAT(
      rows[1].why,
      HasSubstr("mlx5_3 port 1 (ACTIVE), mlx5_8 port 1 (DOWN) carried almost nothing that could be counted"));
  rows = after([](auto& hosts) { std::ranges::fill(hosts, recorded->read()); });
  ASSERT_THAT(rows, ElementsAre(row("what ports sent", Verdict::shown)));
  EXPECT_THAT(rows[0].why, HasSubstr("carried messages while this ran"));
}

/// The results, by the first host.
TEST_F(Verbs, ThatOneHostWritesFilesByAreNoneOfTheJobs) {
  const std::vector<CheckRow> rows = after([](std::vector<VerbsPorts>& hosts) {
    for (VerbsPorts& host : hosts) host.at(name_of(kPorts)).state = "ACTIVE";
    *hosts[0].at(name_of(kPorts)).sent += kGigabyte / 50;
  });
  EXPECT_THAT(rows, ElementsAre(row("what ports sent", Verdict::pass), row("unused ports", Verdict::shown)));
}

/// As a file system does, or a bond whose active member is another one there.
TEST_F(Verbs, ThatFewHostsUseAreShown) {
  std::vector<CheckRow> rows = after([](std::vector<VerbsPorts>& hosts) {
    for (VerbsPorts& host : hosts) host.at(name_of(kPorts)).state = "ACTIVE";
    // More than all that the job sent.
    *hosts[0].at(name_of(kPorts)).sent += 101 * kGigabyte;
  });
  ASSERT_THAT(rows, ElementsAre(row("what ports sent", Verdict::pass), row(name_of(kPorts), Verdict::shown)));
  EXPECT_EQ(rows[1].why, "Of 3 hosts that have it (ACTIVE), only node0 sent messages by it, 101GB.");
  EXPECT_THAT(rows[1].hosts, SizeIs(3));
  EXPECT_THAT(rows[1].remedy, HasSubstr("UCX_NET_DEVICES"));
  // The only one that carried messages went down since.
  rows = after([](std::vector<VerbsPorts>& hosts) {
    for (const std::size_t host : {1u, 2u}) hosts[host].at(name_of(3)).sent = 4000;
    hosts[0].at(name_of(3)).state = "DOWN";
  });
  ASSERT_THAT(rows, ElementsAre(row("what ports sent", Verdict::pass), row(name_of(3), Verdict::shown),
                                row("unused ports", Verdict::shown)));
  EXPECT_EQ(rows[1].why, "Of 3 hosts that have it (ACTIVE, DOWN), only node0 sent messages by it, 1GB.");
  // Nothing else was sent.
  rows = after([](std::vector<VerbsPorts>& hosts) {
    std::ranges::fill(hosts, recorded->read());
    *hosts[1].at(name_of(0)).sent += kGigabyte;
  });
  EXPECT_THAT(rows, ElementsAre(row(name_of(0), Verdict::shown), row("unused ports", Verdict::shown)));
}

TEST_F(Verbs, OfOneHostCarryNothing) {
  site_ = make_site({2});
  EXPECT_THAT(after([](auto&) {}), IsEmpty());
}

TEST_F(Verbs, ThatAreDownAreFaultsOfLinks) {
  const std::vector<CheckRow> rows = links_where({{}, {3}, {}});
  ASSERT_THAT(rows,
              ElementsAre(row("mlx5_8 of all hosts", Verdict::shown), row("mlx5_3 of node1", Verdict::fail),
                          row("node0", Verdict::pass), row("node2", Verdict::pass)));
  EXPECT_EQ(rows[1].why, "mlx5_3 port 1 is DOWN (Polling).");
  EXPECT_EQ(rows[1].remedy, "See its cable and the switch's port.");
  site_ = make_site({2});
  EXPECT_THAT(links_where({{3}}),
              ElementsAre(row("mlx5_3 of node0", Verdict::fail), row("mlx5_8 of node0", Verdict::fail)))
      << "nothing tells that others are so, too";
}

/// As where the switch of a rail is dead. The port for storage is down, too, and may be meant to be.
TEST_F(Verbs, ThatAreDownOnAllHostsAreARailsFault) {
  std::vector<CheckRow> rows = links_where({{}, {}, {}});
  ASSERT_THAT(rows, ElementsAre(row("mlx5_8 of all hosts", Verdict::shown), row("node0", Verdict::pass),
                                row("node1", Verdict::pass), row("node2", Verdict::pass)));
  EXPECT_EQ(rows[0].why, "mlx5_8 port 1 is DOWN (Polling).");
  rows = links_where({{3}, {3}, {3}});
  ASSERT_THAT(rows, ElementsAre(row("mlx5_3 of all hosts", Verdict::fail),
                                row("mlx5_8 of all hosts", Verdict::shown), row("node0", Verdict::pass),
                                row("node1", Verdict::pass), row("node2", Verdict::pass)));
  EXPECT_EQ(rows[0].why, "mlx5_3 is down, and 7 NICs like it are up.");
  EXPECT_EQ(rows[0].remedy, "See to its cable, and to the switch of its rail.");
  EXPECT_THAT(rows[0].hosts, SizeIs(3));
  EXPECT_THAT(rows[2].why, HasSubstr("No other fault"));
  // Where nearly half of the NICs have no cable, hosts were built so.
  rows = links_where({{4, 5, 6}, {4, 5, 6}, {4, 5, 6}});
  EXPECT_THAT(rows, SizeIs(4 + 3));
  EXPECT_THAT(rows, Each(Field(&CheckRow::verdict, AnyOf(Verdict::pass, Verdict::shown))));
  EXPECT_THAT(rows[6].why, HasSubstr("No fault"));
}

/// Only the probe knows whether an InfiniBand port should be up.
TEST_F(Verbs, ThatAreDisabledOnAllHostsAreShown) {
  const std::vector<CheckRow> rows = links_where({{3}, {3}, {3}}, "3: Disabled");
  ASSERT_THAT(rows, ElementsAre(row("mlx5_3 of all hosts", Verdict::shown),
                                row("mlx5_8 of all hosts", Verdict::shown), row("node0", Verdict::pass),
                                row("node1", Verdict::pass), row("node2", Verdict::pass)));
  EXPECT_EQ(rows[0].why, "mlx5_3 is down, and 7 NICs like it are up.");
}

/// What its probe says of a PCIe link stays.
TEST_F(Verbs, ThatAreDownOnAllHostsHideNoOtherFault) {
  std::vector<Machine> machines;
  for (const std::string& host : site_.hosts) machines.push_back(recorded->machine(host, {}));
  machines[1].link_faults.insert(machines[1].link_faults.begin(),
                                 LinkFault{"mlx5_8", "mlx5_8 (a) runs on 8 of 16 PCIe lanes"});
  EXPECT_THAT(
      links_of(std::move(machines)),
      ElementsAre(row("mlx5_8 of node0 and node2", Verdict::shown), row("mlx5_8 of node1", Verdict::fail),
                  row("node0", Verdict::pass), row("node2", Verdict::pass)));
}

/// Three of four are three quarters, two of three are not.
TEST_F(Verbs, OfRailsFailWhereThreeQuartersAreUp) {
  for (const int ports : {4, 3}) {
    const auto of = [&](const std::string& host, bool is_fault) {
      Machine machine = recorded->machine(host, {0});
      // Nobody has set up the last one, or it stands by in a bond.
      for (Nic& nic : machine.nics) nic.kind = is_fault ? nic.kind : NicKind::ethernet;
      for (Nic& nic : machine.nics) nic.system_guid = is_fault ? nic.system_guid : "";
      for (int port = ports; port < kPorts; ++port)
        machine.nics[static_cast<std::size_t>(port)].model = "other";
      if (!is_fault) machine.link_faults.clear();
      return machine;
    };
    std::vector<Machine> told;
    std::vector<Machine> untold;
    for (const std::string& host : site_.hosts) {
      told.push_back(of(host, true));
      untold.push_back(of(host, false));
    }
    EXPECT_THAT(links_of(std::move(told)),
                Contains(row("mlx5_0 of all hosts", ports == 4 ? Verdict::fail : Verdict::shown)));
    EXPECT_THAT(links_of(std::move(untold)), Each(Field(&CheckRow::verdict, Verdict::pass)));
  }
}

TEST_F(Verbs, AreNotMeasuredOneByOne) {
  measurer_.reply = [](int host, const std::string&, const std::string& question) {
    return question == "verbs" && host != 1 ? HostReply{R"({"mlx5_0 port 1": 0, "mlx5_1 port 1": 0})"}
                                            : HostReply{};
  };
  const std::vector<CheckRow> rows = run(kRails);
  ASSERT_THAT(rows,
              ElementsAre(row("2 ports of InfiniBand or RoCE", Verdict::shown), row("", Verdict::skipped)));
  EXPECT_THAT(rows[0].hosts, ElementsAre("node0", "node2"));
  EXPECT_THAT(rows[0].why, HasSubstr("'nic.counters' their errors, and whether each carried messages"));
  EXPECT_THAT(rows[0].remedy, HasSubstr("UCX_NET_DEVICES"));
}

}  // namespace
}  // namespace polyring
