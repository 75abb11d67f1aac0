#include "base/random_token.hpp"

#include <random>

namespace polyring {

std::uint64_t random_token() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace polyring
