#include "collectives/runtime/shared/memory.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "base/error.hpp"

namespace polyring {
namespace {

constexpr std::size_t kSmallestBlock = 4096;
constexpr std::size_t kSmallestSlab = std::size_t{64} << 10;

/// Places on the control block that users' segments leave to blocks: without these, nothing that is not in a
/// segment can be sent.
constexpr std::size_t kPlacesForBlocks = 128;
static_assert(kPlacesForBlocks < kMostSegments);

}  // namespace

SharedMemory::SharedMemory(std::span<ControlBlock* const> controls, std::size_t own)
    : controls_(controls), own_place_(own), others_(controls.size()) {
  for (std::uint32_t i = kMostSegments; i > 0; --i) free_records_.push_back(i - 1);
}

std::byte* SharedMemory::add(std::size_t bytes) {
  if (!has_place()) return nullptr;
  try {
    return enter(Segment(bytes)).begin;
  } catch (const Error&) {
    return nullptr;  // too many open files, for one
  }
}

bool SharedMemory::has_place() const { return free_records_.size() > kPlacesForBlocks; }

SharedMemory::Own& SharedMemory::enter(Segment segment) {
  const std::uint32_t index = free_records_.back();
  SegmentRecord& record = controls_[own_place_]->records[index];
  record.name = segment.name();
  const std::uint32_t generation = record.generation.load(std::memory_order_relaxed) + 1;
  record.generation.store(generation, std::memory_order_release);
  free_records_.pop_back();
  std::byte* const address = segment.address();
  own_.push_back({std::move(segment), index, generation, address, nullptr});
  return own_.back();
}

std::vector<SharedMemory::Own>::iterator SharedMemory::find(const std::byte* begin) {
  return std::ranges::find_if(own_, [&](const Own& own) { return own.begin == begin; });
}

void SharedMemory::remove(std::byte* address) {
  if (keeps_) return;
  const auto at = find(address);
  if (at == own_.end()) return;
  free_records_.push_back(at->index);
  std::vector<Own> others;
  for (Own& own : own_) {
    if (&own != &*at) others.push_back(std::move(own));
  }
  own_ = std::move(others);
}

void SharedMemory::replace(std::span<std::byte> memory) {
  if (!has_place()) {
    throw Error(ExitCode::not_available,
                "there are too many segments of shared memory at once; register fewer, longer buffers");
  }
  Segment segment(memory.size());
  own_.reserve(own_.size() + 1);  // so that nothing fails once the pages are replaced
  auto replaces = std::make_unique<ReplacedPages>(memory, segment);
  Own& own = enter(std::move(segment));
  own.begin = memory.data();
  own.replaces = std::move(replaces);
}

void SharedMemory::give_back_replaced(std::byte* begin) {
  const auto at = find(begin);
  assert(at != own_.end() && at->replaces && "only what was replaced is given back");
  const bool were_there = at->replaces->give_back(keeps_);
  at->replaces.reset();
  at->begin = at->segment.address();
  remove(at->begin);
  if (!were_there) {
    usage_error("the buffer at {} was freed, or mapped anew, while it was registered; deregister it before",
                static_cast<const void*>(begin));
  }
}

Location SharedMemory::locate(const std::byte* data, std::size_t bytes) const {
  for (const Own& own : own_) {
    if (data >= own.begin && data + bytes <= own.begin + own.segment.bytes()) {
      return {static_cast<std::uint64_t>(data - own.begin), own.index, own.generation};
    }
  }
  return {};
}

std::byte* SharedMemory::at(std::size_t rank, Location location) {
  std::vector<Other>& of_rank = others_[rank];
  if (of_rank.size() <= location.segment) of_rank.resize(location.segment + 1);
  Other& other = of_rank[location.segment];
  if (other.generation != location.generation) {
    other.mapping.clear();
    other.mapping.emplace_back(controls_[rank]->records[location.segment].name);
    other.generation = location.generation;
  }
  return other.mapping.front().address() + location.offset;
}

void SharedMemory::add_blocks(std::size_t size) {
  if (free_records_.empty()) {
    throw Error(ExitCode::not_available,
                "there are too many segments of shared memory at once; use larger chunks or fewer lanes");
  }
  // As much again as there is already: few segments, and little that nobody needs.
  std::size_t& slabs = slabs_[size];
  const std::size_t slab = std::max(size, std::clamp(slabs, kSmallestSlab, kSlab));
  std::byte* memory = enter(Segment(slab)).begin;
  slabs += slab;
  for (std::size_t offset = 0; offset < slab; offset += size) {
    free_blocks_[size].push_back(memory + offset);
    blocks_[memory + offset] = size;
  }
}

std::byte* SharedMemory::take_block(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallestBlock));
  std::vector<std::byte*>& free = free_blocks_[size];
  if (free.empty()) add_blocks(size);
  std::byte* block = free.back();
  free.pop_back();
  return block;
}

std::byte* SharedMemory::try_block(std::size_t bytes) {
  try {
    return take_block(bytes);
  } catch (const Error&) {
    return nullptr;
  }
}

void SharedMemory::give_back(std::byte* block) { free_blocks_[blocks_.at(block)].push_back(block); }

}  // namespace polyring
