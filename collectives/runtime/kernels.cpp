#include "collectives/runtime/kernels.hpp"

#include <cassert>

#include "collectives/runtime/kernels/table.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace polyring {
namespace {

#ifdef __x86_64__

// clang 14's __builtin_cpu_supports does not know it.
bool has_f16c() {
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool detect(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && has_f16c();
    case Isa::avx512:
      // Processors without VBMI2, all before Ice Lake, slow their clock for 512-bit vectors.
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vbmi2");
  }
  return false;
}

const KernelTable& table(Isa isa) {
  assert(runs_here(isa));
  switch (isa) {
    case Isa::portable:
      return kPortableKernels;
    case Isa::avx2:
      return kAvx2Kernels;
    case Isa::avx512:
      return kAvx512Kernels;
  }
  return kPortableKernels;
}

#else

bool detect(Isa isa) { return isa == Isa::portable; }
const KernelTable& table(Isa) { return kPortableKernels; }

#endif

}  // namespace

std::string_view to_text(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return "portable";
    case Isa::avx2:
      return "AVX2";
    case Isa::avx512:
      return "AVX-512";
  }
  return "";
}

bool runs_here(Isa isa) { return detect(isa); }

Isa best_isa() {
  static const Isa best = detect(Isa::avx512) ? Isa::avx512 : detect(Isa::avx2) ? Isa::avx2 : Isa::portable;
  return best;
}

void combine_many_with(Isa isa, const Reduction& reduction, std::span<std::byte* const> outputs,
                       std::span<const std::byte* const> inputs, Count count, Stores stores) {
  assert(!inputs.empty() && reduction.divisor > 0);
  if (outputs.empty() || count == 0) return;
  table(isa).combine({reduction, outputs.data(), outputs.size(), inputs.data(), inputs.size(),
                      static_cast<std::size_t>(count), stores});
}

void combine_many(const Reduction& reduction, std::span<std::byte* const> outputs,
                  std::span<const std::byte* const> inputs, Count count, Stores stores) {
  combine_many_with(best_isa(), reduction, outputs, inputs, count, stores);
}

void combine_on_host(ElementKind kind, ReduceOp op, std::byte* result, const std::byte* left,
                     const std::byte* right, Count count) {
  std::byte* const outputs[] = {result};
  const std::byte* const inputs[] = {left, right};
  combine_many({kind, op}, outputs, inputs, count, Stores::cached);
}

void divide_on_host(ElementKind kind, std::byte* data, Count count, int divisor) {
  std::byte* const outputs[] = {data};
  const std::byte* const inputs[] = {data};
  combine_many({kind, ReduceOp::avg, divisor}, outputs, inputs, count, Stores::cached);
}

void copy_on_host_with(Isa isa, std::byte* to, const std::byte* from, std::size_t bytes, Stores stores) {
  if (bytes > 0) table(isa).copy(to, from, bytes, stores);
}

void copy_on_host(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores) {
  copy_on_host_with(best_isa(), to, from, bytes, stores);
}

}  // namespace polyring
