// The text of result files and journals.
#pragma once

#include <optional>
#include <string>

#include "reports/result.hpp"
#include "reports/round_change.hpp"

namespace polyring {

/// As read_result(), of text. `file` names it in errors.
ResultFile parse_result(const std::string& text, const std::string& file);

/// The JSON schema of result files: reports/result.schema.json.
std::string result_schema();

/// What write_result() writes.
std::string result_text(const ResultFile& file);

// A journal's lines are JSON, each with its line end:
//
//   {"format": "polyring-journal", "version": 1, "kind": "allreduce", "planned": 34, "created": …, "machine":
//   …}
//   {"measured": 1, "at": 0, "row": {…}}
//   {"measured": 1, "rounds": {…}, "rows": [{"at": 0, "row": {…}}], "points": [{"at": 1, "median": 5.9, …}]}
//   {"note": "…"}
//   {"more": [{…}], "ended": "it was interrupted"}
//
// A later row `at` the same place replaces the earlier one. `planned` and `measured` count measurements.

std::string journal_head(const ResultFile& header, std::uint64_t planned);
std::string journal_note(const std::string& note);
/// The rows stand in the result from place `first` on.
std::string journal_rows(const Rows& rows, std::size_t first, std::uint64_t measured);
std::string journal_round(const RoundChange& change, std::uint64_t measured);
/// Rows behind all others, that are of no measurement. `ended`: see ResultFile.
std::string journal_end(const Rows& more, const std::optional<std::string>& ended);

bool is_journal(const std::string& text);
/// The partial result that a journal holds; what its last line lacks is not missed. Throws as read_result()
/// does.
ResultFile parse_journal(const std::string& text, const std::string& file);
/// The same without the rows of what was not measured, see complete().
ResultFile parse_journal_as_it_is(const std::string& text, const std::string& file);

}  // namespace polyring
