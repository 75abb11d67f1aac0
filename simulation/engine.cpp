#include "simulation/engine.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <queue>

#include "simulation/sharing.hpp"
#include "simulation/streams.hpp"

namespace polyring {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

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
        connections_(index(workload.connections)) {}

  std::optional<EngineResult> run() {
    for (int actor = 0; actor < workload_.actors; ++actor) begin_streams(actor);
    settle();
    while (!events_.empty()) {
      step();
      settle();
      if (turned_) look_for_period();
      if (now_ + skipped_ > options_.seconds || happened_ > options_.events) return std::nullopt;
    }
    assert(streams_.all_done());
    return EngineResult{now_ + skipped_, happened_};
  }

 private:
  using Id = Sharing::Id;

  /// A flow of one stream that is under way.
  struct Underway {
    int stream = 0;
    int flow = 0;
    enum class Phase { latency, waiting, moving } phase = Phase::latency;
    double remaining = 0;  // bytes, at `since`
    double rate = 0;
    double since = 0;
    double end = 0;             // of the latency, or of the movement at this rate
    std::uint32_t version = 0;  // of the one event that still counts
  };
  using Phase = Underway::Phase;
  /// Its messages move one after another, in the order in which they come; of those that come together, the
  /// older stream's first.
  struct Connection {
    std::deque<Id> waiting;
    bool busy = false;
  };
  struct Event {
    double time;
    Id flow;
    std::uint32_t version;
    bool operator>(const Event& other) const { return time > other.time; }
  };
  /// A state to which the present one is compared.
  struct Snapshot {
    double time = 0;
    int first_stream = 0;
    std::vector<Streams::Live> live;
    std::vector<double> left;  // s, of each flow under way
    std::vector<Phase> phases;
  };

  const Flow& flow_of(const Underway& underway) const { return workload_.flows[index(underway.flow)]; }

  /// All that happens at the next point of time.
  void step() {
    while (!events_.empty() && stale(events_.top())) events_.pop();
    if (events_.empty()) return;
    const double limit = events_.top().time * (1 + kSameTime);
    for (; !events_.empty() && events_.top().time <= limit; events_.pop()) {
      const Event event = events_.top();
      if (stale(event)) continue;
      now_ = std::max(now_, event.time);
      ++happened_;
      ended_.push_back(event.flow);
    }
    for (const Id id : ended_) underway_[index(id)].phase == Phase::moving ? finish(id) : wait(id);
    ended_.clear();
  }
  bool stale(const Event& event) const { return underway_[index(event.flow)].version != event.version; }

  void begin_streams(int actor) {
    for (int stream = streams_.begin(actor); stream >= 0; stream = streams_.begin(actor)) {
      advance(stream, actor);
    }
  }

  /// The actor goes on in a stream until it has to wait; with the next streams when it is through.
  void advance(int stream, int actor) {
    begun_.clear();
    const bool done = streams_.advance(stream, actor, begun_);
    for (const int flow : begun_) begin(stream, flow);
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
    Underway& underway = underway_[index(id)];
    underway.stream = stream;
    underway.flow = flow;
    underway.phase = Phase::latency;
    underway.rate = 0;
    streams_.set_underway(stream, flow, id);
    if (flow_of(underway).latency > 0) {
      expect(id, now_ + flow_of(underway).latency);
    } else {
      wait(id);
    }
  }

  void wait(Id id) {
    Underway& underway = underway_[index(id)];
    underway.phase = Phase::waiting;
    underway.end = now_;
    ++underway.version;
    std::deque<Id>& waiting = connections_[index(flow_of(underway).connection)].waiting;
    auto at = waiting.end();
    for (; at != waiting.begin(); --at) {
      const Underway& before = underway_[index(*(at - 1))];
      if (before.end < now_ || before.stream <= underway.stream) break;
    }
    waiting.insert(at, id);
    open_.push_back(flow_of(underway).connection);
  }

  /// Called when all that happens now has happened, so that those that come together are all there.
  void start_waiting() {
    for (const int i : open_) {
      Connection& connection = connections_[index(i)];
      if (connection.busy || connection.waiting.empty()) continue;
      connection.busy = true;
      move(connection.waiting.front());
      connection.waiting.pop_front();
    }
    open_.clear();
  }

  void move(Id id) {
    Underway& underway = underway_[index(id)];
    const Flow& flow = flow_of(underway);
    underway.phase = Phase::moving;
    underway.remaining = flow.bytes;
    underway.since = now_;
    sharing_.add(
        id, std::span(workload_.uses).subspan(index(flow.first_use), index(flow.last_use - flow.first_use)));
  }

  void finish(Id id) {
    Underway& underway = underway_[index(id)];
    const int stream = underway.stream;
    const int number = underway.flow;
    const Flow& flow = flow_of(underway);
    ++underway.version;
    sharing_.remove(id);
    spare_.push_back(id);
    connections_[index(flow.connection)].busy = false;
    open_.push_back(flow.connection);
    if (options_.skip) note(stream, number, flow);
    streams_.finish(stream, number, flow.source, flow.local ? End::reduction : End::send);
    if (!flow.local) streams_.finish(stream, number, flow.destination, End::receive);
    advance(stream, flow.source);
    if (!flow.local && flow.source != flow.destination) advance(stream, flow.destination);
  }

  void expect(Id id, double time) {
    Underway& underway = underway_[index(id)];
    underway.end = time;
    events_.push({time, id, ++underway.version});
  }

  /// New rates, and when what moves at them will be through.
  void settle() {
    start_waiting();
    for (const Id id : sharing_.share()) {
      Underway& underway = underway_[index(id)];
      const double rate = sharing_.rate(id);
      if (rate == underway.rate) continue;
      underway.remaining = std::max(0.0, underway.remaining - underway.rate * (now_ - underway.since));
      underway.since = now_;
      underway.rate = rate;
      expect(id, now_ + underway.remaining / rate);
    }
  }

  /// The same flow coming to its end again and again marks the periods, of whatever length they are.
  void note(int stream, int number, const Flow& flow) {
    const Streams::Position& at = streams_.position(stream, flow.source);
    const int left = workload_.rounds[index(at.round)].repeats - at.repeat;
    if (stream == marker_stream_ && number == marker_flow_) {
      turned_ = left >= kWorthwhile;
      if (!turned_) marker_stream_ = -1;
    } else if (left >= kWorthwhile && marker_stream_ < streams_.first()) {
      marker_stream_ = stream;
      marker_flow_ = number;
      seen_.live.clear();
      patience_ = 1;
    }
  }

  /// Brent's search: each state is compared to one before, which is renewed ever more rarely. R. P. Brent,
  /// "An improved Monte Carlo factorization algorithm", BIT 20, 1980.
  void look_for_period() {
    turned_ = false;
    if (!seen_.live.empty() && same_as_seen()) {
      skip_periods();
      seen_.live.clear();
      patience_ = 1;
    }
    if (seen_.live.empty() || --turns_left_ == 0) take_snapshot();
  }

  void take_snapshot() {
    turns_left_ = patience_;
    patience_ *= 2;
    seen_.time = now_;
    seen_.first_stream = streams_.first();
    seen_.live.assign(streams_.live().begin(), streams_.live().end());
    seen_.left.clear();
    seen_.phases.clear();
    for (const Streams::Live& live : seen_.live) {
      for (const int flow : live.flows) {
        if (flow < 0) continue;
        seen_.left.push_back(underway_[index(flow)].end - now_);
        seen_.phases.push_back(underway_[index(flow)].phase);
      }
    }
  }

  /// The same but for repeats, which must not have gone backwards.
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
        const Underway& underway = underway_[index(now)];
        if (underway.phase != seen_.phases[next]) return false;
        if (std::abs(underway.end - now_ - seen_.left[next++]) > tolerance) return false;
      }
    }
    return true;
  }

  static bool same_position(const Streams::Position& then, const Streams::Position& now) {
    return then.round == now.round && then.receiving == now.receiving && then.others == now.others &&
           then.reducing == now.reducing && then.repeat <= now.repeat;
  }

  /// As many periods as leave each repeated round at least one repeat.
  void skip_periods() {
    std::int64_t periods = std::numeric_limits<std::int64_t>::max();
    for_each_turning([&](const Streams::Position& now, int repeats) {
      const int left = workload_.rounds[index(now.round)].repeats - 1 - now.repeat;
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
  std::vector<int> open_;  // connections on which something may move
  std::vector<Underway> underway_;
  std::vector<Id> spare_;
  std::vector<Id> ended_;
  std::vector<int> begun_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0;
  double skipped_ = 0;  // s, of whole periods
  std::uint64_t happened_ = 0;

  // The search for periods.
  bool turned_ = false;
  int marker_stream_ = -1;
  int marker_flow_ = -1;
  Snapshot seen_;
  std::int64_t turns_left_ = 0;
  std::int64_t patience_ = 1;
};

}  // namespace

std::optional<EngineResult> run(const Workload& workload, const EngineOptions& options) {
  return Engine(workload, options).run();
}

}  // namespace polyring
