// What a GPU's memory, its launches and its copies to and from the host can do here, and beside it what
// Polyring's kernel and its way through the host make of that. For scripts/gpu_check; see kUsage.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/statistics.hpp"
#include "base/units.hpp"
#include "collectives/cuda/device_kernels.hpp"
#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/grid.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/memory.hpp"
#include "collectives/cuda/owners.hpp"
#include "collectives/cuda/transport.hpp"
#include "collectives/runtime/bootstraps/threads.hpp"
#include "collectives/runtime/transports/threads.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;
using cuda::check;

constexpr const char* kUsage =
    "usage: polyring_gpu_micro [--describe] [--size SIZE] [--repetitions N]\n"
    "\n"
    "Prints JSON: what the first GPU is, and what was measured on it, each with its bytes (read and "
    "written),\n"
    "the median and the least time in microseconds.\n"
    "  device_copy   cudaMemcpyAsync from the GPU's memory to itself\n"
    "  reduce        the sum of two float32 operands by Polyring's kernel, checked; by turns with the "
    "copies\n"
    "  launch        a kernel that does nothing, and an event behind it, until the host sees the event\n"
    "  to_host       a copy to pinned host memory, from_host one back\n"
    "  staged        a message between two ranks on this GPU through pinned host memory, checked\n"
    "\n"
    "  --describe       what the GPU is, alone\n"
    "  --size SIZE      of the operands; host copies and messages have a quarter; 1GiB when not given\n"
    "  --repetitions N  20 when not given\n";

constexpr std::uint32_t kOne = 0x3f800000, kTwo = 0x40000000, kThree = 0x40400000;  // as float32

struct Options {
  bool describe = false;
  Bytes size{std::size_t{1} << 30};
  int repetitions = 20;
};

struct Measure {
  std::string name;
  std::uint64_t bytes = 0;  // read and written; of a message or a host copy, its length
  std::vector<double> us;
};

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

/// The first GPU, and a stream on it.
class Gpu {
 public:
  Gpu() : description(cuda::gpus().front()) {
    check(cudaSetDevice(description.index), "use a GPU (cudaSetDevice)");
    stream_ = cuda::make_stream();
    begin_ = cuda::make_timed_event();
    end_ = cuda::make_timed_event();
    blocks = cuda::multiprocessors(description.index) * kBusyBlocks;
  }

  cudaStream_t stream() const { return stream_.get(); }
  bool is_software() const { return description.name.starts_with("software GPU"); }
  Memory allocate(Bytes size) const { return cuda::DeviceHeap::of(description.index).allocate(size); }

  /// From the begin to the end of what `enqueue` gives the stream, in microseconds.
  template <typename Enqueue>
  double time(Enqueue&& enqueue) const {
    check(cudaEventRecord(begin_.get(), stream()), "record an event (cudaEventRecord)");
    enqueue();
    check(cudaEventRecord(end_.get(), stream()), "record an event (cudaEventRecord)");
    finish();
    return cuda::microseconds_between(begin_.get(), end_.get());
  }
  void finish() const {
    check(cudaStreamSynchronize(stream()), "finish what it was given (cudaStreamSynchronize)");
  }
  /// Until the event that was recorded last is over: the host polls, as it does for collectives.
  void poll() const {
    check(cudaEventRecord(end_.get(), stream()), "record an event (cudaEventRecord)");
    while (!cuda::is_over(cudaEventQuery(end_.get()), "finish what it was given (cudaEventQuery)")) {
      if (is_software()) std::this_thread::yield();
    }
  }

  GpuDevice description;
  int blocks = 1;

 private:
  cuda::Stream stream_;
  cuda::Event begin_;
  cuda::Event end_;
};

void copy(const Gpu& gpu, std::byte* to, const std::byte* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, gpu.stream()), "copy (cudaMemcpyAsync)");
}

void expect_equal(const Gpu& gpu, const std::byte* left, const std::byte* right, std::size_t bytes) {
  const Memory differing = gpu.allocate({sizeof(std::uint64_t)});
  const Memory count = cuda::pinned_memory({sizeof(std::uint64_t)});
  launch_fill(differing.get(), sizeof(std::uint64_t), 0, 1, gpu.stream());
  launch_compare(left, right, static_cast<Count>(bytes / sizeof(float)), sizeof(float),
                 reinterpret_cast<std::uint64_t*>(differing.get()), gpu.blocks, gpu.stream());
  copy(gpu, count.get(), differing.get(), sizeof(std::uint64_t));
  gpu.finish();
  std::uint64_t found = 0;
  std::memcpy(&found, count.get(), sizeof found);
  if (found > 0)
    throw Error(ExitCode::wrong_result,
                fmt::format("{} elements of the sum are wrong; no time is given", found));
}

/// Copies and reductions by turns, so that a clock that changes meets both.
std::vector<Measure> measure_reduce(const Gpu& gpu, const Options& options) {
  const std::size_t bytes = options.size.value;
  const Memory first = gpu.allocate(options.size);
  const Memory second = gpu.allocate(options.size);
  const Memory result = gpu.allocate(options.size);
  const auto fill = [&](const Memory& memory, std::uint32_t pattern) {
    launch_fill(memory.get(), bytes, pattern, gpu.blocks, gpu.stream());
  };
  fill(first, kOne);
  fill(second, kTwo);
  std::byte* const results[] = {result.get()};
  const std::byte* const operands[] = {first.get(), second.get()};
  const auto reduce = [&] {
    launch_reduce({ElementKind::float32, ReduceOp::sum, 1}, results, operands,
                  static_cast<Count>(bytes / sizeof(float)), gpu.blocks, gpu.stream());
  };
  Measure copies{"device_copy", 2 * std::uint64_t{bytes}, {}};
  Measure sums{"reduce", 3 * std::uint64_t{bytes}, {}};
  constexpr int kWarmups = 10;  // until the clock is as fast as it gets
  for (int i = -kWarmups; i < options.repetitions; ++i) {
    const double copied = gpu.time([&] { copy(gpu, result.get(), first.get(), bytes); });
    const double summed = gpu.time(reduce);
    if (i < 0) continue;
    copies.us.push_back(copied);
    sums.us.push_back(summed);
  }
  fill(first, kThree);
  expect_equal(gpu, result.get(), first.get(), bytes);
  return {copies, sums};
}

Measure measure_launch(const Gpu& gpu, const Options& options) {
  constexpr int kTimes = 50;  // as many as other measures: it is short
  Measure launches{"launch", 0, {}};
  FillArguments nothing{};
  void* parameters[] = {&nothing};
  for (int i = -kTimes; i < kTimes * options.repetitions; ++i) {
    const Clock::time_point begin = Clock::now();
    check(cudaLaunchKernel(kOtherKernels.fill, dim3(1), dim3(32), parameters, 0, gpu.stream()),
          "launch a kernel that does nothing (cudaLaunchKernel)");
    gpu.poll();
    if (i >= 0) launches.us.push_back(microseconds(Clock::now() - begin));
  }
  return launches;
}

std::vector<Measure> measure_host_copies(const Gpu& gpu, const Options& options) {
  const Bytes size{options.size.value / 4};
  const Memory there = gpu.allocate(size);
  const Memory here = cuda::pinned_memory(size);
  launch_fill(there.get(), size.value, kOne, gpu.blocks, gpu.stream());
  Measure to{"to_host", size.value, {}};
  Measure from{"from_host", size.value, {}};
  for (int i = -1; i < options.repetitions; ++i) {
    const double out = gpu.time([&] { copy(gpu, here.get(), there.get(), size.value); });
    const double back = gpu.time([&] { copy(gpu, there.get(), here.get(), size.value); });
    if (i < 0) continue;
    to.us.push_back(out);
    from.us.push_back(back);
  }
  return {to, from};
}

void finish_one(Transport& transport) {
  std::vector<Ticket> done;
  while (done.empty()) transport.wait(done);
}

/// The ranks are threads that take each other to be on another host: so they do not use peer memory.
Measure measure_staged(const Gpu& gpu, const Options& options) {
  const std::size_t bytes = options.size.value / 4;
  const RankHosts hosts{{0, 1}, {"host0", "host1"}};
  Measure messages{"staged", bytes, {}};
  ThreadTeam team(2);
  ThreadGroup group(2);
  run_ranks(2, [&](ThreadTransport& threads) {
    const Rank rank = threads.rank();
    const ThreadBootstrap bootstrap(team, rank);
    const WaitRules rules{Seconds{20},
                          gpu.is_software(),
                          [](const std::string& what, const std::vector<Rank>&) {
                            throw Error(ExitCode::timeout, fmt::format("no end of {} in 20 s", what));
                          },
                          {}};
    const GpuTransport made = cuda::make_gpu_transport(std::make_unique<ThreadTransport>(group, rank),
                                                       bootstrap, hosts, gpu.description.index, rules);
    Transport& transport = *made.transport;
    if (transport.reaches(1 - rank)) throw Error(ExitCode::internal, "ranks on two hosts use peer memory");
    const Memory memory = transport.allocate({bytes});
    std::vector<std::byte> content(bytes, std::byte{rank == 0 ? std::uint8_t{0x5a} : std::uint8_t{0}});
    transport.upload(memory.get(), content);
    for (int i = -1; i < options.repetitions; ++i) {
      bootstrap.barrier();
      const Clock::time_point begin = Clock::now();
      if (rank == 0) {
        transport.send(1, 0, {memory.get(), bytes}, 1);
      } else {
        transport.receive(0, 0, {memory.get(), bytes}, 1);
      }
      finish_one(transport);
      if (rank == 1 && i >= 0) messages.us.push_back(microseconds(Clock::now() - begin));
    }
    if (rank == 1) {
      transport.download(content, memory.get());
      if (std::ranges::count(content, std::byte{0x5a}) != std::ssize(content))
        throw Error(ExitCode::wrong_result, "a message through the host is wrong; no time is given");
    }
    bootstrap.barrier();
  });
  return messages;
}

std::string json(const Measure& measure) {
  const Summary summary = summarize(measure.us);
  return fmt::format(
      R"(    {{"name": "{}", "bytes": {}, "repetitions": {}, "median_us": {:.3f}, "least_us": {:.3f}}})",
      measure.name, measure.bytes, measure.us.size(), summary.median, summary.min);
}

void print(const Gpu& gpu, const std::vector<Measure>& measures) {
  const GpuDevice& device = gpu.description;
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "say the driver's version (cudaDriverGetVersion)");
  std::vector<std::string> lines;
  for (const Measure& measure : measures) lines.push_back(json(measure));
  fmt::print(
      "{{\n  \"gpu\": \"{}\",\n  \"gpus\": {},\n  \"capability\": \"{}.{}\",\n  \"memory_bytes\": {},\n"
      "  \"cuda_driver\": \"{}.{}\",\n  \"cuda_runtime\": \"{}\",\n  \"measures\": [\n{}\n  ]\n}}\n",
      device.name, cuda::gpus().size(), device.major, device.minor, device.memory.value, driver / 1000,
      driver % 1000 / 10, cuda::runtime_version(), fmt::join(lines, ",\n"));
}

int parse_repetitions(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1 || number > 10'000)
    usage_error("--repetitions needs a number, 1 to 10000, not '{}'", text);
  return number;
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool has_value = i + 1 < words.size();
    if (word == "--describe") {
      options.describe = true;
    } else if (word == "--size" && has_value) {
      options.size = parse_bytes(words[++i], "--size");
      if (options.size.value < 64 || options.size.value % 64 != 0)
        usage_error("--size needs a multiple of 64 bytes, not '{}'", words[i]);
    } else if (word == "--repetitions" && has_value) {
      options.repetitions = parse_repetitions(words[++i]);
    } else {
      usage_error("'{}' is unknown, or lacks its value; see polyring_gpu_micro --help", word);
    }
  }
  return options;
}

void run(const Options& options) {
  const Gpu gpu;
  std::vector<Measure> measures;
  if (!options.describe) {
    measures = measure_reduce(gpu, options);
    measures.push_back(measure_launch(gpu, options));
    std::ranges::move(measure_host_copies(gpu, options), std::back_inserter(measures));
    measures.push_back(measure_staged(gpu, options));
  }
  print(gpu, measures);
}

}  // namespace
}  // namespace polyring

int main(int argc, char** argv) {
  using namespace polyring;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (std::ranges::count(words, "--help") > 0) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    run(parse(words));
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "polyring_gpu_micro: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}
