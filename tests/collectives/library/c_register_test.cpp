// Registered buffers of the C library: the same bits as without, contents that are never lost, and refusals.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include "tests/collectives/library/ranks.hpp"

namespace polyring::testing {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kValues = kPage / sizeof(float);

/// A buffer on whole pages, as a program allocates it.
class Buffer {
 public:
  explicit Buffer(std::size_t count)
      : bytes_((count * sizeof(float) + kPage - 1) / kPage * kPage),
        values_(static_cast<float*>(std::aligned_alloc(kPage, bytes_)), &std::free) {}

  float* data() const { return values_.get(); }
  std::size_t bytes() const { return bytes_; }
  /// Whose sums depend on their order.
  void fill(int rank) const {
    for (std::size_t i = 0; i < bytes_ / sizeof(float); ++i)
      data()[i] = 1.0f / static_cast<float>(3 + (i * 7 + static_cast<std::size_t>(rank) * 13) % 1009);
  }
  bool is_filled(int rank) const {
    const Buffer other(bytes_ / sizeof(float));
    other.fill(rank);
    return std::memcmp(data(), other.data(), bytes_) == 0;
  }

 private:
  std::size_t bytes_;
  std::unique_ptr<float, decltype(&std::free)> values_;
};

/// The line of /proc/PROCESS/maps that has the address, or of the mapping of that file.
std::string mapping_of(const std::string& process,
                       const std::function<bool(const std::string& line)>& is_it) {
  std::ifstream file("/proc/" + process + "/maps");
  std::string line;
  while (std::getline(file, line)) {
    if (is_it(line)) return line;
  }
  return "";
}

std::string mapping_at(const void* address) {
  return mapping_of("self", [address = reinterpret_cast<std::uintptr_t>(address)](const std::string& line) {
    char* end = nullptr;
    const std::uintptr_t begin = std::strtoull(line.c_str(), &end, 16);
    return begin <= address && address < std::strtoull(end + 1, nullptr, 16);
  });
}

bool is_shared(const void* address) { return mapping_at(address).find("rw-s") != std::string::npos; }

/// Some of the ranks' buffers.
using Which = std::function<bool(int rank)>;

struct Results {
  std::vector<float> in_place, apart, block, gathered;
  bool operator==(const Results&) const = default;
};

/// The results of all operations. Some of their buffers are registered.
Results run_all(polyring_comm comm, int rank, int ranks, std::size_t count, const Which& registers) {
  const std::size_t whole = count * static_cast<std::size_t>(ranks);
  const Buffer input(whole);
  const Buffer output(whole);
  const Buffer third(whole);
  input.fill(rank);
  output.fill(rank + 100);
  third.fill(rank);
  const std::array buffers = {&input, &output, &third};
  for (const Buffer* buffer : buffers) {
    if (!registers(rank)) continue;
    EXPECT_OK(polyring_mem_register(comm, buffer->data(), buffer->bytes()));
  }
  EXPECT_TRUE(input.is_filled(rank) && output.is_filled(rank + 100));
  Results results;
  const auto kept = [](const Buffer& buffer, std::size_t length) {
    return std::vector<float>(buffer.data(), buffer.data() + length);
  };
  EXPECT_OK(polyring_allreduce(comm, third.data(), third.data(), whole, POLYRING_FLOAT32, POLYRING_SUM));
  results.in_place = kept(third, whole);
  EXPECT_OK(polyring_allreduce(comm, input.data(), output.data(), whole, POLYRING_FLOAT32, POLYRING_SUM));
  EXPECT_TRUE(input.is_filled(rank)) << "the input has changed";
  results.apart = kept(output, whole);
  EXPECT_OK(
      polyring_reduce_scatter(comm, input.data(), output.data(), count, POLYRING_FLOAT32, POLYRING_AVG));
  results.block = kept(output, count);
  EXPECT_OK(polyring_allgather(comm, output.data(), third.data(), count, POLYRING_FLOAT32));
  results.gathered = kept(third, whole);
  for (const Buffer* buffer : buffers) {
    if (!registers(rank)) continue;
    EXPECT_OK(polyring_mem_deregister(comm, buffer->data()));
    EXPECT_FALSE(is_shared(buffer->data()));
  }
  EXPECT_TRUE(input.is_filled(rank));
  EXPECT_EQ(kept(third, whole), results.gathered) << "deregistered";
  return results;
}

TEST(CLibraryRegister, TheSameBitsAsWithout) {
  for (const int ranks : {1, 2, 3, 4}) {
    with_ranks(ranks, nullptr, [&](int rank, polyring_comm comm) {
      // In parts of a page, and in many; the last needs several rounds.
      for (const std::size_t count : {std::size_t{100}, std::size_t{5000}, std::size_t{60'001}}) {
        const Results expected = run_all(comm, rank, ranks, count, [](int) { return false; });
        for (int round = 0; round < 2; ++round)
          EXPECT_EQ(run_all(comm, rank, ranks, count, [](int) { return true; }), expected) << "all";
        EXPECT_EQ(run_all(comm, rank, ranks, count, [](int each) { return each % 2 == 1; }), expected)
            << "of odd ranks";
      }
    });
  }
}

TEST(CLibraryRegister, AsOftenAsOneLikes) {
  with_ranks(2, nullptr, [](int rank, polyring_comm comm) {
    const Buffer buffer(8 * kValues);
    for (int round = 0; round < 600; ++round) {  // more than there are segments at once
      if (round % 100 > 0) {
        ASSERT_OK(polyring_mem_register(comm, buffer.data(), buffer.bytes()));
        ASSERT_OK(polyring_mem_deregister(comm, buffer.data()));
        continue;
      }
      buffer.fill(rank);
      ASSERT_OK(polyring_mem_register(comm, buffer.data(), buffer.bytes()));
      ASSERT_OK(polyring_allreduce(comm, buffer.data(), buffer.data(), 8 * kValues, POLYRING_FLOAT32,
                                   POLYRING_MAX));
      ASSERT_OK(polyring_mem_deregister(comm, buffer.data()));
      ASSERT_EQ(buffer.data()[0], 1.0f / 3);
    }
  });
}

/// Nothing is replaced where nobody reaches it, and a program need not know.
TEST(CLibraryRegister, OverANetworkItBringsNothing) {
  polyring_options options = POLYRING_OPTIONS_DEFAULT;
  options.transport = POLYRING_TRANSPORT_NETWORK;
  options.interface_name = "lo";
  with_ranks(2, &options, [](int rank, polyring_comm comm) {
    const Buffer buffer(3 * kValues);
    buffer.fill(rank);
    ASSERT_OK(polyring_mem_register(comm, buffer.data(), buffer.bytes()));
    EXPECT_FALSE(is_shared(buffer.data()));
    ASSERT_OK(
        polyring_allreduce(comm, buffer.data(), buffer.data(), 3 * kValues, POLYRING_FLOAT32, POLYRING_SUM));
    EXPECT_OK(polyring_mem_deregister(comm, buffer.data()));
  });
}

/// The end of a communicator gives them back, as does that of one that was aborted.
TEST(CLibraryRegister, FreeingTheCommunicatorGivesBuffersBack) {
  for (const bool aborts : {false, true}) {
    const Buffer buffers[] = {Buffer(3 * kValues), Buffer(3 * kValues), Buffer(3 * kValues),
                              Buffer(3 * kValues)};
    with_ranks(2, nullptr, [&](int rank, polyring_comm comm) {
      for (const int i : {rank, rank + 2}) {
        const Buffer& buffer = buffers[i];
        buffer.fill(i);
        ASSERT_OK(polyring_mem_register(comm, buffer.data(), buffer.bytes()));
        EXPECT_TRUE(is_shared(buffer.data()));
      }
      ASSERT_OK(polyring_barrier(comm));
      if (!aborts) return;
      ASSERT_OK(polyring_comm_abort(comm));
      EXPECT_TRUE(buffers[rank].is_filled(rank));
      EXPECT_FAILS(polyring_mem_register(comm, buffers[rank].data(), kPage), POLYRING_ERROR_CONNECTION,
                   "aborted");
      EXPECT_OK(polyring_mem_deregister(comm, buffers[rank].data()));
    });
    for (int i = 0; i < 4; ++i) {
      EXPECT_FALSE(is_shared(buffers[i].data())) << i;
      EXPECT_TRUE(buffers[i].is_filled(i)) << i;
    }
  }
}

TEST(CLibraryRegister, WhatCannotBeRegistered) {
  with_ranks(2, nullptr, [](int rank, polyring_comm comm) {
    constexpr auto kWrong = POLYRING_ERROR_ARGUMENT;
    const Buffer buffer(4 * kValues);
    buffer.fill(rank);
    auto* const begin = reinterpret_cast<std::byte*>(buffer.data());
    const auto refused = [&](void* memory, std::size_t bytes, const char* text) {
      EXPECT_FAILS(polyring_mem_register(comm, memory, bytes), kWrong, text);
    };
    refused(nullptr, kPage, "null pointer");
    refused(begin, 0, "0 bytes");
    refused(begin + 64, kPage, "are not whole pages of 4096 bytes");
    refused(begin, kPage - 64, "allocate whole pages, as by aligned_alloc(4096, bytes)");
    refused(begin, ~std::size_t{0} - (kPage - 1), "are not all memory of this process");
    EXPECT_TRUE(buffer.is_filled(rank));
    ASSERT_OK(polyring_mem_register(comm, begin + kPage, 2 * kPage));
    for (std::size_t page = 0; page < 3; ++page)
      refused(begin + page * kPage, 2 * kPage, "that are registered; deregister those before");
    ASSERT_OK(polyring_mem_register(comm, begin + 3 * kPage, kPage));  // beside it
    EXPECT_TRUE(buffer.is_filled(rank));
    EXPECT_FAILS(polyring_mem_deregister(comm, begin), kWrong, "no registered buffer");
    EXPECT_FAILS(polyring_mem_deregister(comm, begin + 2 * kPage), kWrong, "no registered buffer");
    EXPECT_FAILS(polyring_mem_deregister(comm, nullptr), kWrong, "no registered buffer");
    EXPECT_OK(polyring_mem_deregister(comm, begin + kPage));
    EXPECT_FAILS(polyring_mem_deregister(comm, begin + kPage), kWrong, "no registered buffer");
    EXPECT_OK(polyring_mem_register(comm, begin, 3 * kPage));
    EXPECT_TRUE(buffer.is_filled(rank));
    void* allocated = nullptr;
    ASSERT_OK(polyring_mem_alloc(comm, 2 * kPage, &allocated));
    refused(static_cast<std::byte*>(allocated) + kPage, kPage, "polyring_mem_alloc()'s");
    EXPECT_FAILS(polyring_mem_free(comm, begin), kWrong, "not polyring_mem_alloc()'s");
    EXPECT_FAILS(polyring_mem_deregister(comm, allocated), kWrong, "no registered buffer");
    alignas(kPage) static std::byte of_the_program[kPage] = {std::byte{1}};
    refused(of_the_program, kPage, "not a program's private memory");
    EXPECT_OK(polyring_mem_deregister(comm, begin + 3 * kPage));
    EXPECT_OK(polyring_mem_deregister(comm, begin));
    EXPECT_TRUE(buffer.is_filled(rank));
  });
}

/// Two pages of it, and one in front that is ordinary.
class Mapped {
 public:
  Mapped(int rights, int flags, int file = -1) {
    begin_ = static_cast<std::byte*>(
        mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(mmap(begin_ + kPage, 2 * kPage, rights, flags | MAP_FIXED, file, 0), MAP_FAILED);
  }
  ~Mapped() { munmap(begin_, 3 * kPage); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  std::byte* begin() const { return begin_; }

 private:
  std::byte* begin_;
};

TEST(CLibraryRegister, PagesOfOtherKinds) {
  with_ranks(1, nullptr, [](int, polyring_comm comm) {
    constexpr int kBoth = PROT_READ | PROT_WRITE;
    const int file = memfd_create("some_file", 0);
    ASSERT_EQ(ftruncate(file, 2 * kPage), 0);
    const auto refused = [&](const Mapped& mapped, const char* text) {
      EXPECT_FAILS(polyring_mem_register(comm, mapped.begin(), 3 * kPage), POLYRING_ERROR_ARGUMENT, text);
      mapped.begin()[0] = std::byte{1};
    };
    refused(Mapped(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS), "(rights r--p)");
    refused(Mapped(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS), "(rights ---p)");
    refused(Mapped(kBoth, MAP_SHARED | MAP_ANONYMOUS), "(rights rw-s, /dev/zero");
    refused(Mapped(kBoth, MAP_PRIVATE, file), "(rights rw-p, /memfd:some_file");
    refused(Mapped(kBoth, MAP_SHARED, file), "(rights rw-s, /memfd:some_file");
    const Mapped ordinary(kBoth, MAP_PRIVATE | MAP_ANONYMOUS);
    EXPECT_OK(polyring_mem_register(comm, ordinary.begin(), 3 * kPage));
    EXPECT_OK(polyring_mem_deregister(comm, ordinary.begin()));
    munmap(ordinary.begin() + kPage, kPage);
    refused(ordinary, "are not all memory of this process");
    close(file);
  });
}

TEST(CLibraryRegister, BuffersThatOperationsUse) {
  polyring_options options = POLYRING_OPTIONS_DEFAULT;
  options.timeout = 20;
  with_ranks(2, &options, [](int rank, polyring_comm comm) {
    const Buffer buffer(64 * kValues);
    const Buffer other(64 * kValues);
    const auto is_used = [&](auto&& call) {
      EXPECT_FAILS(call(), POLYRING_ERROR_ARGUMENT, "an operation that was started uses the buffer");
    };
    buffer.fill(rank);
    for (int round = 0; round < 2; ++round) {
      polyring_request request = POLYRING_REQUEST_NULL;
      ASSERT_OK(polyring_start_allreduce(comm, buffer.data(), buffer.data(), 64 * kValues, POLYRING_FLOAT32,
                                         POLYRING_MAX, &request));
      if (round == 0) {
        is_used([&] { return polyring_mem_register(comm, buffer.data(), buffer.bytes()); });
      } else {
        is_used([&] { return polyring_mem_deregister(comm, buffer.data()); });
      }
      EXPECT_OK(polyring_mem_register(comm, other.data(), other.bytes()));  // which none uses
      EXPECT_OK(polyring_mem_deregister(comm, other.data()));
      ASSERT_OK(polyring_wait(&request));
      if (round > 0) continue;
      ASSERT_OK(polyring_mem_register(comm, buffer.data(), buffer.bytes()));
    }
    EXPECT_OK(polyring_mem_deregister(comm, buffer.data()));
  });
}

/// What a program has mapped there since is left alone, whether it is told or not.
TEST(CLibraryRegister, FreedBeforeItIsDeregistered) {
  with_ranks(2, nullptr, [](int, polyring_comm comm) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    Mapped regions[] = {Mapped(PROT_READ | PROT_WRITE, kFlags), Mapped(PROT_READ | PROT_WRITE, kFlags)};
    for (const Mapped& region : regions) {
      ASSERT_OK(polyring_mem_register(comm, region.begin(), 3 * kPage));
      ASSERT_NE(mmap(region.begin(), 3 * kPage, PROT_READ | PROT_WRITE, kFlags | MAP_FIXED, -1, 0),
                MAP_FAILED);
      region.begin()[kPage] = std::byte{9};
    }
    EXPECT_FAILS(polyring_mem_deregister(comm, regions[0].begin()), POLYRING_ERROR_ARGUMENT,
                 "was freed, or mapped anew, while it was registered");
    EXPECT_FAILS(polyring_mem_deregister(comm, regions[0].begin()), POLYRING_ERROR_ARGUMENT,
                 "no registered buffer");
    EXPECT_OK(polyring_mem_register(comm, regions[0].begin(), 3 * kPage));
    EXPECT_OK(polyring_comm_abort(comm));
    EXPECT_EQ(regions[0].begin()[kPage], std::byte{9});
    EXPECT_EQ(regions[1].begin()[kPage], std::byte{9});
  });
}

/// Of a process; 0 when all was as it should be.
int run_in_processes(int ranks, const std::function<int(int rank, const polyring_unique_id& id)>& action,
                     int killed) {
  polyring_unique_id id{};
  if (polyring_get_unique_id(&id) != POLYRING_SUCCESS) return 1;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) _exit(action(rank, id));
    children.push_back(child);
  }
  int result = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
    if (rank == killed) continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) result = 100 * (rank + 1) + (status >> 8);
  }
  return result;
}

/// The inode of a mapping is its fifth word.
std::string inode_of(const std::string& mapping) {
  std::istringstream words(mapping);
  std::string word;
  for (int i = 0; i < 5; ++i) words >> word;
  return word;
}

/// Rank 0's buffer is mapped into rank 1: that it reaches it, and does not get what it needs in copies.
TEST(CLibraryRegister, AnotherProcessReachesTheBuffer) {
  const auto reach = [](int rank, const polyring_unique_id& id) {
    polyring_comm comm = POLYRING_COMM_NULL;
    if (polyring_comm_create(&comm, &id, rank, 2, nullptr) != POLYRING_SUCCESS) return 1;
    const Buffer buffer(300'000);
    buffer.fill(rank);
    if (rank == 0 && polyring_mem_register(comm, buffer.data(), buffer.bytes()) != POLYRING_SUCCESS) return 2;
    if (polyring_allreduce(comm, buffer.data(), buffer.data(), 300'000, POLYRING_FLOAT32, POLYRING_SUM) !=
        POLYRING_SUCCESS)
      return 3;
    // Rank 1's number, and rank 0's file, as sums.
    std::int64_t words[] = {rank == 1 ? getpid() : 0,
                            rank == 0 ? std::stoll(inode_of(mapping_at(buffer.data()))) : 0};
    if (polyring_allreduce(comm, words, words, 2, POLYRING_INT64, POLYRING_SUM) != POLYRING_SUCCESS) return 4;
    const std::string inode = std::to_string(words[1]);
    const std::string found = mapping_of(std::to_string(words[0]),
                                         [&](const std::string& line) { return inode_of(line) == inode; });
    if (found.find("memfd:polyring") == std::string::npos) return 5;
    return polyring_comm_free(comm) == POLYRING_SUCCESS ? 0 : 6;
  };
  EXPECT_EQ(run_in_processes(2, reach, -1), 0);
}

/// Rank 1 is killed between the others' allreduces. Their buffers stay, as does what is in those that no
/// operation used.
TEST(CLibraryRegister, ARankThatIsKilled) {
  const auto survive = [](int rank, const polyring_unique_id& id) {
    polyring_options options = POLYRING_OPTIONS_DEFAULT;
    options.timeout = 1;
    polyring_comm comm = POLYRING_COMM_NULL;
    if (polyring_comm_create(&comm, &id, rank, 3, &options) != POLYRING_SUCCESS) return 1;
    const Buffer used(500'000);
    const Buffer idle[] = {Buffer(kValues), Buffer(5 * kValues)};
    used.fill(rank);
    for (const Buffer& buffer : idle) {
      buffer.fill(rank);
      if (polyring_mem_register(comm, buffer.data(), buffer.bytes()) != POLYRING_SUCCESS) return 2;
    }
    if (polyring_mem_register(comm, used.data(), used.bytes()) != POLYRING_SUCCESS) return 3;
    for (int i = 0;; ++i) {
      if (rank == 1 && i == 3) std::raise(SIGKILL);
      const polyring_result result =
          polyring_allreduce(comm, used.data(), used.data(), 500'000, POLYRING_FLOAT32, POLYRING_AVG);
      if (result == POLYRING_ERROR_ARGUMENT || result == POLYRING_ERROR_INTERNAL) return 4;
      if (result != POLYRING_SUCCESS) break;
    }
    if (!idle[0].is_filled(rank) || !idle[1].is_filled(rank)) return 5;
    if (polyring_mem_deregister(comm, idle[0].data()) != POLYRING_SUCCESS) return 6;
    if (polyring_comm_free(comm) != POLYRING_SUCCESS) return 7;
    for (const Buffer* buffer : {&idle[0], &idle[1], &used})
      if (is_shared(buffer->data())) return 8;
    used.fill(rank);
    return idle[0].is_filled(rank) && idle[1].is_filled(rank) && used.is_filled(rank) ? 0 : 9;
  };
  EXPECT_EQ(run_in_processes(3, survive, 1), 0);
}

}  // namespace
}  // namespace polyring::testing
