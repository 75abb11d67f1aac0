// Questions on streams: their order, the default stream's barrier, host functions.
#include <cuda_runtime_api.h>

#include "tests/software_gpu/conformance/launches.hpp"
#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

namespace polyring::software_gpu {
namespace {

std::string order_in_stream() {
  const OwnStream stream;
  const DeviceWords words(1);
  words.add(3, stream);
  NEED(cudaMemsetAsync(words.get(), 0, sizeof(unsigned), stream));
  words.add(4, stream);
  return std::to_string(words.first());
}

std::string query(bool held) {
  const OwnStream stream;
  Hold hold(stream);
  if (!held) {
    hold.release();
    NEED(cudaStreamSynchronize(stream));
  }
  return named(cudaStreamQuery(stream));
}

std::string destroy_held() {
  cudaStream_t stream = nullptr;
  NEED(cudaStreamCreate(&stream));
  const OwnStream unused;  // what waits_for() waits with
  Hold hold(stream);
  NEED(cudaStreamDestroy(stream));
  return hold.release() ? "does not wait" : "waits";
}

std::string launch_in_stream_of_other_device() {
  const DeviceWords words(1);
  NEED(cudaSetDevice(1));
  std::string answer;
  {
    const OwnStream stream;
    NEED(cudaSetDevice(0));
    words.add(1, stream);
    answer = named(cudaGetLastError());
  }
  return answer;
}

std::string copy_in_stream_of_other_device() {
  const DeviceWords words(1);
  unsigned host = 8;
  NEED(cudaSetDevice(1));
  {
    const OwnStream stream;
    NEED(cudaSetDevice(0));
    NEED(cudaMemcpyAsync(words.get(), &host, sizeof host, cudaMemcpyHostToDevice, stream));
    NEED(cudaStreamSynchronize(stream));
  }
  return std::to_string(words.first());
}

std::string host_function_in_order() {
  const OwnStream stream;
  const PinnedWords seen(2);
  const DeviceWords words(1);
  words.add(5, stream);
  NEED(cudaMemcpyAsync(seen.get(), words.get(), sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  NEED(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        auto* const both = static_cast<unsigned*>(data);
        both[1] = both[0];
      },
      seen.get()));
  NEED(cudaStreamSynchronize(stream));
  return std::to_string(seen.get()[1]);
}

std::string call_in_host_function() {
  const OwnStream stream;
  cudaError_t code = cudaSuccess;
  NEED(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        void* memory = nullptr;
        *static_cast<cudaError_t*>(data) = cudaMalloc(&memory, 4);
      },
      &code));
  NEED(cudaStreamSynchronize(stream));
  return named(code);
}

std::string priorities() {
  int least = 7, greatest = 7;
  NEED(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  return yes_or_no(least == 0 && greatest <= least);
}

std::string priority_out_of_range() {
  cudaStream_t stream = nullptr;
  NEED(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1000));
  int greatest = 0, given = 0;
  NEED(cudaDeviceGetStreamPriorityRange(nullptr, &greatest));
  NEED(cudaStreamGetPriority(stream, &given));
  NEED(cudaStreamDestroy(stream));
  return given == greatest ? "the greatest" : std::to_string(given);
}

const Question kQuestions[] = {
    {"stream.keeps_order", order_in_stream},
    {"stream.launch",
     [] {
       const OwnStream stream;
       const DeviceWords words(1);
       return waits_for(stream, [&] { words.add(1, stream); });
     }},
    {"stream.synchronize",
     [] {
       const OwnStream stream;
       return waits_for(stream, [&] { NEED(cudaStreamSynchronize(stream)); });
     }},
    {"stream.synchronize_of_another",
     [] {
       const OwnStream held, other;
       return waits_for(held, [&] { NEED(cudaStreamSynchronize(other)); });
     }},
    {"stream.device_synchronize",
     [] {
       const OwnStream stream;
       return waits_for(stream, [] { NEED(cudaDeviceSynchronize()); });
     }},
    {"stream.query_while_held", [] { return query(true); }},
    {"stream.query_when_done", [] { return query(false); }},
    {"stream.destroy_while_held", destroy_held},
    {"stream.free_while_held",
     [] {
       const OwnStream stream;
       return waits_for(stream, [] {
         void* memory = nullptr;
         NEED(cudaMalloc(&memory, 4));
         NEED(cudaFree(memory));
       });
     }},
    {"stream.default_after_blocking",
     [] {
       const OwnStream blocking(cudaStreamDefault);
       return done_after(blocking, nullptr);
     }},
    {"stream.default_after_non_blocking",
     [] {
       const OwnStream non_blocking(cudaStreamNonBlocking);
       return done_after(non_blocking, nullptr);
     }},
    {"stream.blocking_after_default",
     [] {
       const OwnStream blocking(cudaStreamDefault);
       return done_after(nullptr, blocking);
     }},
    {"stream.non_blocking_after_default",
     [] {
       const OwnStream non_blocking(cudaStreamNonBlocking);
       return done_after(nullptr, non_blocking);
     }},
    {"stream.blocking_after_blocking",
     [] {
       const OwnStream first(cudaStreamDefault), second(cudaStreamDefault);
       return done_after(first, second);
     }},
    {"stream.per_thread_after_default", [] { return done_after(cudaStreamLegacy, cudaStreamPerThread); }},
    {"stream.synchronize_of_default_after_blocking",
     [] {
       const OwnStream blocking(cudaStreamDefault);
       return waits_for(blocking, [] { NEED(cudaStreamSynchronize(nullptr)); });
     }},
    {"stream.launch_on_other_device", launch_in_stream_of_other_device, 2},
    {"stream.copy_on_other_device", copy_in_stream_of_other_device, 2},
    {"stream.host_function_in_order", host_function_in_order},
    {"stream.call_in_host_function", call_in_host_function},
    {"stream.lowest_priority_is_0", priorities},
    {"stream.priority_out_of_range", priority_out_of_range},
};

}  // namespace

std::span<const Question> stream_questions() { return kQuestions; }

}  // namespace polyring::software_gpu
