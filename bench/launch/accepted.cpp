#include "bench/launch/accepted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "base/files.hpp"
#include "bench/cli/output.hpp"
#include "reports/journal.hpp"
#include "reports/result_text.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

/// What -J says; empty: nothing.
std::string output_of(std::span<const std::string> program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::string_view word = program[i];
    const std::string_view name = word.substr(0, word.find('='));
    if (name == "-J" || name == "--output" || name == "--output_file") {
      if (name.size() < word.size()) return std::string(word.substr(name.size() + 1));
      return i + 1 < program.size() ? program[i + 1] : "";
    }
    if (word.starts_with("-J")) return std::string(word.substr(2));
  }
  return "";
}

}  // namespace

std::filesystem::path journal_to_come(std::span<const std::string> program) {
  if (program.size() < 2 || program[1] != "accept") return {};
  const std::string output = output_of(program);
  return output.empty() || output == kStandardOutput ? std::filesystem::path() : journal_name(output);
}

ExitCode tell_verdict(const std::filesystem::path& journal, const std::string& why, ExitCode code) {
  std::error_code none;
  if (journal.empty() || !std::filesystem::exists(journal, none)) return code;
  ResultFile result;
  try {
    result = parse_journal_as_it_is(read_file(journal), journal.string());
  } catch (const Error&) {  // it was killed as it began
    return code;
  }
  const auto* const rows = std::get_if<std::vector<CheckRow>>(&result.rows);
  if (rows == nullptr) return code;
  const std::size_t told = rows->size();
  complete(result, why);
  if (rows->size() == told) return code;
  std::string text;
  for (const std::string& line : findings(*rows)) text += line + "\n";
  print_out("\n{}\n{}\n", text, summary(*rows));
  return exit_code(*rows, code);
}

}  // namespace polyring
