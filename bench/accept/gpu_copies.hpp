// Copies by GPUs, as checks measure and judge them: what a host measures, and what rank 0 makes of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/accept/check.hpp"
#include "bench/accept/gpu_hosts.hpp"
#include "collectives/cuda/gpu.hpp"

namespace polyring {

/// Copies that are made at the same time.
struct CopyJob {
  std::size_t quantity = 0;  // of CopyCheck::quantities
  std::vector<GpuCopy> copies;
  bool is_sum = false;  // their rates together count

  /// The same on all hosts that have these GPUs.
  std::string name() const;
};

struct CopyCheck {
  std::string_view name;  // of the check
  std::vector<Quantity> quantities;
  std::vector<CopyJob> (*jobs)(int gpus);  // of a host with so many
  Bytes size;                              // of a copy, where memory allows it
  int turns = 1;                           // that all jobs of a host take
};

/// To and from each GPU, between each two, one way and both ways, alone and all at once.
const CopyCheck& copies_to_and_between_gpus();
/// Inside the memory of each GPU, all at once.
const CopyCheck& copies_inside_gpus();

/// On a host: makes the jobs, as the question says, and answers with what they reached. Without CUDA or a GPU
/// the answer says why.
std::string measure_copies(const CopyCheck& check, const std::string& question);

/// On rank 0: asks all hosts, as often as it takes, and judges each copy by its links, and beside copies over
/// links of the same kind.
std::vector<CheckRow> judge_copies(const Checking& checking, const CopyCheck& check);

/// The check of these copies. `what`: see Check.
template <const CopyCheck& (*kCopies)()>
Check check_of_copies(std::string_view what) {
  Check check{kCopies().name, what, nullptr, kCopies().quantities, nullptr};
  check.turns = [](const Site& site, const CheckOptions&) { return has_gpus(site) ? kCopies().turns : 0; };
  check.run = [](const Checking& checking) { return judge_copies(checking, kCopies()); };
  check.answer = [](const std::string& question) { return measure_copies(kCopies(), question); };
  return check;
}

}  // namespace polyring
