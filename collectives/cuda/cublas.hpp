// cuBLAS, opened at run time: the product of two matrices on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

#include "collectives/cuda/cublas_calls.hpp"

namespace polyring::cuda {

/// c = factor · a · b + kept · c, all side x side: a and b of float16, added up in float32.
struct CublasProduct {
  int side = 0;
  bool in_float32 = false;  // c; else it is of float16
  float factor = 1;
  float kept = 0;
};

/// For the device that is current where it is made.
class Cublas {
 public:
  /// From POLYRING_CUBLAS, or else the first libcublas.so that is found of CUDA 13 or 12. Null where there is
  /// none that works here, with the reason, half a sentence.
  static std::unique_ptr<Cublas> open(std::string& why_not);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// "13.1.0".
  const std::string& version() const { return version_; }

  /// Enqueues the product. Throws Error(ExitCode::cuda) where cuBLAS refuses.
  void multiply(const CublasProduct& product, const std::byte* a, const std::byte* b, std::byte* c,
                cudaStream_t stream);

 private:
  Cublas(const CublasCalls& calls, CublasHandle handle);

  CublasCalls calls_;
  CublasHandle handle_;
  std::string version_;
};

}  // namespace polyring::cuda
