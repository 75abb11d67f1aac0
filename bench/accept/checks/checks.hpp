// All checks, each in a file of its own here.
#pragma once

#include "bench/accept/check.hpp"

namespace polyring {

extern const Check kHostsAlike;
extern const Check kCorrect;
extern const Check kHostAllreduce;
extern const Check kPairsAllreduce;
extern const Check kAllAllreduce;
extern const Check kDips;
extern const Check kRepeatability;
extern const Check kStragglers;

}  // namespace polyring
