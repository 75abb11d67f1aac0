// Questions on errors: which stay, and who sees them.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/software_gpu/conformance/launches.hpp"
#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

namespace polyring::software_gpu {
namespace {

std::string last_error() { return cudaGetErrorName(cudaGetLastError()); }

std::string in_other_thread() {
  cudaMalloc(nullptr, 4);
  std::string seen;
  std::thread([&] { seen = last_error(); }).join();
  cudaGetLastError();
  return seen;
}

std::string after_success() {
  cudaMalloc(nullptr, 4);
  int device = 0;
  NEED(cudaGetDevice(&device));
  return last_error();
}

std::string not_ready() {
  const OwnStream stream;
  Hold hold(stream);
  cudaStreamQuery(stream);
  return last_error();
}

std::string out_of_memory() {
  void* memory = nullptr;
  const std::string refused = named(cudaMalloc(&memory, std::size_t{1} << 50));
  NEED(cudaMalloc(&memory, 4));
  NEED(cudaFree(memory));
  return refused;
}

std::string too_many_threads() {
  launch_too_many_threads(nullptr);
  return last_error();
}

/// Kernels cannot touch the first page.
void touch_nothing(cudaStream_t stream = nullptr) {
  launch_add({reinterpret_cast<unsigned*>(16), reinterpret_cast<unsigned*>(16), 1, 1}, stream);
}

std::string bad_address_seen_by_later_calls() {
  touch_nothing();
  std::string answer = cudaGetErrorName(cudaDeviceSynchronize());
  void* memory = nullptr;
  answer += std::string(", ") + cudaGetErrorName(cudaMalloc(&memory, 4));
  last_error();
  return answer + ", " + last_error();
}

std::string bad_address_seen_by_launch() {
  const OwnStream stream;
  Hold hold(stream);
  touch_nothing(stream);
  return last_error();
}

std::string bad_address_on_other_device() {
  touch_nothing();
  cudaDeviceSynchronize();
  NEED(cudaSetDevice(1));
  void* memory = nullptr;
  return named(cudaMalloc(&memory, 4));
}

/// A child that was forked from a process with a device.
std::string after_fork() {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    void* memory = nullptr;
    const std::string answer = cudaGetErrorName(cudaMalloc(&memory, 4));
    [[maybe_unused]] const ssize_t written = write(ends[1], answer.data(), answer.size());
    _exit(0);
  }
  close(ends[1]);
  char text[100] = {};
  [[maybe_unused]] const ssize_t got = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

const Question kQuestions[] = {
    {"error.is_last_error_once",
     [] {
       cudaMalloc(nullptr, 4);
       const std::string first = last_error();
       return first + ", " + last_error();
     }},
    {"error.peek_keeps_it",
     [] {
       cudaMalloc(nullptr, 4);
       cudaPeekAtLastError();
       return last_error();
     }},
    {"error.after_success_of_another_call", after_success},
    {"error.in_other_thread", in_other_thread},
    {"error.not_ready_is_last_error", not_ready},
    {"error.name_of_unknown_code",
     [] { return std::string(cudaGetErrorName(static_cast<cudaError_t>(12345))); }},
    {"error.out_of_memory", out_of_memory},
    {"error.launch_of_too_many_threads", too_many_threads},
    {"error.attributes_of_no_kernel",
     [] {
       static const int no_kernel = 0;
       cudaFuncAttributes attributes;
       return named(cudaFuncGetAttributes(&attributes, &no_kernel));
     }},
    {"error.bad_address_stays", bad_address_seen_by_later_calls, 1, true},
    {"error.bad_address_is_no_error_of_launch", bad_address_seen_by_launch, 1, true},
    {"error.bad_address_on_other_device", bad_address_on_other_device, 2, true},
    {"error.after_fork", after_fork, 1, true},
};

}  // namespace

std::span<const Question> error_questions() { return kQuestions; }

}  // namespace polyring::software_gpu
