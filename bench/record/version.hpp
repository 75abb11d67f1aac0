// Which Polyring this is.
#pragma once

#include <string_view>

namespace polyring {

std::string_view version();
/// The commit that was built, with "-dirty" behind it where files were changed; "unknown" outside a git
/// checkout.
std::string_view commit();
/// "GCC 12.2.0".
std::string_view compiler();
/// CMAKE_BUILD_TYPE: "Release".
std::string_view build_type();
/// "address,undefined"; empty without.
std::string_view sanitizers();

}  // namespace polyring
