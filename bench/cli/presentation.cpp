#include "bench/cli/presentation.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/error.hpp"
#include "bench/cli/output.hpp"

namespace polyring {
namespace {

constexpr std::size_t kWithoutTerminal = 100;

const std::map<std::string, Format> kFormats{
    {"text", Format::text}, {"csv", Format::csv}, {"json", Format::json}, {"markdown", Format::markdown}};

// A process runs one command.
std::string format_name = "text";
bool wide = false;
bool quiet = false;

/// With line breaks in place of blanks, so that no line is longer than that where words are not.
std::string wrapped(std::string text, std::size_t length) {
  std::size_t line = 0;
  std::size_t blank = std::string::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') blank = i;
    if (i - line < length || blank == std::string::npos) continue;
    text[blank] = '\n';
    line = blank + 1;
    blank = std::string::npos;
  }
  return text;
}

}  // namespace

void add_format_option(Subcommand command) {
  command
      .add_option("--format", format_name,
                  "text: a table for people; csv: rows at full precision, for programs; json: as -J -; "
                  "markdown: a table for reports and issues; notes go to standard error with csv and json")
      .show_default()
      .type_name("FORMAT")
      .names({"format", {"text", "csv", "json", "markdown"}});
}

void add_presentation_options(Subcommand command) {
  add_format_option(command);
  command.add_flag("--wide", wide,
                   "All columns, however long the lines get; without, as many as the terminal or $COLUMNS "
                   "has room for, or 100 characters");
  command.add_flag("-q,--quiet", quiet, "The rows alone, without title and notes");
}

void add_output_option(Subcommand command, std::string& output, const std::string& what) {
  command
      .add_option(
          "-J,--output_file,--output", output,
          "Write " + what + " here, as JSON; - is standard output, and all else goes to standard error")
      .type_name("FILE");
  add_presentation_options(command);
}

void begin_output(bool result_is_output) {
  if (result_is_output && (format() == Format::csv || format() == Format::markdown)) {
    usage_error("-J - and --format {} both write to standard output; give -J a file, or leave one out",
                format_name);
  }
  if (result_is_output || format() == Format::csv || format() == Format::json) keep_output_for_results();
}

Format format() { return kFormats.at(format_name); }

bool is_quiet() { return quiet; }

std::size_t line_length() {
  if (wide) return Table::kAnyLength;
  const char* columns = std::getenv("COLUMNS");
  std::size_t length = 0;
  if (columns != nullptr) std::from_chars(columns, columns + std::strlen(columns), length);
  if (length > 0) return length;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return kWithoutTerminal;
}

Table::Widths fit(Table& table) {
  Table::Widths widths = table.widths(format() == Format::markdown ? Table::kAnyLength : line_length());
  const std::string spared = table.spared(widths);
  if (!spared.empty()) table.caption += (table.caption.empty() ? "" : "; ") + ("--wide adds " + spared);
  if (quiet) table.caption.clear();
  if (format() != Format::markdown) table.caption = wrapped(table.caption, line_length());
  return widths;
}

std::string shown(Table table) {
  const Table::Widths widths = fit(table);
  const TableStyle style = format() == Format::markdown ? TableStyle::markdown : TableStyle::text;
  return table.head(widths, style) + table.body(widths, 0, style);
}

void print_remark(std::string_view text) {
  if (!quiet) print_out(text);
}

void print_table(const Table& table) {
  if (format() == Format::csv) return print_result(table.csv());
  if (format() == Format::json) return print_result(table.json());
  print_out(shown(table));
}

}  // namespace polyring
