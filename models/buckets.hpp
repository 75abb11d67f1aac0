// Buckets: which gradients travel together in one allreduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/model.hpp"

namespace polyring {

/// Consecutive gradients of a model that are reduced in one call.
struct Bucket {
  std::size_t first = 0;  // index into Model::gradients
  std::size_t count = 0;
  std::int64_t elements = 0;
  /// The fraction of the backward pass, 0 to 1, after which all of its gradients exist. The last bucket's
  /// is 1.
  double ready = 1;
};

/// How gradients are put into buckets.
///
/// - none: one bucket for everything, as DDL's TensorFlow integration did.
/// - per_tensor: one bucket for each gradient.
/// - fused: gradients fill a bucket in backward order; it is closed when the next one would take it beyond
/// `size`.
///   A gradient that alone is larger than `size` has a bucket of its own.
///
/// What `fused` shares with frameworks is the order and the cap. What differs:
/// - Horovod (docs/tensor-fusion.rst; default 64 MB, 128 MB since 0.21) fuses whatever is ready when a cycle
/// of
///   1 to 5 ms ends, so its buckets vary from step to step, are often smaller than the cap, and may pass over
///   a tensor that does not fit. Ours are the same in every step and wait until they are full.
/// - PyTorch's DDP (torch/csrc/distributed/c10d/reducer.cpp; default 25 MiB) closes a bucket once it has
/// reached
///   the cap, so a bucket may exceed it by nearly one tensor; its first bucket has a cap of 1 MiB, to start
///   early.
struct BucketPolicy {
  enum class Kind { none, fused, per_tensor };
  Kind kind = Kind::none;
  Bytes size;  // of fused; above 0
};

/// Reads `none`, `per-tensor` or `fused:SIZE` (`fused:64MiB`). Throws a usage Error for anything else.
BucketPolicy parse_bucket_policy(std::string_view text);

/// The text that parse_bucket_policy() reads.
std::string to_text(const BucketPolicy& policy);

/// Every gradient of the model in exactly one bucket, in backward order. `bytes_per_element` is above 0.
std::vector<Bucket> make_buckets(const Model& model, const BucketPolicy& policy, int bytes_per_element);

}  // namespace polyring
