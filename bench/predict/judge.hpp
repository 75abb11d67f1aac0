// Rows of results beside what a machine should give: the bound of its topology, and what is expected there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bench/predict/usable_rates.hpp"
#include "collectives/schedule/bound.hpp"
#include "reports/compare.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// What good implementations reach: bus bandwidth in GB/s, and what that rests on.
struct JudgedBy {
  double low = 0;
  double high = 0;
  std::string basis;
};
/// Of a collective by an algorithm, as rows name it; nothing where there are no figures.
using Expect = std::function<std::optional<JudgedBy>(const Cluster&, Collective, const std::string&, Bytes)>;

class Judge {
 public:
  /// `machine` is one host, or all; runs on more equal hosts are judged by as many like it. Without `expect`
  /// there is no data to judge by.
  explicit Judge(Cluster machine, Expect expect = {})
      : machine_(std::move(machine)), expect_(std::move(expect)) {}

  /// `row` is one of `result`. Where the machine cannot be that of the run, `limit` says why.
  Judgement of(const ResultFile& result, const CollectiveRow& row);

 private:
  /// The hosts that a result had, or why that is not known.
  struct Hosts {
    std::optional<Cluster> cluster;
    std::string unknown;
  };
  const Hosts& hosts_of(const ResultFile& result, const CollectiveRow& row);
  /// The fastest way of the row's implementation; nothing where usable_ways() has none.
  const std::optional<UsableRate>& usable_by(const ResultFile& result, const CollectiveRow& row,
                                             const Cluster& cluster);
  /// By what the implementation can use together; where nobody can say that, by what leaves and enters GPUs.
  Bound bound_of(const ResultFile& result, const CollectiveRow& row, const Cluster& cluster);

  std::optional<JudgedBy> expected_of(const Cluster& cluster, const ResultFile& result,
                                      const CollectiveRow& row) const;

  Cluster machine_;
  Expect expect_;
  std::map<std::pair<const ResultFile*, int>, Hosts> hosts_;  // by rank count
  std::map<std::tuple<const ResultFile*, int, std::uint64_t>, Bound> bounds_;
  std::map<std::tuple<const ResultFile*, int, std::string>, std::optional<UsableRate>> usable_;
};

}  // namespace polyring
