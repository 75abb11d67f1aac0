// hosts.alike: hosts that have other hardware, other software or fewer ranks than the others.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "base/text.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "hosts.alike";

CheckRow named_row(const Checking& checking, std::vector<std::string> hosts) {
  CheckRow row = row_of(checking, kName, {});
  row.subject = fmt::format("{}", fmt::join(hosts, ", "));
  row.hosts = std::move(hosts);
  return row;
}

/// A row for each number of ranks that is not the commonest; of equally common ones the largest is right.
void add_ranks(const Checking& checking, std::vector<CheckRow>& rows) {
  std::map<std::size_t, std::vector<std::string>> by_number;
  for (std::size_t host = 0; host < checking.site.hosts.size(); ++host)
    by_number[checking.site.ranks[host].size()].push_back(checking.site.hosts[host]);
  std::size_t common = 0;
  for (const auto& [number, hosts] : by_number)
    if (common == 0 || hosts.size() >= by_number[common].size()) common = number;
  for (const auto& [number, hosts] : by_number) {
    if (number == common) continue;
    CheckRow& row = rows.emplace_back(named_row(checking, hosts));
    row.verdict = Verdict::fail;
    row.why =
        fmt::format("{}, and {} of {} hosts have {}.", counted(static_cast<std::int64_t>(number), "rank"),
                    by_number[common].size(), checking.site.hosts.size(), common);
    row.remedy = "See whether all GPUs or cores of the host are there, and how the ranks were started.";
  }
}

std::vector<CheckRow> run(const Checking& checking) {
  const Inventory& inventory = checking.site.inventory;
  std::vector<CheckRow> rows;
  for (const UnprobedHost& host : inventory.unprobed) {
    CheckRow& row = rows.emplace_back(named_row(checking, {host.name}));
    row.verdict = Verdict::error;
    row.why = fmt::format("It could not be probed: {}.", host.why);
    row.remedy = "Run polyring probe there by hand.";
  }
  for (const NamedDifference& difference : differences_of(inventory)) {
    CheckRow& row = rows.emplace_back(named_row(checking, difference.hosts));
    row.verdict = Verdict::fail;
    row.why = difference.sentence + (difference.sentence.ends_with('.') ? "" : ".");
    row.remedy = "Make it like the others, or give the job hosts of one kind.";
  }
  add_ranks(checking, rows);
  if (!rows.empty()) return rows;
  const std::vector<int> all = checking.site.all_hosts();
  CheckRow row = row_of(checking, kName, all);
  row.verdict = Verdict::pass;
  row.why = fmt::format("{} with {} each, and no difference in what probe finds.",
                        counted(static_cast<std::int64_t>(all.size()), "host"),
                        counted(static_cast<std::int64_t>(checking.site.ranks.front().size()), "rank"));
  return {row};
}

int turns(const Site&, const CheckOptions&) { return 0; }

}  // namespace

const Check kHostsAlike{kName, "hosts with other hardware or fewer ranks than the others", turns, {}, run};

}  // namespace polyring
