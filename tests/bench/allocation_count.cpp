// Preloaded into polyring by memory_test.py: keeps count of the memory that polyring itself takes, by
// operator new and as shared memory, and leaves the most that it held at one time in the file
// POLYRING_PEAK.PROCESS, as a 64-bit number. C libraries such as MPI take theirs by malloc, and are not
// counted.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

namespace {

using Word = std::atomic<std::uint64_t>;

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

Word held{0};
Word unseen{0};
std::atomic<Word*> peak{&unseen};

void add(std::uint64_t bytes) {
  const std::uint64_t now = held.fetch_add(bytes) + bytes;
  Word& most = *peak.load();
  std::uint64_t before = most.load();
  while (before < now && !most.compare_exchange_weak(before, now)) {
  }
}

void* take(std::size_t bytes, std::size_t alignment) {
  void* memory = alignment == 0
                     ? std::malloc(bytes == 0 ? 1 : bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory != nullptr) add(malloc_usable_size(memory));
  return memory;
}

void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  void* memory = take(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_back(void* memory) {
  if (memory != nullptr) held -= malloc_usable_size(memory);
  std::free(memory);
}

/// A file rather than a line at the end: ranks may end without calling anything that could be caught.
__attribute__((constructor)) void open_file() {
  const char* name = std::getenv("POLYRING_PEAK");
  if (name == nullptr) return;
  const std::string file = std::string(name) + "." + std::to_string(getpid());
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0 || ftruncate(descriptor, sizeof(Word)) != 0) return;
  void* memory = next<void*(void*, std::size_t, int, int, int, off_t)>("mmap")(
      nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (memory != MAP_FAILED) peak = static_cast<Word*>(memory);
}

// Descriptors of memory that this process has made to be shared.
std::array<std::atomic<bool>, 4096> made{};

bool is_made(int descriptor) {
  return descriptor >= 0 && static_cast<std::size_t>(descriptor) < made.size() &&
         made[static_cast<std::size_t>(descriptor)];
}

/// The maker gives a file all of its memory before it maps it, so that this is when it is taken; given back
/// when the descriptor is closed, which the maker does last.
std::array<Word, 4096> sizes{};

}  // namespace

void* operator new(std::size_t bytes) { return take_or_throw(bytes, 0); }
void* operator new[](std::size_t bytes) { return take_or_throw(bytes, 0); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 0); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { give_back(memory); }

extern "C" {

int memfd_create(const char* name, unsigned flags) noexcept {
  const int descriptor = next<int(const char*, unsigned)>("memfd_create")(name, flags);
  const bool ours = std::string(name) == "polyring";  // as segments are named
  if (ours && descriptor >= 0 && static_cast<std::size_t>(descriptor) < made.size())
    made[static_cast<std::size_t>(descriptor)] = true;
  return descriptor;
}

int posix_fallocate(int descriptor, off_t offset, off_t bytes) {
  const int failure = next<int(int, off_t, off_t)>("posix_fallocate")(descriptor, offset, bytes);
  if (failure == 0 && is_made(descriptor)) {
    sizes[static_cast<std::size_t>(descriptor)] = static_cast<std::uint64_t>(bytes);
    add(static_cast<std::uint64_t>(bytes));
  }
  return failure;
}

int close(int descriptor) {
  if (is_made(descriptor)) {
    made[static_cast<std::size_t>(descriptor)] = false;
    held -= sizes[static_cast<std::size_t>(descriptor)].exchange(0);
  }
  return next<int(int)>("close")(descriptor);
}
}
