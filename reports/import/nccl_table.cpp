#include "reports/import/nccl_table.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "reports/import/vocabulary.hpp"

namespace polyring {

std::optional<NcclTable> NcclTable::below(std::string_view header, std::string_view above) {
  if (!header.starts_with('#')) return std::nullopt;
  NcclTable table;
  for (const std::string_view word : words(header.substr(1))) table.names_.emplace_back(word);
  if (table.names_.empty() || table.names_.front() != "size") return std::nullopt;
  const bool timed = table.has("time") || table.has("cputime");
  if (!timed || !table.has("count") || !table.has("type") || !table.has("algbw") || !table.has("busbw"))
    return std::nullopt;
  // A time stamp is two words: the day and the time.
  table.width_ = table.names_.size() + (table.has("timestamp") ? 1 : 0);
  table.begins_in_place_ = above.find("in-place") != std::string_view::npos &&
                           above.find("out-of-place") == std::string_view::npos;
  return table;
}

std::optional<NcclRow> NcclTable::row(const std::vector<std::string_view>& words) const {
  if (words.size() != width_) return std::nullopt;
  const auto word = [&](std::string_view name, std::string_view otherwise) {
    const auto column = find_column(names_, name);
    return std::string(column ? words[*column] : otherwise);
  };
  const auto bytes = whole_in(word("size", ""));
  const auto count = whole_in(word("count", ""));
  if (!bytes || !count) return std::nullopt;
  NcclRow row;
  row.bytes = *bytes;
  row.count = *count;
  row.dtype = type_named(word("type", ""));
  row.op = word("redop", "none");
  row.root = word("root", "-1");
  if (const std::string algorithm = lower(word("algo", "")); algorithm != "n/a")
    row.algorithm = printable_line(algorithm, 20);
  for (int half = 0; half < 2 && find_column(names_, "time", half); ++half) {
    auto read = half_of(words, half, static_cast<double>(row.bytes));
    if (!read) return std::nullopt;
    row.halves.push_back(std::move(*read));
  }
  return row;
}

std::optional<NcclRow::Half> NcclTable::half_of(const std::vector<std::string_view>& words, int half,
                                                double bytes) const {
  const auto word = [&](std::string_view name) {
    const auto column = find_column(names_, name, half);
    return column ? words[*column] : std::string_view{};
  };
  NcclRow::Half read;
  read.in_place = half == 1 || begins_in_place_;
  read.bandwidths = {std::string(word("algbw")), std::string(word("busbw"))};
  const auto us = number_in(word("time"));
  const auto algbw = number_in(read.bandwidths.algbw);
  if (!us || !algbw || !number_in(read.bandwidths.busbw) || contradicts(bytes, *us, *algbw))
    return std::nullopt;
  read.us = {*us};
  // Old tables have the largest error, 1e-07, and not how many elements are wrong.
  const std::string_view wrong = has("#wrong") ? word("#wrong") : word("error");
  read.checked = number_in(wrong).has_value();
  if (has("#wrong")) read.wrong = whole_in(wrong);
  return read.checked || wrong == "N/A" || wrong.empty() ? std::optional(std::move(read)) : std::nullopt;
}

std::optional<std::string> collective_by_rows(const std::vector<NcclRow>& rows, std::optional<int> ranks) {
  if (rows.empty()) return std::nullopt;
  const NcclRow& last = rows.back();
  const auto element = bytes_of(last.dtype);
  if (!element || last.root != "-1" || last.op == "none" || last.bytes == 0) return std::nullopt;
  if (last.bytes != last.count * *element) return "reduce-scatter";
  // Either an allreduce, or send and receive, whose busbw is algbw, and which are not checked in place. Those
  // of an allreduce of two ranks are equal, too.
  if (ratio_limits(bandwidths_of(rows)).low > 1) return "allreduce";
  const bool few = ranks && *ranks <= 2;
  return few && last.halves.back().in_place && last.halves.back().checked ? std::optional("allreduce")
                                                                          : std::nullopt;
}

std::vector<Bandwidths> bandwidths_of(const std::vector<NcclRow>& rows) {
  std::vector<Bandwidths> all;
  for (const NcclRow& row : rows)
    for (const NcclRow::Half& half : row.halves) all.push_back(half.bandwidths);
  return all;
}

}  // namespace polyring
