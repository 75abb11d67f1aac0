// Segments: memory that processes of one host share.
//
// A segment is anonymous (memfd): no file of it lies in /dev/shm, whose size does not matter either, and it
// is gone with the last process that maps it, however that ends. Other processes find it by the owner's
// process and descriptor.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace polyring {

/// Where a segment is to be found, for other processes of this host.
struct SegmentName {
  pid_t process = 0;
  int descriptor = -1;
  std::uint64_t token = 0;  // the owner's own: in another process namespace its number may be this process's
  std::uint64_t bytes = 0;
  std::byte* address = nullptr;  // in the owner's memory
};

inline constexpr std::size_t kPage = 4096;

/// Memory of this process, unmapped when nobody needs it any more.
using Pages = std::shared_ptr<std::byte>;

/// The memory, of zeros, on whole pages. It stays until the threads of this process that have a Mapping of it
/// are done, too: ranks may be threads, and one may fail before the others know.
class Segment {
 public:
  /// Throws Error(ExitCode::not_available) when the system does not give that much.
  explicit Segment(std::size_t bytes) : Segment(bytes, bytes) {}
  /// Only the first `filled` bytes get their memory now. The rest must not be touched before Mapping::fill()
  /// has given it some.
  Segment(std::size_t bytes, std::size_t filled);

  std::byte* address() const { return name_.address; }
  std::size_t bytes() const { return name_.bytes; }
  const SegmentName& name() const { return name_; }

 private:
  SegmentName name_;
  Pages pages_;
};

/// Somebody's segment, in this process's memory.
class Mapping {
 public:
  /// Throws Error(ExitCode::not_available) when this process may not reach the owner's, or it is gone.
  explicit Mapping(const SegmentName& name);

  std::byte* address() const { return pages_.get(); }

  /// Gives these bytes of the segment their memory; what has some already stays as it is. Throws
  /// Error(ExitCode::not_available) when there is none, or the owner has ended.
  void fill(std::size_t begin, std::size_t bytes) const;

 private:
  SegmentName name_;
  Pages pages_;
};

}  // namespace polyring
