#include "reports/journal.hpp"

#include <fmt/format.h>

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

void Journal::remove() const {
  std::error_code ignored;
  fs::remove(path(), ignored);
}

void Journal::append(const std::string& lines) {
  file_.write(lines);
  file_.sync();
}

}  // namespace polyring
