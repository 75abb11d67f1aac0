#include "reports/import/log_json.hpp"

#include <cmath>

namespace polyring {

using nlohmann::json;

bool is_json_with(const LogText& log, std::string_view something) {
  const std::size_t first = log.text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (log.text[first] == '{' || log.text[first] == '[') &&
         log.text.find(something) != std::string::npos;
}

json parse_log_json(const LogText& log, int line, std::string_view text) {
  constexpr int kDeepest = 100;  // these files are not a tenth as deep
  const auto check_depth = [&](int depth, json::parse_event_t, const json&) {
    if (depth > kDeepest)
      refuse(log, line, "values are nested more than {} deep; give a benchmark's JSON", kDeepest);
    return true;
  };
  json document = json::parse(text, check_depth, false);
  if (document.is_discarded())
    refuse(log, line,
           "this is not whole JSON: the run was aborted, or the file cut; run it again, or copy it again");
  return document;
}

const json& member(const json& object, const char* key) {
  static const json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

const json& elements(const json& list) {
  static const json kNone = json::array();
  return list.is_array() ? list : kNone;
}

std::optional<double> json_number(const json& value) {
  if (value.is_string()) return number_in(value.get_ref<const std::string&>());
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> json_whole(const json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  const auto number = json_number(value);
  if (!number || *number >= 0x1p53 || *number != std::floor(*number)) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::string json_text(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

bool json_says(const json& value, bool what) {
  return value == json(what) || value == (what ? "true" : "false");
}

}  // namespace polyring
