// JSON that benchmarks write: values of any type, which are read where they are what is expected.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "reports/import/log_text.hpp"

namespace polyring {

/// Whether the text begins as JSON does, and has something in it.
bool is_json_with(const LogText& log, std::string_view something);
/// Refuses what is no whole JSON; `line` is where it begins.
nlohmann::json parse_log_json(const LogText& log, int line, std::string_view text);

/// The member of an object; null where there is none, or where `object` is no object.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
/// The elements of a list; none where `list` is none.
const nlohmann::json& elements(const nlohmann::json& list);
/// A number from 0 up, or text that is one.
std::optional<double> json_number(const nlohmann::json& value);
std::optional<std::uint64_t> json_whole(const nlohmann::json& value);
/// Text; empty where the value is none.
std::string json_text(const nlohmann::json& value);
/// Whether a value is this bool, or its text.
bool json_says(const nlohmann::json& value, bool what);

}  // namespace polyring
