// How fast the reduction kernels are, in bytes read and written per second; a cached store of a line that is
// not in the cache reads it too, which is not counted.
#include "collectives/runtime/kernels.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/measure/payload.hpp"

namespace polyring {
namespace {

constexpr std::int64_t kSizes[] = {4 << 10, 256 << 10, 64 << 20};

struct Shape {
  int inputs;
  int outputs;
};

std::string text_of(Stores stores) { return stores == Stores::cached ? "cached" : "streaming"; }

/// Buffers that begin at as many different places of a page, as those of different owners do.
std::vector<std::byte*> places(std::vector<std::byte>& storage, int buffers, std::size_t bytes) {
  constexpr std::size_t kApart = 4096 + 320;
  storage.resize(static_cast<std::size_t>(buffers) * (bytes + kApart) + 64);
  std::byte* const begin = storage.data() + (64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64) % 64;
  std::vector<std::byte*> result;
  for (int k = 0; k < buffers; ++k) result.push_back(begin + static_cast<std::size_t>(k) * (bytes + kApart));
  return result;
}

void combine(benchmark::State& state, Isa isa, ElementKind kind, ReduceOp op, Shape shape, Stores stores) {
  const Count count = state.range(0) / size_of(kind);
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Payload payload(kind, op, 4);
  std::vector<std::byte> storage;
  const std::vector<std::byte*> buffers = places(storage, shape.inputs + shape.outputs, bytes);
  const std::vector<const std::byte*> inputs(buffers.begin(), buffers.begin() + shape.inputs);
  const std::vector<std::byte*> outputs(buffers.begin() + shape.inputs, buffers.end());
  for (int k = 0; k < shape.inputs; ++k) {
    payload.fill(k % 4, buffers[static_cast<std::size_t>(k)], count);
  }
  for (auto _ : state) {
    combine_many_with(isa, {kind, op, shape.inputs}, outputs, inputs, count, stores);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * (shape.inputs + shape.outputs) * state.range(0));
}

void copy(benchmark::State& state, Isa isa, Stores stores) {
  std::vector<std::byte> storage;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte*> buffers = places(storage, 2, bytes);
  for (auto _ : state) {
    copy_on_host_with(isa, buffers[1], buffers[0], bytes, stores);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * state.range(0));
}

void with_sizes(benchmark::internal::Benchmark* registered) {
  for (const std::int64_t size : kSizes) registered->Arg(size);
}

void register_combine(Isa isa, ElementKind kind, ReduceOp op, Shape shape, Stores stores) {
  const std::string name = fmt::format("combine/{}/{}/{}to{}/{}/{}", to_text(kind), to_text(op), shape.inputs,
                                       shape.outputs, text_of(stores), to_text(isa));
  with_sizes(benchmark::RegisterBenchmark(name.c_str(), combine, isa, kind, op, shape, stores));
}

void register_all() {
  for (const Stores stores : {Stores::cached, Stores::streaming}) {
    for (const Isa isa : kIsas) {
      if (!runs_here(isa)) continue;
      const std::string name = fmt::format("copy/{}/{}", text_of(stores), to_text(isa));
      with_sizes(benchmark::RegisterBenchmark(name.c_str(), copy, isa, stores));
    }
    for (const ElementKind kind : {ElementKind::float32, ElementKind::float16, ElementKind::bfloat16}) {
      for (const Shape shape : {Shape{2, 1}, Shape{2, 2}, Shape{8, 1}}) {
        for (const Isa isa : kIsas) {
          if (runs_here(isa)) register_combine(isa, kind, ReduceOp::sum, shape, stores);
        }
      }
    }
  }
  for (const ElementKind kind : kElementKinds) {
    for (const ReduceOp op : {ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::avg}) {
      register_combine(best_isa(), kind, op, {3, 1}, Stores::cached);
    }
  }
}

[[maybe_unused]] const bool registered = (register_all(), true);

}  // namespace
}  // namespace polyring
