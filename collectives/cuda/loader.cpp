#include <filesystem>

#include "base/error.hpp"
#include "base/module.hpp"
#include "collectives/cuda/build.hpp"
#include "collectives/cuda/gpu.hpp"

namespace polyring {
namespace {

LoadedGpuPlugin load() {
  LoadedGpuPlugin loaded;
  loaded.path = module_path("POLYRING_CUDA_PLUGIN", kGpuPluginFile).string();
  std::error_code failed;
  if (*kGpuPluginAbsent != '\0' && !std::filesystem::exists(loaded.path, failed)) {
    loaded.why_not = kGpuPluginAbsent;
    return loaded;
  }
  const auto entry =
      reinterpret_cast<GpuPluginEntry>(load_module(loaded.path, kGpuPluginEntry, loaded.why_not));
  if (entry == nullptr) return loaded;
  loaded.plugin = entry(kGpuBuild);
  if (loaded.plugin == nullptr)
    loaded.why_not = fmt::format("{} is of another build than this program", loaded.path);
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
