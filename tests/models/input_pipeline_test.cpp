// Which of computing, network, file system and NVMe limits a step, against the arithmetic by hand.
#include "models/input_pipeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model.hpp"
#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using testing::HasSubstr;

const SampleSize kilobyte{{1000}, ""};

/// 8,000 samples of 1 kB on 4 hosts, in a step of 2 ms: 4 GB/s.
FedStep fed_by(Bandwidth filesystem, Bandwidth nvme, Limit limit = Limit::compute) {
  return feed({kilobyte, filesystem, nvme}, {2e-3}, limit, 8000, 4);
}

TEST(Feed, WithoutStorageChangesNothing) {
  for (const Limit limit : {Limit::compute, Limit::network}) {
    const FedStep fed = fed_by({}, {}, limit);
    EXPECT_EQ(fed.time, Seconds{2e-3});
    EXPECT_EQ(fed.limit, limit);
    EXPECT_DOUBLE_EQ(fed.needed.value, 4e9);
  }
}

TEST(Feed, ByTheFileSystemIsSharedByAllHosts) {
  EXPECT_EQ(fed_by({4.1e9}, {}).limit, Limit::compute);
  const FedStep slow = fed_by({1e9}, {});
  EXPECT_EQ(slow.limit, Limit::filesystem);
  EXPECT_DOUBLE_EQ(slow.time.value, 8e-3);
  EXPECT_DOUBLE_EQ(slow.needed.value, 4e9) << "what it would take not to wait";
}

TEST(Feed, ByNvmeIsEachHostsOwn) {
  EXPECT_EQ(fed_by({}, {1.1e9}).limit, Limit::compute);
  const FedStep slow = fed_by({}, {0.5e9});
  EXPECT_EQ(slow.limit, Limit::nvme);
  EXPECT_DOUBLE_EQ(slow.time.value, 4e-3);
}

TEST(Feed, WaitsForTheSlowerOfBoth) {
  EXPECT_EQ(fed_by({1e9}, {0.5e9}).limit, Limit::filesystem);
  EXPECT_EQ(fed_by({3e9}, {0.5e9}).limit, Limit::nvme);
  EXPECT_EQ(fed_by({3e9}, {0.5e9}).time, Seconds{4e-3});
}

TEST(Feed, OfSummitNeedsTerabytesASecond) {
  // Kurth et al.: 27,360 V100 at about one sample a second each in single precision, 6 a host.
  const InputPipeline summit{parse_sample_size("climate"), {2.5e12}, {}};
  const FedStep fed = feed(summit, {1.0}, Limit::compute, 27360, 4560);
  EXPECT_NEAR(fed.needed.value, 1.549e12, 1e9);
  EXPECT_EQ(fed.limit, Limit::compute);
  // Three times as fast, and the file system of 2.5 TB/s is the limit, where 4560 times 2 GB/s are enough.
  EXPECT_EQ(feed(summit, {1.0 / 3}, Limit::compute, 27360, 4560).limit, Limit::filesystem);
  EXPECT_EQ(feed({summit.sample, {}, {2e9}}, {1.0 / 3}, Limit::compute, 27360, 4560).limit, Limit::compute);
}

TEST(LimitOf, IsTheStreamThatWorksLonger) {
  const std::vector<Bucket> buckets{{0, 1, 1, 0.5}, {1, 1, 1, 1.0}};
  for (const bool overlap : {false, true}) {
    const auto step = [&](double allreduce) {
      return run_step({{1.0}, {2.0}, {0.5}}, buckets, overlap,
                      [=](std::size_t) { return Seconds{allreduce}; });
    };
    EXPECT_EQ(limit_of(step(1.74)), Limit::compute);
    EXPECT_EQ(limit_of(step(1.76)), Limit::network);
  }
}

TEST(SampleSize, OfModelsIsThatOfTheirDataSet) {
  for (const char* name : {"resnet50", "resnet101", "resnet152", "vgg16", "inception3", "vit-l16"}) {
    const auto sample = sample_size_of_model(name);
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->bytes.value, 115439u);
    EXPECT_THAT(make_model(name).summary, HasSubstr("ImageNet-1K"));
  }
  EXPECT_EQ(sample_size_of_model("deeplabv3plus")->bytes.value, parse_sample_size("climate").bytes.value);
  EXPECT_FALSE(sample_size_of_model("gpt2-xl"));
}

TEST(SampleSize, IsReadAsASizeOrADataSet) {
  EXPECT_EQ(parse_sample_size("110KB").bytes.value, 110000u);
  EXPECT_EQ(parse_sample_size("climate").bytes.value, 56623104u);
  EXPECT_THAT(parse_sample_size("imagenet-1k").source, HasSubstr("1409.0575"));
  for (const char* bad : {"", "x", "-1", "mnist", "5Q", "0"}) {
    EXPECT_THAT(refusal([&] { parse_sample_size(bad); }), HasSubstr(bad)) << bad;
  }
  EXPECT_THAT(refusal([] { parse_sample_size("mnist"); }), HasSubstr(data_set_names()));
}

}  // namespace
}  // namespace polyring
