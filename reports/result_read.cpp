// Reads result files, and says in one sentence what is wrong with a bad one.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <type_traits>

#include "base/error.hpp"
#include "base/files.hpp"
#include "reports/result_fields.hpp"
#include "reports/result_format.hpp"
#include "reports/result_text.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

using nlohmann::json;

/// A value, and where it was found: "rows[3].time_us.median" of a file.
struct Value {
  const json& json_value;
  const std::string& file;
  std::string where;

  Value key(const std::string& name) const {
    std::string inner = where.empty() ? name : where + "." + name;
    if (!json_value.is_object()) wrong("is not an object");
    const auto found = json_value.find(name);
    if (found == json_value.end()) {
      usage_error("'{}' is damaged: '{}' is missing; run the command that made it again", file, inner);
    }
    return {*found, file, std::move(inner)};
  }

  bool has(const std::string& name) const { return json_value.contains(name); }

  Value element(std::size_t index) const {
    return {json_value[index], file, fmt::format("{}[{}]", where, index)};
  }

  [[noreturn]] void wrong(const std::string& what) const {
    usage_error("'{}' is damaged: '{}' {}; run the command that made it again", file, where, what);
  }
};

template <typename T>
concept Whole = std::integral<T> && !std::same_as<T, bool>;

void read(const Value& value, std::string& out) {
  if (!value.json_value.is_string()) value.wrong("is not text");
  out = value.json_value.get<std::string>();
}

void read(const Value& value, bool& out) {
  if (!value.json_value.is_boolean()) value.wrong("is neither true nor false");
  out = value.json_value.get<bool>();
}

void read(const Value& value, double& out) {
  if (!value.json_value.is_number()) value.wrong("is not a number");
  out = value.json_value.get<double>();
  if (!std::isfinite(out) || out < 0) value.wrong("is negative or too large");
}

template <Whole T>
void read(const Value& value, T& out, int least = 0) {
  if (!value.json_value.is_number_integer()) value.wrong("is not a whole number");
  // Integers from 0 up are kept as unsigned ones.
  const bool negative = !value.json_value.is_number_unsigned();
  const std::uint64_t number = negative ? 0 : value.json_value.get<std::uint64_t>();
  if (negative || number < static_cast<std::uint64_t>(least)) {
    value.wrong(fmt::format("is below {}", least));
  }
  if (number > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) value.wrong("is too large");
  out = static_cast<T>(number);
}

/// For the enumerations: the one of `all` whose text it is.
template <typename Enum, std::size_t n>
void read_enum(const Value& value, Enum& out, const std::array<Enum, n>& all) {
  std::string text;
  read(value, text);
  std::string known;
  for (const Enum candidate : all) {
    if (text == to_text(candidate)) {
      out = candidate;
      return;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", to_text(candidate));
  }
  value.wrong(fmt::format("is '{}' and none of {}", text, known));
}

void read(const Value& value, Source& out) { read_enum(value, out, kSources); }

void read(const Value& value, TimingMethod& out) { read_enum(value, out, kTimingMethods); }

void read(const Value& value, Verdict& out) { read_enum(value, out, kVerdicts); }

void read(const Value& value, TimelineLane& out) { read_enum(value, out, kTimelineLanes); }

template <typename T>
requires std::is_class_v<T>
void read(const Value& value, T& out);

template <typename T>
void read(const Value& value, std::vector<T>& out) {
  if (!value.json_value.is_array()) value.wrong("is not a list");
  out.assign(value.json_value.size(), T{});
  for (std::size_t i = 0; i < out.size(); ++i) read(value.element(i), out[i]);
}

void read(const Value& value, std::map<std::string, std::string>& out) {
  if (!value.json_value.is_object()) value.wrong("is not an object");
  for (const auto& item : value.json_value.items()) read(value.key(item.key()), out[item.key()]);
}

/// What a row must fulfil beyond its types.
void check(const Value& value, const Timing& timing) {
  const bool ordered = timing.min <= timing.ci_low && timing.ci_low <= timing.median &&
                       timing.median <= timing.ci_high && timing.ci_low <= timing.p99;
  if (!ordered) value.wrong("is not in order: min, ci_low, median, ci_high");
}

void check(const Value& value, const TimelineSpan& span) {
  if (span.end_ms < span.begin_ms) value.wrong("ends before it begins");
}

void check_interval(const Value& value, const char* low, const std::optional<double>& from, const char* high,
                    const std::optional<double>& to) {
  if (from.has_value() != to.has_value())
    value.wrong(fmt::format("has one of {} and {}, and not the other", low, high));
  if (from.value_or(0) > to.value_or(0)) value.wrong(fmt::format("is not in order: {}, {}", low, high));
}

void check(const Value& value, const ScaleRow& row) {
  check_interval(value, "iteration_low_ms", row.iteration_low_ms, "iteration_high_ms", row.iteration_high_ms);
  check_interval(value, "efficiency_low", row.efficiency_low, "efficiency_high", row.efficiency_high);
  if (row.published_run && !(row.held_out && row.published_efficiency && row.efficiency_low))
    value.wrong("has published_run, and not all of held_out, published_efficiency and efficiency_low");
}

void check(const Value& value, const HostConditions& host) {
  check_interval(value, "least_clock_MHz", host.least_clock_MHz, "most_clock_MHz", host.most_clock_MHz);
}

void check(const Value&, const auto&) {}

struct Reader {
  const Value& object;
  void operator()(const char* key, auto& member, const About& about = {}) const {
    read_as(about, object.key(key), member);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& member, const About& about = {}) const {
    member.reset();
    if (about.may_be_absent && !object.has(key)) return;
    const Value value = object.key(key);
    if (about.may_be_absent || !value.json_value.is_null()) read_as(about, value, member.emplace());
  }

 private:
  static void read_as(const About&, const Value& value, auto& out) { read(value, out); }
  static void read_as(const About& about, const Value& value, Whole auto& out) {
    read(value, out, about.positive ? 1 : 0);
  }
};

template <typename T>
requires std::is_class_v<T>
void read(const Value& value, T& out) {
  Reader reader{value};
  fields(reader, out);
  check(value, out);
}

void check_format(const Value& root, std::string_view format) {
  const json& document = root.json_value;
  if (!document.is_object() || !document.contains("format") || document["format"] != format) {
    usage_error("'{}' is not a polyring result; name a file that polyring wrote with -J", root.file);
  }
  int version = 0;
  read(root.key("version"), version, 1);
  if (version > kResultVersion) {
    usage_error(
        "'{}' has version {} of the result format and this polyring knows up to {}; use a newer polyring",
        root.file, version, kResultVersion);
  }
}

/// No rows yet, of the kind that the file says.
Rows rows_of_kind(const Value& root) {
  std::string kind;
  read(root.key("kind"), kind);
  if (std::ranges::find(kCollectives, kind) != kCollectives.end()) return std::vector<CollectiveRow>{};
  if (kind == "train") return std::vector<TrainRow>{};
  if (kind == "scale") return std::vector<ScaleRow>{};
  if (kind == "tune") return std::vector<TuneRow>{};
  if (kind == "accept") return std::vector<CheckRow>{};
  root.key("kind").wrong(
      fmt::format("is '{}' and none of {}, train, scale, tune, accept", kind, fmt::join(kCollectives, ", ")));
}

/// All but the rows themselves.
ResultFile read_header(const Value& root) {
  ResultFile file;
  Reader reader{root};
  fields(reader, file);
  file.machine = root.key("machine").json_value.dump();
  file.rows = rows_of_kind(root);
  if (std::holds_alternative<std::vector<CollectiveRow>>(file.rows)) read(root.key("kind"), file.collective);
  return file;
}

/// Our files are not a tenth as deep; what is deeper would exhaust the stack when it is printed.
constexpr int kDeepest = 100;

json parse(const std::string& text, const std::string& file) {
  const auto refuse_depth = [&](int depth, json::parse_event_t, const json&) {
    if (depth > kDeepest) {
      usage_error(
          "'{}' nests its values more than {} deep, as no result does; name a file that polyring wrote with "
          "-J",
          file, kDeepest);
    }
    return true;
  };
  json document = json::parse(text, refuse_depth, false);
  if (document.is_discarded()) {
    usage_error("'{}' is not whole JSON; name a file that polyring wrote with -J, or copy it again", file);
  }
  return document;
}

/// What journal_end() has written.
void add_more(const Value& value, ResultFile& file) {
  const auto add = [&](auto& rows) {
    std::decay_t<decltype(rows)> more;
    read(value.key("more"), more);
    rows.insert(rows.end(), more.begin(), more.end());
  };
  std::visit(add, file.rows);
  if (value.has("ended")) read(value.key("ended"), file.ended.emplace());
}

}  // namespace

ResultFile parse_result(const std::string& text, const std::string& name) {
  if (is_journal(text)) return parse_journal(text, name);
  const json document = parse(text, name);
  const Value root{document, name, ""};
  check_format(root, kResultFormat);
  ResultFile file = read_header(root);
  std::visit([&](auto& rows) { read(root.key("rows"), rows); }, file.rows);
  return file;
}

ResultFile read_result(const std::filesystem::path& path) {
  return parse_result(read_file(path), path.string());
}

bool is_journal(const std::string& text) {
  // Its first line begins with its format; a result's first line is a brace.
  return text.starts_with(fmt::format("{{\"format\":\"{}\"", kJournalFormat));
}

ResultFile parse_journal(const std::string& text, const std::string& name) {
  ResultFile file = parse_journal_as_it_is(text, name);
  complete(file);
  return file;
}

ResultFile parse_journal_as_it_is(const std::string& text, const std::string& name) {
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));  // a line without an end was cut
  std::string line;
  std::getline(lines, line);
  const json head = parse(line, name);
  const Value root{head, name, ""};
  check_format(root, kJournalFormat);
  ResultFile file = read_header(root);
  std::uint64_t planned = 0;
  std::uint64_t measured = 0;
  read(root.key("planned"), planned);
  for (int number = 2; std::getline(lines, line); ++number) {
    const json entry = parse(line, name);
    const Value value{entry, name, fmt::format("line {}", number)};
    if (value.has("note")) {
      read(value.key("note"), file.notes.emplace_back());
      continue;
    }
    if (value.has("more")) {
      add_more(value, file);
      continue;
    }
    read(value.key("measured"), measured);
    if (value.has("rounds")) {
      RoundChange change;
      read(value, change);
      if (!fits(file, change)) value.wrong("leaves a row out");
      apply(change, file);
      continue;
    }
    std::size_t at = 0;
    read(value.key("at"), at);
    const auto put = [&](auto& rows) {
      if (at > rows.size()) value.key("at").wrong("leaves a row out");
      if (at == rows.size()) rows.emplace_back();
      read(value.key("row"), rows[at] = {});
    };
    std::visit(put, file.rows);
  }
  file.partial = fmt::format("{} of {} measurements", measured, planned);
  return file;
}

}  // namespace polyring
