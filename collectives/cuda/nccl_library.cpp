#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>

#include "base/error.hpp"
#include "collectives/cuda/nccl.hpp"
#include "collectives/cuda/nccl_calls.hpp"

namespace polyring {
namespace {

constexpr const char* kRemedy = "set POLYRING_NCCL to the path of a libnccl.so.2";
constexpr int kOldest = 2700;         // ncclSend and ncclRecv
constexpr int kWithBfloat16 = 21000;  // and ncclAvg

std::string last_problem() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

/// Where the loader found it.
std::string path_of(void* library, const std::string& file) {
  const link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != 0;
  return known ? map->l_name : file;
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

NcclCalls find_all(void* library) {
  NcclCalls calls;
#define POLYRING_NCCL_FIND(name) find(library, #name, calls.name);
  POLYRING_NCCL_NEEDED(POLYRING_NCCL_FIND)
  POLYRING_NCCL_OPTIONAL(POLYRING_NCCL_FIND)
#undef POLYRING_NCCL_FIND
  return calls;
}

/// The name of a function that is needed and was not found; null if there is none.
const char* missing(const NcclCalls& calls) {
#define POLYRING_NCCL_MISSING(name) \
  if (calls.name == nullptr) return #name;
  POLYRING_NCCL_NEEDED(POLYRING_NCCL_MISSING)
#undef POLYRING_NCCL_MISSING
  return nullptr;
}

}  // namespace

std::string nccl_version_text(int code) {
  const int base = code < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", code / base, code % base / 100, code % 100);
}

const NcclLibrary& NcclLibrary::of_process() {
  static const NcclLibrary library([] {
    const char* const named = std::getenv("POLYRING_NCCL");
    return std::string(named != nullptr && *named != 0 ? named : "libnccl.so.2");
  }());
  return library;
}

NcclLibrary::NcclLibrary(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why_not_ = fmt::format("NCCL could not be loaded ({}); install NCCL 2, or {}", last_problem(), kRemedy);
    return;
  }
  path_ = path_of(library, file);
  NcclCalls calls = find_all(library);
  int code = 0;
  if (calls.ncclGetVersion == nullptr) {
    why_not_ = fmt::format("{} is not NCCL, since it has no function ncclGetVersion; {}", path_, kRemedy);
  } else if (calls.ncclGetVersion(&code) != ncclSuccess || code <= 0) {
    why_not_ = fmt::format("NCCL in {} does not say its version; {}", path_, kRemedy);
  } else if (code < kOldest) {
    why_not_ = fmt::format("NCCL {} in {} is too old: Polyring needs 2.7 or later; install it, or {}",
                           nccl_version_text(code), path_, kRemedy);
  } else if (const char* const name = missing(calls)) {
    why_not_ =
        fmt::format("NCCL {} in {} has no function {}; {}", nccl_version_text(code), path_, name, kRemedy);
  } else {
    version_ = nccl_version_text(code);
    version_code_ = code;
    calls_ = std::make_unique<const NcclCalls>(calls);
  }
}

NcclLibrary::~NcclLibrary() = default;
NcclLibrary::NcclLibrary(NcclLibrary&&) noexcept = default;

bool NcclLibrary::reduces(ElementKind kind, ReduceOp op) const {
  return version_code_ >= kWithBfloat16 || (kind != ElementKind::bfloat16 && op != ReduceOp::avg);
}

}  // namespace polyring
