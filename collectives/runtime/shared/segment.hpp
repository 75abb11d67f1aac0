// Segments: memory that processes of one host share.
//
// A segment is anonymous (memfd): no file of it lies in /dev/shm, whose size does not matter either, and it
// is gone with the last process that maps it, however that ends. Other processes find it by the owner's
// process and descriptor.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace polyring {

/// Where a segment is to be found, for other processes of this host.
struct SegmentName {
  pid_t process = 0;
  std::uint64_t token = 0;  // the owner's own: in another process namespace its number may be this process's
  int descriptor = -1;
  std::uint64_t bytes = 0;
  std::byte* address = nullptr;  // in the owner's memory
};

inline constexpr std::size_t kPage = 4096;

/// Owns the memory, of zeros, on whole pages.
class Segment {
 public:
  /// Throws Error(ExitCode::not_available) when the system does not give that much.
  explicit Segment(std::size_t bytes) : Segment(bytes, bytes) {}
  /// Only the first `filled` bytes get their memory now. The rest must not be touched before Mapping::fill()
  /// has given it some.
  Segment(std::size_t bytes, std::size_t filled);
  ~Segment();
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;

  std::byte* address() const { return name_.address; }
  std::size_t bytes() const { return name_.bytes; }
  const SegmentName& name() const { return name_; }

 private:
  SegmentName name_;
};

/// Somebody's segment, in this process's memory.
class Mapping {
 public:
  /// Throws Error(ExitCode::not_available) when this process may not reach the owner's.
  explicit Mapping(const SegmentName& name);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;

  std::byte* address() const { return address_; }

  /// Gives these bytes of the segment their memory; what has some already stays as it is. Throws
  /// Error(ExitCode::not_available) when there is none, or the owner has ended.
  void fill(std::size_t begin, std::size_t bytes) const;

 private:
  SegmentName name_;
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;  // 0: the owner is this process, nothing was mapped
};

}  // namespace polyring
