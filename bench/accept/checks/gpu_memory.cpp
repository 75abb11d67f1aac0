// gpu.memory: copies inside the memory of each GPU.
#include <algorithm>

#include "bench/accept/checks/checks.hpp"
#include "bench/accept/gpu_copies.hpp"

namespace polyring {
namespace {

const CopyCheck& own() { return copies_inside_gpus(); }

int turns(const Site& site, const CheckOptions&) {
  const auto has_gpus = [](const HostGroup& group) { return !group.machine.gpus.empty(); };
  return std::ranges::any_of(site.inventory.cluster.groups, has_gpus) ? own().turns : 0;
}

std::vector<CheckRow> run(const Checking& checking) { return judge_copies(checking, own()); }

std::string answer(const std::string& question) { return measure_copies(own(), question); }

}  // namespace

const Check kGpuMemory{
    own().name, "GPUs whose memory is slower than that of others", turns, own().quantities, run, answer};

}  // namespace polyring
