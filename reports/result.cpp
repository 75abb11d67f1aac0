#include "reports/result.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/software_gpu.hpp"
#include "base/statistics.hpp"

namespace polyring {
namespace {

constexpr std::array<std::string_view, 4> kOtherKinds{"train", "scale", "tune",
                                                      "accept"};  // as they come in Rows

}  // namespace

std::string_view to_text(Source source) {
  switch (source) {
    case Source::measured:
      return "measured";
    case Source::emulated:
      return "emulated";
    case Source::modelled:
      return "modelled";
    case Source::published:
      return "published";
    case Source::imported:
      return "imported";
  }
  return "";
}

std::string_view to_text(TimingMethod method) {
  switch (method) {
    case TimingMethod::isolated:
      return "isolated";
    case TimingMethod::osu:
      return "osu";
    case TimingMethod::back_to_back:
      return "back-to-back";
    case TimingMethod::blocking:
      return "blocking";
    case TimingMethod::graph:
      return "graph";
  }
  return "";
}

std::string_view to_text(TimelineLane lane) {
  return lane == TimelineLane::compute ? "compute" : "communication";
}

std::string_view to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "fail";
    case Verdict::error:
      return "error";
    case Verdict::inconclusive:
      return "inconclusive";
    case Verdict::missing:
      return "missing";
    case Verdict::skipped:
      return "skipped";
    case Verdict::shown:
      return "shown";
  }
  return "";
}

std::string_view ResultFile::kind() const {
  return rows.index() == 0 ? collective : kOtherKinds[rows.index() - 1];
}

Timing timing(std::vector<double> samples) {
  const Summary summary = summarize(samples);
  return {summary.median, summary.ci_low, summary.ci_high, summary.min, summary.p99, std::move(samples)};
}

bool is_faster(const Timing& time, const Timing& other) { return time.ci_high < other.ci_low; }

Timing exact_timing(double value) { return {value, value, value, value, value, {}}; }

void set_time(CollectiveRow& row, Timing time_us, std::string_view collective) {
  row.time_us = std::move(time_us);
  const double us = row.time_us.median;
  const double ranks = std::max(row.ranks, 1);
  row.algbw_GBps = us > 0 ? static_cast<double>(row.size_bytes) / us / 1e3 : 0;
  row.busbw_GBps = row.algbw_GBps * (collective == "allreduce" ? 2 : 1) * (ranks - 1) / ranks;
  row.bound_fraction.reset();
  if (row.bound_us && !is_faster(row.time_us, exact_timing(*row.bound_us)))
    row.bound_fraction = us > 0 ? *row.bound_us / us : 0;
}

void set_expected(CollectiveRow& row, double low_GBps, double high_GBps) {
  const double work = row.busbw_GBps * row.time_us.median;
  row.expected_us = {work / high_GBps, work / low_GBps};
}

std::string iso_time_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

bool is_of_software_gpu(const ResultFile& result) {
  const auto gpu = result.versions.find("gpu");
  return gpu != result.versions.end() && is_software_gpu(gpu->second);
}

}  // namespace polyring
