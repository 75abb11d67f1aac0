#include "tests/software_gpu/nccl/root.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "tests/software_gpu/nccl/matching.hpp"
#include "tests/software_gpu/nccl/plan.hpp"
#include "tests/software_gpu/nccl/wire.hpp"

namespace polyring::software_nccl {
namespace {

constexpr int kSharesGpus = NCCL_VERSION(2, 30, 0);
constexpr int kTickMs = 20;

/// Files of sockets that are still there: removed at the end of the process, too.
class Files {
 public:
  static Files& of_process() {
    static Files* const files = [] {
      std::atexit([] { of_process().remove_all(); });
      return new Files;  // detached threads use it to the end
    }();
    return *files;
  }
  void add(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.insert(path);
  }
  void remove(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (paths_.erase(path) > 0) unlink(path.c_str());
  }
  void remove_all() {
    const std::lock_guard lock(mutex_);
    for (const std::string& path : paths_) unlink(path.c_str());
    paths_.clear();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> paths_;
};

Message fault_message(const Fault& fault) {
  Message message{Kind::fault, fault.code, 0, std::vector<std::byte>(fault.text.size())};
  std::memcpy(message.content.data(), fault.text.data(), fault.text.size());
  return message;
}

bool equal(const char* a, const char* b) { return std::strcmp(a, b) == 0; }

/// Throws Fault where NCCL would refuse the ranks.
void check_together(const std::vector<Hello>& hellos) {
  const Hello& first = hellos.front();
  for (const Hello& each : hellos) {
    if (each.version != first.version) {
      throw Fault{ncclInvalidUsage, fmt::format("rank {} has version {}, and rank {} has version {}",
                                                first.rank, first.version, each.rank, each.version)};
    }
    for (const Hello& other : hellos) {
      const bool one_gpu =
          other.rank < each.rank && equal(other.host, each.host) && equal(other.bus_id, each.bus_id);
      if (!one_gpu || (first.version >= kSharesGpus && each.shares_gpu && other.shares_gpu)) continue;
      throw Fault{ncclInvalidUsage, fmt::format("duplicate GPU: rank {} and rank {} on {} both use {}",
                                                other.rank, each.rank, each.host, each.bus_id)};
    }
  }
}

class Root {
 public:
  Root(Connection listener, std::string path) : listener_(std::move(listener)), path_(std::move(path)) {}
  ~Root() { Files::of_process().remove(path_); }

  /// Returns when all ranks have come and gone.
  void run() {
    while (!is_over()) {
      wait_for_messages();
      check_time();
    }
  }

 private:
  struct Peer {
    Connection connection;
    int rank = -1;
    bool left = false;  // said goodbye
  };

  bool is_over() const { return came_ > 0 && peers_.empty() && (came_ == size_ || fault_); }
  void wait_for_messages();
  void check_time();
  void take(Peer& peer);
  void take_hello(Peer& peer, const Message& message);
  void take_goodbye(Peer& peer);
  void welcome_all();
  void answer();
  void lose(Peer& peer);
  void fail(const Fault& fault);
  template <typename Action>
  void attempt(Action&& action) {
    try {
      action();
    } catch (const Fault& fault) {
      fail(fault);
    }
  }

  Connection listener_;
  std::string path_;
  std::vector<Peer> peers_;
  std::vector<Hello> hellos_;
  int size_ = 0;  // unknown before the first rank
  int came_ = 0;
  int left_ = 0;
  Time first_came_;
  std::optional<Matching> matching_;
  std::optional<Fault> fault_;
};

void Root::wait_for_messages() {
  std::vector<pollfd> polled{{listener_.descriptor(), POLLIN, 0}};
  for (const Peer& peer : peers_) polled.push_back({peer.connection.descriptor(), POLLIN, 0});
  if (poll(polled.data(), polled.size(), peers_.empty() ? -1 : kTickMs) <= 0) return;
  for (std::size_t index = 1; index < polled.size(); ++index) {
    if (polled[index].revents != 0) take(peers_[index - 1]);
  }
  std::erase_if(peers_, [](const Peer& peer) { return !peer.connection.is_open(); });
  if (polled[0].revents != 0) {
    if (Connection connection = accept_from(listener_); connection.is_open()) {
      peers_.push_back({std::move(connection)});
    }
  }
}

void Root::check_time() {
  const Time now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> longest(limit());
  if (fault_) return;
  attempt([&] {
    if (matching_) return matching_->check_progress(now, longest);
    if (came_ == 0 || now - first_came_ < longest) return;
    throw Fault{ncclInternalError,
                fmt::format("the start hangs: only {} of {} ranks have come", came_, size_)};
  });
}

void Root::take(Peer& peer) {
  const std::optional<Message> message = peer.connection.read();
  if (!message) return lose(peer);
  switch (message->kind) {
    case Kind::hello:
      return take_hello(peer, *message);
    case Kind::group: {
      if (fault_ || !matching_) return;
      std::vector<Operation> operations(message->items);
      const std::size_t bytes = operations.size() * sizeof(Operation);
      std::memcpy(operations.data(), message->content.data(), bytes);
      const Bytes inputs(message->content.begin() + static_cast<std::ptrdiff_t>(bytes),
                         message->content.end());
      attempt([&] {
        matching_->submit(peer.rank, std::move(operations), inputs, std::chrono::steady_clock::now());
        answer();
      });
      return;
    }
    case Kind::goodbye:
      return take_goodbye(peer);
    default:
      return fail({ncclInternalError, "the root got a message that ranks do not send"});
  }
}

void Root::take_hello(Peer& peer, const Message& message) {
  Hello hello;
  std::memcpy(&hello, message.content.data(), sizeof hello);
  peer.rank = hello.rank;
  if (came_++ == 0) {
    first_came_ = std::chrono::steady_clock::now();
    size_ = hello.size;
  }
  if (fault_) {
    peer.connection.write(fault_message(*fault_));
    return;
  }
  const bool twice = std::any_of(hellos_.begin(), hellos_.end(),
                                 [&](const Hello& other) { return other.rank == hello.rank; });
  if (twice || hello.size != size_) {
    return fail(
        {ncclInvalidUsage, fmt::format("rank {} of {} came {}", hello.rank, hello.size,
                                       twice ? "twice" : fmt::format("to a communicator of {}", size_))});
  }
  hellos_.push_back(hello);
  if (came_ == size_) attempt([&] { welcome_all(); });
}

void Root::welcome_all() {
  Files::of_process().remove(path_);
  check_together(hellos_);
  matching_.emplace(size_);
  for (const Peer& peer : peers_) peer.connection.write({Kind::welcome, ncclSuccess, 0, {}});
}

void Root::answer() {
  for (auto& [rank, outputs] : matching_->take_complete()) {
    for (const Peer& peer : peers_) {
      if (peer.rank == rank) peer.connection.write({Kind::result, ncclSuccess, 0, std::move(outputs)});
    }
  }
}

void Root::take_goodbye(Peer& peer) {
  peer.left = true;
  if (matching_) matching_->leave(peer.rank);
  if (++left_ < size_) return;
  for (const Peer& each : peers_) each.connection.write({Kind::farewell, ncclSuccess, 0, {}});
}

/// A rank has closed its connection, or its process has ended.
void Root::lose(Peer& peer) {
  const bool in_order = peer.left || fault_;
  const int rank = peer.rank;
  peer.connection = Connection();
  if (!in_order)
    fail(
        {ncclRemoteError, fmt::format("rank {} has gone without ncclCommFinalize or ncclCommDestroy", rank)});
}

void Root::fail(const Fault& fault) {
  if (fault_) return;
  fault_ = fault;
  for (const Peer& peer : peers_) {
    if (peer.connection.is_open() && peer.rank >= 0) peer.connection.write(fault_message(fault));
  }
}

}  // namespace

std::string start_root() {
  auto [listener, path] = listen_at_new_path();
  Files::of_process().add(path);
  std::thread([listening = std::move(listener), path = path]() mutable {
    Root(std::move(listening), path).run();
  }).detach();
  return path;
}

}  // namespace polyring::software_nccl
