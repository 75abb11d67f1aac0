#include "collectives/runtime/transports/mpi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <set>
#include <string>

#include "base/error.hpp"
#include "collectives/runtime/backoff.hpp"
#include "collectives/runtime/mpi/handle.hpp"
#include "collectives/runtime/mpi/process_manager.hpp"
#include "collectives/runtime/net/rdma.hpp"

namespace polyring {
namespace {

/// All of it together.
constexpr Seconds kCancelling{1};
/// Of 8, 16 and 32 KiB the longest that UCX 1.13 sends over TCP without a rendezvous (docs/performance.md).
constexpr Bytes kUcxTcpPiece{std::uint64_t{16} << 10};

/// At least kMostStreams, as MPI promises.
int most_tags(MPI_Comm comm) {
  int* largest = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&largest), &found), "MPI_Comm_get_attr");
  return found != 0 && *largest >= kMostStreams ? std::min(*largest, 1 << 30) : kMostStreams;
}

class MpiTransport final : public PollingTransport {
 public:
  /// Takes `own` over, to use it in place of the world's communicator.
  MpiTransport(const MpiWorld& world, MpiPieces pieces, WaitRules rules, WhenStuck when_stuck,
               MPI_Comm own = MPI_COMM_NULL)
      : PollingTransport(std::move(rules)),
        world_(world),
        pieces_(pieces),
        when_stuck_(when_stuck),
        own_(own),
        comm_(own == MPI_COMM_NULL ? world.handle().comm : own),
        tags_(most_tags(comm_)) {}
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  Rank rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  int tags() const override { return tags_; }

  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override {
    start(data.size(), to, false, ticket, [&](std::size_t offset, int bytes, MPI_Request* request) {
      check(MPI_Isend(data.data() + offset, bytes, MPI_BYTE, to, tag, comm_, request), "MPI_Isend to", to);
    });
  }

  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override {
    start(data.size(), from, true, ticket, [&](std::size_t offset, int bytes, MPI_Request* request) {
      check(MPI_Irecv(data.data() + offset, bytes, MPI_BYTE, from, tag, comm_, request), "MPI_Irecv from",
            from);
    });
  }

  bool poll(std::vector<Ticket>& done) override;
  std::vector<Rank> awaited() const override;

 protected:
  void stop() override;

 private:
  /// One send or receive, of one piece or more.
  struct Message {
    Ticket ticket;
    Rank peer;
    bool receives;
    int pieces;
  };

  template <typename Start>
  void start(std::size_t bytes, Rank peer, bool receives, Ticket ticket, Start start_piece) {
    const std::size_t message = free_.empty() ? messages_.size() : free_.back();
    if (free_.empty()) {
      messages_.emplace_back();
    } else {
      free_.pop_back();
    }
    messages_[message] = {ticket, peer, receives, 0};
    const Bytes longest = world_.shares_host_with(peer) ? pieces_.in_host : pieces_.between_hosts;
    std::size_t offset = 0;
    do {
      const std::size_t piece = std::min<std::size_t>(longest.value, bytes - offset);
      requests_.push_back(MPI_REQUEST_NULL);
      owners_.push_back(message);
      ++messages_[message].pieces;
      start_piece(offset, static_cast<int>(piece), &requests_.back());
      offset += piece;
    } while (offset < bytes);
  }

  bool test(std::vector<Ticket>& done);
  bool cancel_all();
  [[noreturn]] void end_job() const;
  void check_some(int result, int number) const;

  /// A peer that has died is often found out this way, before its launcher tells.
  void check(int result, std::string_view call, Rank peer) const {
    if (result != MPI_SUCCESS)
      check_mpi(result, fmt::format("{} rank {} ({})", call, peer, world_.host(peer)));
  }

  const MpiWorld& world_;
  MpiPieces pieces_;
  WhenStuck when_stuck_;
  MPI_Comm own_;  // to be freed
  MPI_Comm comm_;
  int tags_;
  std::vector<MPI_Request> requests_;  // in flight; owners_ says whose
  std::vector<std::size_t> owners_;
  std::vector<Message> messages_;
  std::vector<std::size_t> free_;
  std::vector<int> completed_;
  std::vector<MPI_Status> statuses_;  // of these
};

MpiTransport::~MpiTransport() {
  // Something is left only where somebody went on without abandon().
  if (!requests_.empty()) own_ = MPI_COMM_NULL;
  if (!cancel_all()) {
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }
  if (own_ != MPI_COMM_NULL) MPI_Comm_free(&own_);
}

/// A message that has begun to arrive cannot be cancelled, and may never be whole; nor can one that is being
/// sent. False when one of these is not over in time.
bool MpiTransport::cancel_all() {
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
  }
  Backoff backoff(kCancelling, true);
  int all = requests_.empty() ? 1 : 0;
  while (all == 0) {
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
    if (all == 0 && !backoff.again()) return false;
  }
  return true;
}

/// MPI would go on with memory that its user may free.
void MpiTransport::end_job() const {
  std::string why = "given up";
  if (const std::exception_ptr failure = std::current_exception()) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  fmt::print(
      stderr,
      "polyring: rank {} ({}): {}; the job ends, as messages are under way that cannot be called back\n",
      rank(), world_.host(), why);
  std::fflush(stderr);
  world_.abort(static_cast<int>(ExitCode::mpi));
}

void MpiTransport::stop() {
  if (!cancel_all() && when_stuck_ == WhenStuck::end_job) end_job();
  // Messages for it may still come. MPI must not give its number to another communicator.
  own_ = MPI_COMM_NULL;
  requests_.clear();
  owners_.clear();
  messages_.clear();
  free_.clear();
}

void MpiTransport::check_some(int result, int number) const {
  for (int i = 0; result == MPI_ERR_IN_STATUS && i < number; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Message& message = messages_[owners_[static_cast<std::size_t>(completed_[at])]];
    check(statuses_[at].MPI_ERROR, message.receives ? "a message from" : "a message to", message.peer);
  }
  check_mpi(result, "MPI_Testsome");
}

bool MpiTransport::test(std::vector<Ticket>& done) {
  int number = 0;
  completed_.resize(requests_.size());
  statuses_.resize(requests_.size());
  const int result = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &number,
                                  completed_.data(), statuses_.data());
  if (result != MPI_SUCCESS) check_some(result, number);
  if (number == MPI_UNDEFINED || number == 0) return false;
  // From the back, so that the last request may take the place of each that is done.
  std::sort(completed_.begin(), completed_.begin() + number, std::greater<>());
  for (int i = 0; i < number; ++i) {
    const auto at = static_cast<std::size_t>(completed_[static_cast<std::size_t>(i)]);
    const std::size_t owner = owners_[at];
    requests_[at] = requests_.back();
    owners_[at] = owners_.back();
    requests_.pop_back();
    owners_.pop_back();
    if (--messages_[owner].pieces > 0) continue;
    done.push_back(messages_[owner].ticket);
    free_.push_back(owner);
  }
  return true;
}

bool MpiTransport::poll(std::vector<Ticket>& done) {
  const bool any = take_local(done);
  return (!requests_.empty() && test(done)) || any;
}

std::vector<Rank> MpiTransport::awaited() const {
  std::set<Rank> peers;
  for (const std::size_t owner : owners_) peers.insert(messages_[owner].peer);
  return {peers.begin(), peers.end()};
}

}  // namespace

Bytes piece_between_hosts(std::string_view version, bool rdma) {
  if (rdma) return kMpiPiece;
  if (is_mpich_on_ucx(version)) return kUcxTcpPiece;
  // Open MPI leaves UCX alone where there is no RDMA.
  return version.starts_with("Open MPI") ? unasked_between_hosts(rdma) : kMpiPiece;
}

Bytes unasked_between_hosts(bool rdma) { return rdma ? Bytes{} : Bytes{56 << 10}; }

std::unique_ptr<Transport> make_mpi_transport(const MpiWorld& world, MpiPieces pieces) {
  return std::make_unique<MpiTransport>(world, pieces, world.wait_rules(), WhenStuck::end_job);
}

Network make_mpi_network(const MpiWorld& world) {
  return make_mpi_network(world, world.wait_rules(), WhenStuck::end_job);
}

Network make_mpi_network(const MpiWorld& world, WaitRules rules, WhenStuck when_stuck) {
  const bool rdma = world.sum(has_rdma_device() ? 1 : 0) > 0;
  const Bytes piece = piece_between_hosts(MpiWorld::library_version(), rdma);
  Network network;
  network.transport = std::make_unique<MpiTransport>(world, MpiPieces{kMpiPiece, piece}, std::move(rules),
                                                     when_stuck, MpiWorld::Handle::duplicate(world));
  network.name = "MPI";
  network.unasked = unasked_between_hosts(rdma);
  if (world.nodes() > 1 && piece < network.unasked) network.message = piece;
  return network;
}

CommunicatorOptions over_mpi(const MpiWorld& world, TransportChoice choice) {
  CommunicatorOptions options;
  options.timeout = world.timeout();
  options.transport = choice;
  options.rules = world.wait_rules();
  options.network = [&world] { return make_mpi_network(world); };
  return options;
}

CommunicatorOptions over_mpi(const MpiWorld& world, const WaitRules& rules, WhenStuck when_stuck) {
  CommunicatorOptions options;
  options.timeout = rules.timeout;
  options.rules = rules;
  options.network = [&world, rules, when_stuck] { return make_mpi_network(world, rules, when_stuck); };
  return options;
}

}  // namespace polyring
