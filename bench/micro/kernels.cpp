// How fast the reduction kernels are, in bytes read and written per second.
#include "collectives/kernels.hpp"

#include <benchmark/benchmark.h>

#include <vector>

#include "collectives/payload.hpp"

namespace polyring {
namespace {

void combine(benchmark::State& state, ElementKind kind, ReduceOp op) {
  const Count count = state.range(0) / size_of(kind);
  const auto bytes = static_cast<std::size_t>(count * size_of(kind));
  const Payload payload(kind, op, 4);
  std::vector<std::byte> left(bytes);
  std::vector<std::byte> right(bytes);
  std::vector<std::byte> result(bytes);
  payload.fill(0, left.data(), count);
  payload.fill(1, right.data(), count);
  for (auto _ : state) {
    combine_on_host(kind, op, result.data(), left.data(), right.data(), count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(3 * bytes));
}

void register_all() {
  for (const ElementKind kind : kElementKinds) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      const std::string name =
          std::string("combine/") + std::string(to_text(kind)) + "/" + std::string(to_text(op));
      benchmark::RegisterBenchmark(name.c_str(), combine, kind, op)
          ->Range(4 << 10, 64 << 20)
          ->RangeMultiplier(128);
    }
  }
}

[[maybe_unused]] const bool registered = (register_all(), true);

}  // namespace
}  // namespace polyring
