// Ranges of utilisation: their evidence, their order, and how many published results lie inside the range
// that all other sources give.
#include "models/utilisation.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using enum Precision;

TEST(GpuPeaks, AreCitedAndOrdered) {
  for (const GpuPeak& peak : gpu_peaks()) {
    EXPECT_FALSE(peak.source.empty()) << peak.gpu;
    EXPECT_FALSE(to_text(peak.generation).empty()) << peak.gpu;
    EXPECT_GT(peak.float32, 0) << peak.gpu;
    EXPECT_GE(peak.tf32 == 0 ? peak.float16 : peak.tf32, peak.float32) << peak.gpu;
    EXPECT_GE(peak.float16, 2 * (peak.tf32 > 0 ? peak.tf32 : peak.float32) * 0.98) << peak.gpu;
    EXPECT_EQ(find_gpu_peak("NVIDIA " + peak.gpu), &peak);
    EXPECT_THAT(gpu_peak_choices(), testing::HasSubstr(peak.gpu));
  }
}

TEST(GpuPeaks, AreFoundByProductName) {
  const auto name = [](const char* product) {
    const GpuPeak* peak = find_gpu_peak(product);
    return peak == nullptr ? std::string("none") : peak->gpu;
  };
  EXPECT_EQ(name("Tesla P100-SXM2-16GB"), "P100");
  EXPECT_EQ(name("Tesla P100-PCIE-16GB"), "P100 PCIe");
  EXPECT_EQ(name("NVIDIA A100-SXM4-40GB"), "A100");
  EXPECT_EQ(name("NVIDIA H100 80GB HBM3"), "H100");
  EXPECT_EQ(name("NVIDIA H100 PCIe"), "H100 PCIe");
  EXPECT_EQ(name("NVIDIA GH200 480GB"), "GH200");
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090"), "RTX 4090");
  EXPECT_EQ(name("AMD Instinct MI300X"), "MI300X");
  EXPECT_EQ(name("P1000"), "none");
  EXPECT_EQ(name(""), "none");
}

/// 132 processors of 4 tensor cores of 512 fused multiply-adds a cycle at 1,830 MHz, and 108·4·256 at 1,410
/// (H100 and A100 architecture papers).
TEST(GpuPeaks, AreThoseOfTheirClocks) {
  EXPECT_NEAR(peak_of(*find_gpu_peak("H100"), mixed), 1830e6 * 512 * 2 * 528, 0.001 * 989e12);
  EXPECT_NEAR(peak_of(*find_gpu_peak("A100"), mixed), 1410e6 * 256 * 2 * 432, 0.001 * 312e12);
  EXPECT_NEAR(peak_of(*find_gpu_peak("MI300X"), mixed), 2100e6 * 256 * 2 * 1216, 0.001 * 1307e12);
}

TEST(TrainingResults, AreCitedAndPossible) {
  for (const TrainingResult& result : training_results()) {
    EXPECT_FALSE(result.source.empty()) << result.model;
    ASSERT_NE(find_gpu_peak(result.gpu), nullptr) << result.gpu;
    EXPECT_GT(result.utilisation, 0.02) << result.model << " on " << result.gpu;
    // Winograd's convolutions multiply less than is counted, in float32.
    const double most = result.model == "vgg16" && result.precision == single ? 1.6 : 0.8;
    EXPECT_LT(result.utilisation, most) << result.model << " on " << result.gpu;
  }
}

/// No result of the same source says anything about its own prediction.
TEST(Utilisation, ContainsMostOfWhatOthersPublished) {
  const std::vector<TrainingResult>& all = training_results();
  struct Share {
    int inside = 0;
    int all = 0;
  };
  Share total;
  std::map<Family, Share> shares;
  for (const TrainingResult& held_out : all) {
    std::vector<TrainingResult> others;
    std::copy_if(all.begin(), all.end(), std::back_inserter(others),
                 [&](const TrainingResult& other) { return other.source != held_out.source; });
    Model model;
    model.name = held_out.model;
    model.family = held_out.family;
    const UtilisationRange range =
        utilisation_of(model, *find_gpu_peak(held_out.gpu), held_out.precision, others);
    EXPECT_LE(range.low, range.middle) << held_out.model << " on " << held_out.gpu;
    EXPECT_LE(range.middle, range.high) << held_out.model << " on " << held_out.gpu;
    const bool inside = range.low <= held_out.utilisation && held_out.utilisation <= range.high;
    for (Share* share : {&total, &shares[held_out.family]}) {
      share->inside += inside ? 1 : 0;
      ++share->all;
    }
    fmt::print("{:<22} {:<10} {:<6} {:5.1f} % published; {:5.1f} to {:5.1f} %, middle {:5.1f} %{}\n",
               held_out.model, held_out.gpu, to_text(held_out.precision), 100 * held_out.utilisation,
               100 * range.low, 100 * range.high, 100 * range.middle, inside ? "" : "  outside");
  }
  for (const auto& [family, share] : shares) {
    fmt::print("{}: {} of {} inside\n", to_text(family), share.inside, share.all);
    EXPECT_GE(share.inside, 0.6 * share.all) << to_text(family);
  }
  EXPECT_GE(total.all, 100);
  EXPECT_GE(total.inside, 0.75 * total.all);
}

TEST(Utilisation, IsOrderedOnEveryGpuForEveryModel) {
  for (const ModelInfo& info : model_catalogue()) {
    const Model model = make_model(info.name);
    for (const GpuPeak& gpu : gpu_peaks()) {
      for (const Precision precision : {single, mixed}) {
        const UtilisationRange range = utilisation_of(model, gpu, precision);
        EXPECT_GT(range.low, 0) << info.name << gpu.gpu;
        EXPECT_LE(range.low, range.middle) << info.name << gpu.gpu;
        EXPECT_LE(range.middle, range.high) << info.name << gpu.gpu;
        EXPECT_LE(range.high, 1.6) << info.name << gpu.gpu;
        EXPECT_FALSE(range.basis.empty() || range.sources.empty());
      }
    }
  }
}

TEST(Utilisation, IsWiderWithoutResultsOfTheGeneration) {
  const Model llama = make_model("llama3-8b");
  const auto width = [&](const char* gpu) {
    const UtilisationRange range = utilisation_of(llama, *find_gpu_peak(gpu), mixed);
    return range.high / range.low;
  };
  EXPECT_GT(width("MI300X"), width("H100"));
  EXPECT_GT(width("B200"), width("H100"));
}

TEST(Utilisation, IsReadAsAPart) {
  EXPECT_EQ(parse_utilisation("40%"), 0.4);
  EXPECT_EQ(parse_utilisation("0.4"), 0.4);
  for (const char* bad : {"0", "0%", "-1%", "101%", "forty", "", "nan", "1e9%"}) {
    EXPECT_THAT(refusal([&] { parse_utilisation(bad); }), testing::HasSubstr("write it as 40% or 0.4"))
        << bad;
  }
}

}  // namespace
}  // namespace polyring
