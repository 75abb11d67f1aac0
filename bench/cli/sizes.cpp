#include "bench/cli/sizes.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/units.hpp"

namespace polyring {
namespace {

constexpr std::uint64_t kMostSizes = 10000;
constexpr Bytes kMostPayload{std::uint64_t{16} << 40};

}  // namespace

Bytes parse_payload(const std::string& text, const std::string& what) {
  const Bytes size = parse_bytes(text, what);
  if (size > kMostPayload)
    usage_error("{} {} is more than any host holds; give {} or less", what, text, to_text(kMostPayload));
  return size;
}

void SizeOptions::add_to(Subcommand command) {
  command.add_option("-b,--minbytes", smallest, "The smallest size").show_default();
  command.add_option("-e,--maxbytes", largest, "The largest size").show_default();
  command.add_option("-f,--stepfactor", factor, "From a size to the next, times this")
      .show_default()
      .range(2, 1 << 20);
  command.add_option("-i,--stepbytes", step, "From a size to the next, plus this").excludes({"--stepfactor"});
}

std::vector<Count> SizeOptions::counts(int element_size) const {
  const std::uint64_t from = parse_payload(smallest, "--minbytes").value;
  const std::uint64_t to = parse_payload(largest, "--maxbytes").value;
  if (from < 1) usage_error("--minbytes {} is impossible; give 1 or more", smallest);
  if (from > to) usage_error("--minbytes {} is above --maxbytes {}; exchange them", smallest, largest);
  const std::uint64_t plus = step.empty() ? 0 : parse_bytes(step, "--stepbytes").value;
  if (!step.empty() && plus == 0) usage_error("--stepbytes 0 never ends; give 1 or more");
  if (plus > 0 && (to - from) / plus > kMostSizes)
    usage_error("--stepbytes {} makes more than {} sizes; give a larger one", step, kMostSizes);
  const auto times = static_cast<std::uint64_t>(factor);
  std::set<Count> counts;
  for (std::uint64_t size = from;; size = plus > 0 ? size + plus : size * times) {
    counts.insert(std::max<Count>(1, static_cast<Count>(size) / element_size));
    if (plus > 0 ? to - size < plus : to / size < times) break;  // size may be near its type's end
  }
  return {counts.begin(), counts.end()};
}

void add_buffers_option(Subcommand command, std::string& buffers) {
  command
      .add_option(
          "--buffers", buffers,
          "library: from our own allocator, within reach of the other ranks of the host; malloc: from "
          "anywhere")
      .show_default()
      .names({"memory for buffers", {"library", "malloc"}});
}

}  // namespace polyring
