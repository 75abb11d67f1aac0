// SharedOptions: from where on what is done which way in shared memory.
#pragma once

#include "topology/units.hpp"

namespace polyring {

struct SharedOptions {
  /// Payloads from here on are written past the caches, unless they are reduced in place.
  Bytes streaming{8 << 20};
  /// What is in no segment and longer goes through shared memory in pieces of this length, of whole elements.
  Bytes piece{(128 << 10) - 64};
};

}  // namespace polyring
