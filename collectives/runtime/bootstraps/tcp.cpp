#include "collectives/runtime/bootstraps/tcp.hpp"

#include <fmt/ranges.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"
#include "topology/rank_hosts.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenTries{20};
constexpr std::chrono::milliseconds kBetweenLookups{500};

/// When something was last heard, and whether that is too long ago.
class Silence {
 public:
  explicit Silence(Seconds limit) : limit_(limit) {}
  bool is_too_long() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count() > limit_.value;
  }
  void end() { begin_ = Clock::now(); }
  Seconds limit() const { return limit_; }

 private:
  Seconds limit_;
  Clock::time_point begin_ = Clock::now();
};

/// FNV-1a, by Fowler, Noll and Vo.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char letter : text) value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return value;
}

/// The next look at the socket comes when it is ready, or soon.
void await(const Socket& socket, short events) {
  pollfd one{socket.descriptor(), events, 0};
  poll(&one, 1, static_cast<int>(kBetweenTries.count()));
}

/// For what rank 0 has to say to others when it has failed.
constexpr Seconds kLastWord{1};

/// Moves bytes to or from one other rank.
class Line {
 public:
  Line(const Socket& socket, Rank peer, Silence silence) : socket_(socket), peer_(peer), silence_(silence) {}

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const Moved moved = write_some(socket_, bytes);
      bytes = bytes.subspan(moved.bytes);
      check(moved, POLLOUT);
    }
  }

  void read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const Moved moved = read_some(socket_, bytes);
      bytes = bytes.subspan(moved.bytes);
      has_read_ = has_read_ || moved.bytes > 0;
      check(moved, POLLIN);
    }
  }
  bool has_read() const { return has_read_; }

  template <typename Value>
  void write_value(const Value& value) {
    write(std::as_bytes(std::span(&value, 1)));
  }
  template <typename Value>
  Value read_value() {
    Value value{};
    read(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

 private:
  void check(const Moved& moved, short events) {
    if (moved.ended || moved.error != 0) {
      throw Error(ExitCode::mpi,
                  fmt::format("the connection to rank {} was lost: {}; see why that rank ended", peer_,
                              moved.ended ? "it was closed" : std::strerror(moved.error)));
    }
    if (moved.bytes > 0) return silence_.end();
    if (silence_.is_too_long())
      throw Error(ExitCode::timeout, fmt::format("waited {} for rank {}; see whether it still runs",
                                                 to_text(silence_.limit()), peer_));
    await(socket_, events);
  }

  const Socket& socket_;
  Rank peer_;
  Silence silence_;
  bool has_read_ = false;
};

/// What rank 0 says first, whenever the others wait for it.
enum class Word : std::uint8_t { failed, done };

/// Longer than any sentence that rank 0 says, and than what any rank gives to an allgather.
constexpr std::uint64_t kLongestSentence = 1 << 16;
constexpr std::uint64_t kLongestGathered = 1 << 30;

[[noreturn]] void refuse_stranger() {
  usage_error("what answers is not rank 0 of this group; check its address and port");
}

/// Throws what has failed at rank 0. What else may answer on its port is not believed.
void hear_root(Line& root) {
  const auto word = root.read_value<Word>();
  if (word == Word::done) return;
  const auto code = word == Word::failed ? root.read_value<ExitCode>() : ExitCode::usage;
  const auto length = word == Word::failed ? root.read_value<std::uint64_t>() : 0;
  if (length == 0 || length > kLongestSentence) refuse_stranger();
  std::string sentence(length, ' ');
  root.read(std::as_writable_bytes(std::span(sentence)));
  throw Error(code, sentence);
}

void write_all(Line& line, const std::vector<std::vector<std::byte>>& everyones) {
  line.write_value(Word::done);
  for (const std::vector<std::byte>& bytes : everyones) line.write_value(std::uint64_t{bytes.size()});
  for (const std::vector<std::byte>& bytes : everyones) line.write(bytes);
}

std::vector<std::vector<std::byte>> read_all(Line& line, int ranks) {
  hear_root(line);
  std::vector<std::vector<std::byte>> everyones;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto length = line.read_value<std::uint64_t>();
    if (length > kLongestGathered) refuse_stranger();
    everyones.emplace_back(length);
  }
  for (std::vector<std::byte>& bytes : everyones) line.read(bytes);
  return everyones;
}

/// Rank 0 may be waiting for another rank, and knows which.
Line line_to_root(const Socket& root, Seconds timeout) { return {root, 0, Silence(1.5 * timeout)}; }

/// Where nobody listens yet, a socket may find its own port, and itself there.
bool is_connected_to_itself(const Socket& socket) {
  sockaddr_in own{};
  sockaddr_in other{};
  socklen_t size = sizeof(own);
  socklen_t other_size = sizeof(other);
  return getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
         getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&other), &other_size) == 0 &&
         own.sin_port == other.sin_port && own.sin_addr.s_addr == other.sin_addr.s_addr;
}

/// One try; the socket is closed where it comes to nothing, with the reason.
Socket try_to_connect(const TcpGroup& group, const Silence& silence, std::string& why) {
  const std::vector<std::byte> greeting = Listener::greeting(
      hash(group.secret), static_cast<std::uint32_t>(group.rank), static_cast<std::uint32_t>(group.size));
  Socket socket;
  try {
    socket = begin_connecting(group.root);
  } catch (const Error& error) {
    why = error.what();  // a name that is not known yet, say
    std::this_thread::sleep_for(kBetweenLookups);
    return {};
  }
  std::span<const std::byte> left = greeting;
  while (!left.empty() && !silence.is_too_long()) {
    const Moved moved = write_some(socket, left);
    if (moved.error != 0) {
      why = std::strerror(moved.error);
      return {};
    }
    left = left.subspan(moved.bytes);
    if (!left.empty()) await(socket, POLLOUT);
  }
  if (!left.empty() || is_connected_to_itself(socket)) return {};
  return socket;
}

/// Makes an Error of any other exception.
void as_errors(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // no memory, say
    throw Error(ExitCode::internal, fmt::format("rank 0 cannot go on: {}", error.what()));
  }
}

}  // namespace

std::shared_ptr<Listener> listen_for(const std::string& secret) {
  return std::make_shared<Listener>("", 0, hash(secret));
}

TcpBootstrap::TcpBootstrap(TcpGroup group) : group_(std::move(group)) {
  if (group_.size < 1 || group_.rank < 0 || group_.rank >= group_.size)
    usage_error("there is no rank {} of {}; ranks count from 0", group_.rank, group_.size);
  if (group_.size == 1) return;
  if (group_.rank == 0) {
    as_root([this] { gather_peers(); });
  } else {
    connect_to_root();
  }
}

/// What fails in here on rank 0 is thrown there, and on the others, too.
void TcpBootstrap::as_root(const std::function<void()>& action) const {
  try {
    as_errors(action);
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    for (const Socket& other : others_) {
      if (!other.is_open()) continue;
      try {
        Line line(other, 0, Silence(kLastWord));
        line.write_value(Word::failed);
        line.write_value(error.code());
        line.write_value(std::uint64_t{sentence.size()});
        line.write(std::as_bytes(std::span(sentence)));
      } catch (const Error&) {
        // That rank has ended, or hears nothing.
      }
    }
    throw;
  }
}

/// All that have come by now; true when nobody is missing any more.
bool TcpBootstrap::take_peers(Listener& listener) {
  const auto size = static_cast<std::uint32_t>(group_.size);
  for (Listener::Peer& peer : listener.accept()) {
    const bool is_new = peer.rank > 0 && peer.rank < size && !others_[peer.rank].is_open();
    if (is_new && peer.number == size) {
      others_[peer.rank] = std::move(peer.socket);
      continue;
    }
    others_.push_back(std::move(peer.socket));  // so that it is told
    if (peer.number != size)
      usage_error("rank {} expects {} ranks, and rank 0 expects {}; tell all ranks the same number",
                  peer.rank, peer.number, size);
    usage_error("rank {} came {}; give each process a rank of its own, from 0 to {}", peer.rank,
                peer.rank < size ? "twice" : "too", size - 1);
  }
  return std::ranges::all_of(others_.begin() + 1, others_.end(), &Socket::is_open);
}

void TcpBootstrap::gather_peers() {
  others_.resize(index(group_.size));
  {
    const std::shared_ptr<Listener> listener =
        group_.listener ? std::exchange(group_.listener, nullptr)
                        : std::make_shared<Listener>("", group_.root.port, hash(group_.secret));
    const Silence silence(group_.timeout);
    while (!take_peers(*listener)) {
      if (silence.is_too_long()) {
        std::vector<Rank> absent;
        for (Rank rank = 1; rank < group_.size; ++rank) {
          if (!others_[index(rank)].is_open()) absent.push_back(rank);
        }
        throw Error(ExitCode::timeout,
                    fmt::format("waited {} at port {} for {}; see whether they were started, and reach {}",
                                to_text(group_.timeout), listener->port(), ranks_text(absent, {}),
                                to_text(group_.root)));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  for (Rank rank = 1; rank < group_.size; ++rank)
    Line(others_[index(rank)], rank, Silence(group_.timeout)).write_value(Word::done);
}

/// Rank 0 may not listen yet, or not be there.
void TcpBootstrap::connect_to_root() {
  const Silence silence(group_.timeout);
  std::string why;
  while (!silence.is_too_long()) {
    Socket socket = try_to_connect(group_, silence, why);
    if (!socket.is_open()) {
      std::this_thread::sleep_for(kBetweenTries);
      continue;
    }
    others_.push_back(std::move(socket));
    Line root = line_to_root(others_.front(), group_.timeout);
    try {
      return hear_root(root);
    } catch (const Error& error) {
      if (error.code() != ExitCode::mpi || root.has_read()) throw;
      throw Error(ExitCode::mpi,
                  fmt::format("rank 0 at {} closed the connection: it has ended, or was given another secret",
                              to_text(group_.root)));
    }
  }
  throw Error(ExitCode::timeout,
              fmt::format("waited {} to reach rank 0 at {}{}; see whether it runs there",
                          to_text(group_.timeout), to_text(group_.root), why.empty() ? "" : ": " + why));
}

std::vector<std::vector<std::byte>> TcpBootstrap::allgather(std::span<const std::byte> own) const {
  if (failure_) throw *failure_;
  try {
    return gather(own);
  } catch (const Error& error) {
    failure_ = error;  // a part of this round may still be under way
    throw;
  }
}

std::vector<std::vector<std::byte>> TcpBootstrap::gather(std::span<const std::byte> own) const {
  std::vector<std::vector<std::byte>> everyones;
  if (group_.rank > 0) {
    Line root = line_to_root(others_.front(), group_.timeout);
    try {
      root.write_value(std::uint64_t{own.size()});
      root.write(own);
    } catch (const Error&) {
      hear_root(root);  // it may have said why
      throw;
    }
    return read_all(root, group_.size);
  }
  const Silence silence(group_.timeout);
  as_root([&] {
    everyones.emplace_back(own.begin(), own.end());
    for (Rank rank = 1; rank < group_.size; ++rank) {
      Line line(others_[index(rank)], rank, silence);
      everyones.emplace_back(line.read_value<std::uint64_t>());
      line.read(everyones.back());
    }
    for (Rank rank = 1; rank < group_.size; ++rank) {
      Line line(others_[index(rank)], rank, Silence(group_.timeout));
      write_all(line, everyones);
    }
  });
  return everyones;
}

}  // namespace polyring
