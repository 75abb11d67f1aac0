#include "collectives/runtime/processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "base/error.hpp"

namespace polyring {
namespace {

/// Plain data: it travels.
struct Identity {
  std::array<char, 40> boot{};  // of the running kernel
  std::uint64_t numbering = 0;  // the namespace of process numbers
  std::int64_t number = 0;
  std::uint64_t begin = 0;
};

enum class Life { lives, ended, unknown };

struct Look {
  Life life = Life::unknown;
  std::uint64_t begin = 0;  // of one that lives
};

/// What the system says of a process. It may say nothing, as where this one has no descriptor left.
Look failed_look() { return {errno == ENOENT || errno == ESRCH ? Life::ended : Life::unknown}; }

/// A process whose first thread has ended, by pthread_exit(), goes on with the others.
bool has_other_threads(const std::string& process) {
  std::error_code failed;
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", process), failed);
  return !failed && std::distance(begin(threads), end(threads)) > 1;
}

/// See proc(5): the name, in brackets, may hold anything.
Look look_at(const std::string& process) {
  const int file = open(fmt::format("/proc/{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed_look();
  std::array<char, 1024> text{};
  const ssize_t length = read(file, text.data(), text.size());
  const Look failed = failed_look();
  close(file);
  if (length < 0) return failed;
  const std::string line(text.data(), static_cast<std::size_t>(length));
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(line.substr(name_end + 1));
  std::string state;
  rest >> state;
  if (state == "X" || (state == "Z" && !has_other_threads(process))) return {Life::ended};
  std::string skipped;
  for (int field = 4; field < 22; ++field) rest >> skipped;
  std::uint64_t begin = 0;
  if (!(rest >> begin)) return {};
  return {Life::lives, begin};
}

Identity own_identity() {
  Identity own;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  boot.copy(own.boot.data(), own.boot.size() - 1);
  struct stat numbering {};
  if (stat("/proc/self/ns/pid", &numbering) == 0) own.numbering = numbering.st_ino;
  own.number = getpid();
  own.begin = look_at("self").begin;
  return own;
}

}  // namespace

Processes::Processes(const Bootstrap& bootstrap) {
  const Identity own = own_identity();
  const auto all = bootstrap.allgather(std::as_bytes(std::span(&own, 1)));
  for (Rank rank = 0; rank < bootstrap.size(); ++rank) {
    const std::vector<std::byte>& bytes = all[static_cast<std::size_t>(rank)];
    Identity other;
    if (rank == bootstrap.rank() || bytes.size() != sizeof(other)) continue;
    std::memcpy(&other, bytes.data(), sizeof(other));
    const bool is_near = other.boot == own.boot && other.numbering == own.numbering && own.numbering != 0;
    if (!is_near) continue;
    if (const Look look = look_at(std::to_string(other.number));
        look.life == Life::lives && look.begin == other.begin)
      seen_.push_back({rank, static_cast<pid_t>(other.number), other.begin});
  }
}

void Processes::check(const std::function<std::vector<Rank>()>& awaited) {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < std::chrono::seconds(1)) return;
  looked_ = now;
  for (Process& process : seen_) {
    if (!process.ended) {
      const Look look = look_at(std::to_string(process.number));
      process.ended = look.life == Life::ended || (look.life == Life::lives && look.begin != process.begin);
      continue;
    }
    if (awaited) {
      const std::vector<Rank> ranks = awaited();
      if (std::ranges::find(ranks, process.rank) == ranks.end()) continue;
    }
    throw Error(ExitCode::mpi, fmt::format("rank {}'s process {} has ended; see what it said last",
                                           process.rank, process.number));
  }
}

}  // namespace polyring
