#include "bench/session/process_watch.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/random_token.hpp"
#include "collectives/runtime/net/address.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongestConnect{5000};
constexpr milliseconds kPeriod{100};
/// Within this the end of a process is heard of after another one has given up for it.
constexpr milliseconds kUntilHeard{60};
constexpr std::byte kFarewell{'.'};
/// With an exit code in the other bits.
constexpr std::byte kGaveUp{0x80};

/// Where rank 0 listens, for the others. Plain data: ranks send it to each other.
struct Meeting {
  std::array<char, 64> address{};
  int port = 0;  // 0: nowhere
  std::uint64_t secret = 0;
};

/// Whether the socket is ready for these events before `until`.
bool await(const Socket& socket, short events, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
  pollfd one{socket.descriptor(), events, 0};
  return ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(0, left))) == 1;
}

/// Whether all was written before `until`.
bool write_all(const Socket& socket, std::span<const std::byte> bytes, Clock::time_point until) {
  while (!bytes.empty()) {
    const Moved moved = write_some(socket, bytes);
    if (moved.ended || moved.error != 0) return false;
    bytes = bytes.subspan(moved.bytes);
    if (moved.bytes == 0 && !await(socket, POLLOUT, until)) return false;
  }
  return true;
}

/// While rank 0 waits for connections, the others wait for it, and must not give up.
milliseconds longest_connect(const World& world) {
  return std::min(kLongestConnect, milliseconds(static_cast<std::int64_t>(1000 * world.timeout().value / 3)));
}

/// How many processes the job has beside rank 0's.
std::size_t others_of(const World& world) {
  std::set<Rank> firsts;
  for (Rank rank = 0; rank < world.size(); ++rank) firsts.insert(world.first_of_process(rank));
  return firsts.size() - 1;
}

}  // namespace

ProcessWatch::ProcessWatch(const World& world, Ended ended) : ended_(std::move(ended)) {
  bool here = false;
  try {
    here = world.rank() == 0 ? accept(world) : connect(world);
  } catch (const Error&) {
    here = false;  // the others must hear of it, as below
  }
  works_ = world.sum(here ? 0 : 1) == 0;
  listener_.reset();
  if (works_ && !watched_.empty()) thread_ = std::thread([this] { watch(); });
}

ProcessWatch::~ProcessWatch() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
  for (const Watched& one : watched_) write_all(one.socket, std::span(&kFarewell, 1), Clock::now() + kPeriod);
}

void ProcessWatch::give_up(ExitCode code) const {
  const std::byte said = kGaveUp | static_cast<std::byte>(code);
  const std::lock_guard lock(mutex_);
  for (const Watched& one : watched_) write_all(one.socket, std::span(&said, 1), Clock::now() + kPeriod);
}

bool ProcessWatch::accept(const World& world) {
  Meeting meeting;
  const std::size_t others = others_of(world);
  try {
    const std::string address =
        choose_address(network_interfaces(), "", default_interface(), world.nodes() > 1);
    meeting.secret = random_token();
    listener_ = std::make_unique<Listener>("", 0, meeting.secret);
    meeting.port = listener_->port();
    address.copy(meeting.address.data(), meeting.address.size() - 1);
  } catch (const Error&) {
    meeting.port = 0;
  }
  world.allgather(std::as_bytes(std::span(&meeting, 1)));
  if (meeting.port == 0) return others == 0;
  const auto until = Clock::now() + longest_connect(world);
  while (watched_.size() < others && Clock::now() < until) {
    for (Listener::Peer& peer : listener_->accept())
      watched_.push_back({std::move(peer.socket), static_cast<Rank>(peer.rank)});
    std::this_thread::sleep_for(milliseconds(1));
  }
  return watched_.size() == others;
}

bool ProcessWatch::connect(const World& world) {
  Meeting meeting;
  const std::vector<std::byte> told = world.allgather({}).front();
  std::memcpy(&meeting, told.data(), std::min(told.size(), sizeof meeting));
  if (meeting.port == 0) return false;
  if (!world.is_first_of_process() || world.first_of_process(0) == world.first_of_process(world.rank()))
    return true;
  const auto until = Clock::now() + longest_connect(world);
  watched_.push_back({begin_connecting({meeting.address.data(), meeting.port}), 0});
  const Socket& to_root = watched_.front().socket;
  return await(to_root, POLLOUT, until) &&
         write_all(to_root, Listener::greeting(meeting.secret, static_cast<std::uint32_t>(world.rank()), 0),
                   until);
}

void ProcessWatch::watch() {
  while (!over_ && !watched_.empty()) {
    std::vector<pollfd> polled;
    for (const Watched& one : watched_) polled.push_back({one.socket.descriptor(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), static_cast<int>(kPeriod.count())) <= 0) continue;
    Ends ends;
    hear(ends);
    if (over_ || (!ends.dead && !ends.gave_up)) continue;
    // One that gives up may do so for another that died: that is to be named. A death is told of at once,
    // since it may end the launcher, and this process with it.
    for (const auto until = Clock::now() + kUntilHeard; !ends.dead && Clock::now() < until; hear(ends))
      std::this_thread::sleep_for(milliseconds(5));
    return ended_(ends.dead ? ProcessEnd{*ends.dead} : *ends.gave_up);
  }
}

/// Which processes have come to their ends since they were last asked.
void ProcessWatch::hear(Ends& ends) {
  for (std::size_t i = watched_.size(); i-- > 0;) {
    Watched& one = watched_[i];
    std::byte said{};
    const Moved moved = read_some(one.socket, std::span(&said, 1));
    if (moved.bytes == 0 && !moved.ended && moved.error == 0) continue;
    const bool gives_up = moved.bytes > 0 && (said & kGaveUp) == kGaveUp;
    if (gives_up) one.gave_up = static_cast<ExitCode>(said & ~kGaveUp);
    if (gives_up && one.rank == 0) continue;  // it has still something to say
    if (one.gave_up) {
      ends.gave_up = {one.rank, one.gave_up};
    } else if (moved.bytes == 0) {
      const Clock::time_point died = Clock::now() - since_last_heard(one.socket);
      if (!ends.dead || died < ends.died) {
        ends.dead = one.rank;
        ends.died = died;
      }
    }
    const std::lock_guard lock(mutex_);
    watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace polyring
