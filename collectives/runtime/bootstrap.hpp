// Bootstrap: who the ranks of a group are, and how they exchange bytes before a transport joins them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/schedule/slice.hpp"

namespace polyring {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  /// Collective: each rank's bytes, by rank, on every rank. Ranks may have unequally many. Throws
  /// Error(ExitCode::timeout) that names the ranks that do not answer. Once that has failed, it always does.
  virtual std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const = 0;

  /// Collective: returns when all ranks have called it.
  virtual void barrier() const { allgather({}); }
};

}  // namespace polyring
