#include "tests/folder.hpp"

namespace polyring::testing {

std::filesystem::path tests_folder() { return POLYRING_TESTS; }

}  // namespace polyring::testing
