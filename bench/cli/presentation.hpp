// How results are shown on standard output: --format, --wide and -q, which are the same for all commands.
#pragma once

#include <cstddef>
#include <string>

#include "bench/cli/command_line.hpp"
#include "reports/tables.hpp"

namespace polyring {

enum class Format { text, csv, json, markdown };

/// --format alone, and with --wide and -q. What they are given holds for all that is printed from then on.
void add_format_option(Subcommand command);
void add_presentation_options(Subcommand command);
/// -J, --output_file and these options; `what` is written.
void add_output_option(Subcommand command, std::string& output, const std::string& what = "the result");

/// To be called before anything is printed. Where programs read standard output (a result by -J -, CSV or
/// JSON), all else goes to standard error from now on. Throws a usage Error where two results would go there.
void begin_output(bool result_is_output);

Format format();
bool is_quiet();
/// How many characters a line of a table may have: $COLUMNS, or as the terminal is wide, or 100 without one;
/// any number with --wide.
std::size_t line_length();

/// How wide the columns are to be. The caption then says what had to be left out; with -q there is none.
Table::Widths fit(Table& table);
/// For people: as text, or as Markdown where that was asked for.
std::string shown(Table table);

/// What is beside the rows, as titles and notes: nothing with -q.
void print_remark(std::string_view text);
/// A table that is a result, in the format that was asked for; as JSON it is a list of its rows.
void print_table(const Table& table);

}  // namespace polyring
