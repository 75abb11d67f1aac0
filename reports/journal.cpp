#include "reports/journal.hpp"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <system_error>

#include "reports/result_text.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

fs::path numbered(const fs::path& output, int number) {
  return number == 0 ? fs::path(fmt::format("{}{}", output.string(), kJournalEnding))
                     : fs::path(fmt::format("{}.{}{}", output.string(), number, kJournalEnding));
}

}  // namespace

/// The first that is free, so that the ending stays the last part of the name.
fs::path journal_name(const fs::path& output) {
  int number = 0;
  std::error_code error;
  while (fs::exists(fs::symlink_status(numbered(output, number), error))) ++number;
  return numbered(output, number);
}

Journal::Journal(const fs::path& output, const ResultFile& header, std::uint64_t planned)
    : file_(create_open_file(journal_name(output))) {
  try {
    append(journal_head(header, planned));
  } catch (...) {
    remove();
    throw;
  }
}

void Journal::add(const Rows& rows, std::size_t first, std::uint64_t measured) {
  append(journal_rows(rows, first, measured));
}

void Journal::add(const RoundChange& change, std::uint64_t measured) {
  append(journal_round(change, measured));
}

void Journal::add_note(const std::string& note) { append(journal_note(note)); }

void Journal::add_end(const Rows& more, const std::string& ended) { append(journal_end(more, ended)); }

bool add_to_journal(const fs::path& path, const std::string& created, const CheckRow& row) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  // Of all its rows, which may be many, there is no need.
  std::string head;
  std::getline(std::ifstream(path), head);
  if (!is_journal(head) || parse_journal_as_it_is(head + "\n", path.string()).created != created)
    return false;
  const OpenFile file = reopen_file_of_lines(path);
  file.write(journal_end(std::vector<CheckRow>{row}, std::nullopt));
  file.sync();
  return true;
}

void Journal::remove() const {
  std::error_code ignored;
  fs::remove(path(), ignored);
}

void Journal::append(const std::string& lines) {
  file_.write(lines);
  file_.sync();
}

}  // namespace polyring
