// The tables and the JSON of expected.hpp.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/predict/expected.hpp"
#include "reports/result.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

std::string gigabytes_text(Bandwidth bandwidth) {
  return bandwidth.known() ? significant(bandwidth.gigabytes_per_second()) : "?";
}

std::string count_text(int count) { return count > 0 ? fmt::format("{}", count) : "many"; }

std::string bounds_text(const Expectation& expectation) {
  Table table({{"", "at most", "", Align::left},
               {"", "hosts", "", Align::right},
               {"", "ranks", "", Align::right},
               {"", "busbw", "GB/s", Align::right},
               {"", "what limits", "", Align::left},
               {"", "source", "", Align::left}});
  for (const ExpectedBound& row : expectation.bounds) {
    table.add_row({row.where, count_text(row.hosts), count_text(row.ranks), gigabytes_text(row.busbw),
                   row.limit, std::string(to_text(Source::modelled))});
  }
  // Otherwise 388 GB/s of ports beside a busbw of 679 looks like a mistake.
  const bool over_hosts =
      std::ranges::any_of(expectation.bounds, [](const ExpectedBound& row) { return row.hosts != 1; });
  const bool switches = std::ranges::any_of(
      expectation.bounds, [](const ExpectedBound& row) { return row.where.starts_with(kInSwitches); });
  return table.text() +
         (switches
              ? "\nSwitches that reduce send less over the links than ranks must: their busbw may exceed "
                "the rate of a link.\n"
              : "") +
         (over_hosts
              ? "\nbusbw is size / time x 2(n - 1)/n for n ranks. The payload must leave and enter each "
                "host at least once, so that\nbusbw between hosts may be up to 2(n - 1)/n times "
                "what the ports of a host carry in each direction,\nand inside a host of g GPUs "
                "2(g - 1)/g times the payload is enough.\n"
              : "");
}

std::string algorithms_text(const Expectation& expectation) {
  Table table({{"", "algorithm", "", Align::left},
               {"", "busbw", "GB/s", Align::right},
               {"", "of the bound", "%", Align::right},
               {"", "time", "", Align::right},
               {"", "plan", "", Align::left},
               {"", "busiest", "", Align::left},
               {"", "source", "", Align::left}});
  for (const ExpectedAlgorithm& row : expectation.algorithms) {
    table.add_row({row.algorithm, gigabytes_text(row.busbw),
                   row.bound_fraction ? significant(100 * *row.bound_fraction) : "-", to_text(row.time),
                   row.plan, row.busiest, std::string(to_text(Source::modelled))});
  }
  return table.text();
}

/// "365 to 382".
std::string range_text(double low, double high) {
  return fmt::format("{} to {}", significant(low), significant(high));
}

std::string intervals_text(const Expectation& expectation) {
  Table table({{"", "expected", "", Align::left},
               {"", "busbw", "GB/s", Align::right},
               {"", "of the rate", "%", Align::right},
               {"", "of", "", Align::left},
               {"", "source", "", Align::left}});
  std::vector<std::string> reasons;
  std::vector<std::pair<std::string, ExpectedInterval>> rows;  // those that are equal, with all their names
  for (const ExpectedReach& reach : expectation.intervals) {
    const ExpectedInterval& reached = reach.interval;
    const auto same = std::ranges::find_if(rows, [&](const auto& row) {
      const ExpectedInterval& other = row.second;
      return other.low == reached.low && other.high == reached.high && other.rests_on == reached.rests_on;
    });
    if (same == rows.end()) {
      rows.emplace_back(reach.algorithm, reached);
    } else {
      same->first += ", " + reach.algorithm;
    }
    if (std::ranges::find(reasons, reached.rests_on) == reasons.end()) reasons.push_back(reached.rests_on);
  }
  for (const auto& [algorithms, reached] : rows) {
    const double rate = reached.rate.gigabytes_per_second();
    const double low = reached.low.gigabytes_per_second();
    const double high = reached.high.gigabytes_per_second();
    table.add_row({algorithms, range_text(low, high), range_text(100 * low / rate, 100 * high / rate),
                   fmt::format("{}, {}", reached.link, to_text(reached.rate)),
                   std::string(to_text(reached.from_data ? Source::published : Source::modelled))});
  }
  return fmt::format("{}\n{}.\n", table.text(), fmt::join(reasons, ".\n"));
}

std::string floors_text(const Expectation& expectation) {
  Table table({{"", "others' fixed floor", "", Align::left},
               {"", "hosts", "", Align::right},
               {"", "payload", "", Align::right},
               {"", "busbw", "GB/s", Align::right},
               {"", "read in", "", Align::left}});
  for (const PublishedFloor& floor : expectation.floors) {
    const std::string who = floor.note.empty() ? floor.who : fmt::format("{} ({})", floor.who, floor.note);
    table.add_row(
        {who, count_text(floor.hosts), to_text(floor.size), gigabytes_text(floor.busbw), floor.source.where});
  }
  return table.text();
}

using Json = nlohmann::ordered_json;

Json gigabytes(Bandwidth bandwidth) {
  return bandwidth.known() ? Json(rounded(bandwidth.gigabytes_per_second())) : Json(nullptr);
}

Json to_json(const ExpectedBound& row) {
  return {{"where", row.where},
          {"hosts", row.hosts > 0 ? Json(row.hosts) : Json(nullptr)},
          {"ranks", row.ranks > 0 ? Json(row.ranks) : Json(nullptr)},
          {"busbw_GBps", gigabytes(row.busbw)},
          {"limit", row.limit},
          {"source", to_text(Source::modelled)}};
}

Json to_json(const ExpectedAlgorithm& row) {
  return {{"algorithm", row.algorithm},
          {"plan", row.plan},
          {"time_us", rounded(row.time.value * 1e6)},
          {"busbw_GBps", gigabytes(row.busbw)},
          {"bound_fraction", row.bound_fraction ? Json(rounded(*row.bound_fraction)) : Json(nullptr)},
          {"busiest", row.busiest},
          {"source", to_text(Source::modelled)}};
}

Json to_json(const ExpectedReach& row) {
  const ExpectedInterval& reached = row.interval;
  return {{"algorithm", row.algorithm},
          {"busbw_low_GBps", gigabytes(reached.low)},
          {"busbw_high_GBps", gigabytes(reached.high)},
          {"rate_GBps", gigabytes(reached.rate)},
          {"link", reached.link},
          {"limit", reached.limit},
          {"from_data", reached.from_data},
          {"rests_on", reached.rests_on},
          {"source", to_text(reached.from_data ? Source::published : Source::modelled)}};
}

Json to_json(const PublishedFloor& floor) {
  Json json{{"who", floor.who},
            {"hosts", floor.hosts},
            {"payload_bytes", floor.size.value},
            {"busbw_GBps", gigabytes(floor.busbw)},
            {"read_in", floor.source.where},
            {"date", floor.source.date}};
  if (!floor.note.empty()) json["note"] = floor.note;
  return json;
}

template <typename Rows>
Json rows_of(const Rows& rows) {
  Json json = Json::array();
  for (const auto& row : rows) json.push_back(to_json(row));
  return json;
}

}  // namespace

std::string to_text(const Expectation& expectation) {
  std::string out =
      fmt::format("expected of an allreduce, by these links (busbw by nccl-tests' definition, for {})\n\n{}",
                  to_text(expectation.payload), bounds_text(expectation));
  if (!expectation.intervals.empty()) out += "\n" + intervals_text(expectation);
  if (!expectation.floors.empty()) out += "\n" + floors_text(expectation);
  if (!expectation.algorithms.empty()) out += "\n" + algorithms_text(expectation);
  if (!expectation.not_simulated.empty())
    out += fmt::format("\nnot simulated: {}\n", expectation.not_simulated);
  return out;
}

std::string to_json(const Expectation& expectation) {
  Json json{{"payload_bytes", expectation.payload.value}, {"bounds", rows_of(expectation.bounds)}};
  if (!expectation.intervals.empty()) json["intervals"] = rows_of(expectation.intervals);
  if (!expectation.floors.empty()) json["floors"] = rows_of(expectation.floors);
  if (!expectation.algorithms.empty()) json["algorithms"] = rows_of(expectation.algorithms);
  if (!expectation.not_simulated.empty()) json["not_simulated"] = expectation.not_simulated;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace polyring
