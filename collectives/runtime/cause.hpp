// Failures that another rank's has caused.
#pragma once

#include <chrono>
#include <thread>

namespace polyring {

/// Where this rank is about to fail because another one seems to have: gives that one the time to say why
/// first, so that the job ends with its sentence and its exit code.
inline void let_the_cause_be_said() { std::this_thread::sleep_for(std::chrono::seconds(1)); }

}  // namespace polyring
