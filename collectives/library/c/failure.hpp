// What a C function returns where C++ would throw, and the sentence that goes with it.
#pragma once

#include <exception>
#include <new>

#include "base/error.hpp"
#include "collectives/library/c/polyring.h"

namespace polyring::library {

/// Ranks of one communicator have called different operations.
class MismatchError final : public Error {
 public:
  explicit MismatchError(const std::string& sentence) : Error(ExitCode::usage, sentence) {}
};

/// Of the exception that is being handled; its sentence is this thread's error_text() from now on.
polyring_result failure_of_current_exception() noexcept;

/// Of this thread's last failure; empty where it had none.
const char* error_text() noexcept;

/// Does something that may throw.
template <typename Action>
polyring_result guarded(Action&& action) noexcept {
  try {
    action();
    return POLYRING_SUCCESS;
  } catch (...) {
    return failure_of_current_exception();
  }
}

}  // namespace polyring::library
