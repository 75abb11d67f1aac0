// The MPI library's own settings, as its tool interface (MPI_T) shows them: "control variables". For the few
// files that call MPI.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/runtime/mpi/handle.hpp"

namespace polyring {

/// While one lives, MPI_T is initialised. Every MpiControl must be gone before it is.
class MpiTools {
 public:
  MpiTools();
  ~MpiTools();
  MpiTools(const MpiTools&) = delete;
  MpiTools& operator=(const MpiTools&) = delete;
};

/// One setting that is a whole number, a truth or an enumerator.
class MpiControl {
 public:
  struct Choice {
    int value = 0;
    std::string name;
  };

  /// Nothing where this library has no such setting.
  static std::optional<MpiControl> find(const char* name);

  int read() const;
  /// From now on, for this process.
  void write(int value) const;
  /// What it may be, where the library lists that; else nothing.
  const std::vector<Choice>& choices() const { return choices_; }
  /// The library's own words.
  const std::string& description() const { return description_; }

 private:
  struct Free {
    void operator()(MPI_T_cvar_handle* handle) const;
  };

  std::unique_ptr<MPI_T_cvar_handle, Free> handle_;
  int size_ = 0;  // bytes
  std::vector<Choice> choices_;
  std::string description_;
};

}  // namespace polyring
