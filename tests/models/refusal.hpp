// What a usage Error says.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace polyring {

/// The sentence of the usage Error that `call` throws; empty when it throws none.
std::string refusal(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace polyring
