#include "collectives/cuda/nccl_collectives.hpp"

#include <utility>

#include "collectives/cuda/graph.hpp"
#include "collectives/cuda/nccl.hpp"
#include "collectives/cuda/nccl_choice.hpp"
#include "collectives/cuda/owners.hpp"

namespace polyring::cuda {
namespace {

/// What the calls have in common.
struct Shared {
  const NcclLibrary& library;
  int device;
  NcclCommunicator communicator;
  Stream stream;
  std::string memory;  // for way(): the kind of memory that was allocated

  void wait(cudaEvent_t event, int calls) {
    communicator.wait(
        [event] { return is_over(cudaEventQuery(event), "finish what NCCL was given (cudaEventQuery)"); },
        calls);
  }
};

class Graph final : public GpuGraph {
 public:
  Graph(Shared& shared, int calls, CapturedGraph graph)
      : shared_(shared),
        calls_(calls),
        ended_(make_event()),
        graph_(std::move(graph)),
        in_nccl_(shared.communicator.before_abort([this] { graph_.destroy(); })) {}

  void start() override {
    shared_.communicator.check();
    graph_.launch(shared_.stream.get());
    check(cudaEventRecord(ended_.get(), shared_.stream.get()), "record an event (cudaEventRecord)");
    started_ += calls_;
  }
  void wait() override { shared_.wait(ended_.get(), std::exchange(started_, 0)); }

 private:
  Shared& shared_;
  int calls_;
  int started_ = 0;  // since the last wait()
  Event ended_;
  CapturedGraph graph_;
  std::shared_ptr<void> in_nccl_;
};

class NcclCall final : public GpuCollective {
 public:
  NcclCall(Shared& shared, const CollectiveOf& what)
      : shared_(shared), what_(what), begun_(make_timed_event()), ended_(make_timed_event()) {}

  void start(const std::byte* input, std::byte* output) override {
    check(cudaSetDevice(shared_.device), "use a GPU (cudaSetDevice)");
    check(cudaEventRecord(begun_.get(), shared_.stream.get()), "record an event (cudaEventRecord)");
    start_on(shared_.stream.get(), input, output);
  }
  void start_on(void* stream, const std::byte* input, std::byte* output) override {
    check(cudaSetDevice(shared_.device), "use a GPU (cudaSetDevice)");
    auto* const in = static_cast<cudaStream_t>(stream);
    enqueue(input, output, in);
    check(cudaEventRecord(ended_.get(), in), "record an event (cudaEventRecord)");
    ++started_;
  }
  void wait() override { shared_.wait(ended_.get(), std::exchange(started_, 0)); }
  double last_us() const override { return microseconds_between(begun_.get(), ended_.get()); }
  std::unique_ptr<GpuGraph> capture(int calls, const std::byte* input, std::byte* output) override {
    check(cudaSetDevice(shared_.device), "use a GPU (cudaSetDevice)");
    CapturedGraph graph(shared_.stream.get(), [&] {
      for (int call = 0; call < calls; ++call) enqueue(input, output, shared_.stream.get());
    });
    return std::make_unique<Graph>(shared_, calls, std::move(graph));
  }
  std::string way() const override { return "NCCL " + shared_.library.version() + shared_.memory; }

 private:
  void enqueue(const std::byte* input, std::byte* output, cudaStream_t stream) {
    NcclCommunicator& communicator = shared_.communicator;
    const Count block = what_.count / communicator.size();
    switch (what_.collective) {
      case Collective::allreduce:
        return communicator.all_reduce(input, output, what_.count, what_.kind, what_.op, stream);
      case Collective::reduce_scatter:
        return communicator.reduce_scatter(input, output, block, what_.kind, what_.op, stream);
      case Collective::allgather:
        return communicator.all_gather(input, output, block, what_.kind, stream);
      case Collective::alltoall:
        return communicator.group([&] {
          const Count bytes = block * size_of(what_.kind);
          for (Rank peer = 0; peer < communicator.size(); ++peer) {
            communicator.send(input + peer * bytes, block, what_.kind, peer, stream);
            communicator.receive(output + peer * bytes, block, what_.kind, peer, stream);
          }
        });
    }
  }

  Shared& shared_;
  CollectiveOf what_;
  Event begun_;
  Event ended_;
  int started_ = 0;  // since the last wait()
};

class Collectives final : public NcclCollectives {
 public:
  Collectives(const NcclLibrary& library, const Bootstrap& bootstrap, const GpuDevice& gpu,
              const WaitRules& rules)
      : shared_{library,
                gpu.index,
                NcclCommunicator(library, bootstrap, {gpu.index, gpu.pci, gpu.id},
                                 {.limit = rules.timeout, .blocking = true, .yields = rules.yields}),
                make_stream(),
                {}} {}

  std::unique_ptr<GpuCollective> make(const CollectiveOf& what) override {
    check(cudaSetDevice(shared_.device), "use a GPU (cudaSetDevice)");
    return std::make_unique<NcclCall>(shared_, what);
  }

  Memory allocate(Bytes size, NcclMemory kind) override {
    check(cudaSetDevice(shared_.device), "use a GPU (cudaSetDevice)");
    Memory memory = shared_.communicator.allocate(size, kind);
    shared_.memory = kind == NcclMemory::symmetric ? ", symmetric buffers" : ", registered buffers";
    return memory;
  }

 private:
  Shared shared_;
};

}  // namespace

std::unique_ptr<NcclCollectives> make_nccl_collectives(const Bootstrap& bootstrap, const GpuDevice& gpu,
                                                       const WaitRules& rules) {
  check(cudaSetDevice(gpu.index), "use a GPU (cudaSetDevice)");
  return std::make_unique<Collectives>(NcclLibrary::of_process(), bootstrap, gpu, rules);
}

}  // namespace polyring::cuda
