#include "bench/launch/accepted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <system_error>

#include "base/files.hpp"
#include "bench/cli/output.hpp"
#include "reports/journal.hpp"
#include "reports/result_text.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

/// The value of an option that has these names; empty: it is not there.
std::string value_of(std::span<const std::string> program, std::initializer_list<std::string_view> names) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::string_view word = program[i];
    for (const std::string_view name : names) {
      if (word == name) return i + 1 < program.size() ? program[i + 1] : "";
      const bool letter = name.size() == 2;
      if (!word.starts_with(name) || (!letter && word[name.size()] != '=')) continue;
      return std::string(word.substr(letter ? 2 : name.size() + 1));
    }
  }
  return "";
}

/// As the job would have written them.
void write_for_programs(std::span<const std::string> program, const ResultFile& result) {
  const auto& rows = std::get<std::vector<CheckRow>>(result.rows);
  const auto write = [](const std::string& path, const std::string& text) {
    if (!path.empty()) update_file(path, [&](const auto&) { return text; });
  };
  write(value_of(program, {"--junit"}), junit_xml(rows));
  write(value_of(program, {"--prometheus"}), prometheus_text(rows, result.created));
  if (std::ranges::find(program, "--drain") != program.end()) print_out("\n{}", slurm_drain_list(rows));
}

}  // namespace

std::filesystem::path journal_to_come(std::span<const std::string> program) {
  if (program.size() < 2 || program[1] != "accept") return {};
  const std::string output = value_of(program, {"-J", "--output", "--output_file"});
  return output.empty() || output == kStandardOutput ? std::filesystem::path() : journal_name(output);
}

ExitCode tell_verdict(const std::filesystem::path& journal, std::span<const std::string> program,
                      const std::string& why, ExitCode code) {
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
  // Open MPI's mpirun --enable-recovery ends with 0 whatever became of its ranks.
  if (result.ended) return code == ExitCode::ok ? exit_code(*rows) : code;
  complete(result, why);
  std::string text;
  for (const std::string& line : findings(*rows)) text += line + "\n";
  print_out("\n{}\n{}\n", text, summary(*rows));
  write_for_programs(program, result);
  return exit_code(*rows, code);
}

}  // namespace polyring
