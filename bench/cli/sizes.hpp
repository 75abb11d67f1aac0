// Which payloads are measured, as nccl-tests' flags say it, and in whose memory.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/cli/command_line.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// parse_bytes(), with a usage Error for payloads that no host holds, above 16 TiB: sums of bytes over ranks
/// and steps stay within 64 bits.
Bytes parse_payload(const std::string& text, const std::string& what);

struct SizeOptions {
  std::string smallest = "1K";
  std::string largest = "64M";
  int factor = 2;
  std::string step{};  // empty: by factor

  /// -b, -e, -f and -i.
  void add_to(Subcommand command);
  /// Numbers of elements of `element_size` bytes, ascending, at least 1. Throws a usage Error for sizes that
  /// are none.
  std::vector<Count> counts(int element_size) const;
};

/// --buffers: "library" or "malloc".
void add_buffers_option(Subcommand command, std::string& buffers);

}  // namespace polyring
