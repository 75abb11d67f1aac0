// The JSON schema of result files: what result_fields.hpp says of each key, for other programs.
#include <array>
#include <concepts>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "reports/result_fields.hpp"
#include "reports/result_format.hpp"
#include "reports/result_text.hpp"

namespace polyring {
namespace {

using nlohmann::ordered_json;

/// A type of ours: its name among the definitions, and what it is where that does not say it.
struct Definition {
  const char* name = nullptr;
  const char* what = "";
};

template <typename T>
constexpr Definition kDefinition{};
template <>
constexpr Definition kDefinition<Timing>{
    "timing",
    "ci_low and ci_high: 95 % confidence interval of the median by order statistics; [min, max] for fewer "
    "than 6 samples"};
template <>
constexpr Definition kDefinition<TimelineSpan>{"timeline_span"};
template <>
constexpr Definition kDefinition<BucketPlan>{"bucket_plan"};
template <>
constexpr Definition kDefinition<GpuShare>{"gpu_share"};
template <>
constexpr Definition kDefinition<RankHost>{"rank_host"};
template <>
constexpr Definition kDefinition<LeafHosts>{"leaf_hosts",
                                            "A leaf switch, and those of the run's hosts that hang on it"};
template <>
constexpr Definition kDefinition<HostConditions>{
    "host_conditions", "What else a machine did while its ranks measured; means over that time"};
template <>
constexpr Definition kDefinition<Rounds>{"rounds", "How far the rounds of polyring accept have come"};
template <>
constexpr Definition kDefinition<Input>{"input", "An input of a model, and where it was read"};
template <>
constexpr Definition kDefinition<CollectiveRow>{"collective_row"};
template <>
constexpr Definition kDefinition<TrainRow>{"train_row"};
template <>
constexpr Definition kDefinition<ScaleRow>{"scale_row"};
template <>
constexpr Definition kDefinition<TuneRow>{"tune_row"};

template <>
constexpr Definition kDefinition<CheckRow>{"check_row", "One thing that polyring accept has judged"};

ordered_json reference(const std::string& name) { return {{"$ref", "#/definitions/" + name}}; }

ordered_json names_of(const auto& all) {
  ordered_json names = ordered_json::array();
  for (const auto& each : all) names.push_back(to_text(each));
  return names;
}

template <typename T>
constexpr bool kIsVector = false;
template <typename T>
constexpr bool kIsVector<std::vector<T>> = true;

/// Collects the definitions, each behind those that it refers to.
class Schema {
 public:
  ordered_json definitions = {
      {"whole", {{"type", "integer"}, {"minimum", 0}}},
      {"positive", {{"type", "integer"}, {"minimum", 1}}},
      {"number", {{"type", "number"}, {"minimum", 0}}},
      {"texts", {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}}},
      {"source",
       {{"enum", names_of(kSources)},
        {"description",
         "emulated: real code over shaped links on one box; imported: another benchmark's log"}}}};

  /// Of an object: {"required", "properties"}.
  template <typename T>
  ordered_json object();

  template <typename T>
  ordered_json of(const About& about) {
    if constexpr (std::same_as<T, std::string>) {
      return {{"type", "string"}};
    } else if constexpr (std::same_as<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::same_as<T, Source>) {
      return reference("source");
    } else if constexpr (std::same_as<T, TimingMethod>) {
      return {{"enum", names_of(kTimingMethods)}};
    } else if constexpr (std::same_as<T, Verdict>) {
      return {{"enum", names_of(kVerdicts)}};
    } else if constexpr (std::same_as<T, TimelineLane>) {
      return {{"enum", names_of(kTimelineLanes)}};
    } else if constexpr (std::same_as<T, std::map<std::string, std::string>>) {
      return reference("texts");
    } else if constexpr (std::floating_point<T>) {
      return reference("number");
    } else if constexpr (std::integral<T>) {
      return reference(about.positive ? "positive" : "whole");
    } else if constexpr (kIsVector<T>) {
      return {{"type", "array"}, {"items", of<typename T::value_type>({})}};
    } else {
      return defined<T>();
    }
  }

  template <typename T>
  ordered_json defined() {
    constexpr Definition definition = kDefinition<T>;
    static_assert(definition.name != nullptr, "a class of ours needs a Definition");
    if (!definitions.contains(definition.name)) {
      ordered_json whole = {{"type", "object"}};
      if (*definition.what != '\0') whole["description"] = definition.what;
      const ordered_json parts = object<T>();
      whole["required"] = parts["required"];
      whole["additionalProperties"] = false;
      if constexpr (std::same_as<T, ScaleRow>) {
        whole["dependencies"] =
            together({{"iteration_low_ms", "iteration_high_ms"}, {"efficiency_low", "efficiency_high"}});
        whole["dependencies"]["published_run"] = {
            {"required", {"held_out", "efficiency_low"}},
            {"properties", {{"published_efficiency", reference("number")}}}};  // not null
      }
      if constexpr (std::same_as<T, HostConditions>)
        whole["dependencies"] = together({{"least_clock_MHz", "most_clock_MHz"}});
      whole["properties"] = parts["properties"];
      definitions[definition.name] = std::move(whole);
    }
    return reference(definition.name);
  }

 private:
  /// One end of an interval is nothing without the other.
  static ordered_json together(std::initializer_list<std::pair<const char*, const char*>> intervals) {
    ordered_json dependencies;
    for (const auto& [low, high] : intervals) {
      dependencies[low] = ordered_json::array({high});
      dependencies[high] = ordered_json::array({low});
    }
    return dependencies;
  }
};

struct SchemaVisitor {
  Schema& schema;
  ordered_json required = ordered_json::array();
  ordered_json properties = ordered_json::object();

  template <typename T>
  void operator()(const char* key, const T&, const About& about = {}) {
    add(key, schema.of<T>(about), about);
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>&, const About& about = {}) {
    const ordered_json type = schema.of<T>(about);
    add(key, about.may_be_absent ? type : or_null(type), about);
  }

 private:
  static ordered_json or_null(const ordered_json& type) {
    ordered_json nullable;
    nullable["anyOf"] = ordered_json::array({type, {{"type", "null"}}});
    return nullable;
  }

  void add(const char* key, ordered_json type, const About& about) {
    if (*about.what != '\0') type["description"] = about.what;
    properties[key] = std::move(type);
    if (!about.may_be_absent) required.push_back(key);
  }
};

template <typename T>
ordered_json Schema::object() {
  SchemaVisitor visitor{*this};
  const T value;
  fields(visitor, value);
  return {{"required", visitor.required}, {"properties", visitor.properties}};
}

/// Below the outermost, what fits stands on one line, behind `before` characters.
std::string pretty(const ordered_json& value, std::size_t indent, std::size_t before = 0) {
  constexpr std::size_t kWidth = 120;
  const bool is_object = value.is_object();
  if (!is_object && !value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, part] : value.items()) {
    const std::string name = is_object ? ordered_json(key).dump() + ": " : "";
    parts.push_back(name + pretty(part, indent + 2, name.size()));
  }
  std::string line(1, is_object ? '{' : '[');
  std::string lines = line;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    line += (i == 0 ? "" : ", ") + parts[i];
    lines += (i == 0 ? "\n" : ",\n") + std::string(indent + 2, ' ') + parts[i];
  }
  const char end = is_object ? '}' : ']';
  const bool fits = line.find('\n') == std::string::npos && indent + before + line.size() < kWidth;
  if (indent > 0 && fits) return line + end;
  return lines + "\n" + std::string(indent, ' ') + end;
}

/// That rows of such a kind are of type T.
template <typename T>
ordered_json rows_of(Schema& schema, const ordered_json& kind) {
  return {{"properties", {{"kind", kind}, {"rows", {{"items", schema.defined<T>()}}}}}};
}

}  // namespace

std::string result_schema() {
  Schema schema;
  const ordered_json parts = schema.object<ResultFile>();
  ordered_json kinds = kCollectives;
  const ordered_json one_of = {
      rows_of<CollectiveRow>(schema, {{"enum", kinds}}), rows_of<TrainRow>(schema, {{"const", "train"}}),
      rows_of<ScaleRow>(schema, {{"const", "scale"}}), rows_of<TuneRow>(schema, {{"const", "tune"}}),
      rows_of<CheckRow>(schema, {{"const", "accept"}})};
  for (const char* kind : {"train", "scale", "tune", "accept"}) kinds.push_back(kind);
  ordered_json properties = {{"format", {{"const", kResultFormat}}},
                             {"version", {{"const", kResultVersion}}},
                             {"kind", {{"enum", kinds}}}};
  properties.update(parts["properties"]);
  properties["machine"] = {{"description", "What `polyring probe --format json` prints, or null"}};
  properties["rows"] = {{"type", "array"}};
  ordered_json required = {"format", "version", "kind", "machine", "rows"};
  for (const auto& key : parts["required"]) required.push_back(key);
  const ordered_json document = {
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"$id", "polyring-result-1"},
      {"title", "Polyring result, version 1"},
      {"description",
       "What `allreduce`, `reduce-scatter`, `allgather`, `alltoall`, `train`, `scale` and `accept` write "
       "with -J, and what `report` makes of a journal, `tune`'s too. "
       "Times and rates have their unit in the key; checks have a key for it."},
      {"type", "object"},
      {"required", required},
      {"additionalProperties", false},
      {"properties", properties},
      {"oneOf", one_of},
      {"definitions", schema.definitions}};
  return pretty(document, 0) + "\n";
}

}  // namespace polyring
