#include "tests/simulation/oracle/simgrid.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <xbt/log.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/index.hpp"

namespace polyring::testing {
namespace {

namespace s4u = simgrid::s4u;

/// Messages that come so near to each other, in seconds, come together: rounding alone tells them apart.
constexpr double kSameTime = 1e-11;

/// Flows share links max-min fair and know neither TCP nor any limit to their number, and rounding is far
/// below what is compared.
void configure() {
  xbt_log_control_set("root.thres:warning");
  for (const char* option :
       {"network/model:CM02", "network/TCP-gamma:0", "network/latency-factor:1", "network/bandwidth-factor:1",
        "network/weight-S:0", "network/crosstraffic:0", "maxmin/concurrency-limit:-1",
        "maxmin/precision:1e-9", "surf/precision:1e-12", "contexts/stack-size:64"}) {
    s4u::Engine::set_config(option);
  }
}

/// One message under way: the work of one rank for another in one step of one stream.
struct Message {
  int stream = 0;
  std::uint64_t bytes = 0;
  s4u::SemaphorePtr source;  // released when it is through
  s4u::SemaphorePtr destination;
  double begun = 0;
};

/// The messages of one lane from one rank to another: each waits for the latency, then they move one after
/// another.
class Connection {
 public:
  Connection(s4u::Host* from, s4u::Host* to, double latency) : from_(from), to_(to), latency_(latency) {
    s4u::Actor::create(from->get_name() + "-" + to->get_name(), from, [this] { carry(); })->daemonize();
  }

  /// In the order in which they begin; of those that begin together, the older stream's first.
  void begin(Message message) {
    message.begun = s4u::Engine::get_clock();
    auto at = waiting_.end();
    while (at != waiting_.begin() && (at - 1)->begun > message.begun - kSameTime &&
           (at - 1)->stream > message.stream) {
      --at;
    }
    waiting_.insert(at, std::move(message));
    news_->release();
  }

 private:
  void carry() {
    for (;;) {
      news_->acquire();
      // All that begin together are here when the latency is over.
      s4u::this_actor::sleep_until(waiting_.front().begun + latency_);
      const Message message = std::move(waiting_.front());
      waiting_.pop_front();
      s4u::Comm::sendto(from_, to_, message.bytes);
      message.source->release();
      message.destination->release();
    }
  }

  s4u::Host* from_;
  s4u::Host* to_;
  double latency_;
  std::deque<Message> waiting_;
  s4u::SemaphorePtr news_ = s4u::Semaphore::create(0);
};

/// SimGrid's hosts are the ranks, its links the resources.
class Platform {
 public:
  Platform(const Router& router, int ranks) : router_(router), zone_(s4u::create_full_zone("cluster")) {
    for (int rank = 0; rank < ranks; ++rank) {
      hosts_.push_back(zone_->create_host("rank" + std::to_string(rank), 1e9));
    }
    for (int resource = 0; resource < router.resource_count(); ++resource) links_.push_back(nullptr);
    latencies_.resize(index(ranks * ranks));
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (from != to) add_route(from, to);
      }
    }
    zone_->seal();
  }

  s4u::Host* host(Rank rank) const { return hosts_[index(rank)]; }
  double latency(Rank from, Rank to) const { return latencies_[index(from) * hosts_.size() + index(to)]; }

 private:
  void add_route(Rank from, Rank to) {
    std::vector<Crossing> route;
    const double latency = router_.route(from, to, route).value;
    if (route.empty() || latency <= 0) throw std::logic_error("a route without resources or latency");
    latencies_[index(from) * hosts_.size() + index(to)] = latency;
    std::vector<s4u::LinkInRoute> links;
    for (const Crossing& crossing : route) {
      if (crossing.share != 1) throw std::logic_error("SimGrid does not stripe a message over several NICs");
      links.emplace_back(link(crossing.resource));
    }
    zone_->add_route(host(from)->get_netpoint(), host(to)->get_netpoint(), nullptr, nullptr, links, false);
  }

  /// Latencies are slept instead: CM02 would give flows of longer latency a smaller share.
  const s4u::Link* link(ResourceId resource) {
    s4u::Link*& link = links_[index(resource)];
    if (link == nullptr) {
      link = zone_->create_link("resource" + std::to_string(resource), router_.bandwidth(resource).value);
      link->set_latency(0.0)->set_sharing_policy(s4u::Link::SharingPolicy::SHARED)->seal();
    }
    return link;
  }

  const Router& router_;
  s4u::NetZone* zone_;
  std::vector<s4u::Host*> hosts_;
  std::vector<s4u::Link*> links_;
  std::vector<double> latencies_;
};

/// All ranks of a schedule at work.
class Ranks {
 public:
  Ranks(const Schedule& schedule, const Platform& platform, int element_size, int window)
      : schedule_(schedule), platform_(platform), element_size_(element_size), next_(index(schedule.ranks)) {
    int most = 0;
    for (const Lane& lane : schedule.lanes) most = std::max(most, lane.chunks);
    for (int chunk = 0; chunk < most; ++chunk) {
      for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
        if (chunk >= schedule.lanes[index(lane)].chunks) continue;
        if (!stream_slice(schedule, {lane, chunk}).empty()) streams_.push_back({lane, chunk});
      }
    }
    connect();
    const std::size_t slots = std::min(streams_.size(), schedule.lanes.size() * index(window));
    for (Rank rank = 0; rank < schedule.ranks; ++rank) {
      for (std::size_t slot = 0; slot < slots; ++slot) {
        s4u::Actor::create("slot" + std::to_string(slot), platform.host(rank), [this, rank] { work(rank); });
      }
    }
  }

 private:
  using Place = std::tuple<int, int, int, Rank, Rank>;  // stream, stage, step, source, destination
  using Peers = std::map<Rank, std::uint64_t>;          // bytes by peer

  /// One of the streams that a rank has in flight at once, and then the next that nobody has begun.
  void work(Rank rank) {
    const s4u::SemaphorePtr done = s4u::Semaphore::create(0);
    while (next_[index(rank)] < streams_.size()) {
      const int number = static_cast<int>(next_[index(rank)]++);
      const Stream stream = streams_[index(number)];
      const Lane& lane = schedule_.lanes[index(stream.lane)];
      for (int stage = 0; stage < stage_count(lane); ++stage) {
        const int steps = step_count(lane, stage);
        for (int step = 0; step < steps; ++step) {
          const Peers sends = by_peer(number, stage, step, rank, true);
          const Peers receives = by_peer(number, stage, step, rank, false);
          for (const auto& [peer, bytes] : sends)
            exchange({number, stage, step, rank, peer}, bytes, done, true);
          for (const auto& [peer, bytes] : receives)
            exchange({number, stage, step, peer, rank}, bytes, done, false);
          for (std::size_t i = sends.size() + receives.size(); i > 0; --i) done->acquire();
        }
      }
    }
  }

  /// The slices for one peer are one message.
  Peers by_peer(int number, int stage, int step, Rank rank, bool sends) const {
    std::vector<Transfer> transfers;
    const Stream stream = streams_[index(number)];
    (sends ? append_sends : append_receives)(schedule_, stream, stage, step, rank, transfers);
    Peers bytes;
    for (const Transfer& transfer : transfers) {
      bytes[sends ? transfer.destination : transfer.source] +=
          static_cast<std::uint64_t>(transfer.slice.count * element_size_);
    }
    return bytes;
  }

  /// A rank has come to its end of a message; the second of the two to come begins it.
  void exchange(const Place& place, std::uint64_t bytes, const s4u::SemaphorePtr& done, bool sends) {
    const auto [at, first] = met_.try_emplace(place);
    (sends ? at->second.source : at->second.destination) = done;
    const auto [stream, stage, step, from, to] = place;
    if (first) {
      at->second.stream = stream;
      at->second.bytes = bytes;
      return;
    }
    if (at->second.bytes != bytes) throw std::logic_error("the ends of a message differ");
    Message message = std::move(at->second);
    met_.erase(at);
    connections_.at({streams_[index(stream)].lane, from, to})->begin(std::move(message));
  }

  /// All that the schedule needs, before anything moves: to create one is to let other actors run.
  void connect() {
    std::vector<Transfer> transfers;
    for (int lane = 0; lane < static_cast<int>(schedule_.lanes.size()); ++lane) {
      const Lane& of = schedule_.lanes[index(lane)];
      for (int stage = 0; stage < stage_count(of); ++stage) {
        for (int step = 0; step < step_count(of, stage); ++step) {
          for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
            append_sends(schedule_, {lane, 0}, stage, step, rank, transfers);
          }
        }
      }
    }
    for (const auto& [stream, stage, step, from, to, slice, combine, moved] : transfers) {
      std::unique_ptr<Connection>& connection = connections_[{stream.lane, from, to}];
      if (connection) continue;
      connection =
          std::make_unique<Connection>(platform_.host(from), platform_.host(to), platform_.latency(from, to));
    }
  }

  const Schedule& schedule_;
  const Platform& platform_;
  int element_size_;
  std::vector<Stream> streams_;    // in the order in which each rank takes them
  std::vector<std::size_t> next_;  // of streams_, by rank
  std::map<Place, Message> met_;   // of which one end has come
  std::map<std::tuple<int, Rank, Rank>, std::unique_ptr<Connection>> connections_;
};

double simulate(const Schedule& schedule, const Router& router, int element_size, int window) {
  s4u::Engine engine("oracle");
  configure();
  const Platform platform(router, schedule.ranks);
  const Ranks ranks(schedule, platform, element_size, window);
  engine.run();
  return s4u::Engine::get_clock();
}

/// In the child: leaves without SimGrid's farewell.
[[noreturn]] void report(int pipe, const Schedule& schedule, const Router& router, int element_size,
                         int window) {
  int status = 1;
  try {
    const double seconds = simulate(schedule, router, element_size, window);
    if (write(pipe, &seconds, sizeof seconds) == sizeof seconds) status = 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "SimGrid: %s\n", error.what());
  }
  _exit(status);
}

}  // namespace

std::string no_simgrid() { return {}; }

Seconds time_by_simgrid(const Schedule& schedule, const Router& router, int element_size, int window) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);  // or the child would write it once more
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) report(ends[1], schedule, router, element_size, window);
  close(ends[1]);
  double seconds = 0;
  const bool said = read(ends[0], &seconds, sizeof seconds) == sizeof seconds;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!said || status != 0) throw std::runtime_error("SimGrid's process failed");
  return {seconds};
}

}  // namespace polyring::testing
