#include "models/precision.hpp"

#include <cassert>

#include "base/error.hpp"

namespace polyring {

std::string_view to_text(Precision precision) { return precision == Precision::single ? "single" : "mixed"; }

Precision parse_precision(std::string_view text) {
  for (const Precision precision : {Precision::single, Precision::mixed})
    if (to_text(precision) == text) return precision;
  usage_error("unknown precision '{}'; choose from single, mixed", text);
}

int element_bytes(Precision precision) { return precision == Precision::single ? 4 : 2; }

TrainedParameter trained_parameter(Precision precision, Optimizer optimizer, int gradient_bytes) {
  assert(gradient_bytes == 2 || gradient_bytes == 4);
  constexpr int kState = 4;  // float32
  const int moments = (optimizer == Optimizer::adam ? 2 : 1) * kState;
  if (precision == Precision::single) return {4, 4, moments};
  return {2, gradient_bytes, moments + kState};
}

}  // namespace polyring
