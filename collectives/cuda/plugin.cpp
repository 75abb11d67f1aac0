// What the program finds in libpolyring_cuda.so.
#include <string_view>
#include <utility>

#include "collectives/cuda/build.hpp"
#include "collectives/cuda/compute.hpp"
#include "collectives/cuda/copies.hpp"
#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/gpu.hpp"
#include "collectives/cuda/gpu_collective.hpp"
#include "collectives/cuda/memory.hpp"
#include "collectives/cuda/nccl.hpp"
#include "collectives/cuda/nccl_choice.hpp"
#include "collectives/cuda/nccl_collectives.hpp"
#include "collectives/cuda/products.hpp"
#include "collectives/cuda/rank_gpu.hpp"
#include "collectives/cuda/transport.hpp"

namespace polyring {
namespace {

class CudaPlugin final : public GpuPlugin {
 public:
  std::string cuda_version() const override { return cuda::runtime_version(); }
  std::vector<GpuDevice> gpus() const override { return cuda::gpus(); }
  Bytes free_memory(int gpu) const override { return cuda::free_memory(gpu); }
  GpuTransport make_transport(std::unique_ptr<Transport> host, const Bootstrap& bootstrap,
                              const RankHosts& hosts, int gpu, const WaitRules& rules) override {
    return cuda::make_gpu_transport(std::move(host), bootstrap, hosts, gpu, rules);
  }

  GpuAddress locate(const void* address) const override { return cuda::locate(address); }
  void copy(Transport& transport, std::byte* to, std::span<const std::byte> from) override {
    dynamic_cast<cuda::RankGpu&>(transport).copy_inside(to, from);
  }
  void finish(Transport& transport, void* stream) override {
    dynamic_cast<cuda::RankGpu&>(transport).finish_stream(static_cast<cudaStream_t>(stream));
  }

  Nccl nccl() const override {
    const NcclLibrary& library = NcclLibrary::of_process();
    return {library.version(), library.why_not()};
  }
  std::string nccl_name(Collective collective) const override {
    return polyring::nccl_name(nccl_choice(collective));
  }
  std::unique_ptr<NcclCollectives> make_nccl(const Bootstrap& bootstrap, const GpuDevice& gpu,
                                             const WaitRules& rules) override {
    return cuda::make_nccl_collectives(bootstrap, gpu, rules);
  }

  std::unique_ptr<GpuCollective> make_collective(Transport& transport, const Plan& plan,
                                                 const CollectiveOf& what, std::string& why_not) override {
    return cuda::make_gpu_collective(transport, plan, what, why_not);
  }

  std::unique_ptr<GpuCopies> make_copies(const GpuCopyWork& work) override { return cuda::make_copies(work); }
  GpuProducts multiply(std::span<const int> gpus, const GpuProductWork& work) override {
    return cuda::multiply(gpus, work);
  }
  std::unique_ptr<GpuCompute> make_compute(Transport& transport, Seconds step) override {
    return cuda::make_gpu_compute(transport, step);
  }
};

}  // namespace
}  // namespace polyring

extern "C" [[gnu::visibility("default")]] polyring::GpuPlugin* polyring_gpu_plugin(const char* build) {
  static polyring::CudaPlugin plugin;
  return std::string_view(build) == polyring::kGpuBuild ? &plugin : nullptr;
}
