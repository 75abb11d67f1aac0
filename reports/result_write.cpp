// Writes result files.
#include <cassert>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "reports/result_fields.hpp"
#include "reports/result_format.hpp"
#include "reports/result_text.hpp"

namespace polyring {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(double number) {
  assert(std::isfinite(number) && number >= 0);
  return number;
}

ordered_json to_json(std::integral auto number) { return number; }
ordered_json to_json(const std::string& text) { return text; }
ordered_json to_json(const std::map<std::string, std::string>& map) { return map; }
ordered_json to_json(Source source) { return to_text(source); }
ordered_json to_json(TimingMethod method) { return to_text(method); }
ordered_json to_json(Verdict verdict) { return to_text(verdict); }
ordered_json to_json(TimelineLane lane) { return to_text(lane); }

template <typename T>
requires std::is_class_v<T> ordered_json to_json(const T& value);

template <typename T>
ordered_json to_json(const std::vector<T>& values) {
  ordered_json list = ordered_json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

template <typename T>
ordered_json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : ordered_json(nullptr);
}

struct Writer {
  ordered_json& object;
  void operator()(const char* key, const auto& member, const About& = {}) const {
    object[key] = to_json(member);
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& member, const About& about = {}) const {
    if (member || !about.may_be_absent) object[key] = to_json(member);
  }
};

template <typename T>
requires std::is_class_v<T> ordered_json to_json(const T& value) {
  ordered_json object = ordered_json::object();
  Writer writer{object};
  fields(writer, value);
  return object;
}

/// Command lines and host names may hold bytes that are not UTF-8; those are replaced, not refused.
std::string dump(const ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

/// One row a line: people read these files, and diff them.
std::string one_row_a_line(ordered_json document) {
  const ordered_json rows = std::move(document["rows"]);
  document.erase("rows");
  std::string text = dump(document, 2);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n  \"rows\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "\n    " : ",\n    ") + dump(rows[i], -1);
  return text + "\n  ]\n}\n";
}

std::map<std::string, std::string> only_recorded(std::map<std::string, std::string> environment) {
  std::erase_if(environment, [](const auto& variable) { return !is_recorded(variable.first); });
  return environment;
}

/// Adds all but the rows.
void add_header(ordered_json& document, const ResultFile& file) {
  Writer writer{document};
  fields(writer, file);
  document["environment"] = only_recorded(file.environment);
  document["machine"] = ordered_json::parse(file.machine);
}

std::string line(const ordered_json& value) { return dump(value, -1) + "\n"; }

}  // namespace

std::string result_text(const ResultFile& file) {
  ordered_json document = {{"format", kResultFormat}, {"version", kResultVersion}, {"kind", file.kind()}};
  add_header(document, file);
  document["rows"] = std::visit([](const auto& rows) { return to_json(rows); }, file.rows);
  return one_row_a_line(std::move(document));
}

std::filesystem::path write_result(const std::filesystem::path& path, const ResultFile& file) {
  return create_file(path, result_text(file));
}

std::string journal_head(const ResultFile& header, std::uint64_t planned) {
  ordered_json document = {
      {"format", kJournalFormat}, {"version", kResultVersion}, {"kind", header.kind()}, {"planned", planned}};
  add_header(document, header);
  return line(document);
}

std::string journal_note(const std::string& note) { return line({{"note", note}}); }

std::string journal_rows(const Rows& rows, std::size_t first, std::uint64_t measured) {
  std::string lines;
  const auto add = [&](const auto& all) {
    for (const auto& row : all)
      lines += line({{"measured", measured}, {"at", first++}, {"row", to_json(row)}});
  };
  std::visit(add, rows);
  return lines;
}

std::string journal_end(const Rows& more, const std::optional<std::string>& ended) {
  ordered_json document = {{"more", std::visit([](const auto& rows) { return to_json(rows); }, more)}};
  if (ended) document["ended"] = *ended;
  return line(document);
}

std::string journal_round(const RoundChange& change, std::uint64_t measured) {
  ordered_json document = {{"measured", measured}};
  document.update(to_json(change));
  return line(document);
}

}  // namespace polyring
