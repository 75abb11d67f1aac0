// What a result file calls itself.
#pragma once

#include <string_view>

namespace polyring {

inline constexpr std::string_view kResultFormat = "polyring-result";
/// Raised whenever a reader of the old version would misread the new one.
inline constexpr int kResultVersion = 1;

}  // namespace polyring
