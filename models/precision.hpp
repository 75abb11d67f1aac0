// Precision of a training run, and what a parameter occupies while it is trained.
#pragma once

#include <string_view>

namespace polyring {

/// Arithmetic of the training run: `single` is float32 (TF32 on GPUs that have it, as frameworks use it for
/// convolutions and NVIDIA's published figures for all products), `mixed` is float16 or bfloat16 with float32
/// masters.
enum class Precision { single, mixed };

std::string_view to_text(Precision precision);  // "single", "mixed"

/// Reads what to_text() writes. Throws a usage Error for anything else.
Precision parse_precision(std::string_view text);

/// Bytes of an activation, and of a weight as it is computed with: 4 or 2.
int element_bytes(Precision precision);

enum class Optimizer { adam, momentum };  // momentum: stochastic gradient descent with it

/// What one parameter occupies: bytes.
struct TrainedParameter {
  int weight = 0;     // as it is computed with
  int gradient = 0;   // as it is reduced
  int optimizer = 0;  // states, and in mixed precision the float32 master of the weight

  int total() const { return weight + gradient + optimizer; }
};

/// Adam keeps two moments in float32, momentum one (Rajbhandari et al., ZeRO, arXiv 1910.02054, section 3.1:
/// in mixed precision 2 + 2 + 12 bytes with Adam; in single precision 4 + 4 + 8). `gradient_bytes`: 4 for
/// gradients that are added up in float32, as Megatron-LM does with bfloat16 (2 + 4 + 12 bytes: its user
/// guide, "Distributed Optimizer"), or 2; in single precision always 4.
TrainedParameter trained_parameter(Precision precision, Optimizer optimizer = Optimizer::adam,
                                   int gradient_bytes = 2);

}  // namespace polyring
