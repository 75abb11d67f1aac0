#include "collectives/runtime/transports/tcp.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random_token.hpp"
#include "collectives/runtime/net/address.hpp"
#include "collectives/runtime/net/socket.hpp"
#include "collectives/runtime/transports/tcp_connection.hpp"
#include "collectives/runtime/transports/tcp_farewell.hpp"

namespace polyring {
namespace {

using namespace tcp;

/// What one connection may take before the others have their turn.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;
constexpr std::size_t kMostFramesAtOnce = 32;

/// Where a rank listens.
struct Listening {
  Endpoint endpoint;
  std::uint64_t secret = 0;
};

class TcpTransport final : public PollingTransport {
 public:
  TcpTransport(const Bootstrap& bootstrap, const TcpOptions& options, WaitRules rules);

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(endpoints_.size()); }
  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override;
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override;
  bool poll(std::vector<Ticket>& done) override;
  std::vector<Rank> awaited() const override;

 protected:
  void stop() override;

 private:
  Connection& connection(Rank peer, int tag);
  std::unique_ptr<Connection>& place_of(Rank peer, std::uint32_t number);
  void attach(Connection& connection, Socket socket);
  void accept();
  void watch(Connection& connection, int change, bool writing);
  void write(Connection& connection);
  void read(Connection& connection);
  void take_frames(Connection& connection);
  void take(Connection& connection, const Frame& frame);
  void begin_body(Connection& connection, Connection::Body body);
  void end_body(Connection& connection);
  void clear(Connection& connection, const Frame& ask, const Want& want);
  void finish(Connection& connection, Ticket ticket);
  void end(Connection& connection, int error);
  [[noreturn]] void lose(const Connection& connection, int error);
  void listen_to_others_of(const Connection& connection);
  void take_those_who_wait();

  Rank rank_;
  Bytes unasked_;
  std::uint64_t secret_ = random_token();
  std::optional<Listener> listener_;
  std::vector<Listening> endpoints_;  // of each rank
  std::uint32_t per_peer_;
  std::vector<std::vector<std::unique_ptr<Connection>>> connections_;  // by peer and number; null: none yet
  int open_ = 0;                                                       // of all connections
  int expected_ = 0;  // connections that the other end has still to begin
  Socket events_;     // epoll's
  std::uint64_t next_id_ = 0;
  std::vector<Ticket> done_;
  bool moved_ = false;               // something has come nearer to its end
  std::map<Rank, Error> farewells_;  // what ranks have said when they failed
  bool listens_ = false;             // in listen_to_others_of()
  std::optional<Error> cause_;       // what another rank has failed with, and so this one
};

constexpr char kFailed = '!';

std::vector<Listening> exchange_endpoints(const Bootstrap& bootstrap, const std::string& own) {
  std::vector<Listening> endpoints;
  for (const std::vector<std::byte>& bytes : bootstrap.allgather(std::as_bytes(std::span(own)))) {
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.front() == kFailed)
      throw AgreedError(ExitCode::not_available,
                        fmt::format("rank {}: {}", endpoints.size(), text.substr(1)));
    const std::size_t space = text.find(' ');
    endpoints.push_back({parse_endpoint(text.substr(0, space)), std::stoull(text.substr(space + 1))});
  }
  return endpoints;
}

TcpTransport::TcpTransport(const Bootstrap& bootstrap, const TcpOptions& options, WaitRules rules)
    : PollingTransport(std::move(rules)),
      rank_(bootstrap.rank()),
      unasked_(options.unasked),
      per_peer_(static_cast<std::uint32_t>(std::max(1, options.connections))),
      connections_(index(bootstrap.size())),
      events_(epoll_create1(EPOLL_CLOEXEC)) {
  std::string own;
  try {
    check_descriptor(events_.descriptor());
    const std::string address =
        choose_address(network_interfaces(), options.interface, default_interface(), options.several_hosts);
    listener_.emplace(address, 0, secret_);
    own = fmt::format("{} {}", to_text(Endpoint{address, listener_->port()}), secret_);
  } catch (const Error& error) {
    own = kFailed + std::string(error.what());
  }
  endpoints_ = exchange_endpoints(bootstrap, own);
}

std::unique_ptr<Connection>& TcpTransport::place_of(Rank peer, std::uint32_t number) {
  auto& of_peer = connections_[index(peer)];
  of_peer.resize(per_peer_);
  return of_peer[number];
}

/// The one for this tag. Of two ranks the lower begins it.
Connection& TcpTransport::connection(Rank peer, int tag) {
  const std::uint32_t number = static_cast<std::uint32_t>(tag) % per_peer_;
  std::unique_ptr<Connection>& place = place_of(peer, number);
  if (!place) {
    place = std::make_unique<Connection>();
    place->peer = peer;
    if (peer < rank_) {
      ++expected_;
    } else {
      const Listening& listening = endpoints_[index(peer)];
      place->greeting = Listener::greeting(listening.secret, static_cast<std::uint32_t>(rank_), number);
      place->outgoing.push_back({std::nullopt, place->greeting, std::nullopt});
      attach(*place, begin_connecting(listening.endpoint));
    }
  }
  return *place;
}

void TcpTransport::attach(Connection& connection, Socket socket) {
  connection.socket = std::move(socket);
  watch(connection, EPOLL_CTL_ADD, false);
  if (!connection.outgoing.empty()) write(connection);
}

void TcpTransport::watch(Connection& connection, int change, bool writing) {
  epoll_event event{};
  event.events = EPOLLIN | (writing ? EPOLLOUT : 0u);
  event.data.ptr = &connection;
  check_descriptor(epoll_ctl(events_.descriptor(), change, connection.socket.descriptor(), &event));
  connection.writing = writing;
}

/// Those who have come, also before this rank needs them.
void TcpTransport::accept() {
  for (Listener::Peer& peer : listener_->accept()) {
    if (peer.rank >= static_cast<std::uint32_t>(rank_) || peer.number >= per_peer_) continue;
    std::unique_ptr<Connection>& place = place_of(static_cast<Rank>(peer.rank), peer.number);
    if (place && place->socket.is_open()) continue;
    if (place) {
      --expected_;
    } else {
      place = std::make_unique<Connection>();
      place->peer = static_cast<Rank>(peer.rank);
    }
    attach(*place, std::move(peer.socket));
  }
}

void TcpTransport::send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) {
  Connection& connection = this->connection(to, tag);
  if (connection.ended) lose(connection, 0);
  ++connection.open;
  ++open_;
  if (data.size() <= unasked_.value) {
    connection.outgoing.push_back({Frame{FrameKind::message, tag, data.size(), 0}, data, ticket});
  } else {
    const std::uint64_t id = next_id_++;
    connection.asking[id] = {Frame{FrameKind::body, tag, data.size(), id}, data, ticket};
    connection.outgoing.push_back({Frame{FrameKind::ask, tag, data.size(), id}, {}, std::nullopt});
  }
  if (connection.socket.is_open() && !connection.writing) write(connection);
}

void TcpTransport::receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) {
  Connection& connection = this->connection(from, tag);
  const Want want{tag, data, ticket};
  const auto early = std::ranges::find(connection.earlies, tag, &Early::tag);
  const bool came = early != connection.earlies.end() && !early->ask;
  if (connection.ended && !came) lose(connection, 0);
  ++connection.open;
  ++open_;
  if (early == connection.earlies.end()) {
    connection.wants.push_back(want);
    return;
  }
  if (early->ask) {
    clear(connection, *early->ask, want);
  } else {
    check_length(from, data.size(), early->data.size());
    std::ranges::copy(early->data, data.begin());
    finish(connection, ticket);
  }
  connection.earlies.erase(early);
}

/// The receiver has a place for a message.
void TcpTransport::clear(Connection& connection, const Frame& ask, const Want& want) {
  check_length(connection.peer, want.to.size(), ask.bytes);
  connection.cleared[ask.id] = want;
  connection.outgoing.push_back({Frame{FrameKind::clear, ask.tag, ask.bytes, ask.id}, {}, std::nullopt});
  if (!connection.writing) write(connection);
}

void TcpTransport::finish(Connection& connection, Ticket ticket) {
  --connection.open;
  --open_;
  done_.push_back(ticket);
}

/// Until the socket takes no more, or there is no more.
void TcpTransport::write(Connection& connection) {
  while (!connection.outgoing.empty()) {
    std::array<iovec, 2 * kMostFramesAtOnce> parts{};
    std::size_t used = 0;
    std::size_t skipped = connection.sent;
    std::size_t all = 0;
    const auto add = [&](const void* data, std::size_t bytes) {
      const std::size_t skip = std::min(skipped, bytes);
      skipped -= skip;
      if (skip == bytes) return;
      parts[used++] = {const_cast<std::byte*>(static_cast<const std::byte*>(data)) + skip, bytes - skip};
      all += bytes - skip;
    };
    for (std::size_t i = 0; i < std::min(kMostFramesAtOnce, connection.outgoing.size()); ++i) {
      const Outgoing& outgoing = connection.outgoing[i];
      if (outgoing.frame) add(&*outgoing.frame, sizeof(Frame));
      add(outgoing.data.data(), outgoing.data.size());
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = used;
    const ssize_t result = sendmsg(connection.socket.descriptor(), &message, MSG_NOSIGNAL);
    if (result < 0 && !would_block(errno)) return end(connection, errno);
    const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(result, 0));
    moved_ = moved_ || bytes > 0;
    connection.sent += bytes;
    while (!connection.outgoing.empty()) {
      const Outgoing& first = connection.outgoing.front();
      const std::size_t whole = first.head() + first.data.size();
      if (connection.sent < whole) break;
      connection.sent -= whole;
      if (first.ticket) finish(connection, *first.ticket);
      connection.outgoing.pop_front();
    }
    if (bytes < all) break;
  }
  const bool waits = !connection.outgoing.empty();
  if (waits != connection.writing) watch(connection, EPOLL_CTL_MOD, waits);
}

/// Until the socket has no more, or others should have their turn.
void TcpTransport::read(Connection& connection) {
  for (std::size_t taken = 0; taken < kMostAtOnce && connection.socket.is_open();) {
    // Of what was read before, at most the beginning of a frame is left.
    std::copy(connection.buffer.begin() + static_cast<std::ptrdiff_t>(connection.begin),
              connection.buffer.begin() + static_cast<std::ptrdiff_t>(connection.end),
              connection.buffer.begin());
    connection.end -= std::exchange(connection.begin, 0);
    const std::span<std::byte> rest = connection.body ? connection.body->rest : std::span<std::byte>();
    std::array<iovec, 2> parts{
        iovec{rest.data(), rest.size()},
        iovec{connection.buffer.data() + connection.end, connection.buffer.size() - connection.end}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t result = recvmsg(connection.socket.descriptor(), &message, 0);
    if (result < 0 && would_block(errno)) return;
    if (result <= 0) return end(connection, result == 0 ? 0 : errno);
    const auto bytes = static_cast<std::size_t>(result);
    moved_ = true;
    taken += bytes;
    const std::size_t of_body = std::min(bytes, rest.size());
    connection.end += bytes - of_body;
    if (connection.body) {
      connection.body->rest = rest.subspan(of_body);
      if (connection.body->rest.empty()) end_body(connection);
    }
    take_frames(connection);
    if (bytes < rest.size() + parts[1].iov_len) return;
  }
}

/// From the buffer.
void TcpTransport::take_frames(Connection& connection) {
  while (!connection.body && connection.end - connection.begin >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, connection.buffer.data() + connection.begin, sizeof(frame));
    connection.begin += sizeof(frame);
    take(connection, frame);
  }
}

void TcpTransport::take(Connection& connection, const Frame& frame) {
  if (frame.kind == FrameKind::clear) {
    connection.outgoing.push_back(connection.asking.at(frame.id));
    connection.asking.erase(frame.id);
    if (!connection.writing) write(connection);
    return;
  }
  if (frame.kind == FrameKind::body) {
    const Want want = connection.cleared.at(frame.id);
    connection.cleared.erase(frame.id);
    return begin_body(connection, {want.to, want, {}, false});
  }
  if (frame.kind == FrameKind::farewell) {
    Connection::Body body;
    body.early = {frame.tag, std::vector<std::byte>(frame.bytes), std::nullopt};
    body.is_early = body.is_farewell = true;
    return begin_body(connection, std::move(body));
  }
  const auto found = std::ranges::find(connection.wants, frame.tag, &Want::tag);
  const bool wanted = found != connection.wants.end();
  Want want;
  if (wanted) {
    want = *found;
    connection.wants.erase(found);
  }
  if (frame.kind == FrameKind::ask) {
    if (wanted) return clear(connection, frame, want);
    connection.earlies.push_back({frame.tag, {}, frame});
    return;
  }
  if (wanted) {
    check_length(connection.peer, want.to.size(), frame.bytes);
    return begin_body(connection, {want.to, want, {}, false});
  }
  Connection::Body body;
  body.early = {frame.tag, std::vector<std::byte>(frame.bytes), std::nullopt};
  body.is_early = true;
  begin_body(connection, std::move(body));
}

void TcpTransport::begin_body(Connection& connection, Connection::Body body) {
  if (body.is_early) body.rest = body.early.data;
  const std::size_t here = std::min(body.rest.size(), connection.end - connection.begin);
  std::copy_n(connection.buffer.begin() + static_cast<std::ptrdiff_t>(connection.begin), here,
              body.rest.begin());
  connection.begin += here;
  body.rest = body.rest.subspan(here);
  connection.body = std::move(body);
  if (connection.body->rest.empty()) end_body(connection);
}

/// A receive may have been started since the message began to come.
void TcpTransport::end_body(Connection& connection) {
  Connection::Body body = *std::move(connection.body);
  connection.body.reset();
  if (!body.is_early) return finish(connection, body.want.ticket);
  if (body.is_farewell) {
    const std::vector<std::byte>& sentence = body.early.data;
    farewells_.try_emplace(connection.peer, static_cast<ExitCode>(body.early.tag),
                           std::string(reinterpret_cast<const char*>(sentence.data()), sentence.size()));
    return end(connection, 0);
  }
  const auto want = std::ranges::find(connection.wants, body.early.tag, &Want::tag);
  if (want == connection.wants.end()) {
    connection.earlies.push_back(std::move(body.early));
    return;
  }
  check_length(connection.peer, want->to.size(), body.early.data.size());
  std::ranges::copy(body.early.data, want->to.begin());
  finish(connection, want->ticket);
  connection.wants.erase(want);
}

/// A rank that has all it wanted may leave first.
void TcpTransport::end(Connection& connection, int error) {
  if (connection.open > 0 || connection.body) lose(connection, error);
  connection.ended = true;
  connection.outgoing.clear();
  connection.socket.close();
}

/// A farewell may have come on another connection to the same rank.
void TcpTransport::listen_to_others_of(const Connection& connection) {
  if (std::exchange(listens_, true)) return;
  for (const auto& other : connections_[index(connection.peer)]) {
    if (!other || other.get() == &connection || !other->socket.is_open()) continue;
    try {
      read(*other);
    } catch (const Error&) {
      // It is lost as well.
    }
  }
  listens_ = false;
}

void TcpTransport::lose(const Connection& connection, int error) {
  listen_to_others_of(connection);
  if (const auto told = farewells_.find(connection.peer); told != farewells_.end()) {
    cause_ = told->second;
    throw *cause_;
  }
  throw Error(ExitCode::mpi,
              fmt::format("the connection to rank {} at {} was lost: {}; see why that rank ended",
                          connection.peer, to_text(endpoints_[index(connection.peer)].endpoint),
                          error == 0 ? "it was closed" : std::strerror(error)));
}

bool TcpTransport::poll(std::vector<Ticket>& done) {
  moved_ = take_local(done);
  if (open_ == 0 && done_.empty()) return moved_;  // nothing is under way without a ticket
  if (expected_ > 0) accept();
  std::array<epoll_event, 64> events;
  const int ready = epoll_wait(events_.descriptor(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[index(i)];
    auto& connection = *static_cast<Connection*>(event.data.ptr);
    if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(connection);
    if ((event.events & EPOLLOUT) != 0 && connection.socket.is_open()) write(connection);
  }
  moved_ = moved_ || !done_.empty();
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
  return moved_;
}

std::vector<Rank> TcpTransport::awaited() const {
  std::vector<Rank> ranks;
  for (const auto& of_peer : connections_) {
    const auto is_open = [](const auto& connection) { return connection && connection->open > 0; };
    const auto open = std::ranges::find_if(of_peer, is_open);
    if (open != of_peer.end()) ranks.push_back((*open)->peer);
  }
  return ranks;
}

/// They have connected, and this rank had nothing for them yet.
void TcpTransport::take_those_who_wait() {
  try {
    accept();
  } catch (const Error&) {
    // Then they are not told.
  }
}

/// No socket uses a buffer that is not in a system call.
void TcpTransport::stop() {
  const std::optional<Error> farewell = cause_ ? cause_ : failure_of(rank_);
  if (farewell) take_those_who_wait();
  for (auto& of_peer : connections_) {
    for (const auto& connection : of_peer) {
      if (connection && farewell) say_farewell(*connection, *farewell);
    }
    of_peer.clear();
  }
  listener_.reset();  // who comes later is told at once
  expected_ = 0;
  open_ = 0;
  done_.clear();
}

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const Bootstrap& bootstrap, const TcpOptions& options,
                                              WaitRules rules) {
  return std::make_unique<TcpTransport>(bootstrap, options, std::move(rules));
}

}  // namespace polyring
