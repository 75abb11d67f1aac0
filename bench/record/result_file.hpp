// Where a command's result goes: to a file, to standard output, or nowhere.
#pragma once

#include <string>
#include <string_view>

#include "bench/cli/output.hpp"
#include "reports/result.hpp"

namespace polyring {

/// To be called before long work: throws where the file cannot be written. Nothing for standard output, and
/// for an empty name.
void check_output(const std::string& path);

/// Writes the text and returns where it is, in words: the file's path, or "standard output".
std::string write_output(const std::string& path, std::string_view text);
/// The same of a result.
std::string write_output(const std::string& path, const ResultFile& result);

}  // namespace polyring
