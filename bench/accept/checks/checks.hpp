// All checks, each in a file of its own here.
#pragma once

#include "bench/accept/check.hpp"

namespace polyring {

extern const Check kHostsAlike;
extern const Check kLinks;
extern const Check kCorrect;
extern const Check kHostAllreduce;
extern const Check kPairsAllreduce;
extern const Check kAllAllreduce;
extern const Check kRails;
extern const Check kDips;
extern const Check kRepeatability;
extern const Check kStragglers;
extern const Check kNicCounters;
extern const Check kHostCpu;
extern const Check kHostGdr;
extern const Check kGpuCopies;
extern const Check kGpuMemory;
extern const Check kGpuCompute;
extern const Check kGpuHealth;
extern const Check kData;
extern const Check kTrain;

}  // namespace polyring
