#include "simulation/engine.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/error.hpp"
#include "base/index.hpp"
#include "simulation/sharing.hpp"
#include "simulation/streams.hpp"
#include "simulation/timers.hpp"

namespace polyring {
namespace {

/// Events so near to each other happen at once: rounding alone tells them apart.
constexpr double kSameTime = 1e-12;
/// In parts of a period: so much may the times that are left differ for the state to be the same.
constexpr double kSameState = 1e-10;
/// A round that has fewer repeats left is not worth the search for periods.
constexpr int kWorthwhile = 8;

class Engine {
 public:
  Engine(const Workload& workload, const EngineOptions& options)
      : workload_(workload),
        options_(options),
        streams_(workload, options.window),
        sharing_(workload.capacities),
        connections_(index(workload.connections)),
        timers_(index(workload.connections)) {
    options_.skip =
        options.skip && std::any_of(workload.rounds.begin(), workload.rounds.end(),
                                    [](const Round& round) { return round.repeats > kWorthwhile; });
  }

  std::optional<EngineResult> run() {
    for (int actor = 0; actor < workload_.actors; ++actor) begin_streams(actor);
    settle();
    while (!timers_.empty()) {
      step();
      settle();
      if (turned_) look_for_period();
      if (beyond_limits()) return std::nullopt;
    }
    assert(streams_.all_done());
    return EngineResult{now_ + skipped_, happened_};
  }

 private:
  using Id = int;
  static constexpr Id kNone = -1;

  /// A flow of one stream that is under way.
  struct Underway {
    int stream = 0;
    int flow = 0;
    double ready = 0;  // when its latency is over
    // In the queue of its connection:
    Id before = kNone;
    Id after = kNone;
  };
  /// Its messages move one after another, in the order in which they come; of those that come together, the
  /// older stream's first. Its timer says when what moves will be through; where nothing moves, when what
  /// waits is ready.
  struct Connection {
    Id first = kNone;  // that waits
    Id last = kNone;
    Id moving = kNone;
    int sharing = -1;      // the flow that last moved, while its share has not been given back
    double remaining = 0;  // bytes, at `since`
    double rate = 0;
    double since = 0;
  };
  /// A state to which the present one is compared.
  struct Snapshot {
    double time = 0;
    int first_stream = 0;
    std::vector<Streams::Live> live;
    std::vector<double> left;  // s, of each flow under way
    std::vector<char> moving;
  };

  const Flow& flow_of(Id id) const { return workload_.flows[index(underway_[index(id)].flow)]; }
  std::span<const Use> uses_of(int flow) const {
    const Flow& of = workload_.flows[index(flow)];
    return std::span(workload_.uses).subspan(index(of.first_use), index(of.last_use - of.first_use));
  }

  bool beyond_limits() const {
    return now_ + skipped_ > options_.seconds || happened_ > options_.events ||
           happened_ + rated_ > options_.work;
  }

  /// All that happens at the next point of time.
  void step() {
    const double limit = timers_.next() * (1 + kSameTime);
    while (!timers_.empty() && timers_.next() <= limit) {
      now_ = std::max(now_, timers_.next());
      due_.push_back(timers_.pop());
    }
    std::sort(due_.begin(), due_.end());  // the order of memory, which is what thousands of ranks wait for
    for (const int connection : due_) {
      if (connections_[index(connection)].moving == kNone) {
        open_.push_back(connection);
      } else {
        finish(connection);
      }
    }
    due_.clear();
  }

  void begin_streams(int actor) {
    for (int stream = streams_.begin(actor); stream >= 0; stream = streams_.begin(actor)) {
      advance(stream, actor);
    }
  }

  /// The actor goes on in a stream until it has to wait; with the next streams when it is through.
  void advance(int stream, int actor) {
    begun_.clear();
    const bool done = streams_.advance(stream, actor, begun_);
    for (const Streams::Begun& begun : begun_) begin(begun.stream, begun.flow);
    if (done) begin_streams(actor);
  }

  void begin(int stream, int flow) {
    Id id = static_cast<Id>(underway_.size());
    if (spare_.empty()) {
      underway_.emplace_back();
    } else {
      id = spare_.back();
      spare_.pop_back();
    }
    const Flow& of = workload_.flows[index(flow)];
    underway_[index(id)] = {stream, flow, now_ + of.latency, kNone, kNone};
    streams_.set_underway(stream, flow, id);
    enqueue(id);
    if (connections_[index(of.connection)].moving == kNone) open_.push_back(of.connection);
    if (of.latency > 0) ++happened_;
  }

  void enqueue(Id id) {
    Underway& underway = underway_[index(id)];
    Connection& connection = connections_[index(flow_of(id).connection)];
    Id before = connection.last;
    while (before != kNone && comes_before(underway, underway_[index(before)]))
      before = underway_[index(before)].before;
    underway.before = before;
    Id& from_before = before == kNone ? connection.first : underway_[index(before)].after;
    underway.after = from_before;
    from_before = id;
    (underway.after == kNone ? connection.last : underway_[index(underway.after)].before) = id;
  }
  static bool comes_before(const Underway& a, const Underway& b) {
    return a.stream < b.stream && a.ready <= b.ready * (1 + kSameTime);
  }

  /// Called when all that happens now has happened, so that those that come together are all there.
  void start_waiting() {
    for (const int i : open_) {
      Connection& connection = connections_[index(i)];
      if (connection.moving != kNone) continue;
      const Id next = connection.first;
      if (next != kNone && underway_[index(next)].ready <= now_ * (1 + kSameTime)) {
        connection.first = underway_[index(next)].after;
        (connection.first == kNone ? connection.last : underway_[index(connection.first)].before) = kNone;
        move(i, next);
        continue;
      }
      if (connection.sharing >= 0) sharing_.remove(i);
      connection.sharing = -1;
      if (next != kNone) timers_.set(i, underway_[index(next)].ready);
    }
    open_.clear();
  }

  /// What follows at once over the same resources takes the rate that it finds: to the others nothing
  /// changes.
  void move(int number, Id id) {
    Connection& connection = connections_[index(number)];
    const int flow = underway_[index(id)].flow;
    connection.moving = id;
    connection.remaining = workload_.flows[index(flow)].bytes;
    connection.since = now_;
    const std::span<const Use> uses = uses_of(flow);
    if (connection.sharing >= 0) {
      if (std::ranges::equal(uses, uses_of(connection.sharing))) {
        timers_.set(number, now_ + connection.remaining / connection.rate);
        return;
      }
      sharing_.remove(number);
    }
    connection.sharing = flow;
    connection.rate = 0;
    sharing_.add(number, uses);
  }

  void finish(int number) {
    Connection& connection = connections_[index(number)];
    const auto ended = underway_[index(connection.moving)];
    const Flow& flow = workload_.flows[index(ended.flow)];
    const int arrives = ended.stream + flow.shift;
    spare_.push_back(connection.moving);
    connection.moving = kNone;
    open_.push_back(number);
    ++happened_;
    if (options_.skip) note(ended.stream, ended.flow, flow);
    streams_.end(ended.stream, ended.flow);
    streams_.finish(ended.stream, flow.source, flow.local ? End::reduction : End::send);
    if (!flow.local) streams_.finish(arrives, flow.destination, End::receive);
    advance(ended.stream, flow.source);
    const bool once = flow.source == flow.destination && flow.shift == 0;
    if (!flow.local && !once) advance(arrives, flow.destination);
  }

  /// New rates, and when what moves at them will be through.
  void settle() {
    start_waiting();
    const std::vector<int>& rated = sharing_.share();
    rated_ += rated.size();
    for (const int number : rated) {
      Connection& connection = connections_[index(number)];
      const double rate = sharing_.rate(number);
      if (rate == connection.rate) continue;
      connection.remaining =
          std::max(0.0, connection.remaining - connection.rate * (now_ - connection.since));
      connection.since = now_;
      connection.rate = rate;
      timers_.set(number, now_ + connection.remaining / rate);
    }
  }

  /// How long the present phase of a flow under way will last, or has lasted where it waits (negative).
  double time_left(Id id) const {
    const int connection = flow_of(id).connection;
    return (moves(id) ? timers_.time(connection) : underway_[index(id)].ready) - now_;
  }
  bool moves(Id id) const { return connections_[index(flow_of(id).connection)].moving == id; }

  /// The same flow coming to its end again and again marks the periods, of whatever length they are.
  void note(int stream, int number, const Flow& flow) {
    const Streams::Position& at = streams_.position(stream, flow.source);
    const int left = streams_.repeats(at) - at.repeat;
    if (stream == marker_stream_ && number == marker_flow_) {
      turned_ = left >= kWorthwhile;
      if (!turned_) marker_stream_ = -1;
    } else if (left >= kWorthwhile && marker_stream_ < streams_.first()) {
      marker_stream_ = stream;
      marker_flow_ = number;
      seen_.live.clear();
      next_turns_ = 1;
    }
  }

  /// Brent's search: each state is compared to one before, which is renewed ever more rarely. R. P. Brent,
  /// "An improved Monte Carlo factorization algorithm", BIT 20, 1980.
  void look_for_period() {
    turned_ = false;
    if (!seen_.live.empty() && same_as_seen()) {
      skip_periods();
      seen_.live.clear();
      next_turns_ = 1;
    }
    if (seen_.live.empty() || --turns_left_ == 0) take_snapshot();
  }

  void take_snapshot() {
    turns_left_ = next_turns_;
    next_turns_ *= 2;
    seen_.time = now_;
    seen_.first_stream = streams_.first();
    seen_.live.assign(streams_.live().begin(), streams_.live().end());
    seen_.left.clear();
    seen_.moving.clear();
    for (const Streams::Live& live : seen_.live) {
      for (const int flow : live.flows) {
        if (flow < 0) continue;
        seen_.left.push_back(time_left(flow));
        seen_.moving.push_back(moves(flow));
      }
    }
  }

  /// Repeats may be further on, but not go backwards; all else is the same.
  bool same_as_seen() const {
    if (streams_.first() != seen_.first_stream || streams_.live().size() != seen_.live.size()) return false;
    const double tolerance = kSameState * (now_ - seen_.time);
    std::size_t next = 0;
    for (std::size_t i = 0; i < seen_.live.size(); ++i) {
      const Streams::Live& then = seen_.live[i];
      const Streams::Live& live = streams_.live()[i];
      for (std::size_t actor = 0; actor < live.at.size(); ++actor) {
        if (!same_position(then.at[actor], live.at[actor])) return false;
      }
      for (std::size_t flow = 0; flow < live.flows.size(); ++flow) {
        const int before = then.flows[flow];
        const int now = live.flows[flow];
        if (before < 0 && now < 0 && before == now) continue;
        if (before < 0 || now < 0) return false;
        if (moves(now) != static_cast<bool>(seen_.moving[next])) return false;
        if (std::abs(time_left(now) - seen_.left[next++]) > tolerance) return false;
      }
    }
    return true;
  }

  /// Whether it is reducing, or has, follows: an actor begins to as soon as it has received all.
  static bool same_position(const Streams::Position& then, const Streams::Position& now) {
    return then.turn == now.turn && then.receiving == now.receiving && then.others == now.others &&
           then.repeat <= now.repeat;
  }

  /// As many periods as leave each repeated round at least one repeat.
  void skip_periods() {
    std::int64_t periods = std::numeric_limits<std::int64_t>::max();
    for_each_turning([&](const Streams::Position& now, int repeats) {
      const int left = streams_.repeats(now) - 1 - now.repeat;
      periods = std::min<std::int64_t>(periods, left / repeats - 1);
    });
    if (periods < 1 || periods == std::numeric_limits<std::int64_t>::max()) return;
    for_each_turning(
        [&](Streams::Position& now, int repeats) { now.repeat += static_cast<int>(periods) * repeats; });
    skipped_ += static_cast<double>(periods) * (now_ - seen_.time);
  }

  /// Calls with each position that has moved since the snapshot, and by how many repeats.
  template <typename Do>
  void for_each_turning(Do&& act) {
    for (std::size_t i = 0; i < seen_.live.size(); ++i) {
      std::vector<Streams::Position>& at = streams_.live()[i].at;
      for (std::size_t actor = 0; actor < at.size(); ++actor) {
        const int repeats = at[actor].repeat - seen_.live[i].at[actor].repeat;
        if (repeats > 0) act(at[actor], repeats);
      }
    }
  }

  const Workload& workload_;
  EngineOptions options_;
  Streams streams_;
  Sharing sharing_;
  std::vector<Connection> connections_;
  Timers timers_;          // of the connections
  std::vector<int> due_;   // connections whose time has come
  std::vector<int> open_;  // connections on which something may move
  std::vector<Underway> underway_;
  std::vector<Id> spare_;
  std::vector<Streams::Begun> begun_;
  double now_ = 0;
  double skipped_ = 0;  // s, of whole periods
  std::uint64_t happened_ = 0;
  std::uint64_t rated_ = 0;  // rates that were computed

  // The search for periods.
  bool turned_ = false;
  int marker_stream_ = -1;
  int marker_flow_ = -1;
  Snapshot seen_;
  std::int64_t turns_left_ = 0;
  std::int64_t next_turns_ = 1;
};

}  // namespace

std::optional<EngineResult> run(const Workload& workload, const EngineOptions& options) {
  if (options.window < 1) usage_error("a window of {} chunks is impossible; give 1 or more", options.window);
  return Engine(workload, options).run();
}

}  // namespace polyring
