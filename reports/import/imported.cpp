#include "reports/import/imported.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "reports/import/vocabulary.hpp"

namespace polyring {
namespace {

std::optional<int> printed_ranks(const ImportedRun& run, const PrintedRow& row) {
  return row.ranks ? row.ranks : run.ranks;
}

/// Refuses a run with a row whose ranks nobody says, and one where they are never those of `options`.
void check_ranks(const LogText& log, const ImportedRun& run, const ImportOptions& options) {
  if (options.ranks && (*options.ranks < 1 || *options.ranks > kMostRanks))
    usage_error("{} ranks cannot be; say how many '{}' had with --ranks", *options.ranks, log.name);
  bool fits = !options.ranks;
  for (const PrintedRow& row : run.rows) {
    const auto ranks = printed_ranks(run, row);
    if (!ranks && !options.ranks)
      refuse(log, run.line, "the log does not say how many ranks its {} had; say so with --ranks",
             run.collective);
    fits = fits || !ranks || ranks == options.ranks;
  }
  if (!fits)
    refuse(log, run.line, "its {} had {} and not {}; leave out --ranks", run.collective,
           counted(*printed_ranks(run, run.rows.front()), "rank"), *options.ranks);
}

int hosts_of(const ImportedRun& run, int ranks) {
  std::set<std::string_view> hosts;
  for (const RankHost& place : run.placement) hosts.insert(place.host);
  const int nodes = hosts.empty() ? run.nodes.value_or(1) : static_cast<int>(hosts.size());
  return std::clamp(nodes, 1, ranks);
}

/// The bytes of all blocks, as nccl-tests counts them.
std::uint64_t all_bytes(const LogText& log, const PrintedRow& row, int ranks) {
  const auto blocks = static_cast<std::uint64_t>(row.of_block ? ranks : 1);
  if (row.bytes > std::numeric_limits<std::uint64_t>::max() / 2 / blocks)
    refuse(log, row.line, "a size of {} bytes cannot be; cut the line out", row.bytes);
  return row.bytes * blocks;
}

CollectiveRow row_of(const LogText& log, const ImportedRun& run, const PrintedRow& printed, int ranks) {
  CollectiveRow row;
  row.algorithm = printed.algorithm.empty() ? run.algorithm : printed.algorithm;
  row.implementation = run.implementation;
  row.ranks = ranks;
  row.nodes = hosts_of(run, ranks);
  const bool known = !run.placement.empty() || run.nodes;
  row.ranks_per_node = known && ranks % row.nodes == 0 ? ranks / row.nodes : 0;
  row.size_bytes = all_bytes(log, printed, ranks);
  const std::uint64_t elements = row.size_bytes / bytes_of(printed.dtype).value_or(1);
  row.count = run.collective == "allreduce" ? elements : elements / static_cast<std::uint64_t>(ranks);
  row.dtype = printed.dtype;
  row.op = !printed.op.empty() ? printable_line(printed.op, 20) : reduces(run.collective) ? "sum" : "none";
  row.in_place = printed.in_place;
  row.timing = run.timing;
  row.wrong = printed.wrong;
  row.source = Source::imported;
  set_time(row, printed.us.size() == 1 ? exact_timing(printed.us.front()) : timing(printed.us),
           run.collective);
  return row;
}

/// Whether times can be microseconds of a collective; what is torn out of a row is often far from that.
bool can_be(const std::vector<double>& times) {
  return !times.empty() &&
         std::ranges::all_of(times, [](double us) { return us == 0 || (us >= 1e-6 && us <= 1e12); });
}

std::string lines_of(std::vector<int> lines) {
  constexpr std::size_t kNamed = 5;
  std::ranges::sort(lines);
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kNamed); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", lines[i]);
  return text + (lines.size() > kNamed ? ", …" : "");
}

std::int64_t signed_size(const auto& list) { return static_cast<std::int64_t>(list.size()); }

}  // namespace

ResultFile result_of(const LogText& log, const ImportedRun& run, const ImportOptions& options) {
  check_ranks(log, run, options);
  std::vector<CollectiveRow> rows;
  std::vector<int> torn = run.torn;
  std::int64_t empty = 0;
  bool blocks = false;
  for (const PrintedRow& printed : run.rows) {
    const int ranks = printed_ranks(run, printed).value_or(options.ranks.value_or(1));
    if (printed.bytes == 0) {
      ++empty;
    } else if (!can_be(printed.us)) {
      torn.push_back(printed.line);
    } else {
      rows.push_back(row_of(log, run, printed, ranks));
      blocks = blocks || printed.of_block;
    }
  }
  if (rows.empty()) refuse(log, run.line, "its {} has no row with a time; measure again", run.collective);

  ResultFile file;
  file.created = iso_time_now();
  file.command = printable_line(run.command);
  file.placement = run.placement;
  file.versions = run.versions;
  file.environment = run.environment;
  file.collective = run.collective;
  file.notes = {fmt::format("Imported from '{}', line {}, of {}", log.name, run.line, run.implementation)};
  file.notes.insert(file.notes.end(), run.notes.begin(), run.notes.end());
  if (blocks)
    file.notes.push_back("The log has the size of a block; here it is that of all blocks, as in nccl-tests");
  if (run.placement.empty() && !run.nodes)
    file.notes.push_back("The log does not say on which hosts it ran: counted as one");
  if (empty > 0)
    file.notes.push_back(fmt::format("{} of 0 bytes left out: they move nothing", counted(empty, "row")));
  if (!torn.empty())
    file.notes.push_back(fmt::format("{} torn or contradictory and left out: line {}",
                                     counted(signed_size(torn), "row"), lines_of(torn)));
  if (!run.ended) {
    file.notes.push_back("The log ends before the run does: there may have been more rows");
    file.partial = counted(signed_size(rows), "row");
  }
  file.rows = std::move(rows);
  return file;
}

}  // namespace polyring
