// In place of all other nccl*.cpp where there was no nccl.h at build time.
#include "base/error.hpp"
#include "collectives/cuda/nccl.hpp"

namespace polyring {

struct NcclCalls {};

class NcclCommunicator::State {};

std::string nccl_version_text(int) { return ""; }

const NcclLibrary& NcclLibrary::of_process() {
  static const NcclLibrary library("");
  return library;
}

NcclLibrary::NcclLibrary(const std::string&)
    : why_not_(
          "this build of Polyring has no NCCL, since there was no nccl.h; build it where NCCL's header is "
          "installed, or set POLYRING_NCCL_INCLUDE to its folder for CMake") {}
NcclLibrary::~NcclLibrary() = default;
NcclLibrary::NcclLibrary(NcclLibrary&&) noexcept = default;
bool NcclLibrary::reduces(ElementKind, ReduceOp) const { return false; }

NcclCommunicator::NcclCommunicator(const NcclLibrary& library, const Bootstrap&, const NcclDevice&,
                                   const NcclOptions&) {
  throw AgreedError(ExitCode::not_available, library.why_not());
}

// Nobody comes here, since there is no communicator.
NcclCommunicator::~NcclCommunicator() = default;
Rank NcclCommunicator::rank() const { return 0; }
int NcclCommunicator::size() const { return 0; }
void NcclCommunicator::all_reduce(const void*, void*, Count, ElementKind, ReduceOp, cudaStream_t) {}
void NcclCommunicator::reduce_scatter(const void*, void*, Count, ElementKind, ReduceOp, cudaStream_t) {}
void NcclCommunicator::all_gather(const void*, void*, Count, ElementKind, cudaStream_t) {}
void NcclCommunicator::send(const void*, Count, ElementKind, Rank, cudaStream_t) {}
void NcclCommunicator::receive(void*, Count, ElementKind, Rank, cudaStream_t) {}
void NcclCommunicator::group(const std::function<void()>&) {}
Memory NcclCommunicator::allocate(Bytes, NcclMemory) { return {}; }
std::shared_ptr<void> NcclCommunicator::before_abort(std::function<void()>) { return nullptr; }
void NcclCommunicator::check() {}
void NcclCommunicator::wait(const std::function<bool()>&, int) {}
void NcclCommunicator::abort() {}

}  // namespace polyring
