// The verdict of a `polyring accept` whose launcher killed all of its ranks, by the journal that they left.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/error.hpp"

namespace polyring {

/// The name that the journal of this program will have, if it is a `polyring accept` with an output and
/// begins now. Empty: there will be none.
std::filesystem::path journal_to_come(std::span<const std::string> program);

/// After the job: where the journal is there and the job has not said its verdict, says it, fail-closed, and
/// writes what the program was to write for other programs; `why` tells how the job ended. Returns the exit
/// code of the verdict, or else `code`. Throws as update_file() does.
ExitCode tell_verdict(const std::filesystem::path& journal, std::span<const std::string> program,
                      const std::string& why, ExitCode code);

}  // namespace polyring
