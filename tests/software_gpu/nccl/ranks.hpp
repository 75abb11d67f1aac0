// Ranks that are threads, each with a software GPU, a stream and an NCCL communicator.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "collectives/cuda/nccl.hpp"
#include "collectives/runtime/bootstraps/threads.hpp"

namespace polyring {

/// The fake libnccl.so.2, opened anew: its version is that of the plan at this time.
NcclLibrary fake_nccl();
/// Another one is to be tested, which POLYRING_NCCL names: NVIDIA's.
bool is_another_nccl();
/// That one, or the fake.
NcclLibrary tested_nccl();

/// How many pieces of memory are registered with the fake NCCL: as windows, or otherwise.
int registered_with_fake(NcclMemory kind);

/// Of the fake, until the end of the scope: see software_nccl.hpp.
class NcclPlan {
 public:
  explicit NcclPlan(const std::string& lines);
  ~NcclPlan();
  NcclPlan(const NcclPlan&) = delete;
  NcclPlan& operator=(const NcclPlan&) = delete;
};

class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes);
  explicit DeviceBuffer(std::span<const std::byte> content) : DeviceBuffer(content.size()) { write(content); }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  void write(std::span<const std::byte> content);
  std::vector<std::byte> read() const;

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

class DeviceStream {
 public:
  DeviceStream() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~DeviceStream() { cudaStreamDestroy(stream_); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  cudaStream_t get() const { return stream_; }
  bool is_idle() const { return cudaStreamQuery(stream_) == cudaSuccess; }

 private:
  cudaStream_t stream_ = nullptr;
};

NcclDevice device_of(int index);

/// What a rank has.
struct NcclRank {
  NcclCommunicator& communicator;
  cudaStream_t stream;
  const DeviceStream& owner;

  void finish() const {
    communicator.wait([this] { return owner.is_idle(); });
  }
};

/// How a rank ended.
struct RankEnd {
  bool failed = false;
  ExitCode code = ExitCode::ok;
  std::string sentence;
};

/// One thread for each rank, which does `body` with GPU number `rank`. Returns how they ended.
std::vector<RankEnd> run_threads(int ranks, const std::function<void(const Bootstrap&)>& body);
/// The same, each with a communicator of the library that is tested.
std::vector<RankEnd> run_ranks(int ranks, const NcclOptions& options,
                               const std::function<void(const NcclRank&)>& body);

/// Nobody failed, and if somebody did, why.
void expect_success(const std::vector<RankEnd>& ends);

}  // namespace polyring
