// gpu.copies: copies between each GPU and its host, and between each two GPUs, one way and both ways, alone
// and all at once.
#include "bench/accept/gpu_copies.hpp"

#include <algorithm>

#include "bench/accept/checks/checks.hpp"

namespace polyring {
namespace {

const CopyCheck& own() { return copies_to_and_between_gpus(); }

int turns(const Site& site, const CheckOptions&) {
  const auto has_gpus = [](const HostGroup& group) { return !group.machine.gpus.empty(); };
  return std::ranges::any_of(site.inventory.cluster.groups, has_gpus) ? own().turns : 0;
}

std::vector<CheckRow> run(const Checking& checking) { return judge_copies(checking, own()); }

std::string answer(const std::string& question) { return measure_copies(own(), question); }

}  // namespace

const Check kGpuCopies{
    own().name, "copies to, from and between GPUs that are slower than their links or others, or wrong",
    turns,      own().quantities,
    run,        answer};

}  // namespace polyring
