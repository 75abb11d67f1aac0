// What C programs say, as values of the runtime.
#pragma once

#include <cstddef>

#include "collectives/cuda/gpu.hpp"
#include "collectives/library/c/polyring.h"
#include "collectives/runtime/communicator.hpp"

namespace polyring::library {

/// What polyring_options say. Null: the defaults. Throws a usage Error that names what cannot be.
struct GroupOptions {
  explicit GroupOptions(const polyring_options* options);

  CommunicatorOptions communicator;
  bool check = false;
  int gpu = kHostMemory;
};

/// Collective. Throws the same AgreedError on all ranks where they have other options: these decide what the
/// ranks say to each other.
void compare_options(const Bootstrap& bootstrap, const GroupOptions& options);

/// Throws a usage Error for a value that the header does not name.
ElementKind element_kind(polyring_type type);
ReduceOp reduce_op(polyring_op op);
/// Throws a usage Error for more than any memory holds, as of a number that was negative.
Count to_count(std::size_t count);

}  // namespace polyring::library
