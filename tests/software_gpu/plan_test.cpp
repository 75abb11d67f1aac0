// The plan: the machine that the software GPU pretends to be, and its faults.
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <set>

#include "tests/software_gpu/conformance/launches.hpp"
#include "tests/software_gpu/scenario.hpp"
#include "tests/software_gpu/software_gpu.hpp"

extern "C" void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);

namespace polyring::software_gpu {
namespace {

// --- The machine
// ----------------------------------------------------------------------------------------------------

int count_devices() {
  int count = 0;
  cudaGetDeviceCount(&count);
  cudaGetLastError();
  return count;
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, device));
  return properties;
}

bool are_peers(int device, int peer) {
  int can = 0;
  OK(cudaDeviceCanAccessPeer(&can, device, peer));
  return can == 1;
}

constexpr const char* kMachine = R"(
# a comment
devices 4
device * memory 1GiB
device 1 memory 2GiB   # more
device 2 name A card
device 2 capability 8.6
device 2 multiprocessors 7
device 2 pci 0001:ab:02.0
device 3 mig 1g.10gb
no-peers 0 1
)";

void machine_is_as_said() {
  CHECK(count_devices() == 4);
  CHECK(properties_of(0).totalGlobalMem == size_t{1} << 30 && properties_of(1).totalGlobalMem == size_t{2}
                                                                                                     << 30);
  const cudaDeviceProp second = properties_of(2);
  CHECK(std::string(second.name) == "A card" && second.major == 8 && second.minor == 6);
  CHECK(second.multiProcessorCount == 7);
  CHECK(second.pciDomainID == 1 && second.pciBusID == 0xab && second.pciDeviceID == 2);
  CHECK(std::string(properties_of(3).name) == "software GPU MIG 1g.10gb");
  CHECK(are_peers(0, 2) && are_peers(2, 1) && !are_peers(0, 1) && !are_peers(1, 0));
  CHECK(!are_peers(3, 0) && !are_peers(2, 3));
  SAYS(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(1, 0));
  void* memory = nullptr;
  SAYS(cudaErrorMemoryAllocation, cudaMalloc(&memory, (size_t{1} << 30) + 1));
  OK(cudaMalloc(&memory, size_t{1} << 29));
  size_t unused = 0, total = 0;
  OK(cudaMemGetInfo(&unused, &total));
  CHECK(unused == size_t{1} << 29 && total == size_t{1} << 30);
}

/// The bus numbers of the devices that a process with this CUDA_VISIBLE_DEVICES sees.
const char* visible_setting = "";
const char* visible_expected = "";

void sees_devices() {
  std::string seen;
  for (int device = 0; device < count_devices(); ++device)
    seen += std::to_string(properties_of(device).pciBusID - 0x10);
  check(seen == visible_expected, seen.c_str());
}

void expect_visible(const char* setting, const char* expected) {
  visible_setting = setting;
  visible_expected = expected;
  const auto scenario = [] {
    setenv("CUDA_VISIBLE_DEVICES", visible_setting, 1);
    run("devices 3", sees_devices);
  };
  EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), "") << setting;
}

void no_device() {
  int count = 7;
  SAYS(cudaErrorNoDevice, cudaGetDeviceCount(&count));
  CHECK(count == 0);
  void* memory = nullptr;
  SAYS(cudaErrorNoDevice, cudaMalloc(&memory, 4));
}

void old_driver() {
  int driver = 0, runtime = 0, count = 7;
  OK(cudaDriverGetVersion(&driver));
  OK(cudaRuntimeGetVersion(&runtime));
  CHECK(driver < runtime);
  SAYS(cudaErrorInsufficientDriver, cudaGetDeviceCount(&count));
  SAYS(cudaErrorInsufficientDriver, cudaSetDevice(0));
}

void old_device() {
  unsigned* const words = device_words(1);
  launch_add({words, words, 1, 1}, nullptr);
  SAYS(cudaErrorNoKernelImageForDevice, cudaGetLastError());
  cudaFuncAttributes attributes;
  SAYS(cudaErrorNoKernelImageForDevice, cudaFuncGetAttributes(&attributes, add_kernel()));
}

void others_lines() {
  CHECK(std::string(polyring_software_gpu_plan_line("nccl", 0)) == "version 2.27.3");
  CHECK(std::string(polyring_software_gpu_plan_line("nccl", 1)) == "hang at 3");
  CHECK(polyring_software_gpu_plan_line("nccl", 2) == nullptr);
}

TEST(Plan, SaysTheMachine) { EXPECT_GOES_WELL(kMachine, machine_is_as_said); }

TEST(Plan, VisibleDevicesAsCudaCountsThem) {
  expect_visible("2,0", "20");
  expect_visible("", "");
  expect_visible("1,7,0", "1");
  expect_visible("1,-1,0", "1");
  expect_visible("0,0", "");
  expect_visible("x", "");
  expect_visible("GPU-706f6c79-7269-6e67-0000-000000110001,0", "10");
}

TEST(Plan, NoDevice) { EXPECT_GOES_WELL("devices 0", no_device); }
TEST(Plan, OldDriver) { EXPECT_GOES_WELL("driver 11.8", old_driver); }
TEST(Plan, NoDriver) { EXPECT_GOES_WELL("driver none", old_driver); }
TEST(Plan, OldDevice) { EXPECT_GOES_WELL("device * capability 3.7", old_device); }
TEST(Plan, LinesOfOthers) {
  setenv("PMIX_RANK", "1", 1);
  EXPECT_GOES_WELL("nccl version 2.27.3\nrank 0 nccl hang at 1\nrank 1 nccl hang at 3", others_lines);
  unsetenv("PMIX_RANK");
}

void reads_plan() {
  int version = 0;
  cudaDriverGetVersion(&version);
}

TEST(Plan, RefusesWhatItDoesNotKnow) {
  EXPECT_DEATH(run("devices 2\ndevice 5 memory 1GiB", reads_plan), ":2: there is no device 5");
  EXPECT_DEATH(run("devices many", reads_plan), "many is no number");
  EXPECT_DEATH(run("fly", reads_plan), "says nothing that is known here");
  EXPECT_DEATH(run("lost device 0 at operation 1 as cudaErrorX", reads_plan), "knows no error cudaErrorX");
  EXPECT_DEATH(run("lost device 0 at operation 1 soon", reads_plan), "\"soon\" at the end says nothing");
  EXPECT_DEATH(run("rank 7 lost device 9 at operation 1", reads_plan), "there is no device 9");
}

TEST(Plan, RefusesSeedThatIsNoNumber) {
  setenv("POLYRING_SOFTWARE_GPU_SEED", "often", 1);
  EXPECT_DEATH(run("", reads_plan), "POLYRING_SOFTWARE_GPU_SEED: often is no number");
  unsetenv("POLYRING_SOFTWARE_GPU_SEED");
}

TEST(Plan, RefusesWhatIsNotImplemented) {
  void* memory = nullptr;
  EXPECT_DEATH(cudaMallocManaged(&memory, 4), "software GPU: cudaMallocManaged is not implemented");
  EXPECT_DEATH(__cudaRegisterVar(nullptr, nullptr, nullptr, "table", 0, 4, 1, 0),
               "the device variable table is not implemented");
  EXPECT_DEATH(run("", [] { launch_unknown(nullptr); }),
               "the kernel polyring_conformance_unknown has no body");
}

// --- Faults
// ---------------------------------------------------------------------------------------------------------

/// Gives the current device so many operations; all must succeed.
void work(int operations) {
  for (int operation = 0; operation < operations; ++operation) {
    OK(cudaLaunchHostFunc(
        nullptr, [](void*) {}, nullptr));
    OK(cudaStreamSynchronize(nullptr));
  }
}

cudaError_t one_more() {
  cudaLaunchHostFunc(
      nullptr, [](void*) {}, nullptr);
  return cudaStreamSynchronize(nullptr);
}

void loses_device_1() {
  work(5);
  OK(cudaSetDevice(1));
  work(2);
  SAYS(cudaErrorECCUncorrectable, one_more());
  void* memory = nullptr;
  SAYS(cudaErrorECCUncorrectable, cudaMalloc(&memory, 4));
  SAYS(cudaErrorECCUncorrectable, cudaGetLastError());
  SAYS(cudaErrorECCUncorrectable, cudaGetLastError());
  OK(cudaSetDevice(0));
  work(5);
}

void loses_device_while_kernels_wait() {
  unsigned* word = nullptr;
  OK(cudaMallocHost(reinterpret_cast<void**>(&word), 4));
  *word = 0;
  const cudaStream_t stream = new_stream();
  launch_wait(word, stream);
  SAYS(cudaErrorLaunchFailure, one_more());
  SAYS(cudaErrorLaunchFailure, cudaStreamSynchronize(stream));
}

void other_rank_loses_device() { work(5); }

void hangs() {
  const cudaStream_t stream = new_stream(), other = new_stream();
  OK(cudaLaunchHostFunc(
      stream, [](void*) {}, nullptr));
  SAYS(cudaErrorNotReady, cudaStreamQuery(stream));
  OK(cudaLaunchHostFunc(
      other, [](void*) {}, nullptr));
  OK(cudaStreamSynchronize(other));
  SAYS(cudaErrorNotReady, cudaStreamQuery(stream));
}

void fails_to_allocate() {
  void* memory = nullptr;
  OK(cudaMalloc(&memory, 4));
  SAYS(cudaErrorMemoryAllocation, cudaMalloc(&memory, 4));
  SAYS(cudaErrorMemoryAllocation, cudaGetLastError());
  OK(cudaMalloc(&memory, 4096));
  SAYS(cudaErrorMemoryAllocation, cudaMalloc(&memory, 4097));
  OK(cudaSetDevice(1));
  OK(cudaMalloc(&memory, 4097));
}

void is_killed() {
  work(2);
  one_more();
}

TEST(Faults, LostDevice) {
  EXPECT_EXIT(run("lost device 1 at operation 3 as cudaErrorECCUncorrectable", loses_device_1),
              testing::ExitedWithCode(0),
              "as planned, the device is lost: device 1, operation 3 .host function.");
}
TEST(Faults, LostDeviceEndsKernels) {
  EXPECT_GOES_WELL("lost device 0 at operation 2", loses_device_while_kernels_wait);
}
TEST(Faults, OfOneRank) {
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  EXPECT_GOES_WELL("rank 2 lost device 0 at operation 1", other_rank_loses_device);
  EXPECT_EXIT(run("rank 1 lost device 0 at operation 1", other_rank_loses_device), testing::ExitedWithCode(1),
              "cudaErrorLaunchFailure");
  unsetenv("OMPI_COMM_WORLD_RANK");
}
TEST(Faults, HungStream) { EXPECT_GOES_WELL("hung stream on device 0 at operation 1", hangs); }
TEST(Faults, FailedAllocation) {
  EXPECT_GOES_WELL("failed allocation 2 on device 0\nfailed allocation above 4096 on device 0",
                   fails_to_allocate);
}
TEST(Faults, Killed) {
  EXPECT_EXIT(run("killed at operation 3", is_killed), testing::KilledBySignal(SIGKILL),
              "the process is killed");
}

// --- Delays
// ---------------------------------------------------------------------------------------------------------

struct Arrivals {
  std::atomic<int> next{0};
  std::array<int, 2> places{};
};

void streams_overtake() {
  const cudaStream_t first = new_stream(), second = new_stream();
  std::set<bool> orders;
  for (int round = 0; round < 200 && orders.size() < 2; ++round) {
    Arrivals arrivals;
    OK(cudaLaunchHostFunc(
        first,
        [](void* data) {
          auto* all = static_cast<Arrivals*>(data);
          all->places[0] = all->next++;
        },
        &arrivals));
    OK(cudaLaunchHostFunc(
        second,
        [](void* data) {
          auto* all = static_cast<Arrivals*>(data);
          all->places[1] = all->next++;
        },
        &arrivals));
    OK(cudaDeviceSynchronize());
    orders.insert(arrivals.places[0] < arrivals.places[1]);
  }
  CHECK(orders.size() == 2);
}

TEST(Delays, StreamsOvertakeEachOther) {
  EXPECT_GOES_WELL("delays seed 3 up-to 1ms one-in 2", streams_overtake);
}

}  // namespace
}  // namespace polyring::software_gpu
