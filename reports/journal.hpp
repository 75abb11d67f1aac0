// Journal: what a run has measured so far, in a file beside its result, so that no death of the run loses it.
//
// Each line is on the disk when the call returns; result_text.hpp has their form. read_result() reads a
// journal as a partial result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/files.hpp"
#include "reports/result.hpp"
#include "reports/round_change.hpp"

namespace polyring {

inline constexpr std::string_view kJournalEnding = ".part";

/// The name of a journal that is created now: `output`.part, or `output`.1.part, `output`.2.part, … where
/// there is something of that name.
std::filesystem::path journal_name(const std::filesystem::path& output);

class Journal {
 public:
  /// Creates it under its journal_name(). `header` is the result without rows, `planned` the number of
  /// measurements. Throws as create_open_file() and OpenFile::write() do, leaving no file, and so do the
  /// functions below.
  Journal(const std::filesystem::path& output, const ResultFile& header, std::uint64_t planned);

  const std::filesystem::path& path() const { return file_.path(); }

  /// `rows` stand in the result from place `first` on, and replace what was there; `measured` counts the
  /// measurements so far.
  void add(const Rows& rows, std::size_t first, std::uint64_t measured);
  void add(const RoundChange& change, std::uint64_t measured);
  void add_note(const std::string& note);
  /// See journal_end().
  void add_end(const Rows& more, const std::string& ended);

  /// Deletes the file: the result has it all.
  void remove() const;

 private:
  void append(const std::string& lines);

  OpenFile file_;
};

/// Adds a row to the journal of another process, which has died. Returns whether there is one that is of a
/// result which was created then. Throws as read_result() does, and as OpenFile::write().
bool add_to_journal(const std::filesystem::path& path, const std::string& created, const CheckRow& row);

}  // namespace polyring
