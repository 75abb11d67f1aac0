#include "collectives/cuda/cublas.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "base/error.hpp"

namespace polyring::cuda {
namespace {

struct Library {
  CublasCalls calls;
  std::string why_not;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::string find_all(void* library, CublasCalls& calls) {
  const char* absent = nullptr;
  const auto need = [&](const char* name, auto& function) {
    if (!find(library, name, function)) absent = name;
  };
  need("cublasCreate_v2", calls.create);
  need("cublasDestroy_v2", calls.destroy);
  need("cublasGetVersion_v2", calls.version);
  need("cublasSetStream_v2", calls.set_stream);
  need("cublasGemmEx", calls.multiply);
  return absent == nullptr ? "" : fmt::format("cuBLAS has no function {}", absent);
}

/// It stays open: it may have threads of its own.
Library load() {
  const char* const named = std::getenv("POLYRING_CUBLAS");
  std::vector<std::string> files{"libcublas.so.13", "libcublas.so.12"};
  if (named != nullptr && *named != 0) files = {named};
  Library made;
  for (const std::string& file : files) {
    if (void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      made.why_not = find_all(library, made.calls);
      return made;
    }
    const char* const problem = dlerror();
    if (made.why_not.empty())
      made.why_not = fmt::format("cuBLAS could not be loaded ({})", problem == nullptr ? file : problem);
  }
  return made;
}

}  // namespace

std::unique_ptr<Cublas> Cublas::open(std::string& why_not) {
  static const Library library = load();
  why_not = library.why_not;
  if (!why_not.empty()) return nullptr;
  CublasHandle handle = nullptr;
  const int result = library.calls.create(&handle);
  if (result != kCublasSuccess) {
    cudaGetLastError();
    why_not = fmt::format("cuBLAS does not start here (cublasCreate answers {})", result);
    return nullptr;
  }
  return std::unique_ptr<Cublas>(new Cublas(library.calls, handle));
}

Cublas::Cublas(const CublasCalls& calls, CublasHandle handle) : calls_(calls), handle_(handle) {
  int code = 0;
  constexpr int kMajor = 10000;
  constexpr int kMinor = 100;
  if (calls_.version(handle_, &code) == kCublasSuccess)
    version_ = fmt::format("{}.{}.{}", code / kMajor, code % kMajor / kMinor, code % kMinor);
}

Cublas::~Cublas() { calls_.destroy(handle_); }

void Cublas::multiply(const CublasProduct& product, const std::byte* a, const std::byte* b, std::byte* c,
                      cudaStream_t stream) {
  const int side = product.side;
  int result = calls_.set_stream(handle_, stream);
  if (result == kCublasSuccess) {
    result = calls_.multiply(handle_, kCublasAsItIs, kCublasAsItIs, side, side, side, &product.factor, a,
                             kCublasFloat16, side, b, kCublasFloat16, side, &product.kept, c,
                             product.in_float32 ? kCublasFloat32 : kCublasFloat16, side, kCublasInFloat32,
                             kCublasChoose);
  }
  if (result == kCublasSuccess) return;
  cudaGetLastError();
  int device = 0;
  cudaGetDevice(&device);
  throw Error(ExitCode::cuda, fmt::format("GPU {2} cannot multiply matrices of {0} x {0} by cuBLAS "
                                          "(cublasGemmEx answers {1}); set POLYRING_CUBLAS to another "
                                          "libcublas.so, or to none",
                                          side, result, device));
}

}  // namespace polyring::cuda
