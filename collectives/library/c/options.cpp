#include "collectives/library/c/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring::library {
namespace {

/// Of a struct that an older or a newer version of the header may have made.
polyring_options known(const polyring_options* options) {
  polyring_options result = POLYRING_OPTIONS_DEFAULT;
  if (options == nullptr) return result;
  if (options->size < offsetof(polyring_options, transport))
    usage_error("the options have no size; begin with POLYRING_OPTIONS_DEFAULT");
  std::memcpy(&result, options, std::min(options->size, sizeof(result)));
  return result;
}

}  // namespace

GroupOptions::GroupOptions(const polyring_options* options) {
  const polyring_options said = known(options);
  if (!std::isfinite(said.timeout) || said.timeout <= 0)
    usage_error("a time limit of {} seconds is impossible; give more than 0", said.timeout);
  communicator.timeout = Seconds{said.timeout};
  switch (said.transport) {
    case POLYRING_TRANSPORT_AUTOMATIC:
      communicator.transport = TransportChoice::automatic;
      break;
    case POLYRING_TRANSPORT_SHARED:
      communicator.transport = TransportChoice::shared;
      break;
    case POLYRING_TRANSPORT_NETWORK:
      communicator.transport = TransportChoice::network;
      break;
    default:
      usage_error("there is no transport {}; see polyring_transport", static_cast<int>(said.transport));
  }
  if (said.interface_name != nullptr) communicator.interface = said.interface_name;
  if (said.algorithm != nullptr) communicator.algorithm = find_algorithm(said.algorithm).name;
  check = said.check != 0;
  if (said.gpu < kHostMemory)
    usage_error("there is no GPU {}; give one from 0 on, or {} for host memory", said.gpu, kHostMemory);
  gpu = said.gpu;
}

void compare_options(const Bootstrap& bootstrap, const GroupOptions& options) {
  const CommunicatorOptions& said = options.communicator;
  const std::array<std::string, 4> own{
      fmt::format("the algorithm {}", said.algorithm), fmt::format("check {}", options.check ? 1 : 0),
      fmt::format("the transport {}", static_cast<int>(said.transport)),
      options.gpu == kHostMemory ? "buffers in host memory" : "buffers on a GPU"};
  const std::string text = fmt::format("{}", fmt::join(own, "\n"));
  std::vector<std::vector<std::string>> all;
  for (const auto& bytes : bootstrap.allgather(std::as_bytes(std::span(text))))
    all.push_back(split({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, '\n'));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    for (std::size_t i = 0; i < std::min(all[0].size(), all[rank].size()); ++i) {
      if (all[rank][i] == all[0][i]) continue;
      throw AgreedError(
          ExitCode::usage,
          fmt::format("rank 0 has the options with {}, and rank {} those with {}; give all ranks the same",
                      all[0][i], rank, all[rank][i]));
    }
  }
}

ElementKind element_kind(polyring_type type) {
  switch (type) {
    case POLYRING_FLOAT32:
      return ElementKind::float32;
    case POLYRING_FLOAT64:
      return ElementKind::float64;
    case POLYRING_FLOAT16:
      return ElementKind::float16;
    case POLYRING_BFLOAT16:
      return ElementKind::bfloat16;
    case POLYRING_INT32:
      return ElementKind::int32;
    case POLYRING_INT64:
      return ElementKind::int64;
  }
  usage_error("there is no type {}; see polyring_type", static_cast<int>(type));
}

ReduceOp reduce_op(polyring_op op) {
  switch (op) {
    case POLYRING_SUM:
      return ReduceOp::sum;
    case POLYRING_PROD:
      return ReduceOp::prod;
    case POLYRING_MIN:
      return ReduceOp::min;
    case POLYRING_MAX:
      return ReduceOp::max;
    case POLYRING_AVG:
      return ReduceOp::avg;
  }
  usage_error("there is no operation {}; see polyring_op", static_cast<int>(op));
}

Count to_count(std::size_t count) {
  constexpr std::size_t kMost = std::size_t{1} << 40;
  if (count > kMost)
    usage_error("{} elements are too many for any memory; see whether the count is negative", count);
  return static_cast<Count>(count);
}

}  // namespace polyring::library
