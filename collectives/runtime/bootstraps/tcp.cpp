#include "collectives/runtime/bootstraps/tcp.hpp"

#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenTries{20};

/// When something was last heard, and whether that is too long ago.
class Silence {
 public:
  explicit Silence(Seconds limit)
      : limit_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit.value))) {}
  bool is_too_long() const { return Clock::now() - begin_ > limit_; }
  void end() { begin_ = Clock::now(); }

 private:
  Clock::duration limit_;
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
  Line(const Socket& socket, Rank peer, Seconds timeout)
      : socket_(socket), peer_(peer), timeout_(timeout), silence_(timeout) {}

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
      check(moved, POLLIN);
    }
  }

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
      throw Error(ExitCode::timeout,
                  fmt::format("waited {} for rank {}; see whether it still runs", to_text(timeout_), peer_));
    await(socket_, events);
  }

  const Socket& socket_;
  Rank peer_;
  Seconds timeout_;
  Silence silence_;
};

/// What rank 0 says first, whenever the others wait for it.
enum class Word : std::uint8_t { failed, done };

/// Throws what has failed at rank 0.
void hear_root(Line& root) {
  if (root.read_value<Word>() == Word::done) return;
  const auto code = root.read_value<ExitCode>();
  std::string sentence(root.read_value<std::uint64_t>(), ' ');
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
  for (Rank rank = 0; rank < ranks; ++rank) everyones.emplace_back(line.read_value<std::uint64_t>());
  for (std::vector<std::byte>& bytes : everyones) line.read(bytes);
  return everyones;
}

/// Rank 0 may be waiting for another rank, and knows which.
Line line_to_root(const Socket& root, Seconds timeout) { return {root, 0, 1.5 * timeout}; }

}  // namespace

TcpBootstrap::TcpBootstrap(TcpGroup group) : group_(std::move(group)) {
  if (group_.size < 1 || group_.rank < 0 || group_.rank >= group_.size)
    usage_error("there is no rank {} of {}; ranks count from 0", group_.rank, group_.size);
  if (group_.size == 1) return;
  if (group_.rank == 0) {
    as_root([this] { gather_guests(); });
  } else {
    connect_to_root();
  }
}

/// What fails in here on rank 0 is thrown there, and on the others, too.
void TcpBootstrap::as_root(const std::function<void()>& action) const {
  try {
    action();
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    for (Rank rank = 1; rank < static_cast<Rank>(others_.size()); ++rank) {
      if (!others_[index(rank)].is_open()) continue;
      try {
        Line line(others_[index(rank)], rank, kLastWord);
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

/// A rank of the group is let in once.
void TcpBootstrap::gather_guests() {
  Listener listener("", group_.root.port, hash(group_.secret));
  others_.resize(index(group_.size));
  Silence silence(group_.timeout);
  for (int missing = group_.size - 1; missing > 0;) {
    std::vector<Listener::Guest> guests = listener.admit();
    for (Listener::Guest& guest : guests) {
      if (guest.number != static_cast<std::uint32_t>(group_.size))
        usage_error("rank {} expects {} ranks, and rank 0 expects {}; tell all ranks the same number",
                    guest.rank, guest.number, group_.size);
      if (guest.rank == 0 || guest.rank >= guest.number || others_[guest.rank].is_open())
        usage_error("rank {} came twice; give each process a rank of its own", guest.rank);
      others_[guest.rank] = std::move(guest.socket);
      --missing;
      silence.end();
    }
    if (missing == 0) break;
    if (silence.is_too_long()) {
      std::vector<Rank> absent;
      for (Rank rank = 1; rank < group_.size; ++rank) {
        if (!others_[index(rank)].is_open()) absent.push_back(rank);
      }
      throw Error(
          ExitCode::timeout,
          fmt::format("waited {} at port {} for rank{} {}; see whether they were started, and reach {}",
                      to_text(group_.timeout), listener.port(), absent.size() == 1 ? "" : "s",
                      fmt::join(absent, ", "), to_text(group_.root)));
    }
    if (guests.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Now all are here, and each may know.
  for (Rank rank = 1; rank < group_.size; ++rank)
    Line(others_[index(rank)], rank, group_.timeout).write_value(Word::done);
}

/// Rank 0 may not listen yet, or not be there.
void TcpBootstrap::connect_to_root() {
  const std::vector<std::byte> greeting = Listener::greeting(
      hash(group_.secret), static_cast<std::uint32_t>(group_.rank), static_cast<std::uint32_t>(group_.size));
  const Silence silence(group_.timeout);
  int error = 0;
  while (!silence.is_too_long()) {
    Socket socket = begin_connecting(group_.root);
    std::span<const std::byte> left = greeting;
    for (error = 0; error == 0 && !left.empty() && !silence.is_too_long();) {
      const Moved moved = write_some(socket, left);
      error = moved.error;
      left = left.subspan(moved.bytes);
      if (!left.empty() && error == 0) await(socket, POLLOUT);
    }
    if (left.empty()) {
      others_.push_back(std::move(socket));
      Line root = line_to_root(others_.front(), group_.timeout);
      return hear_root(root);
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  throw Error(ExitCode::timeout, fmt::format("waited {} to reach rank 0 at {}{}; see whether it runs there",
                                             to_text(group_.timeout), to_text(group_.root),
                                             error == 0 ? "" : fmt::format(": {}", std::strerror(error))));
}

std::vector<std::vector<std::byte>> TcpBootstrap::allgather(std::span<const std::byte> own) const {
  std::vector<std::vector<std::byte>> everyones;
  if (group_.rank > 0) {
    Line root = line_to_root(others_.front(), group_.timeout);
    root.write_value(std::uint64_t{own.size()});
    root.write(own);
    return read_all(root, group_.size);
  }
  as_root([&] {
    everyones.emplace_back(own.begin(), own.end());
    for (Rank rank = 1; rank < group_.size; ++rank) {
      Line line(others_[index(rank)], rank, group_.timeout);
      everyones.emplace_back(line.read_value<std::uint64_t>());
      line.read(everyones.back());
    }
    for (Rank rank = 1; rank < group_.size; ++rank) {
      Line line(others_[index(rank)], rank, group_.timeout);
      write_all(line, everyones);
    }
  });
  return everyones;
}

}  // namespace polyring
