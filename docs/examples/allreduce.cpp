// An allreduce between processes that no MPI has started. Each is told its place by the environment variables
// that torchrun and others set, and does the same work:
//
//     for rank in 0 1 2 3; do
//       RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=4711 ./allreduce &
//     done; wait
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "collectives/runtime/bootstraps/tcp.hpp"
#include "collectives/runtime/communicator.hpp"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) polyring::usage_error("{} is not set; see the head of this example", name);
  return value;
}

void run() {
  polyring::TcpGroup group;
  group.root = polyring::parse_endpoint(variable("MASTER_ADDR") + ":" + variable("MASTER_PORT"));
  group.rank = std::atoi(variable("RANK").c_str());
  group.size = std::atoi(variable("WORLD_SIZE").c_str());
  group.timeout = polyring::Seconds{20};
  const polyring::TcpBootstrap bootstrap(group);

  polyring::CommunicatorOptions options;
  options.timeout = group.timeout;
  polyring::Communicator communicator(bootstrap, options);

  // In memory of the communicator the ranks of a host combine without copies.
  constexpr polyring::Count kCount = 1'000'000;
  const polyring::Memory gradients =
      communicator.allocate(polyring::bytes_of(kCount, polyring::ElementKind::float32));
  auto* const values = reinterpret_cast<float*>(gradients.get());
  std::fill_n(values, kCount, static_cast<float>(communicator.rank() + 1));

  polyring::Operation sum = communicator.start({.count = kCount}, gradients.get(), gradients.get());
  // … whatever else there is to compute …
  sum.wait();

  const auto expected = static_cast<float>(communicator.size() * (communicator.size() + 1) / 2);
  const auto wrong = std::count_if(values, values + kCount, [&](float value) { return value != expected; });
  fmt::print("rank {} of {}: {} hosts over {}, {} of {} sums wrong\n", communicator.rank(),
             communicator.size(), communicator.hosts().count(), communicator.joined().name, wrong, kCount);
  if (wrong > 0) throw polyring::Error(polyring::ExitCode::wrong_result, "the sums are wrong");
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const polyring::Error& error) {
    fmt::print(stderr, "allreduce: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}
