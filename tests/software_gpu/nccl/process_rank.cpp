// One rank of process_test.cpp: nccl_process PORT RANK SIZE [leaves]. Reduces, exchanges, and says "ok"; what
// fails is a sentence, and the exit code says of what kind. `leaves`: this rank ends before the last
// operation.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/runtime/bootstraps/tcp.hpp"
#include "tests/software_gpu/nccl/ranks.hpp"

namespace polyring {
namespace {

void expect(bool holds, const char* what) {
  if (!holds) throw Error(ExitCode::wrong_result, fmt::format("the {} is wrong", what));
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

void run(const Bootstrap& bootstrap, bool leaves) {
  const Rank rank = bootstrap.rank();
  const int size = bootstrap.size();
  cudaSetDevice(rank);
  const DeviceStream stream;
  NcclCommunicator communicator(NcclLibrary::of_process(), bootstrap, device_of(rank), {{10}, false});
  const auto finish = [&] { communicator.wait([&] { return stream.is_idle(); }); };

  constexpr Count kMany = 300'000;
  std::vector<float> values(kMany, static_cast<float>(rank + 1));
  const DeviceBuffer buffer(bytes_of(values));
  communicator.all_reduce(buffer.data(), buffer.data(), kMany, ElementKind::float32, ReduceOp::sum,
                          stream.get());
  finish();
  values.assign(kMany, static_cast<float>(size * (size + 1) / 2));
  expect(buffer.read() == bytes_of(values), "sum");

  if (leaves) std::_Exit(0);
  const DeviceBuffer from(bytes_of({static_cast<float>(rank)}));
  const DeviceBuffer to(sizeof(float));
  communicator.group([&] {
    communicator.send(from.data(), 1, ElementKind::float32, (rank + 1) % size, stream.get());
    communicator.receive(to.data(), 1, ElementKind::float32, (rank + size - 1) % size, stream.get());
  });
  finish();
  expect(to.read() == bytes_of({static_cast<float>((rank + size - 1) % size)}), "message");
}

}  // namespace
}  // namespace polyring

int main(int argc, char** argv) {
  using namespace polyring;
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const TcpGroup group{{"127.0.0.1", std::stoi(arguments.at(0))},
                         "nccl",
                         std::stoi(arguments.at(1)),
                         std::stoi(arguments.at(2)),
                         {20}};
    const TcpBootstrap bootstrap(group);
    run(bootstrap, arguments.size() > 3);
    std::puts("ok");
    return 0;
  } catch (const Error& error) {
    std::puts(error.what());
    return static_cast<int>(error.code());
  }
}
