#include "bench/plans/tuned_file.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "polyring-tuned";
/// Raised whenever a reader of the old version would misread the new one.
constexpr int kVersion = 1;

/// One choice of a file, whose values are read by their names.
struct Entry {
  const json& object;
  const std::string& file;
  std::size_t index;

  [[noreturn]] void wrong(std::string_view name, const std::string& what) const {
    usage_error("'{}' is damaged: 'choices[{}].{}' {}; remove the file and run polyring tune again", file,
                index, name, what);
  }

  const json& value(const char* name) const {
    if (!object.is_object() || !object.contains(name)) wrong(name, "is missing");
    return object[name];
  }

  std::string text(const char* name) const {
    if (!value(name).is_string()) wrong(name, "is not text");
    return value(name).get<std::string>();
  }

  std::uint64_t whole(const char* name, std::uint64_t least, std::uint64_t most) const {
    if (!value(name).is_number_unsigned()) wrong(name, "is not a whole number");
    const auto number = value(name).get<std::uint64_t>();
    if (number < least || number > most) wrong(name, fmt::format("is not from {} to {}", least, most));
    return number;
  }

  int count(const char* name, int least) const {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
    return static_cast<int>(whole(name, static_cast<std::uint64_t>(least), kMost));
  }

  /// That of the first files was the CPU's, without a word.
  DataDevice device() const {
    constexpr const char* kName = "device";
    if (!object.contains(kName)) return DataDevice::cpu;
    const auto known = data_device(text(kName));
    if (!known) wrong(kName, fmt::format("is '{}', which is none", text(kName)));
    return *known;
  }

  bool truth(const char* name) const {
    if (!value(name).is_boolean()) wrong(name, "is neither true nor false");
    return value(name).get<bool>();
  }

  double time(const char* name) const {
    const double number = value(name).is_number() ? value(name).get<double>() : -1;
    if (!(number > 0 && std::isfinite(number))) wrong(name, "is not a time");
    return number;
  }
};

ordered_json to_json(const TunedPlan& choice) {
  ordered_json object{{"machine", choice.place.machine},
                      {"cores", choice.place.cores},
                      {"network", choice.place.network},
                      {"ranks", choice.place.ranks},
                      {"nodes", choice.place.nodes},
                      {"ranks_per_node", choice.place.ranks_per_node},
                      {"transport", choice.place.transport},
                      {"device", to_text(choice.place.device)},
                      {"size_bytes", choice.payload.value},
                      {"dims", dims_text(choice.plan.dims)},
                      {"patterns", patterns_text(choice.plan)},
                      {"lanes", choice.plan.lanes},
                      {"chunk_bytes", choice.plan.chunk.value},
                      {"is_default", choice.is_default},
                      {"time_us", choice.time_us},
                      {"default_time_us", choice.default_time_us}};
  if (!choice.plan.orders.empty()) object["orders"] = orders_text(choice.plan.orders);
  return object;
}

TunedPlan read(const Entry& entry) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
  TunedPlan choice;
  choice.place = {entry.text("machine"),   entry.count("cores", 0), entry.text("network"),
                  entry.count("ranks", 1), entry.count("nodes", 1), entry.count("ranks_per_node", 0),
                  entry.text("transport"), entry.device()};
  choice.payload = {entry.whole("size_bytes", 1, kMostBytes)};
  choice.plan.lanes = entry.count("lanes", 1);
  choice.plan.chunk = {entry.whole("chunk_bytes", 0, kMostBytes)};
  choice.plan.patterns = split(entry.text("patterns"), '+');
  choice.is_default = entry.truth("is_default");
  choice.time_us = entry.time("time_us");
  choice.default_time_us = entry.time("default_time_us");
  try {
    choice.plan.dims = parse_dims(entry.text("dims"));
    if (entry.object.contains("orders")) choice.plan.orders = parse_orders(entry.text("orders"));
    check_plan(choice.plan, choice.place.ranks);
  } catch (const Error& error) {
    entry.wrong("dims", fmt::format("makes no plan: {}", error.what()));
  }
  if (choice.plan.chunk.value > 0 && choice.payload.value / choice.plan.chunk.value > kMostUsefulChunks)
    entry.wrong("chunk_bytes", fmt::format("makes more than {} chunks", kMostUsefulChunks));
  return choice;
}

void check_format(const json& document, const std::string& file) {
  if (!document.is_object() || !document.contains("format") || document["format"] != kFormat) {
    usage_error("'{}' is not a file of polyring tune; name another, or remove it", file);
  }
  const auto version = document.find("version");
  if (version == document.end() || !version->is_number_unsigned() || !document.contains("choices") ||
      !document["choices"].is_array()) {
    usage_error("'{}' is damaged: it has no version or no choices; remove it and run polyring tune again",
                file);
  }
  if (version->get<std::uint64_t>() > static_cast<std::uint64_t>(kVersion)) {
    usage_error("'{}' has version {} of the format and this polyring knows up to {}; use a newer polyring",
                file, version->get<std::uint64_t>(), kVersion);
  }
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

}  // namespace

std::optional<fs::path> default_tuned_file() {
  const std::string_view named = variable("POLYRING_TUNED");
  if (named == kNoTunedFile) return std::nullopt;
  if (!named.empty()) return named;
  const std::string_view settings = variable("XDG_CONFIG_HOME");
  if (!settings.empty()) return fs::path(settings) / "polyring" / "tuned.json";
  const std::string_view home = variable("HOME");
  if (home.empty()) return std::nullopt;
  return fs::path(home) / ".config" / "polyring" / "tuned.json";
}

std::string tuned_text(std::span<const TunedPlan> choices) {
  std::string text =
      fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"choices\": [", kFormat, kVersion);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += i == 0 ? "\n    " : ",\n    ";
    text += to_json(choices[i]).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }
  return text + "\n  ]\n}\n";
}

std::vector<TunedPlan> parse_tuned(const std::string& text, const std::string& file) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) {
    usage_error("'{}' is not whole JSON; remove it and run polyring tune again", file);
  }
  check_format(document, file);
  std::vector<TunedPlan> choices;
  for (const json& object : document["choices"]) choices.push_back(read({object, file, choices.size()}));
  return choices;
}

void add_to_tuned_file(const fs::path& path, std::span<const TunedPlan> choices) {
  update_file(path, [&](const std::optional<std::string>& old) {
    std::vector<TunedPlan> older;
    if (old) older = parse_tuned(*old, path.string());
    return tuned_text(merged(std::move(older), choices));
  });
}

}  // namespace polyring
