#include "bench/cli/timing.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace polyring {

void TimingOptions::add_to(Subcommand command) {
  std::vector<std::string> names;
  for (const TimingMethod known : kTimingMethods)
    if (known != TimingMethod::graph) names.emplace_back(to_text(known));
  command
      .add_option(
          "--timing", method,
          "isolated: one call on fresh input, the slowest rank's time; osu: as OSU's benchmarks, on the "
          "same buffers, each call after a barrier; back-to-back: as nccl-tests, without barriers; the "
          "last two in blocks of -n calls, with the mean over calls and ranks")
      .show_default()
      .type_name("METHOD")
      .names({"timing", names});
  command
      .add_option("-G,--cudagraph", graphs,
                  "On GPUs, instead of --timing: make the -n calls of a block one CUDA graph, and launch it "
                  "N times back to back")
      .range(1, 1000);
}

TimingMethod TimingOptions::resolve(bool on_gpu) const {
  const TimingMethod asked =
      *std::ranges::find_if(kTimingMethods, [&](TimingMethod known) { return method == to_text(known); });
  if (graphs == 0) return asked;
  if (!on_gpu)
    usage_error("-G launches CUDA graphs, and the ranks' data are in host memory; add --device cuda");
  if (asked != TimingMethod::isolated)
    usage_error("-G is a way of timing by itself; leave --timing {} out, or -G", method);
  return TimingMethod::graph;
}

}  // namespace polyring
