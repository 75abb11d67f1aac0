// Of a Group: the memory that ranks reach, its own and what a program registers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/library/c/group.hpp"

namespace polyring::library {
namespace {

bool overlap(const void* one, std::size_t one_bytes, const void* other, std::size_t other_bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(one);
  const auto b = reinterpret_cast<std::uintptr_t>(other);
  return a < b ? b - a < one_bytes : a - b < other_bytes;
}

}  // namespace

void* Group::allocate(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  constexpr Bytes kMost{std::uint64_t{1} << 56};  // from here on sizes overflow when they are rounded up
  if (bytes > kMost) {
    throw Error(
        ExitCode::not_available,
        fmt::format("{} bytes are more than any memory has; see whether the size is negative", bytes.value));
  }
  const Bytes size = std::max(bytes, Bytes{1});
  Memory memory = communicator_.allocate(size);
  void* const address = memory.get();
  memory_.emplace(address, Allocated{std::move(memory), size});
  return address;
}

void Group::free(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  finish_enqueued();
  if (memory_.erase(memory) == 0)
    usage_error("this memory is not polyring_mem_alloc()'s of this communicator, or was freed");
}

void Group::register_memory(void* buffer, std::size_t bytes) {
  if (buffer == nullptr) usage_error("the buffer is a null pointer; give one of whole pages of memory");
  if (bytes == 0) usage_error("a buffer of 0 bytes has nothing to be registered; give its length");
  const std::lock_guard lock(mutex_);
  if (communicator_.failure()) throw *communicator_.failure();
  for (const auto& [begin, length] : registered_) {
    if (overlap(buffer, bytes, begin, length))
      usage_error("the buffer overlaps {} bytes at {} that are registered; deregister those before", length,
                  begin);
  }
  for (const auto& [begin, memory] : memory_) {
    if (overlap(buffer, bytes, begin, memory.bytes.value))
      usage_error("the buffer is polyring_mem_alloc()'s, which ranks reach without being registered");
  }
  check_unused(buffer, bytes);
  const auto made = registered_.emplace(buffer, bytes).first;
  try {
    communicator_.register_memory({static_cast<std::byte*>(buffer), bytes});
  } catch (...) {
    registered_.erase(made);
    throw;
  }
}

void Group::deregister_memory(void* buffer) {
  const std::lock_guard lock(mutex_);
  const auto found = registered_.find(buffer);
  if (found == registered_.end())
    usage_error("no registered buffer of this communicator begins at {}; give what was registered", buffer);
  if (!communicator_.failure()) check_unused(buffer, found->second);
  try {
    communicator_.deregister_memory(static_cast<std::byte*>(buffer));
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) registered_.erase(found);
    throw;
  }
  registered_.erase(found);
}

/// Of what the program has freed before, nothing is left to do.
void Group::deregister_all() {
  std::optional<Error> failure;
  for (const auto& [begin, bytes] : std::exchange(registered_, {})) {
    try {
      communicator_.deregister_memory(static_cast<std::byte*>(begin));
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) failure = error;
    }
  }
  if (failure) throw *failure;
}

void Group::check_unused(const void* buffer, std::size_t bytes) const {
  for (const auto& [request, started] : operations_) {
    for (const std::span<const std::byte> used : started.buffers) {
      if (!used.empty() && overlap(buffer, bytes, used.data(), used.size()))
        usage_error("an operation that was started uses the buffer at {}; wait for it before", buffer);
    }
  }
}

void Group::check_allocated(std::span<const std::byte> buffer) const {
  const auto after = memory_.upper_bound(const_cast<std::byte*>(buffer.data()));
  if (after != memory_.begin()) {
    const auto& [begin, memory] = *std::prev(after);
    const auto offset = index(buffer.data() - static_cast<const std::byte*>(begin));
    const std::size_t size = memory.bytes.value;
    if (offset <= size && buffer.size() <= size - offset) return;
  }
  usage_error(
      "the {} bytes of a buffer on a stream are not all polyring_mem_alloc()'s of this communicator; "
      "allocate them so, or run "
      "the operation",
      buffer.size());
}

}  // namespace polyring::library
