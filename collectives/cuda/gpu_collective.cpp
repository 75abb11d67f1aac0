#include "collectives/cuda/gpu_collective.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/graph.hpp"
#include "collectives/cuda/owners.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring::cuda {
namespace {

class CollectiveGraph final : public GpuGraph {
 public:
  /// `limit` is that of one launch.
  CollectiveGraph(StreamCollective& collective, cudaStream_t stream, Seconds limit, CapturedGraph graph)
      : collective_(collective),
        stream_(stream),
        limit_(limit),
        ended_(make_event()),
        graph_(std::move(graph)) {
    if (collective.nccl() != nullptr)
      in_nccl_ = collective.nccl()->before_abort([this] { graph_.destroy(); });
  }

  void start() override {
    collective_.launch(graph_, ended_.get(), stream_);
    ++started_;
  }
  void wait() override { collective_.wait(ended_.get(), std::exchange(started_, 0) * limit_); }

 private:
  StreamCollective& collective_;
  cudaStream_t stream_;
  Seconds limit_;
  int started_ = 0;
  Event ended_;
  CapturedGraph graph_;
  std::shared_ptr<void> in_nccl_;
};

class EnqueuedCollective final : public GpuCollective {
 public:
  EnqueuedCollective(RankGpu& gpu, NcclCommunicator* nccl, StreamSchedule what)
      : gpu_(gpu),
        stream_(make_stream()),
        begun_(make_timed_event()),
        collective_(gpu, nccl, std::move(what)) {}

  void start(const std::byte* input, std::byte* output) override {
    check(cudaSetDevice(gpu_.device()), "use a GPU (cudaSetDevice)");
    check(cudaEventRecord(begun_.get(), stream_.get()), "record an event (cudaEventRecord)");
    collective_.launch(input, output, stream_.get());
    ++started_;
  }
  void start_on(void* stream, const std::byte* input, std::byte* output) override {
    collective_.launch(input, output, static_cast<cudaStream_t>(stream));
    ++started_;
  }
  void wait() override { collective_.wait(std::exchange(started_, 0) * gpu_.rules().timeout); }
  double last_us() const override { return microseconds_between(begun_.get(), collective_.ended()); }
  std::unique_ptr<GpuGraph> capture(int calls, const std::byte* input, std::byte* output) override {
    check(cudaSetDevice(gpu_.device()), "use a GPU (cudaSetDevice)");
    const cudaStream_t stream = stream_.get();
    CapturedGraph graph(stream, [&] {
      for (int call = 0; call < calls; ++call) collective_.launch(input, output, stream);
    });
    return std::make_unique<CollectiveGraph>(collective_, stream, calls * gpu_.rules().timeout,
                                             std::move(graph));
  }
  std::string way() const override {
    const std::string way = collective_.way();
    return fmt::format("{}{}{}", name_of(gpu_.device()), way.empty() ? "" : ", ", way);
  }

 private:
  RankGpu& gpu_;
  Stream stream_;
  Event begun_;
  int started_ = 0;  // since the last wait()
  StreamCollective collective_;
};

/// Collective: the first rank's reason that has one.
std::string agree(const RankGpu& gpu, std::string_view why_not) {
  Rank rank = 0;
  for (const std::vector<std::byte>& reason : gpu.bootstrap().allgather(std::as_bytes(std::span(why_not)))) {
    if (!reason.empty()) {
      const std::string_view text(reinterpret_cast<const char*>(reason.data()), reason.size());
      return fmt::format("on rank {}: {}", rank, text);
    }
    ++rank;
  }
  return {};
}

/// Collective: makes one unless a rank cannot.
std::unique_ptr<GpuCollective> make_if_all_can(RankGpu& gpu, NcclCommunicator* nccl, StreamSchedule what,
                                               std::string& why_not) {
  std::unique_ptr<GpuCollective> made;
  std::string own;
  gpu.words();
  try {
    made = std::make_unique<EnqueuedCollective>(gpu, nccl, std::move(what));
  } catch (const Error& error) {
    own = error.what();
  }
  why_not = agree(gpu, own);
  return why_not.empty() ? std::move(made) : nullptr;
}

}  // namespace

StreamSchedule stream_schedule(const RankGpu& gpu, const Plan& plan, const CollectiveOf& what) {
  StreamSchedule made;
  made.schedule = make_schedule(plan, gpu.hosts().ranks(), what.count, size_of(what.kind), what.collective);
  made.kind = what.kind;
  made.op = what.op;
  const bool apart = what.partials == Partials::apart && exact_partial(what.kind, what.op) != what.kind;
  made.partials = apart ? Partials::apart : Partials::in_output;
  made.order = order_of(
      made.schedule, gpu.rank(), [&](Rank peer) { return gpu.peers().reaches(peer); }, made.partials);
  return made;
}

std::unique_ptr<GpuCollective> make_gpu_collective(Transport& transport, const Plan& plan,
                                                   const CollectiveOf& what, std::string& why_not) {
  auto* const gpu = dynamic_cast<RankGpu*>(&transport);
  why_not = gpu == nullptr ? "the ranks' transport is not one on GPU memory" : "";
  if (gpu == nullptr) return nullptr;
  StreamSchedule schedule = stream_schedule(*gpu, plan, what);
  NcclCommunicator* nccl = nullptr;
  why_not = agree(*gpu, why_not_on_stream(*gpu, schedule, true));
  if (!why_not.empty()) return nullptr;
  const std::string why_nccl = agree(*gpu, why_not_on_stream(*gpu, schedule, false));
  if (!why_nccl.empty()) {
    nccl = gpu->nccl(why_not);
    if (nccl == nullptr) {
      why_not = fmt::format("{}: {}", why_nccl, why_not);
      return nullptr;
    }
  }
  return make_if_all_can(*gpu, nccl, std::move(schedule), why_not);
}

}  // namespace polyring::cuda
