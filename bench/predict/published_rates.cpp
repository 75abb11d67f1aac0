#include "bench/predict/published_rates.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/predict/published_rates_json.hpp"

namespace polyring {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const Json& row, std::string_view fault) {
  throw Error(ExitCode::internal, fmt::format("published rates: {}: {}", row.dump(), fault));
}

PublishedSource source_of(const Json& row, const Json& sources) {
  const auto source = sources.find(row.value("source", ""));
  if (source == sources.end() || source->value("where", "").empty()) refuse(row, "has no source");
  return {source->at("where"), source->value("date", "")};
}

PublishedState state_of(const Json& row) {
  const std::string state = row.value("state", "healthy");
  if (state == "healthy") return PublishedState::healthy;
  if (state == "stated") return PublishedState::stated;
  if (state != "faulty") refuse(row, "its state is healthy, stated or faulty");
  return PublishedState::faulty;
}

PublishedRate rate_of(const Json& row, const Json& sources) {
  PublishedRate rate;
  rate.machine = row.value("machine", "");
  rate.link = row.at("link");
  rate.implementation = row.at("implementation");
  rate.state = state_of(row);
  rate.hosts = row.at("hosts");
  rate.ranks = row.at("ranks");
  rate.rate = gigabytes_per_second(row.at("rate_GBps").get<double>());
  for (const auto& [size, busbw] : row.at("busbw_GBps").items())
    rate.busbw[parse_bytes(size, "size")] = gigabytes_per_second(busbw.get<double>());
  rate.saturated = row.value("saturated", false);
  rate.software = row.at("software");
  rate.note = row.value("note", "");
  rate.source = source_of(row, sources);
  if (rate.machine.empty() || !rate.rate.known() || rate.busbw.empty())
    refuse(row, "has no machine, rate or figure");
  return rate;
}

PublishedFloor floor_of(const Json& row, const Json& sources) {
  return {row.at("who"),
          row.at("gpu"),
          row.at("gpus"),
          row.at("hosts"),
          parse_bytes(row.at("size").get<std::string>(), "size"),
          gigabytes_per_second(row.at("busbw_GBps").get<double>()),
          row.value("note", ""),
          source_of(row, sources)};
}

}  // namespace

PublishedRates parse_published_rates(std::string_view json) {
  PublishedRates result;
  try {
    const Json file = Json::parse(json);
    const Json& sources = file.at("sources");
    for (const Json& row : file.at("rates")) result.rates.push_back(rate_of(row, sources));
    for (const Json& row : file.at("floors")) result.floors.push_back(floor_of(row, sources));
  } catch (const Json::exception& error) {
    throw Error(ExitCode::internal, fmt::format("published rates: {}", error.what()));
  }
  return result;
}

const PublishedRates& published_rates() {
  static const PublishedRates rates = parse_published_rates(kPublishedRatesJson);
  return rates;
}

}  // namespace polyring
