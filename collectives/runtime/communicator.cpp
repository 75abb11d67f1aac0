#include "collectives/runtime/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "collectives/runtime/shared/mapped.hpp"
#include "collectives/runtime/transports/tcp.hpp"

namespace polyring {
namespace {

/// Collectives whose programs and memory are kept for the next time.
constexpr std::size_t kMostPrepared = 64;

}  // namespace

void Operation::end() noexcept {
  try {
    wait();
  } catch (...) {
    // The communicator keeps it.
  }
}

Operation& Operation::operator=(Operation&& other) noexcept {
  std::swap(communicator_, other.communicator_);
  std::swap(run_, other.run_);
  std::swap(failure_, other.failure_);
  return *this;
}

bool Operation::test() {
  if (failure_) throw *failure_;
  if (communicator_ == nullptr) return true;
  attempt([this] { communicator_->poll(run_); });
  if (!communicator_->runner_.is_over(run_)) return false;
  communicator_ = nullptr;
  return true;
}

void Operation::wait_in_earnest() {
  if (failure_) throw *failure_;
  attempt([this] { communicator_->wait(run_); });
  communicator_ = nullptr;
}

/// What has failed needs its communicator no more.
template <typename Action>
void Operation::attempt(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    failure_ = error;
    communicator_ = nullptr;
    throw;
  }
}

Communicator::Communicator(const Bootstrap& bootstrap, CommunicatorOptions options)
    : bootstrap_(bootstrap),
      options_(std::move(options)),
      hosts_(find_hosts(bootstrap)),
      rules_(options_.rules ? *options_.rules : default_rules()),
      joined_(make_joined()),
      runner_(*joined_.transport) {}

JoinedTransport Communicator::make_joined() const {
  const MakeNetwork network = options_.network ? options_.network : [this] { return make_network(); };
  JoinedTransport joined = join(bootstrap_, hosts_.hosts, options_.transport, network, rules_);
  if (options_.device) options_.device(joined, hosts_.hosts, rules_);
  return joined;
}

Communicator::~Communicator() {
  if (runner_.is_busy()) give_up(Error(ExitCode::internal, "the communicator ended before its operations"));
}

void Communicator::give_up(const Error& why) noexcept {
  if (failure()) return;
  try {
    runner_.fail([&] { throw why; });
  } catch (const std::exception&) {
    // failure() has it.
  }
}

void Communicator::wait(Runner::Run run) {
  runner_.wait(run);
  quiet_since_.reset();
}

/// As long in vain as wait() would wait.
void Communicator::poll(Runner::Run run) {
  if (runner_.is_over(run)) return;
  const Clock::time_point now = Clock::now();
  if (runner_.poll()) {
    quiet_since_.reset();
    return;
  }
  if (rules_.idle) {
    try {
      rules_.idle();
    } catch (const std::exception&) {
      runner_.fail([] { throw; });
    }
  }
  if (!quiet_since_) {
    quiet_since_ = now;
  } else if (std::chrono::duration<double>(now - *quiet_since_).count() > rules_.timeout.value) {
    runner_.fail([this] { rules_.give_up("messages", joined_.transport->awaited()); });
  }
}

WaitRules Communicator::default_rules() const {
  const auto give_up = [this](const std::string& what, const std::vector<Rank>& whom) {
    throw Error(
        ExitCode::timeout,
        fmt::format("waited {} for {}; see whether it still runs, and for whom it waits itself, or raise "
                    "the time limit",
                    to_text(options_.timeout), whom.empty() ? what : ranks_text(whom, hosts_.hosts)));
  };
  return {options_.timeout, hosts_.shares_cores, give_up, {}, options_.idle};
}

Network Communicator::make_network() const {
  TcpOptions tcp;
  tcp.interface = options_.interface;
  tcp.several_hosts = hosts_.hosts.count() > 1;
  Network network;
  network.transport = make_tcp_transport(bootstrap_, tcp, rules_);
  network.name = options_.interface.empty() ? "TCP" : "TCP by " + options_.interface;
  network.unasked = tcp.unasked;
  return network;
}

void Communicator::register_memory(std::span<std::byte> memory) const {
  if (joined_.transport->on_device()) {
    throw Error(ExitCode::not_available,
                "a program's own memory of a GPU cannot be registered: other ranks would have to close it "
                "before it is "
                "freed, and nobody tells them; take memory that the communicator allocates");
  }
  check_private_pages(memory);
  joined_.transport->register_memory(memory);
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
Communicator::Prepared& Communicator::prepared(const CollectiveOf& what) {
  const auto is_free = [&](Prepared& prepared) {
    if (prepared.run && runner_.is_over(*prepared.run)) prepared.run.reset();
    return !prepared.run;
  };
  auto found = std::ranges::find_if(
      prepared_, [&](Prepared& prepared) { return prepared.what == what && is_free(prepared); });
  if (found == prepared_.end()) {
    auto executor = make_executor(plan(what).plan, what, *joined_.transport);
    while (prepared_.size() >= kMostPrepared) {
      const auto oldest = std::find_if(prepared_.rbegin(), prepared_.rend(), is_free);
      if (oldest == prepared_.rend()) break;
      prepared_.erase(std::next(oldest).base());
    }
    prepared_.push_back({what, std::move(executor), std::nullopt});
    found = std::prev(prepared_.end());
  }
  prepared_.splice(prepared_.begin(), prepared_, found);
  return prepared_.front();
}

/// What only this rank lacks, such as memory, breaks the communicator: the others have started, and wait.
template <typename Preparing>
auto Communicator::attempt(Preparing&& preparing) {
  if (failure()) throw *failure();
  try {
    return preparing();
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) throw;
    runner_.fail([] { throw; });
  } catch (const std::exception&) {
    runner_.fail([] { throw; });
  }
  throw *failure();
}

Operation Communicator::start(const CollectiveOf& what, const std::byte* input, std::byte* output) {
  Prepared* const chosen = attempt([&] { return &prepared(what); });
  chosen->run = start(*chosen->executor, input, output);
  return {*this, *chosen->run};
}

Runner::Run Communicator::start(Executor& executor, const std::byte* input, std::byte* output) {
  quiet_since_.reset();
  return runner_.start(executor, input, output);
}

PersistentCollective Communicator::prepare(const CollectiveOf& what, const Plan& plan) {
  return {*this, attempt([&] { return make_executor(plan, what, *joined_.transport); })};
}

PersistentCollective::~PersistentCollective() {
  if (!executor_ || !run_) return;
  try {
    communicator_->wait(*run_);
  } catch (...) {
    // The communicator keeps it.
  }
}

Operation PersistentCollective::start(const std::byte* input, std::byte* output) {
  return {*communicator_, begin(input, output)};
}

void PersistentCollective::run(const std::byte* input, std::byte* output) {
  communicator_->wait(begin(input, output));
}

Runner::Run PersistentCollective::begin(const std::byte* input, std::byte* output) {
  if (communicator_->failure()) throw *communicator_->failure();
  if (run_ && !communicator_->runner_.is_over(*run_))
    usage_error("a persistent collective has one run at a time; wait for it before the next");
  run_ = communicator_->start(*executor_, input, output);
  return *run_;
}

}  // namespace polyring
