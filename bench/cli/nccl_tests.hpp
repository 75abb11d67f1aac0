// nccl-tests' options: those that Polyring lacks are refused by what they mean there, and none is taken for
// something else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace polyring {

/// What an option such as "-G" or "--cudagraph" means in nccl-tests; nothing where it has no such option.
std::optional<std::string> nccl_tests_option(std::string_view name);

}  // namespace polyring
