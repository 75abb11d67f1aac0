#include "tests/software_gpu/nccl/ranks.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/index.hpp"
#include "tests/software_gpu/nccl/software_nccl.hpp"

namespace polyring {
namespace {

template <typename Function>
Function* function_of_fake(const char* name) {
  void* const library = dlopen(POLYRING_SOFTWARE_NCCL, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

void set_plan(const char* lines) {
  static const auto set =
      function_of_fake<decltype(polyring_software_nccl_plan)>("polyring_software_nccl_plan");
  set(lines);
}

}  // namespace

NcclLibrary fake_nccl() { return NcclLibrary(POLYRING_SOFTWARE_NCCL); }

bool is_another_nccl() { return std::getenv("POLYRING_NCCL") != nullptr; }
NcclLibrary tested_nccl() {
  return is_another_nccl() ? NcclLibrary(std::getenv("POLYRING_NCCL")) : fake_nccl();
}

int registered_with_fake(NcclMemory kind) {
  static const auto count =
      function_of_fake<decltype(polyring_software_nccl_registered)>("polyring_software_nccl_registered");
  return count(kind == NcclMemory::symmetric ? 1 : 0);
}

NcclPlan::NcclPlan(const std::string& lines) { set_plan(lines.c_str()); }
NcclPlan::~NcclPlan() { set_plan(nullptr); }

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  if (cudaMalloc(&data_, bytes) != cudaSuccess) throw Error(ExitCode::cuda, "no device memory");
}

void DeviceBuffer::write(std::span<const std::byte> content) {
  cudaMemcpy(data_, content.data(), content.size(), cudaMemcpyHostToDevice);
  cudaStreamSynchronize(nullptr);  // a copy from pageable memory may still be on its way to the device
}

std::vector<std::byte> DeviceBuffer::read() const {
  std::vector<std::byte> content(bytes_);
  cudaMemcpy(content.data(), data_, bytes_, cudaMemcpyDeviceToHost);
  return content;
}

NcclDevice device_of(int index) {
  char bus_id[32] = {};
  cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index);
  return {index, bus_id, ""};
}

std::vector<RankEnd> run_threads(int ranks, const std::function<void(const Bootstrap&)>& body) {
  ThreadTeam team(ranks);
  std::vector<RankEnd> ends(index(ranks));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      RankEnd& end = ends[index(rank)];
      try {
        cudaSetDevice(rank);
        body(ThreadBootstrap(team, rank));
      } catch (const Error& error) {
        end = {true, error.code(), error.what()};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

std::vector<RankEnd> run_ranks(int ranks, const NcclOptions& options,
                               const std::function<void(const NcclRank&)>& body) {
  const NcclLibrary library = tested_nccl();
  return run_threads(ranks, [&](const Bootstrap& bootstrap) {
    const DeviceStream stream;
    NcclCommunicator communicator(library, bootstrap, device_of(bootstrap.rank()), options);
    bootstrap.barrier();  // so that a rank's end spoils no other's start
    body({communicator, stream.get(), stream});
  });
}

void expect_success(const std::vector<RankEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    EXPECT_FALSE(ends[rank].failed) << "rank " << rank << ": " << ends[rank].sentence;
  }
}

}  // namespace polyring
