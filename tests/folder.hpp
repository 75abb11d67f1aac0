// Where the files lie that tests read.
#pragma once

#include <filesystem>

namespace polyring {

/// tests/ of the checkout that this program was built from. Known to one source, so that a compiler cache
/// serves the others in every checkout.
std::filesystem::path tests_folder();

}  // namespace polyring
