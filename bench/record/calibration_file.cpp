#include "bench/record/calibration_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "polyring-calibration";
/// Raised whenever a reader of the old version would misread the new one.
constexpr int kVersion = 2;
constexpr double kMost = 1e9;  // ranks, hosts or points
constexpr double kMostBytes = 1e18;

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json to_json(const LinkFit& fit) {
  ordered_json object{{"link", to_text(fit.link)}, {"latency_us", rounded(fit.latency.value * 1e6)}};
  object["GBps"] =
      fit.bandwidth.known() ? ordered_json(rounded(fit.bandwidth.gigabytes_per_second())) : nullptr;
  object["share"] = fit.share;
  object["latency_error"] = or_null(fit.latency_error);
  object["bandwidth_error"] = or_null(fit.bandwidth_error);
  return object;
}

ordered_json to_json(const PredictionError& error) {
  return {{"points", error.points}, {"mean", error.mean}, {"worst", error.worst}, {"spread", error.spread}};
}

/// A file that is read, for errors. What nlohmann throws for a key that is missing or of another type ends
/// in one, too.
struct Reader {
  const std::string& file;

  [[noreturn]] void wrong(const std::string& what) const {
    usage_error("'{}' is no calibration, or damaged: {}; run polyring calibrate again", file, what);
  }

  double number(const json& object, const char* key, double least) const {
    const double value = object.at(key).get<double>();
    if (!std::isfinite(value) || value < least) wrong(fmt::format("{} is {}", key, value));
    return value;
  }

  /// From 1. The check comes on the double, which holds any number of the file.
  template <typename Whole>
  Whole count(const json& object, const char* key, double most) const {
    const double value = object.at(key).get<double>();
    if (!(value >= 1 && value <= most) || value != std::floor(value))
      wrong(fmt::format("{} is {}", key, value));
    return static_cast<Whole>(value);
  }

  std::optional<double> error_of(const json& object, const char* key) const {
    if (object.at(key).is_null()) return std::nullopt;
    return number(object, key, 0);
  }

  LinkFit link(const json& object) const {
    LinkFit fit;
    const auto name = object.at("link").get<std::string>();
    const auto* known = std::find_if(std::begin(kLinkClasses), std::end(kLinkClasses),
                                     [&](LinkClass link) { return to_text(link) == name; });
    if (known == std::end(kLinkClasses)) wrong(fmt::format("there are no links of kind '{}'", name));
    fit.link = *known;
    fit.latency = microseconds(number(object, "latency_us", 0));
    if (!object.at("GBps").is_null()) fit.bandwidth = gigabytes_per_second(number(object, "GBps", 1e-9));
    fit.share = number(object, "share", 1e-6);
    fit.latency_error = error_of(object, "latency_error");
    fit.bandwidth_error = error_of(object, "bandwidth_error");
    return fit;
  }

  PredictionError prediction(const json& object) const {
    return {count<int>(object, "points", kMost), number(object, "mean", 0), number(object, "worst", 0),
            number(object, "spread", 0)};
  }

  Calibration calibration(const json& object) const {
    Calibration calibration;
    for (const json& fit : object.at("links")) calibration.links.push_back(link(fit));
    calibration.fitted = prediction(object.at("fitted"));
    if (!object.at("checked").is_null()) calibration.checked = prediction(object.at("checked"));
    const json& range = object.at("range");
    calibration.range = {count<int>(range, "most_ranks", kMost),
                         count<int>(range, "most_hosts", kMost),
                         {count<std::uint64_t>(range, "least_bytes", kMostBytes)},
                         {count<std::uint64_t>(range, "largest_bytes", kMostBytes)}};
    return calibration;
  }

  CalibrationRecord record(const json& object) const {
    CalibrationRecord record;
    record.created = object.at("created").get<std::string>();
    record.command = object.at("command").get<std::string>();
    const auto source = object.at("source").get<std::string>();
    if (source != to_text(Source::measured) && source != to_text(Source::emulated))
      wrong(fmt::format("its source is '{}'", source));
    record.source = source == to_text(Source::emulated) ? Source::emulated : Source::measured;
    // Version 1 knew no other.
    const std::string device = object.value("device", std::string(to_text(DataDevice::cpu)));
    const auto known = data_device(device);
    if (!known) wrong(fmt::format("there is no device '{}'", device));
    record.device = *known;
    record.fitted_to = object.at("fitted_to").get<std::vector<std::string>>();
    record.checked_on = object.at("checked_on").get<std::vector<std::string>>();
    record.calibration = calibration(object);
    return record;
  }
};

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

}  // namespace

std::string calibration_text(const CalibrationRecord& record) {
  const Calibration& calibration = record.calibration;
  ordered_json links = ordered_json::array();
  for (const LinkFit& fit : calibration.links) links.push_back(to_json(fit));
  const ordered_json object{
      {"format", kFormat},
      {"version", kVersion},
      {"created", record.created},
      {"command", record.command},
      {"source", to_text(record.source)},
      {"device", to_text(record.device)},
      {"fitted_to", record.fitted_to},
      {"checked_on", record.checked_on},
      {"links", links},
      {"fitted", to_json(calibration.fitted)},
      {"checked", calibration.checked ? to_json(*calibration.checked) : ordered_json(nullptr)},
      {"range",
       {{"most_ranks", calibration.range.most_ranks},
        {"most_hosts", calibration.range.most_hosts},
        {"least_bytes", calibration.range.least.value},
        {"largest_bytes", calibration.range.largest.value}}}};
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

CalibrationRecord parse_calibration(const std::string& text, const std::string& file) {
  const Reader reader{file};
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object() || object.value("format", json()) != kFormat)
    reader.wrong("it says nothing of the kind");
  try {
    if (object.at("version").get<double>() > kVersion) {
      usage_error("'{}' is of version {}, but this polyring reads up to {}; use the polyring that wrote it",
                  file, object.at("version").dump(), kVersion);
    }
    return reader.record(object);
  } catch (const json::exception& error) {
    reader.wrong(error.what());
  }
}

CalibrationRecord read_calibration(const std::filesystem::path& path) {
  return parse_calibration(read_file(path), path.string());
}

CalibrationRecord read_calibration(const std::filesystem::path& path, const Cluster& modelled) {
  CalibrationRecord record = read_calibration(path);
  const bool gpus = std::ranges::any_of(modelled.groups, [](const HostGroup& group) {
    return !group.machine.gpus.empty() && !has_processes(group.machine);
  });
  if (!gpus) check_device(record, DataDevice::cpu, path.string());
  return record;
}

void check_device(const CalibrationRecord& record, DataDevice device, const std::string& file) {
  if (record.device == device) return;
  const bool gpus = device == DataDevice::cuda;
  usage_error("'{}' holds for data {}, and these are {}; calibrate on results of --device {}", file,
              gpus ? "in host memory" : "on GPUs", gpus ? "on GPUs" : "in host memory", to_text(device));
}

std::string note_of(const CalibrationRecord& record) {
  const Calibration& calibration = record.calibration;
  const char* const rank = record.device == DataDevice::cuda ? "GPU" : "rank";
  std::string note = fmt::format("Calibrated on {} {} times of up to {}", calibration.fitted.points,
                                 to_text(record.source), counted(calibration.range.most_ranks, rank));
  if (!calibration.checked) {
    return note + fmt::format(
                      ", which it repeats with a mean error of {}, at worst {}; not checked on any "
                      "others.",
                      percent(calibration.fitted.mean), percent(calibration.fitted.worst));
  }
  return note + fmt::format("; at {} others it is off by {} on average, at worst by {}.",
                            calibration.checked->points, percent(calibration.checked->mean),
                            percent(calibration.checked->worst));
}

}  // namespace polyring
