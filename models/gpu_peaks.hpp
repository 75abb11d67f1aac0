// What GPUs compute at most, as their vendors state it: dense products, never with sparsity.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/precision.hpp"

namespace polyring {

/// In the order in which they came out; AMD's beside NVIDIA's.
enum class GpuGeneration { pascal, volta, turing, ampere, cdna, cdna2, ada, hopper, cdna3, blackwell, cdna4 };

std::string_view to_text(GpuGeneration generation);  // "Pascal", "CDNA 3"

/// FLOP/s.
struct GpuPeak {
  std::string gpu;  // the words of a product's name that tell it from others: "H100 PCIe"
  GpuGeneration generation = GpuGeneration::pascal;
  double float32 = 0;         // outside of tensor cores; of AMD's GPUs with their matrix cores
  double tf32 = 0;            // 0: none
  double float16 = 0;         // also of bfloat16 from Ampere and CDNA on; added up in float32
  bool matrix_units = false;  // tensor or matrix cores compute float16
  /// GeForce: products that are added up in float32 take twice as long as others, which float16 and tf32
  /// above contain. The rest of the GPU is not halved, so steps use more of its peak than of others'.
  bool halved = false;
  std::string source;  // the citation
};

const std::vector<GpuPeak>& gpu_peaks();

/// Whether all words (runs of letters and digits) of `gpu` are words of `product`, in any case: "P100" and
/// "H100 PCIe" name "Tesla P100-SXM2-16GB" and "NVIDIA H100 PCIe".
bool names_gpu(std::string_view product, std::string_view gpu);

/// Of the row with the most words in the product's name; null when none names it.
const GpuPeak* find_gpu_peak(std::string_view product);

/// FLOP/s of products in this precision: single is TF32 where there is some, else float32.
double peak_of(const GpuPeak& gpu, Precision precision);

/// "A10, A100, …", in alphabetical order: for help texts and messages.
std::string gpu_peak_choices();

}  // namespace polyring
