// Only operations of streams may touch device memory.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/poison.hpp"
#include "tests/software_gpu/conformance/launches.hpp"
#include "tests/software_gpu/scenario.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace polyring::software_gpu {
namespace {

constexpr const char* kTouched =
    "the host touched device memory at 0x[0-9a-f]+, byte 12 of an allocation on device 1";

unsigned* words_on_device_1() {
  OK(cudaSetDevice(1));
  unsigned* const words = device_words(100);
  OK(cudaDeviceSynchronize());
  return words;
}

void host_reads() {
  volatile unsigned* const words = words_on_device_1();
  std::printf("%u\n", words[3]);
}

void host_writes_after_work() {
  unsigned* const words = words_on_device_1();
  launch_add({words, words, 1, 100}, nullptr);
  OK(cudaDeviceSynchronize());
  static_cast<volatile unsigned*>(words)[3] = 1;
}

void system_call_reads() {
  const unsigned* const words = device_words(100);
  OK(cudaDeviceSynchronize());
  const int null = open("/dev/zero", O_RDWR);
  CHECK(read(null, const_cast<unsigned*>(words), 4) == -1 && errno == EFAULT);
}

void other_library_touches() {
  unsigned* const words = device_words(100);
  OK(cudaDeviceSynchronize());
  polyring_software_gpu_allow();
  polyring_software_gpu_allow();
  words[3] = 7;
  polyring_software_gpu_forbid();
  CHECK(words[3] == 7);
  polyring_software_gpu_forbid();
  const std::string protection = polyring_software_gpu_protection();
  CHECK(protection == "protection keys" || protection == "page protection");
  CHECK(polyring_software_gpu_device_of(words + 99) == 0 && polyring_software_gpu_device_of(&words) == -1);
  CHECK(polyring_software_gpu_bytes_at(words + 99) == 4 && polyring_software_gpu_bytes_at(words + 100) == 0);
}

void other_library_touches_too_late() {
  unsigned* const words = words_on_device_1();
  OK(cudaDeviceSynchronize());
  polyring_software_gpu_allow();
  words[3] = 7;
  polyring_software_gpu_forbid();
  static_cast<volatile unsigned*>(words)[3] = 1;
}

void add_hundred(void* words) {
  polyring_software_gpu_allow();
  *static_cast<unsigned*>(words) += 100;
  polyring_software_gpu_forbid();
}

void other_library_enqueues() {
  unsigned* const words = device_words(1);
  const cudaStream_t stream = new_stream();
  OK(cudaDeviceSynchronize());
  unsigned seen = 0;
  OK(cudaMemsetAsync(words, 0, sizeof *words, stream));
  OK(polyring_software_gpu_enqueue(
      stream, add_hundred, [](void*) {}, words));
  launch_add({words, words, 1, 1}, stream);
  OK(cudaMemcpyAsync(&seen, words, sizeof seen, cudaMemcpyDeviceToHost, stream));
  CHECK(seen == 101);
  OK(cudaSetDevice(1));
  CHECK(polyring_software_gpu_device_of_stream(stream) == 0);
}

/// While a kernel runs, pages that it has not opened are closed; those that it has opened only keys protect.
void host_touches_beside_kernel() {
  unsigned* const words = words_on_device_1();
  unsigned* word = nullptr;
  OK(cudaMallocHost(reinterpret_cast<void**>(&word), sizeof *word));
  *word = 0;
  launch_add({words, words, 1, 100}, nullptr);
  launch_wait(word, nullptr);
  if (std::strcmp(polyring_software_gpu_protection(), "page protection") == 0) {
    std::fputs("there are no protection keys\n", stderr);
    std::_Exit(0);
  }
  static_cast<volatile unsigned*>(words)[3] = 1;
}

void kernel_uses_freed_memory() {
  unsigned* const words = device_words(100);
  OK(cudaFree(words));
  launch_add({words, words, 1, 100}, nullptr);
  SAYS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  SAYS(cudaErrorIllegalAddress, polyring_software_gpu_error(0));
}

/// Two processes: one has memory on device 0, the other opens it. `after_open` is what the first does then,
/// and `in_other` gets what the other can reach.
void in_two_processes(void (*after_open)(void*), void (*in_other)(unsigned*)) {
  int handles[2], steps[2];
  CHECK(pipe(handles) == 0 && pipe(steps) == 0);
  char step = 0;
  cudaIpcMemHandle_t handle;
  const pid_t other = fork();  // before either begins to use CUDA
  close(other != 0 ? handles[0] : handles[1]);
  close(other != 0 ? steps[1] : steps[0]);
  if (other != 0) {
    unsigned* const words = device_words(100);
    OK(cudaDeviceSynchronize());
    OK(cudaIpcGetMemHandle(&handle, words));
    CHECK(write(handles[1], &handle, sizeof handle) == sizeof handle);
    CHECK(read(steps[0], &step, 1) == 1);
    if (after_open != nullptr) after_open(words);
    CHECK(write(handles[1], &step, 1) == 1);
    int status = 0;
    CHECK(waitpid(other, &status, 0) == other && status == 0);
    return;
  }
  CHECK(read(handles[0], &handle, sizeof handle) == sizeof handle);
  void* words = nullptr;
  OK(cudaIpcOpenMemHandle(&words, handle, cudaIpcMemLazyEnablePeerAccess));
  CHECK(write(steps[1], &step, 1) == 1 && read(handles[0], &step, 1) == 1);
  in_other(static_cast<unsigned*>(words));
  std::_Exit(0);
}

void free_memory(void* words) { OK(cudaFree(words)); }

void freed_by_its_owner() {
  in_two_processes(free_memory, [](unsigned* words) {
    launch_add({words, words, 1, 100}, nullptr);
    SAYS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  });
}

void touched_by_other_host() {
  in_two_processes(nullptr, [](unsigned* words) { static_cast<volatile unsigned*>(words)[3] = 1; });
}

void opened_on_other_device() {
  in_two_processes(nullptr, [](unsigned* words) {
    unsigned* const own = device_words(1);
    launch_add({own, words, 1, 1}, nullptr);
    OK(cudaDeviceSynchronize());
    OK(cudaSetDevice(1));
    launch_add({words, words, 1, 1}, nullptr);  // was opened for device 0 alone, where it is
    SAYS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  });
}

/// Emulated hosts have names of their own, but see each other's processes.
void opened_on_other_host() {
  int ends[2];
  CHECK(pipe(ends) == 0);
  cudaIpcMemHandle_t handle;
  const pid_t owner = fork();
  if (owner == 0) {
    OK(cudaIpcGetMemHandle(&handle, device_words(1)));
    CHECK(write(ends[1], &handle, sizeof handle) == sizeof handle);
    pause();
  }
  CHECK(read(ends[0], &handle, sizeof handle) == sizeof handle);
  void* words = nullptr;
  if (unshare(CLONE_NEWUTS) == 0) {  // else this user may not
    CHECK(sethostname("elsewhere", 9) == 0);
    SAYS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&words, handle, cudaIpcMemLazyEnablePeerAccess));
  }
  kill(owner, SIGKILL);
}

void owner_is_killed() {
  int ends[2];
  CHECK(pipe(ends) == 0);
  cudaIpcMemHandle_t handle;
  const pid_t owner = fork();
  if (owner == 0) {
    unsigned* const words = device_words(100);
    launch_add({words, words, 7, 100}, nullptr);
    OK(cudaDeviceSynchronize());
    OK(cudaIpcGetMemHandle(&handle, words));
    CHECK(write(ends[1], &handle, sizeof handle) == sizeof handle);
    pause();
  }
  CHECK(read(ends[0], &handle, sizeof handle) == sizeof handle);
  void* words = nullptr;
  OK(cudaIpcOpenMemHandle(&words, handle, cudaIpcMemLazyEnablePeerAccess));
  kill(owner, SIGKILL);
  CHECK(waitpid(owner, nullptr, 0) == owner);
  unsigned word = 0;
  OK(cudaMemcpy(&word, words, sizeof word, cudaMemcpyDeviceToHost));
  CHECK(word == 7);
  SAYS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&words, {}, cudaIpcMemLazyEnablePeerAccess));
}

TEST(Protection, HostReadIsCaught) { EXPECT_DEATH(run("", host_reads), kTouched); }
TEST(Protection, HostWriteAfterWorkIsCaught) { EXPECT_DEATH(run("", host_writes_after_work), kTouched); }
TEST(Protection, SystemCallsCannotTouch) { EXPECT_GOES_WELL("", system_call_reads); }
TEST(Protection, OtherLibraryMayTouchWhileAllowed) { EXPECT_GOES_WELL("", other_library_touches); }
TEST(Protection, OtherLibraryMayNotTouchLater) {
  EXPECT_DEATH(run("", other_library_touches_too_late), kTouched);
}
TEST(Protection, OtherLibraryEnqueues) {
  EXPECT_GOES_WELL("delays up-to 2ms one-in 1", other_library_enqueues);
}
TEST(Protection, HostIsCaughtBesideKernel) {
  const auto ends_somehow = [](int) { return true; };
  EXPECT_EXIT(run("", host_touches_beside_kernel), ends_somehow,
              "the host touched device memory at 0x|there are no protection keys");
}
TEST(Protection, FreedMemoryIsIllegal) {
  EXPECT_EXIT(run("", kernel_uses_freed_memory), testing::ExitedWithCode(0),
              "the kernel polyring_conformance_add on device 0 touched 0x");
}
TEST(Protection, MemoryFreedByItsOwnerIsIllegal) { EXPECT_GOES_WELL("", freed_by_its_owner); }
TEST(Protection, HostOfOtherProcessIsCaught) {
  EXPECT_DEATH(run("", touched_by_other_host), "the host touched device memory at 0x[0-9a-f]+, byte 12");
}
TEST(Protection, MemoryOfOtherHostIsRefused) { EXPECT_GOES_WELL("", opened_on_other_host); }
TEST(Protection, MemoryOutlivesItsKilledOwner) { EXPECT_GOES_WELL("", owner_is_killed); }
TEST(Protection, OpenedMemoryIsForOneDevice) { EXPECT_GOES_WELL("", opened_on_other_device); }

#ifdef POLYRING_POISON
void add_to(unsigned* words, unsigned count) {
  launch_add({words, words, 1, count}, nullptr);
  OK(cudaDeviceSynchronize());
}

void kernel_reads_behind_end() { add_to(device_words(100), 101); }

void kernel_reads_behind_opened_end() {
  in_two_processes(nullptr, [](unsigned* words) { add_to(words, 101); });
}

void host_writes_behind_pinned_end() {
  unsigned* words = nullptr;
  OK(cudaMallocHost(reinterpret_cast<void**>(&words), 100 * sizeof *words));
  static_cast<volatile unsigned*>(words)[99] = 1;
  static_cast<volatile unsigned*>(words)[100] = 1;
}

/// New memory lies where smaller memory was freed.
void freed_memory_has_no_end() {
  unsigned* const small = device_words(100);
  OK(cudaFree(small));
  unsigned* const large = device_words(200);
  CHECK(large == small);
  add_to(large, 200);
}

TEST(Protection, KernelBehindTheEndIsCaught) {
  EXPECT_DEATH(run("", kernel_reads_behind_end), "AddressSanitizer: use-after-poison");
}
TEST(Protection, KernelBehindTheEndOfOpenedMemoryIsCaught) {
  EXPECT_DEATH(run("", kernel_reads_behind_opened_end), "AddressSanitizer: use-after-poison");
}
TEST(Protection, HostBehindTheEndOfPinnedMemoryIsCaught) {
  EXPECT_DEATH(run("", host_writes_behind_pinned_end), "AddressSanitizer: use-after-poison");
}
TEST(Protection, NewMemoryHasTheEndOfNoOther) { EXPECT_GOES_WELL("", freed_memory_has_no_end); }
#endif

}  // namespace
}  // namespace polyring::software_gpu
