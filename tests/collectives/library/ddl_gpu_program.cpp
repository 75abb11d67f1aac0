// A program of DDL's on GPUs. Its word says what the job has: `gpus` (each process one of its own), `bound`
// (the same, and each process sees no other), or why its memory is the host's: what ddl_allreduce() must say
// of a GPU's memory, or where it names no plug-in what ddl_init() must say.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ddl.hpp>
#include <ddl_mpi.hpp>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kCount = 10'007;

int rank = -1;
int size = 0;
int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "rank %d: %s; the last failure: %s\n", rank, what.c_str(), ddl_error_text());
}

void expect_refused(DDL_Result result, const char* said, DDL_Result expected = DDL_ERROR_ARGUMENT) {
  expect(result == expected && std::strstr(ddl_error_text(), said) != nullptr, said);
}

void cuda(cudaError_t result) { expect(result == cudaSuccess, cudaGetErrorString(result)); }

/// The GPU whose memory that is, or -1.
int gpu_of(const void* memory) {
  cudaPointerAttributes attributes{};
  const bool known = cudaPointerGetAttributes(&attributes, memory) == cudaSuccess;
  cudaGetLastError();
  return known && attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  expect(ddl_malloc(&memory, 64, bytes) == bytes && memory != nullptr, "there is no memory");
  return memory;
}

template <typename Element>
void upload(void* to, const std::vector<Element>& from) {
  cuda(cudaMemcpy(to, from.data(), from.size() * sizeof(Element), cudaMemcpyHostToDevice));
  cuda(cudaDeviceSynchronize());  // from pageable memory, a copy may return before it is over
}

template <typename Element>
std::vector<Element> download(const void* from, std::size_t count) {
  std::vector<Element> values(count);
  cuda(cudaMemcpy(values.data(), from, count * sizeof(Element), cudaMemcpyDeviceToHost));
  return values;
}

float payload(int of, std::size_t i) {
  return static_cast<float>((static_cast<std::size_t>(of) * 3 + i) % 5 + 1);
}

std::vector<float> payload(int of) {
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = payload(of, i);
  return values;
}

/// Over the ranks first, first + step, ….
std::vector<float> combined(const std::function<float(float, float)>& op, int first = 0, int step = 1) {
  std::vector<float> values = payload(first);
  for (int other = first + step; other < size; other += step)
    for (std::size_t i = 0; i < kCount; ++i) values[i] = op(values[i], payload(other, i));
  return values;
}

float sum(float a, float b) { return a + b; }

void check_floats(float* data) {
  const struct {
    DDL_Op op;
    const char* name;
    std::function<float(float, float)> combine;
  } ops[] = {{DDL_OP_SUM, "sums", sum},
             {DDL_OP_PRODUCT, "products", std::multiplies<>()},
             {DDL_OP_MIN, "minima", [](float a, float b) { return a < b ? a : b; }},
             {DDL_OP_MAX, "maxima", [](float a, float b) { return a < b ? b : a; }}};
  for (const auto& [op, name, combine] : ops) {
    upload(data, payload(rank));
    expect(ddl_allreduce(data, kCount, DDL_TYPE_FLOAT, op) == DDL_SUCCESS, name);
    expect(download<float>(data, kCount) == combined(combine), std::string("wrong ") + name);
  }
}

/// Whole numbers from 0 to 10, as binary16.
std::uint16_t half(int value) {
  static constexpr std::uint16_t kHalves[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400, 0x4500,
                                              0x4600, 0x4700, 0x4800, 0x4880, 0x4900};
  return kHalves[value];
}

void check_halves(void* data) {
  for (const std::size_t count : {std::size_t{776}, std::size_t{777}}) {
    upload(data, std::vector<std::uint16_t>(count, half(rank + 1)));
    expect(ddl_allreduce(data, count, DDL_TYPE_HALF) == DDL_SUCCESS, "halves");
    expect(download<std::uint16_t>(data, count) ==
               std::vector<std::uint16_t>(count, half(size * (size + 1) / 2)),
           "wrong sums of halves");
  }
}

/// As a framework gives it: a tensor's, somewhere in a larger piece. Only on rank 0, so that ranks differ.
void check_memory_of_the_program(float* of_ddl) {
  float* own = nullptr;
  cuda(cudaMalloc(reinterpret_cast<void**>(&own), (kCount + 3) * sizeof(float)));
  float* const data = rank == 0 ? own + 3 : of_ddl;
  upload(data, payload(rank));
  expect(ddl_allreduce(data, kCount) == DDL_SUCCESS, "memory of the program");
  expect(download<float>(data, kCount) == combined(sum), "wrong sums in memory of the program");
  cuda(cudaFree(own));
}

void check_some_ranks(float* data) {
  MPI_Comm same_parity = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &same_parity);
  upload(data, payload(rank));
  expect(ddl_allreduce_mpi("", data, kCount, MPI_FLOAT, MPI_SUM, same_parity) == DDL_SUCCESS, "some ranks");
  expect(download<float>(data, kCount) == combined(sum, rank % 2, 2), "wrong sums of some ranks");
  MPI_Comm_free(&same_parity);
}

void check_refusals(float* data) {
  float value = 1;
  expect_refused(ddl_allreduce(&value, 1),
                 "the input is in host memory, and this communicator's buffers are on GPU");
  expect_refused(ddl_allreduce(data, 10 * kCount), "only ");
  int gpus = 0;
  int own = 0;
  cuda(cudaGetDeviceCount(&gpus));
  cuda(cudaGetDevice(&own));
  if (gpus == 1) return;
  void* elsewhere = nullptr;
  cuda(cudaSetDevice((own + 1) % gpus));
  cuda(cudaMalloc(&elsewhere, sizeof(float)));
  cuda(cudaSetDevice(own));
  expect_refused(ddl_allreduce(static_cast<float*>(elsewhere), 1),
                 "and this communicator's buffers are on GPU");
  cuda(cudaFree(elsewhere));
}

void use_gpus(bool bound) {
  int current = -1;
  cuda(cudaGetDevice(&current));
  expect(current == (bound ? 0 : rank), "CUDA's device is not the process's GPU");
  auto* const data = static_cast<float*>(allocate(kCount * sizeof(float)));
  expect(gpu_of(data) == current, "the memory is not the GPU's");
  check_floats(data);
  check_halves(data);
  check_memory_of_the_program(data);
  check_some_ranks(data);
  check_refusals(data);
  upload(data, payload(rank));
  expect(ddl_allreduce_mpi("", data, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == DDL_SUCCESS, "all ranks");
  expect(download<float>(data, kCount) == combined(sum), "wrong sums of all ranks");
  expect(ddl_free(data) == DDL_SUCCESS, "ddl_free()");
  expect_refused(ddl_free(data), "was freed");
}

void use_host_memory(const char* why) {
  auto* const data = static_cast<float*>(allocate(kCount * sizeof(float)));
  expect(gpu_of(data) == -1, "the memory is a GPU's");
  std::memcpy(data, payload(rank).data(), kCount * sizeof(float));
  expect(ddl_allreduce(data, kCount) == DDL_SUCCESS, "host memory");
  expect(std::vector<float>(data, data + kCount) == combined(sum), "wrong sums in host memory");
  void* of_gpu = nullptr;
  if (cudaMalloc(&of_gpu, sizeof(float)) == cudaSuccess) {
    expect_refused(ddl_allreduce(static_cast<float*>(of_gpu), 1), why);
    cuda(cudaFree(of_gpu));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string has = argc > 1 ? argv[1] : "gpus";
  if (has.find("cannot use GPUs") != std::string::npos) {
    expect_refused(ddl_init(nullptr), has.c_str(), DDL_ERROR);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
  }
  expect_refused(ddl_init("-foo"), "unknown DDL option '-foo'");
  expect(ddl_init(std::getenv("DDL_OPTIONS")) == DDL_SUCCESS, "ddl_init()");
  expect(ddl_rank(&rank) == DDL_SUCCESS && ddl_size(&size) == DDL_SUCCESS, "ddl_rank() and ddl_size()");
  has == "gpus" || has == "bound" ? use_gpus(has == "bound") : use_host_memory(has.c_str());
  expect(ddl_finalize() == DDL_SUCCESS, "ddl_finalize()");
  return failures == 0 ? 0 : 1;
}
