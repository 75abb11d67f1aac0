#include "bench/accept/data_reads.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kReaders = 8;  // disks and file systems need several requests at a time
constexpr std::uint64_t kPage = 4096;  // direct reads want buffers, places and sizes of whole ones
constexpr int kParts = 16;
constexpr std::size_t kMostFiles = 8192;
constexpr std::chrono::seconds kLongestSearch{5};

/// What all readers do and say.
struct Reading {
  const std::vector<DataFile>& files;
  std::uint64_t block;
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<bool> direct{true};
  std::atomic<bool> stop{false};
  std::atomic<int> error{0};
  std::atomic<std::size_t> error_of{0};  // a file
};

class Reader {
 public:
  Reader(Reading& reading, std::uint64_t number, std::uint64_t seed)
      : reading_(reading), random_(seed + number), file_((seed + number) % reading.files.size()) {
    buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, reading.block)));
    // Where there are fewer files than readers, these begin at different places.
    const std::uint64_t of_file = (kReaders + reading.files.size() - 1) / reading.files.size();
    first_block_ = (seed + blocks() * (number / reading.files.size()) / of_file) % blocks();
  }

  void run(ReadOrder order) {
    while (!reading_.stop) {
      const OpenFile file = open();
      if (file.descriptor() < 0) return;
      if (order == ReadOrder::random) {
        if (!read(file, std::uniform_int_distribution<std::uint64_t>(0, blocks() - 1)(random_))) return;
        file_ = std::uniform_int_distribution<std::size_t>(0, reading_.files.size() - 1)(random_);
        continue;
      }
      for (std::uint64_t at = first_block_; at < blocks() && !reading_.stop; ++at)
        if (!read(file, at)) return;
      first_block_ = 0;
      file_ = (file_ + kReaders) % reading_.files.size();
    }
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  const DataFile& file() const { return reading_.files[file_]; }
  std::uint64_t blocks() const { return std::max<std::uint64_t>(1, file().bytes / reading_.block); }

  OpenFile open() {
    int descriptor = ::open(file().path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (descriptor < 0 && errno == EINVAL) descriptor = open_cached();
    if (descriptor < 0) fail();
    return {descriptor, file().path};
  }

  int open_cached() {
    reading_.direct = false;
    const int descriptor = ::open(file().path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    return descriptor;
  }

  bool read(const OpenFile& open, std::uint64_t at) {
    const ssize_t got =
        pread(open.descriptor(), buffer_.get(), reading_.block, static_cast<off_t>(at * reading_.block));
    if (got < 0) return fail();
    reading_.bytes += static_cast<std::uint64_t>(got);
    return true;
  }

  bool fail() {
    reading_.error_of = file_;
    reading_.error = errno;
    return false;
  }

  Reading& reading_;
  std::mt19937_64 random_;
  std::size_t file_;
  std::uint64_t first_block_ = 0;
  std::unique_ptr<std::byte, Free> buffer_;
};

}  // namespace

std::vector<DataFile> find_data_files(const fs::path& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  if (error) throw Error(ExitCode::not_available, fmt::format("'{}': {}", folder.string(), error.message()));
  std::vector<DataFile> files;
  std::uint64_t sum = 0;
  const Clock::time_point until = Clock::now() + kLongestSearch;
  for (; !error && entry != fs::recursive_directory_iterator{} && files.size() < kMostFiles &&
         Clock::now() < until;
       entry.increment(error)) {
    std::error_code none;
    if (!entry->is_regular_file(none)) continue;
    const std::uint64_t bytes = entry->file_size(none);
    if (none || bytes == 0 || access(entry->path().c_str(), R_OK) != 0) continue;
    files.push_back({entry->path(), bytes});
    sum += bytes;
  }
  if (sum < kSmallestData.value) {
    throw Error(
        ExitCode::not_available,
        fmt::format("'{}' has {} in files that may be read, and less than {} is too little to measure",
                    folder.string(), to_text(Bytes{sum}), to_text(kSmallestData)));
  }
  return files;
}

ReadRates read_data(const std::vector<DataFile>& files, ReadOrder order, Bytes block, Seconds time,
                    std::uint64_t seed) {
  Reading reading{files, (std::max<std::uint64_t>(1, block.value) + kPage - 1) / kPage * kPage};
  std::vector<std::jthread> readers;
  for (std::uint64_t number = 0; number < kReaders; ++number)
    readers.emplace_back([&, number] { Reader(reading, number, seed).run(order); });
  ReadRates rates;
  const std::chrono::duration<double> part(time.value / kParts);
  Clock::time_point last = Clock::now();
  std::uint64_t before = 0;
  for (int i = 0; i < kParts && reading.error == 0; ++i) {
    std::this_thread::sleep_for(part);
    const Clock::time_point now = Clock::now();
    const std::uint64_t bytes = reading.bytes;
    const double seconds = std::chrono::duration<double>(now - last).count();
    rates.GBps.push_back(static_cast<double>(bytes - before) / 1e9 / seconds);
    last = now;
    before = bytes;
  }
  reading.stop = true;
  readers.clear();
  if (reading.error != 0) {
    throw Error(ExitCode::not_available,
                fmt::format("'{}': {}", files[reading.error_of].path.string(), std::strerror(reading.error)));
  }
  rates.direct = reading.direct;
  return rates;
}

}  // namespace polyring
