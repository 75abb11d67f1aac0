// Ranks for the tests of collectives on streams.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "collectives/cuda/gpu_collective.hpp"
#include "collectives/cuda/owners.hpp"
#include "collectives/cuda/stream_words.hpp"
#include "tests/software_gpu/cases.hpp"

namespace polyring::testing {

/// What a rank has.
struct RankOfGpu {
  const Bootstrap& bootstrap;
  Transport& transport;
  cuda::RankGpu& gpu;

  Rank rank() const { return transport.rank(); }
};

inline std::unique_ptr<GpuCollective> must_make(const RankOfGpu& rank, const Case& test) {
  std::string why_not;
  auto made = cuda::make_gpu_collective(rank.transport, test.plan, test.what, why_not);
  if (!made) throw Error(ExitCode::internal, why_not);
  return made;
}

/// Buffers of a rank, out of place or in place, with its input.
class Buffers {
 public:
  Buffers(const RankOfGpu& rank, const Case& test, bool in_place)
      : transport_(rank.transport), input_(input_of(test, rank.rank(), rank.transport.size())) {
    const int ranks = transport_.size();
    size_ = bytes(output_count(test.what.collective, ranks, test.what.count), test.what.kind);
    first_ = transport_.allocate({std::max(input_.size(), size_)});
    second_ = transport_.allocate({size_});
    from = first_.get();
    to = in_place ? first_.get() : second_.get();
    const std::size_t own = bytes(rank.rank() * (test.what.count / ranks), test.what.kind);
    if (in_place && input_.size() < size_) from += own;
    if (in_place && input_.size() > size_) to += own;
    fill();
  }

  void fill() {
    transport_.upload(to, std::vector(size_, std::byte{0xff}));
    transport_.upload(from, input_);
  }
  std::vector<std::byte> output() const {
    std::vector<std::byte> content(size_);
    transport_.download(content, to);
    return content;
  }

  std::byte* from;
  std::byte* to;

 private:
  Transport& transport_;
  std::vector<std::byte> input_;
  std::size_t size_ = 0;
  Memory first_;
  Memory second_;
};

/// A collective without the times and the stream of GpuCollective, with the reach that a test wants.
struct OnStream {
  OnStream(const RankOfGpu& rank, const Case& test, NcclCommunicator* nccl,
           const std::function<bool(Rank)>& reaches)
      : stream(cuda::make_stream()), collective(rank.gpu, nccl, schedule(rank, test, reaches)) {}

  static cuda::StreamSchedule schedule(const RankOfGpu& rank, const Case& test,
                                       const std::function<bool(Rank)>& reaches) {
    cuda::StreamSchedule made = cuda::stream_schedule(rank.gpu, test.plan, test.what);
    made.order = order_of(made.schedule, rank.rank(), reaches, made.partials);
    return made;
  }
  void run(const Buffers& buffers) {
    collective.launch(buffers.from, buffers.to, stream.get());
    collective.wait(Seconds{20});
  }

  cuda::Stream stream;
  cuda::StreamCollective collective;
};

inline bool reaches_nobody(Rank) { return false; }

}  // namespace polyring::testing
