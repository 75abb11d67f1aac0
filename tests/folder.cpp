#include "tests/folder.hpp"

namespace polyring {

std::filesystem::path tests_folder() { return POLYRING_TESTS; }

}  // namespace polyring
