// gpu.compute, on made-up hosts whose GPUs multiply at made-up rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/bench/accept/fake_measurer.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeMeasurer;
using ::testing::Field;
using ::testing::HasSubstr;
using testing::row;
using testing::rows_of_check;
using ::testing::SizeIs;

constexpr auto kFails = Verdict::fail;
constexpr double kRate = 700;

class MultiplyingHosts {
 public:
  explicit MultiplyingHosts(int hosts) : site(testing::make_site_like("dgx-h100", hosts)) {}

  std::vector<CheckRow> check(const GivenThresholds& given = testing::NothingGiven()) {
    FakeMeasurer measurer(site, 1);
    measurer.reply = [&](int host, const std::string& of, const std::string& question) {
      EXPECT_EQ(of, "gpu.compute");
      EXPECT_GT(nlohmann::json::parse(question).at("seconds").get<double>(), 0);
      ++asked;
      return reply ? reply(host) : HostReply{answer(host)};
    };
    return rows_of_check("gpu.compute", site, measurer, {}, given);
  }

  std::string answer(int host) {
    nlohmann::json said{{"gpus", nlohmann::json::array()},
                        {"rates", nlohmann::json::array()},
                        {"software", software},
                        {"side", 8192},
                        {"way", "products of 8192 x 8192 matrices of float16 by cuBLAS 13.0.2"}};
    for (int gpu = 0; gpu < gpus; ++gpu) {
      said["gpus"].push_back({{"pci", testing::bus_address(gpu)}, {"model", model(host, gpu)}});
      std::vector<double> samples;
      for (int sample = 0; sample < 12; ++sample)
        samples.push_back(kRate * part(host, gpu) *
                          (1 + std::uniform_real_distribution(-0.02, 0.02)(random_)));
      said["rates"].push_back({{"TFLOPs", samples}, {"wrong", wrong(host, gpu)}, {"products", 40}});
    }
    return said.dump();
  }

  Site site;
  int gpus = 8;
  int asked = 0;
  bool software = false;
  std::function<double(int host, int gpu)> part = [](int, int) { return 1.0; };
  std::function<int(int host, int gpu)> wrong = [](int, int) { return 0; };
  std::function<std::string(int host, int gpu)> model = [](int, int) { return "NVIDIA H100"; };
  std::function<HostReply(int host)> reply;  // instead of all that

 private:
  std::mt19937 random_{1};
};

std::vector<CheckRow> bad_ones(std::vector<CheckRow> rows) {
  std::erase_if(rows, [](const CheckRow& one) { return one.verdict == Verdict::pass; });
  return rows;
}

TEST(GpuCompute, PassesOnGoodHostsWithARowForEach) {
  MultiplyingHosts hosts(2);
  const std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::pass), row("node1", Verdict::pass)));
  EXPECT_EQ(rows[0].quantity, "float16 product");
  EXPECT_EQ(rows[0].unit, "TFLOP/s");
  EXPECT_THAT(rows[0].why,
              AllOf(HasSubstr("The slowest of 8 such GPUs, gpu"), HasSubstr("TFLOP/s"),
                    HasSubstr("made products of 8192 x 8192 matrices of float16 by cuBLAS 13.0.2.")));
  EXPECT_EQ(rows[0].threshold_source, "75 % of the median of other GPUs of its model");
  EXPECT_EQ(hosts.asked, 2);
}

TEST(GpuCompute, NamesASlowGpu) {
  MultiplyingHosts hosts(2);
  hosts.part = [](int host, int gpu) { return host == 1 && gpu == 3 ? 0.6 : 1.0; };
  const std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::pass), row("gpu3 of node1", kFails),
                                row("node1", Verdict::pass)));
  EXPECT_THAT(rows[1].hosts, ElementsAre("node1"));
  EXPECT_NEAR(rows[1].value->median, 0.6 * kRate, 0.01 * kRate);
  EXPECT_NEAR(*rows[1].least, 0.75 * kRate, 0.01 * kRate);
  EXPECT_EQ(rows[1].attempts, 5) << "what fails is measured again";
  EXPECT_THAT(rows[1].remedy, HasSubstr("gpu.health"));
  EXPECT_THAT(rows[2].why, HasSubstr("of 7 such GPUs"));
}

TEST(GpuCompute, AllowsWhatGpusOfAModelDiffer) {
  MultiplyingHosts hosts(2);
  hosts.part = [](int, int gpu) { return 1 - 0.02 * gpu; };
  EXPECT_THAT(hosts.check(), Each(Field(&CheckRow::verdict, Verdict::pass)));
}

TEST(GpuCompute, NamesTheHostWhereMostAreSlow) {
  MultiplyingHosts hosts(3);
  hosts.part = [](int host, int) { return host == 2 ? 0.5 : 1.0; };
  const std::vector<CheckRow> rows = bad_ones(hosts.check());
  ASSERT_THAT(rows, ElementsAre(row("node2", kFails)));
  EXPECT_THAT(rows[0].why, HasSubstr("8 of 8 such GPUs are too slow or unclear, the slowest gpu"));
}

TEST(GpuCompute, ThatIsSlowForAWhilePasses) {
  MultiplyingHosts hosts(1);
  hosts.part = [&](int, int gpu) { return gpu == 0 && hosts.asked == 1 ? 0.6 : 1.0; };
  const std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::pass)));
  EXPECT_GT(rows[0].attempts, 1);
}

TEST(GpuCompute, ThatIsWrongFailsHoweverFast) {
  MultiplyingHosts hosts(2);
  hosts.wrong = [](int host, int gpu) { return host == 0 && gpu == 5 ? 1 : 0; };
  for (const bool software : {false, true}) {
    hosts.software = software;
    hosts.asked = 0;
    const std::vector<CheckRow> rows = hosts.check();
    ASSERT_THAT(rows, SizeIs(3));
    EXPECT_THAT(rows[0], row("gpu5 of node0", kFails));
    EXPECT_EQ(rows[0].why, "It computes wrong: 1 wrong element in the results of 40 products.");
    EXPECT_EQ(hosts.asked, 2) << "it is not asked again whether it is wrong";
    EXPECT_THAT(std::vector(rows.begin() + 1, rows.end()),
                Each(Field(&CheckRow::verdict, software ? Verdict::shown : Verdict::pass)));
  }
}

TEST(GpuCompute, SaysWhereAllAreWrong) {
  MultiplyingHosts hosts(1);
  hosts.gpus = 2;
  hosts.wrong = [](int, int) { return 1; };
  const std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, SizeIs(::testing::Ge(2u)));
  EXPECT_THAT(rows[0].why, HasSubstr("So do all others of its model."));
  EXPECT_THAT(rows[0].remedy, HasSubstr("cuBLAS"));
  hosts.wrong = [](int, int gpu) { return gpu; };
  EXPECT_THAT(hosts.check()[0].remedy, HasSubstr("have it replaced"));
}

TEST(GpuCompute, ComparesGpusOfOneModel) {
  MultiplyingHosts hosts(2);
  const auto is_other = [](int gpu) { return gpu >= 6; };
  hosts.model = [&](int, int gpu) { return is_other(gpu) ? "NVIDIA L4" : "NVIDIA H100"; };
  hosts.part = [&](int host, int gpu) {
    return (is_other(gpu) ? 0.1 : 1.0) * (host == 1 && gpu == 7 ? 0.6 : 1.0);
  };
  const std::vector<CheckRow> rows = hosts.check();
  EXPECT_THAT(bad_ones(rows), ElementsAre(row("gpu7 of node1", kFails)));
  EXPECT_THAT(rows, ::testing::Contains(row("node0 (NVIDIA L4)", Verdict::pass)));
}

TEST(GpuCompute, OfAGpuWithoutOthersLikeItHasNoThreshold) {
  MultiplyingHosts hosts(1);
  hosts.gpus = 1;
  const std::vector<CheckRow> rows = hosts.check();
  EXPECT_THAT(rows, ::testing::Contains(row("node0", Verdict::missing)));
}

/// What a baseline or a specification says of one host's rows.
class GivenForNode1 final : public GivenThresholds {
 public:
  std::optional<Threshold> of(const Judged& judged) const override {
    if (judged.check != "gpu.compute" || judged.subject != "node1" ||
        judged.quantity.name != "float16 product")
      return std::nullopt;
    return Threshold{1.2 * kRate, {}, "spec site.toml:3"};
  }
  std::optional<Bytes> size_of(std::string_view) const override { return std::nullopt; }
};

TEST(GpuCompute, MustReachWhatASpecificationSays) {
  MultiplyingHosts hosts(2);
  const std::vector<CheckRow> rows = bad_ones(hosts.check(GivenForNode1{}));
  ASSERT_THAT(rows, ElementsAre(row("node1", kFails)));
  EXPECT_EQ(rows[0].threshold_source, "spec site.toml:3");
}

TEST(GpuCompute, BySoftwareIsNotJudgedByRates) {
  MultiplyingHosts hosts(1);
  hosts.software = true;
  hosts.part = [](int, int gpu) { return gpu == 0 ? 0.001 : 1.0; };
  const std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::shown)));
  EXPECT_EQ(
      rows[0].why,
      "Its 8 GPUs multiplied matrices, and all of them computed right. They are software for tests, and "
      "rates say nothing.");
  EXPECT_EQ(rows[0].source, Source::emulated);
  EXPECT_FALSE(rows[0].value);
}

TEST(GpuCompute, IsSkippedWithoutCublas) {
  MultiplyingHosts hosts(2);
  const std::string without =
      R"({"gpus": [], "software": false, "why": "cuBLAS could not be loaded", "remedy": "Install it."})";
  hosts.reply = [&](int) { return HostReply{without}; };
  std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("", Verdict::skipped)));
  EXPECT_EQ(rows[0].why, "No GPU was measured: cuBLAS could not be loaded.");
  EXPECT_EQ(rows[0].remedy, "Install it.");
  hosts.reply = [&](int host) { return HostReply{host == 0 ? without : hosts.answer(host)}; };
  rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::missing), row("node1", Verdict::pass)));
  EXPECT_EQ(rows[0].why,
            "Its GPUs cannot be measured, and those of other hosts can: cuBLAS could not be loaded.");
  hosts.reply = [](int) { return HostReply{R"({"why": "no NVIDIA driver is loaded here"})"}; };
  EXPECT_THAT(hosts.check(), ElementsAre(row("", Verdict::skipped)));
}

TEST(GpuCompute, ThatBreaksIsAnError) {
  MultiplyingHosts hosts(2);
  hosts.reply = [&](int host) {
    return host == 1 ? HostReply{"", "GPU 1 cannot multiply"} : HostReply{hosts.answer(host)};
  };
  const std::vector<CheckRow> rows = hosts.check();
  ASSERT_THAT(rows, ElementsAre(row("node1", Verdict::error), row("node0", Verdict::pass)));
  EXPECT_EQ(rows[0].why, "Its GPUs could not be measured: GPU 1 cannot multiply.");
}

TEST(GpuCompute, SaysWhichGpusTheRankDoesNotSee) {
  MultiplyingHosts hosts(1);
  hosts.gpus = 2;
  EXPECT_THAT(bad_ones(hosts.check()), ElementsAre(row("node0", Verdict::skipped)));
}

}  // namespace
}  // namespace polyring
