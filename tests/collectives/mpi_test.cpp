// Run under mpirun with any number of ranks: every algorithm over the MPI transport, compared with
// MPI_Allreduce and with the exact result. Prints one line per failure and a summary on rank 0.
#include "bench/contenders/mpi.hpp"

#include <fmt/format.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "bench/measure/payload.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "collectives/runtime/transports/world.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/sweep.hpp"

namespace polyring {
namespace {

class MpiTest {
 public:
  MpiTest(MpiWorld& world, std::unique_ptr<Transport> transport)
      : world_(world), transport_(std::move(transport)) {}

  void compare(const Plan& plan, Count count, ElementKind kind, ReduceOp op, bool in_place) {
    compare(*transport_, plan, count, kind, op, in_place);
  }

  void compare(Transport& transport, const Plan& plan, Count count, ElementKind kind, ReduceOp op,
               bool in_place) {
    const auto bytes = bytes_of(count, kind).value;
    const Payload payload(kind, op, world_.size());
    // By turns from the library, and from anywhere, at any alignment.
    const bool library = ++cases_ % 2 == 0;
    const auto buffer = [&] {
      const Bytes size{bytes + 2};
      return library ? transport.allocate(size) : transport.scratch(size);
    };
    const Memory input = buffer();
    const Memory output = buffer();
    std::byte* const in = input.get() + (library ? 0 : 1);
    std::byte* const out = output.get() + (library ? 0 : 1);
    payload.fill(world_.rank(), in, count);
    std::memset(out, 0xff, bytes);
    std::vector<std::byte> reference(bytes + 1, std::byte{0xff});
    make_mpi_allreduce(world_, kind, op, count)->run(in, reference.data());
    if (in_place) std::memcpy(out, in, bytes);
    Executor executor(make_schedule(plan, world_.size(), count, size_of(kind)), kind, op, transport);
    executor.run(in_place ? out : in, out);
    const Count wrong = payload.wrong(out, count);
    const bool differs = std::memcmp(out, reference.data(), bytes) != 0;
    if (wrong == 0 && !differs) return;
    ++failures_;
    fmt::print("rank {}: {} of {} {} {}{}: {} wrong, {} MPI_Allreduce\n", world_.rank(), to_text(plan), count,
               to_text(kind), to_text(op), in_place ? " in place" : "", wrong,
               differs ? "differs from" : "as");
  }

  void expect(bool condition, const char* what) {
    ++cases_;
    if (condition) return;
    ++failures_;
    fmt::print("rank {}: {}\n", world_.rank(), what);
  }

  void every_algorithm() {
    for (const Algorithm& algorithm : algorithms()) {
      for (const Plan& plan : testing::plans_of(algorithm, world_.size(), 4)) {
        for (const Count count : testing::awkward_counts(world_.size())) {
          compare(plan, count, ElementKind::float32, ReduceOp::sum, count % 2 == 0);
        }
      }
      const Plan plan{std::string(algorithm.name), {world_.size()}, {}, 2, {4096}};
      for (const ElementKind kind : kElementKinds) {
        for (const ReduceOp op : kReduceOps) {
          for (const bool in_place : {false, true}) compare(plan, 5001, kind, op, in_place);
        }
      }
      // Beyond every eager limit.
      compare({std::string(algorithm.name), {world_.size()}, {}, 1, {1 << 18}}, 1 << 19, ElementKind::float32,
              ReduceOp::sum, false);
    }
  }

  /// The others wait for the last rank, which never comes: each must say so in time.
  void timeout() {
    if (world_.size() == 1) return;
    world_.barrier();
    const int absent = world_.size() - 1;
    if (world_.rank() != absent) {
      world_.set_timeout(Seconds{0.2});
      const auto impatient = make_mpi_transport(world_);
      std::byte nothing{};
      impatient->receive(absent, 7, {&nothing, 1}, 0);
      std::vector<Ticket> done;
      try {
        impatient->wait(done);
        expect(false, "waited for a message that nobody sends, and got it");
      } catch (const Error& error) {
        const std::string name = fmt::format("rank {} ({})", absent, world_.host(absent));
        const std::string_view what = error.what();
        expect(error.code() == ExitCode::timeout, "a wait without end is not a timeout");
        expect(what.find("for " + name) != std::string_view::npos, error.what());
        expect(what.find("no answer from " + name + ":") != std::string_view::npos, error.what());
      }
      world_.set_timeout(MpiWorld::kSetUpTimeout);
    }
    world_.barrier();
  }

  void messages_in_pieces() {
    for (const std::uint64_t piece : {1U, 7U, 1000U, 4096U}) {
      const auto transport = make_mpi_transport(world_, {Bytes{piece}, kMpiPiece});
      const Plan plan{"multi-ring", {world_.size()}, {}, 2, {16384}};
      for (const Count count : {0, 1, 1024, 5001}) {
        compare(*transport, plan, piece == 1 ? count / 16 : count, ElementKind::float32, ReduceOp::sum,
                false);
      }
    }
  }

  /// More elements than an int counts, in messages that are longer than the largest piece.
  void huge(Count count) {
    const ElementKind kind = ElementKind::bfloat16;
    const Payload payload(kind, ReduceOp::max, world_.size());
    const Memory data = transport_->allocate(bytes_of(count, kind));
    const auto check = [&](Allreduce& allreduce) {
      payload.fill(world_.rank(), data.get(), count);
      allreduce.run(data.get(), data.get());
      expect(payload.wrong(data.get(), count) == 0, "more than 2^31 elements are reduced wrongly");
    };
    Executor executor(make_schedule({"multi-ring", {world_.size()}, {}, 1, {}}, world_.size(), count, 2),
                      kind, ReduceOp::max, *transport_);
    check(executor);
    check(*make_mpi_allreduce(world_, kind, ReduceOp::max, count));
  }

  /// In one call of MPI and in many.
  void gathers() {
    std::vector<std::byte> own(static_cast<std::size_t>(3 + 50 * world_.rank()));
    for (std::size_t i = 0; i < own.size(); ++i)
      own[i] = std::byte(static_cast<std::size_t>(world_.rank()) + i);
    for (const Bytes at_once : {MpiWorld::kMostAtOnce, Bytes{64}, Bytes{1}}) {
      const auto everywhere = world_.allgather(own, at_once);
      const auto on_root = world_.gather(own, at_once);
      const auto is_right = [&](const std::vector<std::vector<std::byte>>& parts) {
        for (std::size_t rank = 0; rank < parts.size(); ++rank) {
          if (parts[rank].size() != 3 + 50 * rank) return false;
          for (std::size_t i = 0; i < parts[rank].size(); ++i) {
            if (parts[rank][i] != std::byte(rank + i)) return false;
          }
        }
        return true;
      };
      const auto ranks = static_cast<std::size_t>(world_.size());
      expect(everywhere.size() == ranks && is_right(everywhere), "allgather() is wrong");
      expect(on_root.size() == (world_.rank() == 0 ? ranks : 0) && is_right(on_root), "gather() is wrong");
    }
  }

  void world() {
    expect(world_.nodes() == 1 && world_.ranks_per_node() == world_.size(), "one host is taken for several");
    expect(world_.max(world_.rank()) == world_.size() - 1, "max() is wrong");
    expect(world_.sum(world_.rank()) == Count{world_.size()} * (world_.size() - 1) / 2, "sum() is wrong");
    expect(world_.broadcast(world_.rank() + 5) == 5, "broadcast() is wrong");
  }

  bool report() const {
    const std::int64_t failures = world_.sum(failures_);
    if (world_.rank() == 0) {
      fmt::print("{} ranks of {}: {} cases, {} failures\n", world_.size(), MpiWorld::library(), cases_,
                 failures);
    }
    return failures == 0;
  }

 private:
  MpiWorld& world_;
  std::unique_ptr<Transport> transport_;
  int cases_ = 0;
  int failures_ = 0;
};

}  // namespace
}  // namespace polyring

/// Arguments: `shared`, memory inside the host; `mpi`, messages for everything; `huge`, only what needs 13
/// GB.
int main(int argc, char** argv) {
  polyring::MpiWorld world;
  try {
    const std::string what = argc > 1 ? argv[1] : "mpi";
    if (what == "huge") {
      polyring::MpiTest test(world, polyring::make_mpi_transport(world));
      const polyring::Count count = (polyring::Count{1} << 31) + 5;
      if (world.broadcast(polyring::testing::available_memory() < 7 * count ? 1 : 0) != 0) {
        if (world.rank() == 0) fmt::print("skipped: needs 14 GB of free memory\n");
        return 77;
      }
      test.huge(count);
      return test.report() ? 0 : 1;
    }
    polyring::MpiTest test(world,
                           polyring::make_world_transport(world, polyring::parse_transport(what)).transport);
    test.world();
    test.gathers();
    test.every_algorithm();
    if (what == "mpi") test.messages_in_pieces();
    test.timeout();
    return test.report() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    world.abort(1);
  }
}
