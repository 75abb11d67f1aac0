// The bound of an allreduce inside one host, measured beside the contenders: however it is done, every rank's
// payload must be read once and every rank's result written once.
#pragma once

#include <span>
#include <vector>

#include "bench/measure/measure.hpp"
#include "collectives/schedule/element.hpp"
#include "reports/result.hpp"

namespace polyring {

/// Payloads from here on; below, it is caches and synchronisation that count, not memory: an allreduce of
/// 4 MiB in place was seen to take 10 % less than such a pass.
inline constexpr Bytes kLeastMemoryBound{16 << 20};

/// Stand-ins for measure(): each rank reads its input once and writes its output once, alone, through the
/// caches and past them. Not verified, as they reduce nothing.
std::vector<Contender> make_memory_passes(ElementKind kind, Count count, Buffers buffers);

/// The one of least median, in microseconds. There must be one.
Timing fastest(std::span<const Samples> of_passes);

}  // namespace polyring
