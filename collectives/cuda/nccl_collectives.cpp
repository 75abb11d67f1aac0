#include "collectives/cuda/nccl_collectives.hpp"

#include <utility>

#include "base/error.hpp"
#include "collectives/cuda/graph.hpp"
#include "collectives/cuda/nccl.hpp"
#include "collectives/cuda/nccl_choice.hpp"
#include "collectives/cuda/owners.hpp"

namespace polyring::cuda {
namespace {

class Collectives final : public NcclCollectives {
 public:
  Collectives(const NcclLibrary& library, const Bootstrap& bootstrap, const GpuDevice& gpu,
              const WaitRules& rules)
      : library_(library),
        device_(gpu.index),
        communicator_(library, bootstrap, {gpu.index, gpu.pci, gpu.id},
                      {.limit = rules.timeout, .blocking = true, .yields = rules.yields}),
        stream_(make_stream()),
        begun_(make_timed_event()),
        ended_(make_timed_event()) {}

  std::string version() const override { return library_.version(); }

  void start(const CollectiveOf& what, const std::byte* input, std::byte* output) override {
    check(cudaSetDevice(device_), "use a GPU (cudaSetDevice)");
    check(cudaEventRecord(begun_.get(), stream_.get()), "record an event (cudaEventRecord)");
    start_on(stream_.get(), what, input, output);
  }
  void start_on(void* stream, const CollectiveOf& what, const std::byte* input, std::byte* output) override {
    check(cudaSetDevice(device_), "use a GPU (cudaSetDevice)");
    enqueue(what, input, output, static_cast<cudaStream_t>(stream));
    check(cudaEventRecord(ended_.get(), static_cast<cudaStream_t>(stream)),
          "record an event (cudaEventRecord)");
    ++started_;
  }
  void wait() override { wait(ended_.get(), std::exchange(started_, 0)); }
  std::unique_ptr<GpuGraph> capture(int calls, const CollectiveOf& what, const std::byte* input,
                                    std::byte* output) override {
    check(cudaSetDevice(device_), "use a GPU (cudaSetDevice)");
    CapturedGraph graph(stream_.get(), [&] {
      for (int call = 0; call < calls; ++call) enqueue(what, input, output, stream_.get());
    });
    return std::make_unique<Graph>(*this, calls, std::move(graph));
  }
  double last_us() const override { return microseconds_between(begun_.get(), ended_.get()); }

 private:
  class Graph final : public GpuGraph {
   public:
    Graph(Collectives& collectives, int calls, CapturedGraph graph)
        : collectives_(collectives), calls_(calls), ended_(make_event()), graph_(std::move(graph)) {}

    void start() override {
      graph_.launch(collectives_.stream_.get());
      check(cudaEventRecord(ended_.get(), collectives_.stream_.get()), "record an event (cudaEventRecord)");
      started_ += calls_;
    }
    void wait() override { collectives_.wait(ended_.get(), std::exchange(started_, 0)); }

   private:
    Collectives& collectives_;
    int calls_;
    int started_ = 0;
    Event ended_;
    CapturedGraph graph_;
  };

  void wait(cudaEvent_t event, int operations) {
    communicator_.wait(
        [event] { return is_over(cudaEventQuery(event), "finish what NCCL was given (cudaEventQuery)"); },
        operations);
  }

  void enqueue(const CollectiveOf& what, const std::byte* input, std::byte* output, cudaStream_t stream) {
    const Count block = what.count / communicator_.size();
    switch (what.collective) {
      case Collective::allreduce:
        return communicator_.all_reduce(input, output, what.count, what.kind, what.op, stream);
      case Collective::reduce_scatter:
        return communicator_.reduce_scatter(input, output, block, what.kind, what.op, stream);
      case Collective::allgather:
        return communicator_.all_gather(input, output, block, what.kind, stream);
      case Collective::alltoall:
        return communicator_.group([&] {
          const Count bytes = block * size_of(what.kind);
          for (Rank peer = 0; peer < communicator_.size(); ++peer) {
            communicator_.send(input + peer * bytes, block, what.kind, peer, stream);
            communicator_.receive(output + peer * bytes, block, what.kind, peer, stream);
          }
        });
    }
  }

  const NcclLibrary& library_;
  int device_;
  NcclCommunicator communicator_;
  Stream stream_;
  Event begun_;
  Event ended_;
  int started_ = 0;  // since the last wait()
};

}  // namespace

std::unique_ptr<NcclCollectives> make_nccl_collectives(const Bootstrap& bootstrap, const GpuDevice& gpu,
                                                       const WaitRules& rules) {
  check(cudaSetDevice(gpu.index), "use a GPU (cudaSetDevice)");
  return std::make_unique<Collectives>(NcclLibrary::of_process(), bootstrap, gpu, rules);
}

}  // namespace polyring::cuda
