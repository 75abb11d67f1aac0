// The rows of one machine of `polyring scale`, and what is to be said of several machines together.
#pragma once

#include <string>
#include <vector>

#include "bench/predict/scale_request.hpp"
#include "bench/predict/strategy_cases.hpp"

namespace polyring {

/// The table of one machine, and what it rests on.
struct ScaledMachine {
  ScaleRequest request;
  std::vector<ScaleRow> rows;
  std::vector<std::string> of_algorithms;  // what is to be said of them
  std::vector<std::string> of_strategies;
  FoundTables best;
  bool plain = false;  // some rows are data parallel and nothing else
};

/// What is to be said below the tables of these machines, at least one: of all of them once, and then of each
/// with its name.
std::vector<std::string> notes_of(const std::vector<ScaledMachine>& machines);

}  // namespace polyring
