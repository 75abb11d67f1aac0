// Tests of the software GPU begin to use CUDA in a child each, with a plan of its own.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace polyring::software_gpu {

/// In a child: ends it where a check fails.
inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "is not so: %s\n", what);
  std::_Exit(1);
}
#define CHECK(condition) check(condition, #condition)

inline void check_answer(cudaError_t code, cudaError_t expected, const char* what) {
  if (code == expected) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(code));
  std::_Exit(1);
}
#define OK(call) check_answer(call, cudaSuccess, #call)
#define SAYS(code, call) check_answer(call, code, #call)

/// Does the scenario with this plan, and ends the process with 0.
[[noreturn]] inline void run(const std::string& plan, void (*scenario)()) {
  const int file = memfd_create("plan", 0);
  if (write(file, plan.data(), plan.size()) != static_cast<ssize_t>(plan.size())) std::_Exit(1);
  setenv("POLYRING_SOFTWARE_GPU", ("/proc/self/fd/" + std::to_string(file)).c_str(), 1);
  scenario();
  std::fflush(nullptr);
  std::_Exit(0);
}

#define EXPECT_GOES_WELL(plan, scenario) EXPECT_EXIT(run(plan, scenario), testing::ExitedWithCode(0), "")

inline unsigned* device_words(unsigned count) {
  unsigned* words = nullptr;
  OK(cudaMalloc(reinterpret_cast<void**>(&words), count * sizeof *words));
  OK(cudaMemset(words, 0, count * sizeof *words));
  return words;
}

inline cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

}  // namespace polyring::software_gpu
