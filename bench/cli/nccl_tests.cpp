#include "bench/cli/nccl_tests.hpp"

#include <algorithm>
#include <array>

namespace polyring {
namespace {

struct Known {
  char letter;
  std::string_view name;
  const char* meaning;
};

/// NVIDIA/nccl-tests, src/common.cu, July 2026.
constexpr std::array kKnown{
    Known{'t', "nthreads", "threads of each process"},
    Known{'g', "ngpus", "GPUs of each thread"},
    Known{'b', "minbytes", "the smallest size"},
    Known{'e', "maxbytes", "the largest size"},
    Known{'i', "stepbytes", "from a size to the next, plus this"},
    Known{'f', "stepfactor", "from a size to the next, times this"},
    Known{'n', "iters", "iterations"},
    Known{'m', "agg_iters", "operations in one group call"},
    Known{'w', "warmup_iters", "iterations before the timing"},
    Known{'N', "run_cycles", "how often all is run"},
    Known{'p', "parallel_init", "threads set NCCL up side by side"},
    Known{'c', "check", "whether results are checked"},
    Known{'o', "op", "the reduction"},
    Known{'d', "datatype", "the type of the elements"},
    Known{'r', "root", "the root of a broadcast or reduction"},
    Known{'z', "blocking", "whether and where each call is waited for"},
    Known{'y', "stream_null", "to use CUDA's default stream"},
    Known{'T', "timeout", "the time limit"},
    Known{'G', "cudagraph", "calls are launched as a CUDA graph"},
    Known{'C', "report_cputime", "to report the time of the CPU"},
    Known{'S', "report_timestamps", "to report when each size ran"},
    Known{'J', "output_file", "the result file"},
    Known{'a', "average", "which rank's time is reported"},
    Known{'R', "local_register", "buffers are registered with NCCL"},
    Known{'x', "cta_policy", "how many blocks NCCL's kernels have"},
    Known{'D', "device_implementation", "NCCL's device interface"},
    Known{'V', "device_cta_count", "the blocks of NCCL's device interface"},
    Known{'M', "memory", "to report the memory used"},
    Known{'u', "unalign", "buffers that are not aligned"},
    Known{'I', "per_iter_timing", "each iteration is timed by CUDA events"},
    Known{'K', "per_iter_skip", "iterations left out of that timing"},
};

}  // namespace

std::optional<std::string> nccl_tests_option(std::string_view name) {
  const auto* const found = std::ranges::find_if(kKnown, [&](const Known& known) {
    return name.starts_with("--") ? name.substr(2) == known.name
                                  : name.size() == 2 && name[0] == '-' && name[1] == known.letter;
  });
  if (found == kKnown.end()) return std::nullopt;
  return found->meaning;
}

}  // namespace polyring
