// Usage: failing_job program|library|stuck, under mpirun with 2 ranks: what MPI may still write to when rank
// 0 fails.
//
//   program  as polyring's commands run: the sentence comes first, and nothing is unwound
//   library  the world lives on: what was cancelled is received by others
//   stuck    the library has something under way that nobody can call back
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "bench/session/collective.hpp"
#include "collectives/runtime/transports/mpi.hpp"

namespace polyring {
namespace {

constexpr Bytes kMessage{8 << 20};
constexpr std::chrono::milliseconds kLate{200};

struct Unwound {
  ~Unwound() { fmt::print(stderr, "unwound\n"); }
};

void wait_for(Transport& transport, std::size_t operations) {
  std::vector<Ticket> done;
  while (done.size() < operations) transport.wait(done);
}

std::vector<Memory> two_buffers(Transport& transport) {
  std::vector<Memory> buffers;
  for (int i = 0; i < 2; ++i) buffers.push_back(transport.allocate(kMessage));
  return buffers;
}

void send_late(Transport& transport) {
  const std::vector<Memory> buffers = two_buffers(transport);
  std::this_thread::sleep_for(kLate);
  for (int tag = 0; tag < 2; ++tag) {
    std::byte* const data = buffers[static_cast<std::size_t>(tag)].get();
    std::fill(data, data + kMessage.value, static_cast<std::byte>(tag + 1));
    transport.send(0, tag, {data, kMessage.value}, 1);
  }
  wait_for(transport, 2);
}

void receive(Transport& transport, const std::vector<Memory>& buffers) {
  for (int tag = 0; tag < 2; ++tag) {
    transport.receive(1, tag, {buffers[static_cast<std::size_t>(tag)].get(), kMessage.value}, 1);
  }
}

[[noreturn]] void fail() { throw Error(ExitCode::timeout, "out of luck"); }

ExitCode in_a_program(const MpiWorld& world) {
  const auto transport = make_mpi_transport(world);
  if (world.rank() == 1) {
    send_late(*transport);
    return ExitCode::ok;
  }
  const Unwound unwound;
  const std::vector<Memory> buffers = two_buffers(*transport);
  transport->attempt([&] {
    receive(*transport, buffers);
    fail();
  });
  return ExitCode::ok;
}

/// Whether rank 0 has received what it should, the second time.
bool in_a_library(const MpiWorld& world) {
  bool right = true;
  const auto transport = make_mpi_transport(world);
  if (world.rank() == 1) {
    send_late(*transport);
  } else {
    try {
      const std::vector<Memory> buffers = two_buffers(*transport);
      transport->attempt([&] {
        receive(*transport, buffers);
        fail();
      });
    } catch (const Error& error) {
      fmt::print(stderr, "caught: {}\n", error.what());
    }
    const auto other = make_mpi_transport(world);
    const std::vector<Memory> buffers = two_buffers(*other);
    receive(*other, buffers);
    wait_for(*other, 2);
    for (std::size_t tag = 0; tag < 2; ++tag) {
      const std::byte* const data = buffers[tag].get();
      right = right && std::count(data, data + kMessage.value, static_cast<std::byte>(tag + 1)) ==
                           static_cast<std::ptrdiff_t>(kMessage.value);
    }
  }
  world.barrier();
  return right;
}

void with_a_message_that_nobody_takes(const MpiWorld& world) {
  const auto transport = make_mpi_transport(world);
  if (world.rank() == 0) {
    const std::vector<Memory> buffers = two_buffers(*transport);
    try {
      transport->attempt([&] {
        transport->send(1, 0, {buffers.front().get(), kMessage.value}, 1);
        fail();
      });
    } catch (const Error& error) {
      fmt::print(stderr, "caught: {}\n", error.what());
    }
  }
  world.barrier();
}

}  // namespace
}  // namespace polyring

int main(int, char** arguments) {
  using namespace polyring;
  const std::string how = arguments[1];
  if (how == "program") {
    return static_cast<int>(run_collectively(
        Seconds{30}, [](World& world, Watchdog&) { return in_a_program(*as_mpi_world(world)); }));
  }
  const MpiWorld world;
  try {
    if (how == "library") return in_a_library(world) ? 0 : 1;
    with_a_message_that_nobody_takes(world);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    world.abort(1);
  }
}
