// Ranks that find each other over TCP, without MPI: rank 0 listens, and the others connect to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/net/socket.hpp"

namespace polyring {

struct TcpGroup {
  Endpoint root;       // where rank 0 listens, and how the others reach it
  std::string secret;  // the same for all ranks of a group, and for no other group; any text
  Rank rank = 0;
  int size = 1;
  Seconds timeout{60};  // how long a rank waits for others
  /// Rank 0's, where it listens already: listen_for(secret). Null: it begins to, at the root's port.
  std::shared_ptr<Listener> listener{};
};

/// At a free port, for the ranks of a group with this secret. Throws Error(ExitCode::not_available) where
/// that cannot be.
std::shared_ptr<Listener> listen_for(const std::string& secret);

class TcpBootstrap final : public Bootstrap {
 public:
  /// Collective: returns when all ranks are connected. Rank 0 may be the last to come. Throws a usage Error
  /// for a rank that the group does not have, that came twice, or that has another group's size in mind;
  /// Error(ExitCode::timeout) that names the ranks that have not come, or says why rank 0 cannot be reached;
  /// Error(ExitCode::not_available) where rank 0 cannot listen.
  explicit TcpBootstrap(TcpGroup group);

  Rank rank() const override { return group_.rank; }
  int size() const override { return group_.size; }
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const override;

 private:
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own) const;
  void as_root(const std::function<void()>& action) const;
  void gather_peers();
  bool take_peers(Listener& listener);
  void connect_to_root();

  TcpGroup group_;
  std::vector<Socket> others_;  // by rank on rank 0; rank 0 alone on the others
  mutable std::optional<Error> failure_;
};

}  // namespace polyring
