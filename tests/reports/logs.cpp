#include "tests/reports/logs.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "base/files.hpp"
#include "tests/folder.hpp"

namespace polyring {
namespace {

std::filesystem::path small_logs() { return tests_folder() / "fuzz/seeds/log"; }

std::filesystem::path shared_logs() {
  const char* const folder = std::getenv("POLYRING_LOGS");
  return folder != nullptr && std::filesystem::is_directory(folder) ? folder : "";
}

/// The ranks of the logs that do not say them.
std::optional<int> ranks_of(const std::string& name) {
  for (const auto& [begin, ranks] :
       {std::pair("osu_nccl", 4), std::pair("o11", 64), std::pair("o12", 16), std::pair("o15", 2)})
    if (name.starts_with(begin)) return ranks;
  return std::nullopt;
}

}  // namespace

std::optional<std::filesystem::path> shared_log(const std::string& begin) {
  if (shared_logs().empty()) return std::nullopt;
  for (const auto& entry : std::filesystem::directory_iterator(shared_logs()))
    if (entry.path().filename().string().starts_with(begin)) return entry.path();
  ADD_FAILURE() << shared_logs() << " has no " << begin;
  return std::nullopt;
}

std::string small_log(const std::string& name) { return read_file(small_logs() / name); }

std::vector<ResultFile> read_small_log(const std::string& name) {
  return parse_log(small_log(name), name, {.ranks = ranks_of(name)});
}

std::vector<TestLog> all_logs() {
  std::vector<TestLog> logs;
  for (const auto& folder : {small_logs(), shared_logs()}) {
    if (folder.empty()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".md")) continue;
      logs.push_back({name, read_file(entry.path()), {.ranks = ranks_of(name)}});
    }
  }
  std::ranges::sort(logs, {}, &TestLog::name);
  return logs;
}

CollectiveRow row_of(const ResultFile& file, std::uint64_t bytes, bool in_place) {
  for (const CollectiveRow& row : rows_of(file))
    if (row.size_bytes == bytes && row.in_place == in_place) return row;
  ADD_FAILURE() << "no row of " << bytes << " bytes";
  return {};
}

bool notes_say(const ResultFile& file, const std::string& what) {
  return std::ranges::any_of(file.notes,
                             [&](const std::string& note) { return note.find(what) != std::string::npos; });
}

std::string refusal(const std::string& text, const ImportOptions& options) {
  try {
    parse_log(text, "x.log", options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace polyring
