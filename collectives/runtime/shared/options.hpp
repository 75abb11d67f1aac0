// SharedOptions: from where on what is done which way in shared memory.
#pragma once

#include "base/units.hpp"

namespace polyring {

struct SharedOptions {
  /// Payloads from here on are written past the caches, unless they are reduced in place.
  Bytes streaming{8 << 20};
  /// What is in no segment and longer goes through shared memory in pieces of this length, of whole elements.
  Bytes piece{(128 << 10) - 64};
  /// What is longer and in segments is read and written in parts of this length, of whole elements: each is
  /// progress for those who wait for the whole.
  Bytes part{4 << 20};
};

}  // namespace polyring
