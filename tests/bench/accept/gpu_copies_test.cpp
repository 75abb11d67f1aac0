// gpu.copies and gpu.memory, on made-up hosts whose GPUs copy at made-up rates.
#include "bench/accept/gpu_copies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "bench/accept/gpu_copy_links.hpp"
#include "tests/bench/accept/fake_measurer.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeMeasurer;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::row;
using testing::rows_of_check;
using ::testing::SizeIs;

constexpr auto kFails = Verdict::fail;

bool is_of(const GpuCopy& copy, int gpu) { return copy.from == gpu || copy.to == gpu; }

/// Hosts like a preset.
class CopyingHosts {
 public:
  CopyingHosts(std::string_view name, int hosts)
      : site(testing::make_site_like(name, hosts)), machine_(site.inventory.cluster.host(0)) {
    gpus = static_cast<int>(machine_.gpus.size());
  }

  std::vector<CheckRow> check(std::string_view name = "gpu.copies", const CheckOptions& options = {},
                              const GivenThresholds& given = testing::NothingGiven()) {
    FakeMeasurer measurer(site, 1);
    measurer.reply = [&](int host, const std::string& of, const std::string& question) {
      ++asked;
      if (host == without_driver) return HostReply{R"({"why": "no driver"})"};
      return reply ? reply(host) : HostReply{answer(host, of, question)};
    };
    return rows_of_check(name, site, measurer, options, given);
  }

  Site site;
  int gpus = 0;
  int asked = 0;
  double part = 0.8;  // of what links give
  double noise = 0.02;
  bool software = false;
  int without_driver = -1;  // this host
  std::function<double(int host, const GpuCopy&)> slows = [](int, const GpuCopy&) { return 1.0; };
  std::function<int(int host, const GpuCopy&)> wrong = [](int, const GpuCopy&) { return 0; };
  std::function<bool(int host, const GpuCopy&)> direct = [](int, const GpuCopy&) { return true; };
  std::function<HostReply(int host)> reply;  // instead of all that

 private:
  std::string answer(int host, const std::string& of, const std::string& question) {
    const CopyCheck& check = of == "gpu.memory" ? copies_inside_gpus() : copies_to_and_between_gpus();
    const std::set<std::string> only = nlohmann::json::parse(question).at("only");
    nlohmann::json said{
        {"gpus", nlohmann::json::array()}, {"software", software}, {"rates", nlohmann::json::object()}};
    std::vector<std::optional<int>> all;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      // CUDA writes it in capitals.
      said["gpus"].push_back({{"pci", testing::bus_address(gpu)}, {"model", "NVIDIA Fake"}});
      all.emplace_back(gpu);
    }
    for (const CopyJob& job : check.jobs(gpus)) {
      if (!only.empty() && !only.contains(job.name())) continue;
      const std::vector<CopyLink> links = links_of_copies(machine_, all, job.copies);
      nlohmann::json of_job = nlohmann::json::array();
      for (std::size_t i = 0; i < job.copies.size(); ++i) {
        const GpuCopy& copy = job.copies[i];
        std::vector<double> samples;
        const double rate = links[i].share.known() ? links[i].share.gigabytes_per_second() : 10;
        for (int sample = 0; sample < 12; ++sample)
          samples.push_back(part * rate * slows(host, copy) *
                            (1 + std::uniform_real_distribution(-noise, noise)(random_)));
        of_job.push_back({{"GBps", samples}, {"wrong", wrong(host, copy)}, {"direct", direct(host, copy)}});
      }
      said["rates"][job.name()] = of_job;
    }
    return said.dump();
  }

  Machine machine_;
  std::mt19937 random_{1};
};

std::vector<CheckRow> bad_ones(std::vector<CheckRow> rows) {
  std::erase_if(rows, [](const CheckRow& one) { return one.verdict == Verdict::pass; });
  return rows;
}

auto of_quantity(const std::string& subject, const std::string& quantity) {
  return AllOf(row(subject, kFails), Field(&CheckRow::quantity, quantity));
}

TEST(GpuCopies, PassOnGoodHostsWithARowForEachQuantity) {
  CopyingHosts hosts("dgx-a100", 2);
  const std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, SizeIs(2 * copies_to_and_between_gpus().quantities.size()));
  EXPECT_THAT(rows, Each(Field(&CheckRow::verdict, Verdict::pass)));
  EXPECT_THAT(rows, Each(Field(&CheckRow::subject, ::testing::AnyOf("node0", "node1"))));
  EXPECT_EQ(rows[0].quantity, "to GPU");
  EXPECT_THAT(rows[0].why, AllOf(HasSubstr("The slowest of 8 such copies, host to gpu"), HasSubstr("GB/s")));
  EXPECT_EQ(hosts.asked, 2);
}

TEST(GpuCopies, NameAGpuWithAHalfLink) {
  CopyingHosts hosts("dgx-a100", 2);
  hosts.slows = [](int host, const GpuCopy& copy) {
    const bool by_host = copy.from == kHostMemory || copy.to == kHostMemory;
    return host == 1 && by_host && is_of(copy, 3) ? 0.5 : 1.0;
  };
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  EXPECT_THAT(rows, ElementsAre(of_quantity("host to gpu3 of node1", "to GPU"),
                                of_quantity("gpu3 to host of node1", "from GPU"),
                                of_quantity("host and gpu3 of node1", "to and from GPU"),
                                of_quantity("host to gpu3 of node1", "to all GPUs"),
                                of_quantity("gpu3 to host of node1", "from all GPUs")));
  EXPECT_THAT(rows[0].remedy, HasSubstr("PCIe link"));
  EXPECT_EQ(rows[0].attempts, 5) << "what fails is measured again";
}

TEST(GpuCopies, NameTheGpuThatIsSlowWithAllOthers) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.slows = [](int, const GpuCopy& copy) {
    return copy.from != kHostMemory && copy.to != kHostMemory && is_of(copy, 5) ? 0.5 : 1.0;
  };
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  ASSERT_THAT(rows, ElementsAre(of_quantity("gpu5 of node0", "GPU to GPU"),
                                of_quantity("gpu5 of node0", "between GPUs"),
                                of_quantity("gpu5 of node0", "among all GPUs")));
  EXPECT_THAT(rows[0].why, HasSubstr("14 of 14 such copies are bad, the worst gpu"));
  EXPECT_THAT(rows[0].remedy, HasSubstr("NVLinks"));
}

TEST(GpuCopies, NameASinglePair) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.slows = [](int, const GpuCopy& copy) { return copy.from == 2 && copy.to == 6 ? 0.5 : 1.0; };
  EXPECT_THAT(bad_ones(hosts.check()), Contains(of_quantity("gpu2 to gpu6 of node0", "GPU to GPU")));
}

TEST(GpuCopies, NameTheHostWhereMostAreBad) {
  CopyingHosts hosts("dgx-a100", 3);
  hosts.slows = [](int host, const GpuCopy&) { return host == 2 ? 0.5 : 1.0; };
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  ASSERT_THAT(rows, SizeIs(copies_to_and_between_gpus().quantities.size()));
  EXPECT_THAT(rows, Each(row("node2", kFails)));
  EXPECT_THAT(rows[0].why, HasSubstr("8 of 8 such copies are bad"));
}

TEST(GpuCopies, AreJudgedByTheirLinksWhereAllAreSlow) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.part = 0.45;
  const std::vector<CheckRow> rows = hosts.check();
  EXPECT_THAT(rows, Each(row("node0", kFails)));
  EXPECT_THAT(rows[0].threshold_source, HasSubstr("60 % of the 31.5 GB/s of its links"));
}

TEST(GpuCopies, WithoutKnownLinksAreJudgedByOthers) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.site.inventory = {};
  hosts.part = 0.3;
  EXPECT_THAT(hosts.check(), Each(Field(&CheckRow::verdict, Verdict::pass)))
      << "they are as fast as each other";
  hosts.slows = [](int, const GpuCopy& copy) { return copy.to == 4 && copy.from == kHostMemory ? 0.5 : 1.0; };
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  EXPECT_THAT(rows, Contains(of_quantity("host to GPU 4 of node0", "to GPU")));
  EXPECT_EQ(rows[0].threshold_source, "75 % of the median of copies like it");
  hosts.gpus = 1;
  EXPECT_THAT(hosts.check(), Each(Field(&CheckRow::verdict, Verdict::missing)))
      << "nothing to compare it with";
}

/// What a baseline or a specification says of one host's rows.
class GivenForNode1 final : public GivenThresholds {
 public:
  std::optional<Threshold> of(const Judged& judged) const override {
    if (judged.subject != "node1" || judged.quantity.name != "to GPU") return std::nullopt;
    return Threshold{30, {}, "spec site.toml:3"};
  }
  std::optional<Bytes> size_of(std::string_view) const override { return std::nullopt; }
};

TEST(GpuCopies, MustReachWhatASpecificationSaysOfTheirHost) {
  CopyingHosts hosts("dgx-a100", 2);
  const std::vector<CheckRow> rows = bad_ones(hosts.check("gpu.copies", {}, GivenForNode1{}));
  ASSERT_THAT(rows, ElementsAre(of_quantity("node1", "to GPU")));
  EXPECT_EQ(rows[0].threshold_source, "spec site.toml:3");
}

TEST(GpuCopies, ThatAreWrongFail) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.wrong = [](int, const GpuCopy& copy) { return copy.from == 0 && copy.to == 1 ? 8 : 0; };
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  ASSERT_THAT(rows, Each(Field(&CheckRow::verdict, kFails)));
  EXPECT_THAT(rows, Contains(AllOf(row("gpu0 to gpu1 of node0", kFails),
                                   Field(&CheckRow::why, "The copies have 8 wrong bytes."))));
  hosts.software = true;
  EXPECT_THAT(bad_ones(hosts.check()), Contains(row("gpu0 to gpu1 of node0", kFails)));
}

TEST(GpuCopies, FailWhereNvlinkIsNotUsed) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.direct = [](int, const GpuCopy& copy) { return copy.from == kHostMemory || copy.to == kHostMemory; };
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_THAT(rows, Each(row("node0", kFails)));
  EXPECT_THAT(rows[0].why, HasSubstr("NVLink joins them, and they cannot access each other's memory."));
}

TEST(GpuCopies, ThatAreSlowForAWhilePass) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.slows = [&](int, const GpuCopy&) { return hosts.asked == 1 ? 0.4 : 1.0; };
  const std::vector<CheckRow> rows = hosts.check();
  EXPECT_THAT(rows, Each(Field(&CheckRow::verdict, Verdict::pass)));
  EXPECT_THAT(rows, Each(Field(&CheckRow::attempts, ::testing::Gt(1))));
  EXPECT_GT(hosts.asked, 2);
}

TEST(GpuCopies, BySoftwareAreNotJudgedByRates) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.software = true;
  hosts.part = 0.001;
  const std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::shown)));
  EXPECT_THAT(rows[0].why,
              HasSubstr("was right in all of them. They are software for tests, and rates say nothing."));
  EXPECT_EQ(rows[0].source, Source::emulated);
  EXPECT_EQ(hosts.asked, 1);
}

TEST(GpuCopies, AreSkippedWithoutGpus) {
  CopyingHosts hosts("dgx-a100", 2);
  hosts.reply = [](int) { return HostReply{R"({"why": "no NVIDIA driver is loaded here"})"}; };
  std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("", Verdict::skipped)));
  EXPECT_EQ(rows[0].why, "CUDA has no GPU to use: no NVIDIA driver is loaded here.");
  hosts.reply = [](int host) {
    return host == 0 ? HostReply{"", "GPU 1 cannot copy"} : HostReply{R"({"why": "no driver"})"};
  };
  rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::error)));
  EXPECT_EQ(rows[0].why, "Its GPUs could not be measured: GPU 1 cannot copy.");
}

TEST(GpuCopies, DoNotPassOnAHostThatHasNone) {
  CopyingHosts hosts("dgx-a100", 2);
  hosts.without_driver = 1;
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  ASSERT_THAT(rows, ElementsAre(row("node1", Verdict::missing)));
  EXPECT_THAT(rows[0].why, HasSubstr("cannot be used, and those of other hosts can: no driver."));
}

TEST(GpuCopies, SayWhichGpusTheRankDoesNotSee) {
  CopyingHosts hosts("dgx-a100", 1);
  hosts.gpus = 2;
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::skipped)));
  EXPECT_EQ(rows[0].why, "The first rank there sees 2 of its 8 GPUs; the others were not measured.");
}

TEST(GpuCopies, OverUnlikeLinksAreRowsOfTheirOwn) {
  CopyingHosts hosts("dgx1-v100", 1);
  const std::vector<CheckRow> rows = hosts.check();
  EXPECT_THAT(rows, Each(Field(&CheckRow::verdict, Verdict::pass)));
  EXPECT_THAT(rows, Contains(row("node0 (NVL 25.0 GB/s)", Verdict::pass)));
  EXPECT_THAT(rows, Contains(row("node0 (NVL 50.0 GB/s)", Verdict::pass)));
  EXPECT_THAT(rows, Contains(Field(&CheckRow::subject, HasSubstr("(SYS "))));
}

TEST(CopyLinks, AreSharedByCopiesInTheSameDirection) {
  const Machine machine = preset("dgx-a100", 1).host(0);
  const std::vector<std::optional<int>> gpus{0, 1};
  const auto share = [&](const std::vector<GpuCopy>& copies) {
    return links_of_copies(machine, gpus, copies).front().share.gigabytes_per_second();
  };
  const double alone = share({{kHostMemory, 0}});
  EXPECT_NEAR(alone, 31.5, 0.1);
  EXPECT_NEAR(share({{kHostMemory, 0}, {0, kHostMemory}}), alone, 0.1) << "links are full duplex";
  EXPECT_NEAR(share({{0, 1}}), 300, 1);
  EXPECT_NEAR(share({{0, 1}, {1, 0}}), 300, 1);
  EXPECT_NEAR(share({{0, 0}}), machine.gpus[0].memory_bandwidth.gigabytes_per_second() / 2, 1);
  // These two GPUs hang on one switch.
  EXPECT_NEAR(share({{kHostMemory, 0}, {kHostMemory, 1}}), alone / 2, 0.1);
  EXPECT_EQ(share({{kHostMemory, 7}}), 0) << "the probe does not know it";
}

TEST(CopyLinks, OfManyGpusToMemoryOfUnknownSpeedHaveNoShare) {
  Machine machine = preset("dgx-a100", 1).host(0);
  const std::vector<std::optional<int>> gpus{0, 1, 2, 3};
  const std::vector<GpuCopy> copies{{kHostMemory, 0}, {kHostMemory, 1}, {kHostMemory, 2}, {kHostMemory, 3}};
  for (const double memory : {0.0, 20.0, 400.0}) {
    for (Package& package : machine.packages) package.memory_bandwidth = gigabytes_per_second(memory);
    const CopyLink link = links_of_copies(machine, gpus, copies).front();
    EXPECT_NEAR(link.share.gigabytes_per_second(), std::min(memory / 4, 15.75), 0.1);
    EXPECT_THAT(link.kind, HasSubstr("15.8 GB/s")) << "copies are compared by their links all the same";
  }
}

TEST(GpuMemory, ThatIsSlowFails) {
  CopyingHosts hosts("dgx-a100", 2);
  EXPECT_THAT(hosts.check("gpu.memory"),
              ElementsAre(row("node0", Verdict::pass), row("node1", Verdict::pass)));
  hosts.slows = [](int host, const GpuCopy& copy) { return host == 1 && copy.from == 6 ? 0.7 : 1.0; };
  EXPECT_THAT(bad_ones(hosts.check("gpu.memory")), ElementsAre(of_quantity("gpu6 of node1", "copy")));
  hosts.slows = [](int, const GpuCopy&) { return 0.6; };
  EXPECT_THAT(hosts.check("gpu.memory"), Each(Field(&CheckRow::verdict, kFails))) << "by its published rate";
}

}  // namespace
}  // namespace polyring
