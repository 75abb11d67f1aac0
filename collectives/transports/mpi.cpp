#include "collectives/transports/mpi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collectives/mpi/handle.hpp"
#include "collectives/mpi/process_manager.hpp"
#include "collectives/patience.hpp"
#include "topology/probe.hpp"

namespace polyring {
namespace {

/// All of it together.
constexpr Seconds kCancelling{1};
/// Of 8, 16 and 32 KiB the longest that UCX 1.13 sends over TCP without a rendezvous (docs/performance.md).
constexpr Bytes kUcxTcpPiece{std::uint64_t{16} << 10};

class MpiTransport final : public PollingTransport {
 public:
  MpiTransport(const MpiWorld& world, MpiPieces pieces)
      : PollingTransport(world.wait_rules()), world_(world), pieces_(pieces) {}
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  Rank rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override {
    start(data.size(), to, false, ticket, [&](std::size_t offset, int bytes, MPI_Request* request) {
      check(MPI_Isend(data.data() + offset, bytes, MPI_BYTE, to, tag, world_.handle().comm, request),
            "MPI_Isend to", to);
    });
  }

  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override {
    start(data.size(), from, true, ticket, [&](std::size_t offset, int bytes, MPI_Request* request) {
      check(MPI_Irecv(data.data() + offset, bytes, MPI_BYTE, from, tag, world_.handle().comm, request),
            "MPI_Irecv from", from);
    });
  }

  bool poll(std::vector<Ticket>& done) override;
  std::vector<Rank> awaited() const override;

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
  void check_some(int result, int number) const;

  /// A peer that has died is often found out this way, before its launcher tells.
  void check(int result, std::string_view call, Rank peer) const {
    if (result != MPI_SUCCESS)
      check_mpi(result, fmt::format("{} rank {} ({})", call, peer, world_.host(peer)));
  }

  const MpiWorld& world_;
  MpiPieces pieces_;
  std::vector<MPI_Request> requests_;  // in flight; owners_ says whose
  std::vector<std::size_t> owners_;
  std::vector<Message> messages_;
  std::vector<std::size_t> free_;
  std::vector<int> completed_;
  std::vector<MPI_Status> statuses_;  // of these
};

MpiTransport::~MpiTransport() {
  // Something is left only when a wait has failed, and the job is about to be aborted. Until then MPI must
  // not write into memory that is freed meanwhile; sends only read, and no peer is left to receive them.
  Patience patience(kCancelling, true);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (!messages_[owners_[i]].receives) {
      MPI_Request_free(&requests_[i]);
      continue;
    }
    // A message that has begun to arrive cannot be cancelled, and may never be whole: the error that is on
    // its way must be told all the same.
    MPI_Cancel(&requests_[i]);
    int done = 0;
    do {
      MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
    } while (done == 0 && patience.again());
  }
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
  bool any = false;
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
    any = true;
  }
  return any;
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
  // Open MPI leaves UCX alone where there is no RDMA.
  return is_mpich_on_ucx(version) && !rdma ? kUcxTcpPiece : kMpiPiece;
}

Bytes unasked_between_hosts(bool rdma) { return rdma ? Bytes{} : Bytes{56 << 10}; }

MpiPieces suitable_pieces(const MpiWorld& world) {
  const bool rdma = world.sum(has_rdma_device() ? 1 : 0) > 0;
  return {kMpiPiece, piece_between_hosts(MpiWorld::library_version(), rdma), unasked_between_hosts(rdma)};
}

std::unique_ptr<Transport> make_mpi_transport(const MpiWorld& world, MpiPieces pieces) {
  return std::make_unique<MpiTransport>(world, pieces);
}

}  // namespace polyring
