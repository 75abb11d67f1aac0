// What the writer and the reader of the probe's JSON must agree on.
#pragma once

#include <string_view>

namespace polyring {

inline constexpr std::string_view kProbeSchema = "polyring-probe";
/// Grows when a reader of the older version would misread the file.
inline constexpr int kProbeVersion = 1;

}  // namespace polyring
