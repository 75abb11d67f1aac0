// The software cuBLAS: the calls that the plug-in makes. It checks what it is given, multiplies small
// matrices, and lets time pass in the place of larger products. cuBLAS's enumerations are as wide as int;
// collectives/cuda/cublas_calls.hpp compares.
//
// The plan (see plan.hpp) may have such lines; devices count as the process counts them, products from 1 on
// each of them:
//
//   cublas device 1 wrong at product 5   one bit of the result is not what it should be
#include <cuda_runtime_api.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tests/software_gpu/software_gpu.hpp"

extern "C" struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  long products = 0;
};

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 1;
constexpr int kInvalidValue = 7;
constexpr int kExecutionFailed = 13;
constexpr int kFloat32 = 0;
constexpr int kFloat16 = 2;
constexpr int kInFloat32 = 68;

constexpr int kLargestComputed = 256;

struct Product {
  std::size_t side;
  const std::uint16_t* a;
  const std::uint16_t* b;
  float* c;  // null: time passes
  float factor;
  float kept;
  bool wrong;
};

/// Whether all bytes of a matrix are in this device's memory.
bool is_matrix(const void* matrix, int side, std::size_t of_element, int device) {
  const auto bytes = of_element * static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  const auto* const first = static_cast<const std::byte*>(matrix);
  for (const std::byte* const byte : {first, first + bytes - 1}) {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, byte) != cudaSuccess ||
        attributes.type != cudaMemoryTypeDevice || attributes.device != device)
      return false;
  }
  return true;
}

bool is_wrong(int device, long product) {
  for (int index = 0; const char* const line = polyring_software_gpu_plan_line("cublas", index); ++index) {
    int of_device = 0;
    long at = 0;
    if (std::sscanf(line, "device %d wrong at product %ld", &of_device, &at) != 2) {
      std::fprintf(stderr, "software GPU: \"cublas %s\" says nothing that is known here\n", line);
      std::abort();
    }
    if (of_device == device && at == product) return true;
  }
  return false;
}

float value_of(std::uint16_t half) {
  constexpr int kBias = 15;
  constexpr int kFraction = 10;
  const int exponent = half >> kFraction & 0x1f;
  const int fraction = half & 0x3ff;
  const float size = exponent == 0
                         ? std::ldexp(static_cast<float>(fraction), 1 - kBias - kFraction)
                         : std::ldexp(static_cast<float>(fraction | 0x400), exponent - kBias - kFraction);
  return (half & 0x8000) != 0 ? -size : size;
}

std::vector<float> values_of(const std::uint16_t* matrix, std::size_t elements) {
  std::vector<float> values;
  values.reserve(elements);
  for (std::size_t i = 0; i < elements; ++i) values.push_back(value_of(matrix[i]));
  return values;
}

void compute(const Product& product) {
  const std::size_t side = product.side;
  const std::vector<float> a = values_of(product.a, side * side);
  const std::vector<float> b = values_of(product.b, side * side);
  std::vector<float> sums(side);
  for (std::size_t column = 0; column < side; ++column) {
    sums.assign(side, 0);
    for (std::size_t k = 0; k < side; ++k)
      for (std::size_t row = 0; row < side; ++row) sums[row] += a[k * side + row] * b[column * side + k];
    float* const to = product.c + column * side;
    for (std::size_t row = 0; row < side; ++row)
      to[row] = product.factor * sums[row] + product.kept * to[row];
  }
  if (product.wrong) product.c[side + 1] += 1;
}

/// As a GPU with 500 TFlop/s takes, and not less than a launch.
void let_time_pass(const Product& product) {
  const auto side = static_cast<double>(product.side);
  std::this_thread::sleep_for(std::chrono::duration<double>(5e-6 + 2 * side * side * side / 5e14));
}

void run(void* context) {
  const auto& product = *static_cast<const Product*>(context);
  if (product.c == nullptr) return let_time_pass(product);
  polyring_software_gpu_allow();
  compute(product);
  polyring_software_gpu_forbid();
}

void destroy(void* context) { delete static_cast<Product*>(context); }

}  // namespace

extern "C" {

int cublasCreate_v2(cublasContext** handle) {
  auto made = cublasContext{};
  if (cudaGetDevice(&made.device) != cudaSuccess) return kNotInitialized;
  *handle = new cublasContext(made);
  return kSuccess;
}

int cublasDestroy_v2(cublasContext* handle) {
  delete handle;
  return kSuccess;
}

int cublasGetVersion_v2(cublasContext* handle, int* version) {
  if (handle == nullptr) return kNotInitialized;
  *version = 130100;
  return kSuccess;
}

int cublasSetStream_v2(cublasContext* handle, cudaStream_t stream) {
  if (handle == nullptr) return kNotInitialized;
  handle->stream = stream;
  return kSuccess;
}

int cublasGemmEx(cublasContext* handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const void* alpha, const void* a, int type_a, int columns_a, const void* b, int type_b,
                 int columns_b, const void* beta, void* c, int type_c, int columns_c, int compute,
                 int algorithm) {
  if (handle == nullptr) return kNotInitialized;
  const bool square = m > 0 && m == n && n == k && columns_a == m && columns_b == m && columns_c == m;
  const bool types = type_a == kFloat16 && type_b == kFloat16 && (type_c == kFloat16 || type_c == kFloat32) &&
                     compute == kInFloat32;
  if (!square || !types || transpose_a != 0 || transpose_b != 0 || algorithm != -1) return kInvalidValue;
  const bool in_float32 = type_c == kFloat32;
  for (const void* const matrix : {a, b})
    if (!is_matrix(matrix, m, sizeof(std::uint16_t), handle->device)) return kInvalidValue;
  if (!is_matrix(c, m, in_float32 ? sizeof(float) : sizeof(std::uint16_t), handle->device))
    return kInvalidValue;
  auto product = std::make_unique<Product>();
  product->side = static_cast<std::size_t>(m);
  product->a = static_cast<const std::uint16_t*>(a);
  product->b = static_cast<const std::uint16_t*>(b);
  if (in_float32 && m <= kLargestComputed) product->c = static_cast<float*>(c);
  product->factor = *static_cast<const float*>(alpha);
  product->kept = *static_cast<const float*>(beta);
  product->wrong = is_wrong(handle->device, ++handle->products);
  const cudaError_t result = polyring_software_gpu_enqueue(handle->stream, run, destroy, product.release());
  return result == cudaSuccess ? kSuccess : kExecutionFailed;
}
}
