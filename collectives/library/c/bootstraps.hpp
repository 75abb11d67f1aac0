// Bootstraps over what a C program gives: its own allgather, or a key-value store.
#pragma once

#include <memory>
#include <string>

#include "base/units.hpp"
#include "collectives/library/c/polyring.h"
#include "collectives/runtime/bootstrap.hpp"

namespace polyring::library {

/// Throws Error(ExitCode::usage) for a rank that a group of so many does not have.
void check_place(int rank, int ranks);

/// Collective over ranks that can exchange bytes by `first`, which is not used afterwards: the same ranks
/// over TCP. For what uses a bootstrap as long as it lives.
std::unique_ptr<Bootstrap> over_tcp(const Bootstrap& first, Seconds timeout);

class GroupBootstrap final : public Bootstrap {
 public:
  GroupBootstrap(const polyring_group& group, int rank, int ranks);

  Rank rank() const override { return rank_; }
  int size() const override { return ranks_; }
  /// Throws Error(ExitCode::mpi) where the program's allgather fails.
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const override;

 private:
  std::vector<std::byte> gather(std::span<const std::byte> own) const;

  polyring_group group_;
  Rank rank_;
  int ranks_;
};

/// A rank sets one key for each round: "PREFIX/ROUND/RANK".
class StoreBootstrap final : public Bootstrap {
 public:
  StoreBootstrap(const polyring_store& store, int rank, int ranks, Seconds timeout);

  Rank rank() const override { return rank_; }
  int size() const override { return ranks_; }
  /// Throws Error(ExitCode::mpi) where the store does not take a value, and Error(ExitCode::timeout) where it
  /// does not give a rank's.
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const override;

 private:
  std::vector<std::byte> get(Rank rank) const;
  std::string key(Rank rank) const;

  polyring_store store_;
  std::string prefix_;
  Rank rank_;
  int ranks_;
  Seconds timeout_;
  mutable int round_ = 0;
};

}  // namespace polyring::library
