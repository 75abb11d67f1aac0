// The functions of cuBLAS that Polyring calls, found in the library at run time. They are declared here, so
// that a build needs no header of cuBLAS; where there is one, the declarations are compared with it.
#pragma once

#include <cuda_runtime_api.h>

#include <type_traits>

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#endif

namespace polyring {

using CublasHandle = struct cublasContext*;

inline constexpr int kCublasSuccess = 0;
inline constexpr int kCublasAsItIs = 0;   // a matrix that is not transposed
inline constexpr int kCublasFloat32 = 0;  // cudaDataType
inline constexpr int kCublasFloat16 = 2;
inline constexpr int kCublasInFloat32 = 68;
inline constexpr int kCublasChoose = -1;  // the algorithm

/// cuBLAS's enumerations are as wide as int. A call's result is 0 where it succeeded.
struct CublasCalls {
  int (*create)(CublasHandle* handle) = nullptr;
  int (*destroy)(CublasHandle handle) = nullptr;
  int (*version)(CublasHandle handle, int* version) = nullptr;
  int (*set_stream)(CublasHandle handle, cudaStream_t stream) = nullptr;
  int (*multiply)(CublasHandle handle, int transpose_a, int transpose_b, int m, int n, int k,
                  const void* alpha, const void* a, int type_a, int columns_a, const void* b, int type_b,
                  int columns_b, const void* beta, void* c, int type_c, int columns_c, int compute,
                  int algorithm) = nullptr;
};

#if __has_include(<cublas_v2.h>)
namespace internal {
/// Whether one function can be called as the other.
template <typename... A, typename OwnResult, typename... B, typename Result>
constexpr bool is_called_as(OwnResult (*)(A...), Result (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) {
    return false;
  } else {
    return sizeof(OwnResult) == sizeof(Result) &&
           ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>)&&...);
  }
}
template <typename Own, typename Theirs>
inline constexpr bool kSameCall = is_called_as(Own{}, Theirs{});
}  // namespace internal
static_assert(internal::kSameCall<decltype(CublasCalls::create), decltype(&::cublasCreate_v2)>);
static_assert(internal::kSameCall<decltype(CublasCalls::destroy), decltype(&::cublasDestroy_v2)>);
static_assert(internal::kSameCall<decltype(CublasCalls::version), decltype(&::cublasGetVersion_v2)>);
static_assert(internal::kSameCall<decltype(CublasCalls::set_stream), decltype(&::cublasSetStream_v2)>);
// In C++ the header has two functions of this name.
namespace internal {
using TheirMultiply = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                         const void*, const void*, cudaDataType, int, const void*,
                                         cudaDataType, int, const void*, void*, cudaDataType, int,
                                         cublasComputeType_t, cublasGemmAlgo_t);
}  // namespace internal
static_assert(
    std::is_same_v<decltype(static_cast<internal::TheirMultiply>(&::cublasGemmEx)), internal::TheirMultiply>);
static_assert(internal::kSameCall<decltype(CublasCalls::multiply), internal::TheirMultiply>);
static_assert(kCublasSuccess == CUBLAS_STATUS_SUCCESS && kCublasAsItIs == CUBLAS_OP_N &&
              kCublasFloat32 == CUDA_R_32F && kCublasFloat16 == CUDA_R_16F &&
              kCublasInFloat32 == CUBLAS_COMPUTE_32F && kCublasChoose == CUBLAS_GEMM_DEFAULT);
#endif

}  // namespace polyring
