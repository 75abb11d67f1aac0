// What result files and journals call themselves.
#pragma once

#include <string_view>

namespace polyring {

inline constexpr std::string_view kResultFormat = "polyring-result";
/// Raised whenever a reader of the old version would misread the new one.
inline constexpr int kResultVersion = 1;

inline constexpr std::string_view kJournalFormat = "polyring-journal";

}  // namespace polyring
