// Buckets: conservation over every model and policy, the cap of fused buckets, and the policies' text.
#include "models/buckets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/models/catalogue_names.hpp"

namespace polyring {
namespace {

using Kind = BucketPolicy::Kind;

Bytes bytes_of(const Bucket& bucket, int bytes_per_element) {
  return {static_cast<std::uint64_t>(bucket.elements) * static_cast<std::uint64_t>(bytes_per_element)};
}

/// Every gradient once and in order, elements add up, `ready` is the fraction of the backward FLOPs.
void expect_partition(const Model& model, const std::vector<Bucket>& buckets) {
  std::size_t next = 0;
  double done = 0;
  for (const Bucket& bucket : buckets) {
    ASSERT_EQ(bucket.first, next);
    ASSERT_GT(bucket.count, 0u);
    ASSERT_LE(bucket.first + bucket.count, model.gradients.size());
    std::int64_t elements = 0;
    for (; next < bucket.first + bucket.count; ++next) {
      elements += model.gradients[next].elements();
      done += model.gradients[next].backward_flops;
    }
    EXPECT_EQ(bucket.elements, elements);
    EXPECT_NEAR(bucket.ready, done / model.backward_flops_per_sample(), 1e-12);
  }
  EXPECT_EQ(next, model.gradients.size());
  EXPECT_EQ(buckets.back().ready, 1);
  EXPECT_TRUE(std::is_sorted(buckets.begin(), buckets.end(),
                             [](const Bucket& a, const Bucket& b) { return a.ready < b.ready; }));
}

/// No bucket of several gradients above the cap, and none that the next one's first gradient would have
/// fitted in.
void expect_filled(const Model& model, const std::vector<Bucket>& buckets, Bytes cap, int bytes_per_element) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].count > 1) {
      EXPECT_LE(bytes_of(buckets[i], bytes_per_element), cap);
    }
    if (i + 1 == buckets.size()) continue;
    Bucket with_next = buckets[i];
    with_next.elements += model.gradients[buckets[i + 1].first].elements();
    EXPECT_GT(bytes_of(with_next, bytes_per_element), cap) << "bucket " << i;
  }
}

class BucketsOf : public testing::TestWithParam<std::string> {};

TEST_P(BucketsOf, NoneIsOneBucket) {
  const Model model = make_model(GetParam());
  const auto buckets = make_buckets(model, {Kind::none, {}}, 4);
  expect_partition(model, buckets);
  EXPECT_EQ(buckets.size(), 1u);
}

TEST_P(BucketsOf, PerTensorIsOneBucketEach) {
  const Model model = make_model(GetParam());
  const auto buckets = make_buckets(model, {Kind::per_tensor, {}}, 4);
  expect_partition(model, buckets);
  EXPECT_EQ(buckets.size(), model.gradients.size());
}

TEST_P(BucketsOf, FusedFillsEveryBucketUpToTheCap) {
  const Model model = make_model(GetParam());
  for (const int bytes_per_element : {2, 4, 8}) {
    for (const std::uint64_t cap : {1ull, 4096ull, 1ull << 20, 25ull << 20, 64ull << 20, 1ull << 40}) {
      const auto buckets = make_buckets(model, {Kind::fused, {cap}}, bytes_per_element);
      expect_partition(model, buckets);
      expect_filled(model, buckets, {cap}, bytes_per_element);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, BucketsOf, testing::ValuesIn(catalogue_names()), name_of_parameter);

TEST(FusedBuckets, GiveALargeTensorItsOwn) {
  const Model model{"m", "", {{"a", {10}, 1}, {"b", {100}, 1}, {"c", {10}, 1}, {"d", {10}, 1}}, 2};
  const auto buckets = make_buckets(model, {Kind::fused, {80}}, 4);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].count, 1u);
  EXPECT_EQ(buckets[1].first, 1u);
  EXPECT_EQ(buckets[1].count, 1u);
  EXPECT_EQ(buckets[2].count, 2u);  // exactly 80 bytes: the cap is allowed
  EXPECT_DOUBLE_EQ(buckets[0].ready, 0.25);
  EXPECT_DOUBLE_EQ(buckets[1].ready, 0.5);
}

TEST(BucketPolicyText, RoundTrips) {
  for (const char* text : {"none", "per-tensor", "fused:64MiB", "fused:25MiB", "fused:1KiB"}) {
    EXPECT_EQ(to_text(parse_bucket_policy(text)), text);
  }
  EXPECT_EQ(parse_bucket_policy("fused:64M").size.value, 64u << 20);
}

TEST(BucketPolicyText, RefusesAnythingElseWithTheRemedy) {
  for (const char* text :
       {"", "fused", "fused:", "fused:0", "fused:-1", "fused:many", "Fused:1M", "pertensor", "none "}) {
    try {
      parse_bucket_policy(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage) << text;
    }
  }
}

}  // namespace
}  // namespace polyring
