#include "models/buckets.hpp"

#include <cassert>

#include "base/error.hpp"

namespace polyring {

namespace {

constexpr std::string_view fused_prefix = "fused:";

/// Whether a bucket that holds `held` elements is complete before one more tensor of `next` elements.
bool closes_before(const BucketPolicy& policy, std::int64_t held, std::int64_t next, int bytes_per_element) {
  switch (policy.kind) {
    case BucketPolicy::Kind::none:
      return false;
    case BucketPolicy::Kind::per_tensor:
      return true;
    case BucketPolicy::Kind::fused:
      return static_cast<std::uint64_t>(held + next) * static_cast<std::uint64_t>(bytes_per_element) >
             policy.size.value;
  }
  return false;
}

}  // namespace

BucketPolicy parse_bucket_policy(std::string_view text) {
  if (text == "none") return {BucketPolicy::Kind::none, {}};
  if (text == "per-tensor") return {BucketPolicy::Kind::per_tensor, {}};
  if (!text.starts_with(fused_prefix)) {
    usage_error("unknown buckets '{}': give none, per-tensor or fused:SIZE, such as fused:64MiB", text);
  }
  const Bytes size = parse_bytes(text.substr(fused_prefix.size()), "the size of fused buckets");
  if (size.value == 0)
    usage_error("fused buckets need a size above 0: give one such as fused:64MiB, or per-tensor");
  return {BucketPolicy::Kind::fused, size};
}

std::string to_text(const BucketPolicy& policy) {
  switch (policy.kind) {
    case BucketPolicy::Kind::none:
      return "none";
    case BucketPolicy::Kind::per_tensor:
      return "per-tensor";
    case BucketPolicy::Kind::fused:
      return std::string(fused_prefix) + to_text(policy.size);
  }
  return {};
}

std::vector<Bucket> make_buckets(const Model& model, const BucketPolicy& policy, int bytes_per_element) {
  assert(bytes_per_element > 0);
  const double backward_flops = model.backward_flops_per_sample();
  std::vector<Bucket> buckets;
  double done_flops = 0;
  for (std::size_t i = 0; i < model.gradients.size(); ++i) {
    const std::int64_t elements = model.gradients[i].elements();
    if (buckets.empty() || closes_before(policy, buckets.back().elements, elements, bytes_per_element)) {
      buckets.push_back({.first = i});
    }
    done_flops += model.gradients[i].backward_flops;
    Bucket& bucket = buckets.back();
    ++bucket.count;
    bucket.elements += elements;
    bucket.ready = done_flops / backward_flops;
  }
  return buckets;
}

}  // namespace polyring
