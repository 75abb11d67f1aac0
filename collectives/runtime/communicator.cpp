#include "collectives/runtime/communicator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "collectives/runtime/net/address.hpp"
#include "collectives/runtime/transports/tcp.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring {
namespace {

/// Collectives whose programs and memory are kept for the next time.
constexpr std::size_t kMostPrepared = 64;

}  // namespace

Operation::~Operation() {
  try {
    wait();
  } catch (...) {
    // The communicator keeps it.
  }
}

Operation& Operation::operator=(Operation&& other) noexcept {
  std::swap(communicator_, other.communicator_);
  std::swap(run_, other.run_);
  return *this;
}

bool Operation::test() {
  if (communicator_ == nullptr) return true;
  Runner& runner = communicator_->runner_;
  if (!runner.is_over(run_)) runner.poll();
  if (!runner.is_over(run_)) return false;
  communicator_ = nullptr;
  return true;
}

void Operation::wait() {
  if (communicator_ == nullptr) return;
  std::exchange(communicator_, nullptr)->runner_.wait(run_);
}

Communicator::Communicator(const Bootstrap& bootstrap, CommunicatorOptions options)
    : bootstrap_(bootstrap),
      options_(std::move(options)),
      hosts_(find_hosts(bootstrap)),
      rules_(options_.rules ? *options_.rules : default_rules()),
      joined_(join(
          bootstrap, hosts_.hosts, options_.transport,
          options_.network ? options_.network : [this] { return make_network(); }, rules_)),
      runner_(*joined_.transport) {}

WaitRules Communicator::default_rules() const {
  const auto give_up = [this](const std::string& what, const std::vector<Rank>& whom) {
    std::vector<std::string> names;
    for (const Rank rank : whom)
      names.push_back(
          fmt::format("rank {} ({})", rank, hosts_.hosts.names[index(hosts_.hosts.of_rank[index(rank)])]));
    throw Error(ExitCode::timeout,
                fmt::format("waited {} for {} of {}; see whether it still runs, or raise the time limit",
                            to_text(options_.timeout), what, fmt::join(names, ", ")));
  };
  return {options_.timeout, hosts_.shares_cores, give_up};
}

Network Communicator::make_network() const {
  TcpOptions tcp;
  tcp.address =
      choose_address(network_interfaces(), options_.interface, default_interface(), hosts_.hosts.count() > 1);
  Network network;
  network.transport = make_tcp_transport(bootstrap_, tcp, rules_);
  network.name = "TCP";
  network.unasked = tcp.unasked;
  return network;
}

Problem Communicator::problem(const std::string& algorithm, const CollectiveOf& what) const {
  const int per_host = hosts_.hosts.per_host();
  Problem problem{
      algorithm,      {size(), per_host, hosts_.hosts.count()}, {}, what.count, what.sizes(), joined_.unasked,
      what.collective};
  // Either all ranks reach the others of their host, or none does.
  if (per_host > 1) {
    const Rank first = rank() / per_host * per_host;
    if (joined_.transport->reaches(rank() == first ? first + 1 : first))
      problem.reach = [per_host](Rank a, Rank b) { return a / per_host == b / per_host; };
  }
  return problem;
}

PlanChoice Communicator::plan(const CollectiveOf& what) const {
  const Planner& planner = options_.planner != nullptr ? *options_.planner : rule_planner_;
  return planner.choose(problem(options_.algorithm, what), options_.constraints);
}

/// Moves it to the front.
Communicator::Prepared& Communicator::prepare(const CollectiveOf& what) {
  const auto is_free = [&](const Prepared& prepared) {
    return !prepared.run || runner_.is_over(*prepared.run);
  };
  auto found = std::ranges::find_if(
      prepared_, [&](const Prepared& prepared) { return prepared.what == what && is_free(prepared); });
  if (found == prepared_.end()) {
    const Plan chosen = plan(what).plan;
    auto executor = std::make_unique<Executor>(
        make_schedule(chosen, size(), what.count, size_of(what.kind), what.collective), what.kind, what.op,
        *joined_.transport, ExecutorOptions{.partials = what.partials});
    while (prepared_.size() >= kMostPrepared && is_free(prepared_.back())) prepared_.pop_back();
    prepared_.push_back({what, std::move(executor), std::nullopt});
    found = std::prev(prepared_.end());
  }
  prepared_.splice(prepared_.begin(), prepared_, found);
  return prepared_.front();
}

Operation Communicator::start(const CollectiveOf& what, const std::byte* input, std::byte* output) {
  if (failure()) throw *failure();
  Prepared& prepared = prepare(what);
  prepared.run = runner_.start(*prepared.executor, input, output);
  return {*this, *prepared.run};
}

}  // namespace polyring
