#include "collectives/transports/tcp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>

#include "collectives/tcp/connection.hpp"
#include "collectives/tcp/mesh.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

/// All is done by the calling thread, within poll() and rest().
class TcpTransport final : public PollingTransport {
 public:
  explicit TcpTransport(const TcpGroup& group);

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override;
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override;
  bool poll(std::vector<Ticket>& done) override;
  std::vector<Rank> awaited() const override;
  bool rest(Seconds most) override;

 private:
  struct Peer {
    std::string name;
    Connection connection;
    bool awaits_room = false;  // to write
  };

  Peer& peer(Rank rank) {
    assert(peers_[static_cast<std::size_t>(rank)] != nullptr);
    return *peers_[static_cast<std::size_t>(rank)];
  }
  void read_when_ready(Peer& peer);
  void write(Peer& peer);
  void complain() const;

  asio::io_context io_{ASIO_CONCURRENCY_HINT_UNSAFE};
  Rank rank_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank
  std::size_t in_flight_ = 0;
  std::vector<Ticket> finished_;
  bool broken_ = false;  // some connection
};

TcpTransport::TcpTransport(const TcpGroup& group)
    : PollingTransport(group.rules), rank_(group.rank), peers_(static_cast<std::size_t>(group.size)) {
  for (TcpPeer& met : connect_mesh(io_, group)) {
    std::unique_ptr<Peer>& place = peers_[static_cast<std::size_t>(met.rank)];
    place = std::make_unique<Peer>(Peer{std::move(met.name), Connection(std::move(met.socket))});
    read_when_ready(*place);
  }
}

void TcpTransport::send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) {
  ++in_flight_;
  peer(to).connection.send(tag, data, ticket);
  if (!peer(to).awaits_room) write(peer(to));
}

void TcpTransport::receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) {
  ++in_flight_;
  peer(from).connection.receive(tag, data, ticket, finished_);
}

void TcpTransport::write(Peer& peer) {
  peer.connection.write(finished_);
  broken_ = broken_ || !peer.connection.failure().empty();
  if (!peer.connection.sends() || !peer.connection.failure().empty()) return;
  peer.awaits_room = true;
  peer.connection.socket().async_wait(asio::socket_base::wait_write, [this, &peer](asio::error_code error) {
    peer.awaits_room = false;
    if (!error) write(peer);
  });
}

void TcpTransport::read_when_ready(Peer& peer) {
  peer.connection.socket().async_wait(asio::socket_base::wait_read, [this, &peer](asio::error_code error) {
    if (error) return;
    peer.connection.read(finished_);
    broken_ = broken_ || !peer.connection.failure().empty();
    if (peer.connection.failure().empty()) read_when_ready(peer);
  });
}

bool TcpTransport::poll(std::vector<Ticket>& done) {
  const bool any = take_local(done);
  if (in_flight_ == 0) return any;
  if (finished_.empty()) io_.poll();
  if (broken_) complain();
  in_flight_ -= finished_.size();
  done.insert(done.end(), finished_.begin(), finished_.end());
  const bool finished = !finished_.empty();
  finished_.clear();
  return any || finished;
}

bool TcpTransport::rest(Seconds most) {
  if (in_flight_ == 0 || !finished_.empty()) return false;
  io_.run_one_for(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::duration<double>(most.value)));
  return true;
}

std::vector<Rank> TcpTransport::awaited() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size(); ++rank) {
    const auto& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer && (peer->connection.sends() || peer->connection.receives())) ranks.push_back(rank);
  }
  return ranks;
}

/// A peer may go when it has done its part: that is no failure while nothing is expected of it.
void TcpTransport::complain() const {
  for (const Rank rank : awaited()) {
    const Peer& peer = *peers_[static_cast<std::size_t>(rank)];
    if (peer.connection.failure().empty()) continue;
    throw Error(ExitCode::timeout, fmt::format("{} {}; see whether it still runs and its network is up",
                                               peer.name, peer.connection.failure()));
  }
}

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const TcpGroup& group) {
  return std::make_unique<TcpTransport>(group);
}

}  // namespace polyring
