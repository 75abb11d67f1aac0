#include "reports/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace polyring {
namespace {

constexpr std::array<std::string_view, 12> kRecordedNames{
    "CUDA_DEVICE_ORDER",    "CUDA_VISIBLE_DEVICES", "DDL_OPTIONS",  "GOMP_CPU_AFFINITY",
    "MPICH_ASYNC_PROGRESS", "OMP_NUM_THREADS",      "OMP_PLACES",   "OMP_PROC_BIND",
    "POLYRING_PYTHON",      "SLURM_JOB_NUM_NODES",  "SLURM_NTASKS", "SLURM_CPU_BIND",
};

/// Families of settings. Open MPI's and PMIx' own start-up variables carry addresses and keys, so of
/// OMPI_MCA_ only the frameworks that decide how messages travel.
constexpr std::array<std::string_view, 8> kRecordedPrefixes{
    "MPIR_CVAR_",     "NCCL_",        "OMPI_MCA_btl",   "OMPI_MCA_coll",
    "OMPI_MCA_hwloc", "OMPI_MCA_pml", "OMPI_MCA_rmaps", "UCX_",
};

}  // namespace

bool is_recorded(std::string_view name) {
  const auto starts_name = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::find(kRecordedNames.begin(), kRecordedNames.end(), name) != kRecordedNames.end() ||
         std::any_of(kRecordedPrefixes.begin(), kRecordedPrefixes.end(), starts_name);
}

std::map<std::string, std::string> recorded_environment() {
  std::map<std::string, std::string> recorded;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !is_recorded(text.substr(0, equals))) continue;
    recorded.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return recorded;
}

}  // namespace polyring
