#include "collectives/cuda/transport.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/grid.hpp"
#include "collectives/cuda/host_messages.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/memory.hpp"
#include "collectives/cuda/nccl.hpp"
#include "collectives/cuda/peers.hpp"
#include "collectives/cuda/poll.hpp"
#include "collectives/cuda/queue.hpp"
#include "collectives/cuda/rank_gpu.hpp"
#include "collectives/cuda/staging.hpp"
#include "collectives/cuda/stream_words.hpp"
#include "collectives/runtime/backoff.hpp"

namespace polyring::cuda {
namespace {

using Use = HostMessages::Use;

/// Where a rank may read from another's memory, and write to it.
struct Offer {
  std::uint64_t number = 0;  // of the operation, as its rank counts
  GpuLocation gives;
  GpuLocation takes;
};

/// Whoever it was made to has read and written.
struct Over {
  std::uint64_t number = 0;  // of the offer's operation
};

/// An exchange, or a message between ranks that reach each other.
struct Operation {
  struct Partner {
    Rank rank = 0;
    Offer own;    // to the partner
    Offer other;  // from the partner
    Over over;    // to the partner
  };

  std::uint64_t number = 0;
  Ticket ticket = 0;
  Exchange exchange;
  std::vector<Partner> partners;
  std::vector<Memory> copies;  // of what this rank gives and then writes over
  std::size_t offers = 0;      // that have not come
  std::size_t unfinished = 0;  // partners that have not told, and messages and work that are under way
};

class GpuRankTransport final : public Transport, public RankGpu {
 public:
  GpuRankTransport(std::unique_ptr<Transport> host, const Bootstrap& bootstrap, const RankHosts& hosts,
                   int device, WaitRules rules)
      : bootstrap_(bootstrap),
        hosts_(hosts),
        device_(device),
        most_blocks_(multiprocessors(device) * kBusyBlocks),
        rules_(std::move(rules)),
        heap_(DeviceHeap::of(use(device))),
        host_(std::move(host)),
        peers_(find_peers(bootstrap, hosts, device, rules_, mapped_)),
        local_(events_),
        exchanges_(events_),
        staging_(host_, events_, activities_) {}
  ~GpuRankTransport() override {
    cudaSetDevice(device_);
    finish_work();
  }
  GpuRankTransport(const GpuRankTransport&) = delete;
  GpuRankTransport& operator=(const GpuRankTransport&) = delete;

  Rank rank() const override { return host_.transport().rank(); }
  int size() const override { return host_.transport().size(); }
  bool on_device() const override { return true; }
  int tags() const override { return host_.tags(); }
  Memory allocate(Bytes size) override { return heap_.allocate(size); }
  Memory host(Bytes size) override { return pinned_memory(size); }
  void upload(std::byte* to, std::span<const std::byte> from) override {
    copy_now(GpuActivity::Kind::to_gpu, to, from.data(), from.size());
  }
  void download(std::span<std::byte> to, const std::byte* from) override {
    copy_now(GpuActivity::Kind::to_host, to.data(), from, to.size());
  }

  void copy_inside(std::byte* to, std::span<const std::byte> from) override {
    copy_now(GpuActivity::Kind::on_gpu, to, from.data(), from.size());
  }
  void finish_stream(cudaStream_t stream) override {
    use(device_);
    finish(stream, rules_, "finish a stream of the program");
  }

  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override;
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override;
  bool reaches(Rank peer) const override { return peers_.reaches(peer); }
  void exchange(const Exchange& exchange, Ticket ticket) override;
  void copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) override;
  void combine(const Reduction& reduction, std::byte* result, std::span<const std::byte* const> operands,
               Count count, Ticket ticket) override;

  bool poll(std::vector<Ticket>& done) override;
  std::vector<Rank> awaited() const override;
  void wait(std::vector<Ticket>& done) override;
  void abandon() override;

  int device() const override { return device_; }
  const Bootstrap& bootstrap() const override { return bootstrap_; }
  const RankHosts& hosts() const override { return hosts_; }
  const Peers& peers() const override { return peers_; }
  const WaitRules& rules() const override { return rules_; }
  ActivityLog& activities() override { return activities_; }
  std::byte* at(Rank rank, const GpuLocation& location) override {
    return peers_.in_this_process(rank) ? reinterpret_cast<std::byte*>(location.address)
                                        : mapped_.at(rank, location);
  }
  GpuLocation locate(Rank for_whom, std::span<const std::byte> data) override {
    if (data.empty()) return {};
    return heap_.locate(data.data(), !peers_.in_this_process(for_whom));
  }
  void swap(std::span<const Letter> letters) override;
  StreamWords& words() override;
  NcclCommunicator* nccl(std::string& why_not) override;
  void break_off() override { abandon(); }

 private:
  static int use(int device) {
    check(cudaSetDevice(device), "use a GPU (cudaSetDevice)");
    return device;
  }
  void copy_now(GpuActivity::Kind kind, std::byte* to, const std::byte* from, std::size_t bytes);
  void enqueue_copy(std::byte* to, const std::byte* from, std::size_t bytes, Queue& queue);
  void reduce(const Reduction& reduction, std::span<std::byte* const> results,
              std::span<const std::byte* const> operands, Count count, Queue& queue);
  Operation& begin(Ticket ticket, std::size_t partners);
  void await_over(Rank from, int tag);
  void tell_over(Rank to, int tag, Operation& operation, Operation::Partner& partner);
  bool copy_what_is_overwritten(Operation& operation);
  void offer(Operation& operation);
  void run(Operation& operation);
  void enqueue(Operation& operation);
  void finish_part(Operation& operation);
  [[noreturn]] void give_up() const;
  void finish_work() const;

  const Bootstrap& bootstrap_;
  RankHosts hosts_;
  int device_;
  int most_blocks_;  // that a kernel without flags takes
  WaitRules rules_;
  DeviceHeap& heap_;
  EventPool events_;
  ActivityLog activities_;
  MappedMemory mapped_;
  HostMessages host_;
  Peers peers_;
  Queue local_;
  Queue exchanges_;
  Staging staging_;
  std::uint64_t next_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Operation>> operations_;
  std::vector<Ticket> done_;
  std::unique_ptr<StreamWords> words_;
  std::unique_ptr<NcclCommunicator> nccl_;
  std::string why_no_nccl_;
};

void GpuRankTransport::copy_now(GpuActivity::Kind kind, std::byte* to, const std::byte* from,
                                std::size_t bytes) {
  if (bytes == 0) return;
  use(device_);
  activities_.add(kind, local_.stream(), [&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, local_.stream()), "copy (cudaMemcpyAsync)");
  });
  finish(local_.stream(), rules_, "finish a copy");
}

void GpuRankTransport::enqueue_copy(std::byte* to, const std::byte* from, std::size_t bytes, Queue& queue) {
  if (bytes == 0) return;
  activities_.add(GpuActivity::Kind::on_gpu, queue.stream(), [&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue.stream()), "copy (cudaMemcpyAsync)");
  });
}

void GpuRankTransport::reduce(const Reduction& reduction, std::span<std::byte* const> results,
                              std::span<const std::byte* const> operands, Count count, Queue& queue) {
  activities_.add(GpuActivity::Kind::kernel, queue.stream(),
                  [&] { launch_reduce(reduction, results, operands, count, most_blocks_, queue.stream()); });
}

void GpuRankTransport::copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) {
  use(device_);
  enqueue_copy(to, from.data(), from.size(), local_);
  local_.then([this, ticket] { done_.push_back(ticket); });
}

void GpuRankTransport::combine(const Reduction& reduction, std::byte* result,
                               std::span<const std::byte* const> operands, Count count, Ticket ticket) {
  use(device_);
  reduce(reduction, std::span(&result, 1), operands, count, local_);
  local_.then([this, ticket] { done_.push_back(ticket); });
}

Operation& GpuRankTransport::begin(Ticket ticket, std::size_t partners) {
  auto operation = std::make_unique<Operation>();
  operation->number = next_++;
  operation->ticket = ticket;
  operation->partners.resize(partners);
  return *operations_.emplace(operation->number, std::move(operation)).first->second;
}

void GpuRankTransport::finish_part(Operation& operation) {
  if (--operation.unfinished > 0) return;
  done_.push_back(operation.ticket);
  operations_.erase(operation.number);
}

/// Over is told in the order in which work ends, so that it names the operation.
void GpuRankTransport::await_over(Rank from, int tag) {
  const auto over = std::make_shared<Over>();
  host_.receive(from, Use::over, tag, std::as_writable_bytes(std::span(over.get(), 1)),
                [this, over] { finish_part(*operations_.at(over->number)); });
}

void GpuRankTransport::tell_over(Rank to, int tag, Operation& operation, Operation::Partner& partner) {
  partner.over.number = partner.other.number;
  host_.send(to, Use::over, tag, std::as_bytes(std::span(&partner.over, 1)),
             [this, &operation] { finish_part(operation); });
}

/// The receiver reads from the sender's memory.
void GpuRankTransport::send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) {
  use(device_);
  if (!reaches(to)) return staging_.send(to, tag, data, [this, ticket] { done_.push_back(ticket); });
  Operation& operation = begin(ticket, 1);
  Operation::Partner& partner = operation.partners.front();
  partner.rank = to;
  partner.own = {operation.number, locate(to, data), {}};
  operation.unfinished = 2;  // the offer, and to be told
  host_.send(to, Use::message, tag, std::as_bytes(std::span(&partner.own, 1)),
             [this, &operation] { finish_part(operation); });
  await_over(to, tag);
}

void GpuRankTransport::receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) {
  use(device_);
  if (!reaches(from)) return staging_.receive(from, tag, data, [this, ticket] { done_.push_back(ticket); });
  Operation& operation = begin(ticket, 1);
  Operation::Partner& partner = operation.partners.front();
  partner.rank = from;
  operation.unfinished = 1;  // to tell
  host_.receive(from, Use::message, tag, std::as_writable_bytes(std::span(&partner.other, 1)),
                [this, &operation, &partner, data, tag] {
                  if (!data.empty())
                    enqueue_copy(data.data(), at(partner.rank, partner.other.gives), data.size(), exchanges_);
                  exchanges_.then([this, &operation, &partner, tag] {
                    tell_over(partner.rank, tag, operation, partner);
                  });
                });
}

void GpuRankTransport::exchange(const Exchange& exchange, Ticket ticket) {
  use(device_);
  Operation& operation = begin(ticket, exchange.partners.size());
  operation.exchange = exchange;
  operation.offers = exchange.partners.size();
  operation.unfinished = 1 + 3 * exchange.partners.size();  // the work; offers, to be told, and to tell
  for (std::size_t i = 0; i < exchange.partners.size(); ++i) {
    Operation::Partner& partner = operation.partners[i];
    partner.rank = exchange.partners[i].rank;
    host_.receive(partner.rank, Use::exchange, exchange.tag,
                  std::as_writable_bytes(std::span(&partner.other, 1)), [this, &operation] {
                    if (--operation.offers == 0) run(operation);
                  });
    await_over(partner.rank, exchange.tag);
  }
  if (copy_what_is_overwritten(operation)) {
    exchanges_.then([this, &operation] { offer(operation); });
  } else {
    offer(operation);
  }
}

/// What this rank gives and writes over is read from a copy. False where there is none.
bool GpuRankTransport::copy_what_is_overwritten(Operation& operation) {
  std::span<const std::byte> last;  // often all are given the same
  for (Exchange::Partner& partner : operation.exchange.partners) {
    const std::span<const std::byte> gives = partner.gives;
    if (!operation.exchange.overwrites(gives)) continue;
    if (gives.data() == last.data() && gives.size() == last.size()) {
      partner.gives = {operation.copies.back().get(), gives.size()};
      continue;
    }
    last = gives;
    operation.copies.push_back(heap_.allocate(Bytes{gives.size()}));
    std::byte* const copy = operation.copies.back().get();
    enqueue_copy(copy, gives.data(), gives.size(), exchanges_);
    partner.gives = {copy, gives.size()};
  }
  return !operation.copies.empty();
}

void GpuRankTransport::offer(Operation& operation) {
  for (std::size_t i = 0; i < operation.partners.size(); ++i) {
    const Exchange::Partner& role = operation.exchange.partners[i];
    Operation::Partner& partner = operation.partners[i];
    partner.own = {operation.number, locate(role.rank, role.gives), locate(role.rank, role.takes)};
    host_.send(role.rank, Use::exchange, operation.exchange.tag, std::as_bytes(std::span(&partner.own, 1)),
               [this, &operation] { finish_part(operation); });
  }
}

/// All offers are there.
void GpuRankTransport::run(Operation& operation) {
  if (!operation.exchange.own.empty()) enqueue(operation);
  exchanges_.then([this, &operation] {
    for (Operation::Partner& partner : operation.partners)
      tell_over(partner.rank, operation.exchange.tag, operation, partner);
    finish_part(operation);
  });
}

void GpuRankTransport::enqueue(Operation& operation) {
  const Exchange& exchange = operation.exchange;
  std::vector<const std::byte*> operands;  // in the order of the ranks
  std::vector<std::byte*> results;
  bool has_own = false;
  for (std::size_t i = 0; i < exchange.partners.size(); ++i) {
    const Exchange::Partner& role = exchange.partners[i];
    const Offer& offer = operation.partners[i].other;
    if (!has_own && role.rank > rank()) {
      operands.push_back(exchange.own.data());
      has_own = true;
    }
    if (role.read) operands.push_back(at(role.rank, offer.gives));
    if (role.write) results.push_back(at(role.rank, offer.takes));
  }
  if (!has_own) operands.push_back(exchange.own.data());
  if (operands.size() == 1) {  // it only hands on
    for (std::byte* const result : results)
      enqueue_copy(result, exchange.own.data(), exchange.own.size(), exchanges_);
    return;
  }
  if (exchange.result != nullptr) results.push_back(exchange.result);
  const Count count = static_cast<Count>(exchange.own.size()) / size_of(exchange.reduction.kind);
  reduce(exchange.reduction, results, operands, count, exchanges_);
}

void GpuRankTransport::swap(std::span<const Letter> letters) {
  std::size_t under_way = 2 * letters.size();
  const auto through = [&under_way] { --under_way; };
  attempt([&] {
    for (const Letter& letter : letters) {
      host_.receive(letter.peer, Use::letter, 0, letter.in, through);
      host_.send(letter.peer, Use::letter, 0, letter.out, through);
    }
    Backoff backoff(rules_.timeout, rules_.yields);
    while (under_way > 0) {
      if (host_.poll()) {
        backoff.renew();
        continue;
      }
      if (rules_.idle) rules_.idle();
      if (!backoff.again()) give_up();
    }
  });
}

StreamWords& GpuRankTransport::words() {
  if (!words_) words_ = std::make_unique<StreamWords>(*this);
  return *words_;
}

NcclCommunicator* GpuRankTransport::nccl(std::string& why_not) {
  if (!nccl_ && why_no_nccl_.empty()) {
    std::array<char, 32> bus{};
    check(cudaDeviceGetPCIBusId(bus.data(), bus.size(), device_), "say where it is (cudaDeviceGetPCIBusId)");
    try {
      const NcclDevice gpu{device_, bus.data(), peers_.own_id};
      nccl_ = std::make_unique<NcclCommunicator>(NcclLibrary::of_process(), bootstrap_, gpu,
                                                 NcclOptions{rules_.timeout, false});
    } catch (const AgreedError& error) {
      why_no_nccl_ = error.what();
    }
  }
  why_not = why_no_nccl_;
  return nccl_.get();
}

bool GpuRankTransport::poll(std::vector<Ticket>& done) {
  use(device_);
  const bool host = host_.poll();
  const bool local = local_.poll();
  const bool exchanges = exchanges_.poll();
  const bool staged = staging_.poll();
  const bool any = !done_.empty();
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
  return host || local || exchanges || staged || any;
}

std::vector<Rank> GpuRankTransport::awaited() const { return host_.transport().awaited(); }

void GpuRankTransport::wait(std::vector<Ticket>& done) {
  use(device_);
  const std::size_t before = done.size();
  Backoff backoff(rules_.timeout, rules_.yields);
  for (;;) {
    const bool progress = poll(done);
    if (done.size() > before) return;
    if (progress) {
      backoff.renew();
      continue;
    }
    if (rules_.idle) rules_.idle();
    if (!backoff.again()) give_up();
  }
}

void GpuRankTransport::give_up() const {
  const bool busy = !local_.is_idle() || !exchanges_.is_idle() || !staging_.is_idle();
  const std::string what =
      busy ? fmt::format("GPU {} to finish what it was given", device_) : std::string("messages");
  rules_.give_up(what, busy ? std::vector<Rank>{} : awaited());
  throw Error(ExitCode::timeout, "waited in vain for " + what);
}

/// The others may still read and write this rank's GPU memory, so nothing of it is freed any more.
void GpuRankTransport::abandon() {
  if (rules_.failed) rules_.failed();
  heap_.keep_all();
  host_.transport().abandon();
  host_.forget();
  for (Queue* queue : {&local_, &exchanges_}) queue->forget();
  staging_.forget();
  finish_work();
  operations_.clear();
  done_.clear();
}

/// Until no operation of this rank's uses a buffer any more. A GPU that does not come to its end cannot be
/// stopped: then the job ends.
void GpuRankTransport::finish_work() const {
  const auto over = [this] {
    bool busy = false;
    for (const cudaStream_t stream : {local_.stream(), exchanges_.stream(), staging_.out(), staging_.in()})
      busy = busy || cudaStreamQuery(stream) == cudaErrorNotReady;
    cudaGetLastError();
    return !busy;
  };
  if (!over_within(rules_.timeout, true, over))
    end_job(device_, "the steps of a collective (cudaStreamQuery)", rules_);
}

}  // namespace

GpuTransport make_gpu_transport(std::unique_ptr<Transport> host, const Bootstrap& bootstrap,
                                const RankHosts& hosts, int device, const WaitRules& rules) {
  auto transport = std::make_unique<GpuRankTransport>(std::move(host), bootstrap, hosts, device, rules);
  GpuTransport made;
  made.fallback = transport->peers().why_not;
  made.peers = std::ranges::find(transport->peers().reached, 1) != transport->peers().reached.end();
  made.transport = std::move(transport);
  return made;
}

}  // namespace polyring::cuda
