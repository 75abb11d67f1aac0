#include "models/gpu_peaks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace polyring {

namespace {

constexpr double kTera = 1e12;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Runs of letters and digits, in lower case.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  auto begin = std::find_if(text.begin(), text.end(), is_word_character);
  while (begin != text.end()) {
    const auto end = std::find_if_not(begin, text.end(), is_word_character);
    std::string word(begin, end);
    std::transform(word.begin(), word.end(), word.begin(), lower);
    words.push_back(std::move(word));
    begin = std::find_if(end, text.end(), is_word_character);
  }
  return words;
}

GpuPeak row(std::string gpu, GpuGeneration generation, double float32, double tf32, double float16,
            std::string source) {
  const bool matrix_units = generation != GpuGeneration::pascal;
  const bool halved = gpu.starts_with("RTX 3090") || gpu.starts_with("RTX 4090");
  return {std::move(gpu),  generation,   kTera * float32, kTera * tf32,
          kTera * float16, matrix_units, halved,          std::move(source)};
}

/// Data sheets state twice as much for sparse products: halved here, where they state nothing else.
std::vector<GpuPeak> rows() {
  using enum GpuGeneration;
  return {
      row("P100", pascal, 10.6, 0, 21.2, "NVIDIA Tesla P100 data sheet (NVLink)"),
      row("P100 PCIe", pascal, 9.3, 0, 18.7, "NVIDIA Tesla P100 PCIe data sheet"),
      row("V100", volta, 15.7, 0, 125, "NVIDIA Tesla V100 data sheet (NVLink)"),
      row("V100 PCIe", volta, 14, 0, 112, "NVIDIA Tesla V100 data sheet (PCIe)"),
      row("T4", turing, 8.1, 0, 65, "NVIDIA T4 data sheet"),
      row("RTX 8000", turing, 16.3, 0, 130.5, "NVIDIA Quadro RTX 8000 data sheet"),
      row("A100", ampere, 19.5, 156, 312, "NVIDIA A100 data sheet"),
      row("A800", ampere, 19.5, 156, 312, "NVIDIA A800 data sheet"),
      row("A30", ampere, 10.3, 82, 165, "NVIDIA A30 data sheet"),
      row("A10", ampere, 31.2, 62.5, 125, "NVIDIA A10 data sheet"),
      row("A40", ampere, 37.4, 74.8, 149.7, "NVIDIA A40 data sheet"),
      row("A6000", ampere, 38.7, 77.4, 154.8, "NVIDIA RTX A6000 data sheet"),
      row("RTX 3090", ampere, 35.6, 35.6, 71, "NVIDIA Ampere GA102 GPU Architecture, appendix A"),
      row("L4", ada, 30.3, 60, 121, "NVIDIA L4 data sheet"),
      row("L40S", ada, 91.6, 183, 362, "NVIDIA L40S data sheet"),
      row("RTX 4090", ada, 82.6, 82.6, 165.2, "NVIDIA Ada GPU Architecture, appendix A"),
      row("H100", hopper, 67, 494.5, 989.5, "NVIDIA H100 data sheet (SXM)"),
      row("H100 PCIe", hopper, 51, 378, 756.5, "NVIDIA H100 data sheet (PCIe)"),
      row("H100 NVL", hopper, 60, 417.5, 835.5, "NVIDIA H100 data sheet (NVL)"),
      row("H800", hopper, 67, 494.5, 989.5, "NVIDIA H800 data sheet (SXM)"),
      row("H200", hopper, 67, 494.5, 989.5, "NVIDIA H200 data sheet (SXM)"),
      row("GH200", hopper, 67, 494.5, 989.5, "NVIDIA GH200 Grace Hopper Superchip data sheet"),
      row("B200", blackwell, 75, 1125, 2250, "NVIDIA Blackwell data sheet (HGX B200)"),
      row("GB200", blackwell, 80, 1250, 2500, "NVIDIA Blackwell data sheet (GB200 NVL72), one of 72 GPUs"),
      row("B300", blackwell, 80, 1125, 2250, "NVIDIA DGX B300 data sheet, one of 8 GPUs"),
      row("GB300", blackwell, 80, 1250, 2500, "NVIDIA GB300 NVL72 specifications, one of 72 GPUs"),
      row("MI100", cdna, 46.1, 0, 184.6, "AMD Instinct MI100 data sheet"),
      row("MI250X", cdna2, 47.85, 0, 191.5,
          "AMD Instinct MI250X data sheet, halved: a rank runs on one of its two dies"),
      row("MI250", cdna2, 45.25, 0, 181,
          "AMD Instinct MI250 data sheet, halved: a rank runs on one of its two dies"),
      row("MI300X", cdna3, 163.4, 0, 1307.4, "AMD Instinct MI300X data sheet"),
      row("MI325X", cdna3, 163.4, 0, 1307.4, "AMD Instinct MI325X data sheet"),
      row("MI355X", cdna4, 157.3, 0, 2500, "AMD Instinct MI355X specifications"),
  };
}

}  // namespace

std::string_view to_text(GpuGeneration generation) {
  switch (generation) {
    case GpuGeneration::pascal:
      return "Pascal";
    case GpuGeneration::volta:
      return "Volta";
    case GpuGeneration::turing:
      return "Turing";
    case GpuGeneration::ampere:
      return "Ampere";
    case GpuGeneration::cdna:
      return "CDNA";
    case GpuGeneration::cdna2:
      return "CDNA 2";
    case GpuGeneration::ada:
      return "Ada";
    case GpuGeneration::hopper:
      return "Hopper";
    case GpuGeneration::cdna3:
      return "CDNA 3";
    case GpuGeneration::blackwell:
      return "Blackwell";
    case GpuGeneration::cdna4:
      return "CDNA 4";
  }
  return "";
}

const std::vector<GpuPeak>& gpu_peaks() {
  static const std::vector<GpuPeak> all = rows();
  return all;
}

bool names_gpu(std::string_view product, std::string_view gpu) {
  const std::vector<std::string> known = words_of(product);
  const std::vector<std::string> wanted = words_of(gpu);
  return !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  });
}

const GpuPeak* find_gpu_peak(std::string_view product) {
  const GpuPeak* best = nullptr;
  for (const GpuPeak& peak : gpu_peaks()) {
    if (!names_gpu(product, peak.gpu)) continue;
    if (best == nullptr || words_of(peak.gpu).size() > words_of(best->gpu).size()) best = &peak;
  }
  return best;
}

double peak_of(const GpuPeak& gpu, Precision precision) {
  if (precision == Precision::mixed) return gpu.float16;
  return gpu.tf32 > 0 ? gpu.tf32 : gpu.float32;
}

std::string gpu_peak_choices() {
  std::vector<std::string> names;
  for (const GpuPeak& peak : gpu_peaks()) names.push_back(peak.gpu);
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace polyring
