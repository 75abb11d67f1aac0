#include "bench/cli/timing.hpp"

#include <fmt/format.h>

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
          "isolated: one call on fresh input, the slowest rank's time. The others time blocks of -n calls on "
          "the same buffers, and give the mean over calls and ranks. osu: each call after a barrier, as "
          "OSU's "
          "benchmarks; back-to-back: no barriers, as nccl-tests; blocking: no barriers, but each call ends "
          "before the next one begins, as nccl-tests with -z 2")
      .show_default()
      .type_name("METHOD")
      .names({"timing", names});
  command
      .add_option(
          "-z,--blocking", blocking,
          "As in nccl-tests. 2: --timing blocking; 1 or 3: --timing osu, which never times the barriers "
          "(nccl-tests' -z 1 does); 0: what --timing says")
      .range(0, 3);
  command
      .add_option("-G,--cudagraph", graphs,
                  "On GPUs, instead of --timing: make the -n calls of a block one CUDA graph, and launch it "
                  "N times back to back")
      .range(1, 1000);
}

TimingMethod TimingOptions::resolve(bool on_gpu) const {
  const TimingMethod asked =
      *std::ranges::find_if(kTimingMethods, [&](TimingMethod known) { return method == to_text(known); });
  std::vector<std::string> ways;
  if (asked != TimingMethod::isolated) ways.push_back("--timing " + method);
  if (blocking != 0) ways.push_back(fmt::format("-z {}", blocking));
  if (graphs != 0) ways.push_back(fmt::format("-G {}", graphs));
  if (ways.size() > 1)
    usage_error("{} is one way of timing, and {} another; leave one out", ways[0], ways[1]);
  if (blocking != 0) return blocking == 2 ? TimingMethod::blocking : TimingMethod::osu;
  if (graphs == 0) return asked;
  if (!on_gpu)
    usage_error("-G launches CUDA graphs, and the ranks' data are in host memory; add --device cuda");
  return TimingMethod::graph;
}

}  // namespace polyring
