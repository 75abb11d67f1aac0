// What the program says on standard output and standard error.
//
// Texts from elsewhere may be among it, so all of it is made printable. What cannot be written is not said
// again and again, and keeps no command from writing its result file: finish_output() says it in the end.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace polyring {

/// To standard output, or to standard error after keep_output_for_results().
void print_out(std::string_view text);
/// The name of standard output in the place of a file's.
inline constexpr std::string_view kStandardOutput = "-";

/// From now on standard output has results alone, for programs that read them.
void keep_output_for_results();
/// A result as it is: to standard output.
void print_result(std::string_view text);
/// To standard error.
void print_err(std::string_view text);
/// To standard error: "polyring: ", the sentence in one line, and a newline.
void warn(std::string_view sentence);

template <typename First, typename... More>
void print_out(fmt::format_string<First, More...> text, First&& first, More&&... more) {
  print_out(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...));
}

template <typename First, typename... More>
void print_err(fmt::format_string<First, More...> text, First&& first, More&&... more) {
  print_err(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...));
}

template <typename First, typename... More>
void warn(fmt::format_string<First, More...> sentence, First&& first, More&&... more) {
  warn(fmt::format(sentence, std::forward<First>(first), std::forward<More>(more)...));
}

/// Whether nobody will read what is printed from now on: a reason to stop what does nothing else.
bool output_failed();

/// To be called when all is said. Returns `code`, or ExitCode::output where that was ok and not all of the
/// standard output could be written. Says why, once; but nothing when the reader of a pipe has gone, as
/// `head` does on purpose.
ExitCode finish_output(ExitCode code);

}  // namespace polyring
