#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "collectives/cuda/build.hpp"
#include "collectives/cuda/gpu.hpp"

namespace polyring {
namespace {

std::filesystem::path plugin_path() {
  const char* const named = std::getenv("POLYRING_CUDA_PLUGIN");
  if (named != nullptr && *named != '\0') return named;
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::filesystem::path beside_program = (program.parent_path() / kGpuPluginFile).lexically_normal();
  Dl_info own{};
  if (std::filesystem::exists(beside_program, failed) ||
      dladdr(reinterpret_cast<void*>(&plugin_path), &own) == 0 || own.dli_fname == nullptr)
    return beside_program;
  // This may be libpolyring.so in another program, such as python3.
  const std::filesystem::path library = std::filesystem::absolute(own.dli_fname, failed);
  const std::filesystem::path beside_library = (library.parent_path() / kGpuPluginFile).lexically_normal();
  return std::filesystem::exists(beside_library, failed) ? beside_library : beside_program;
}

/// What the plug-in allocates at its start is still in use when the process ends: it is never closed.
LoadedGpuPlugin load() {
  LoadedGpuPlugin loaded;
  const std::filesystem::path path = plugin_path();
  loaded.path = path;
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) {
    loaded.why_not = *kGpuPluginAbsent != '\0' ? kGpuPluginAbsent : "there is no " + path.string();
    return loaded;
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const said = dlerror();
    loaded.why_not = fmt::format("it cannot be loaded: {}", said != nullptr ? said : path.string());
    return loaded;
  }
  const auto entry = reinterpret_cast<GpuPluginEntry>(dlsym(library, kGpuPluginEntry));
  if (entry == nullptr) {
    loaded.why_not = fmt::format("{} is no plug-in of Polyring's", path.string());
    return loaded;
  }
  loaded.plugin = entry(kGpuBuild);
  if (loaded.plugin == nullptr)
    loaded.why_not = fmt::format("{} is of another build than this program", path.string());
  return loaded;
}

}  // namespace

const LoadedGpuPlugin& gpu_plugin() {
  static const LoadedGpuPlugin loaded = load();
  return loaded;
}

GpuPlugin& need_gpu_plugin() {
  const LoadedGpuPlugin& loaded = gpu_plugin();
  if (loaded.plugin == nullptr) {
    throw Error(ExitCode::not_available,
                fmt::format("GPUs cannot be used: {}; use --device cpu, or see docs/gpu.md", loaded.why_not));
  }
  return *loaded.plugin;
}

}  // namespace polyring
