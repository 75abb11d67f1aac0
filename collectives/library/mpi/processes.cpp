#include "collectives/library/mpi/processes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/error.hpp"

namespace polyring::interposer {
namespace {

/// Plain data: it travels.
struct Identity {
  std::array<char, 40> boot{};  // of the running kernel
  std::uint64_t numbering = 0;  // the namespace of process numbers
  std::int64_t number = 0;
  std::uint64_t begin = 0;
};

/// When the process began; nothing where it has ended, or cannot be seen. See proc(5): the name, in brackets,
/// may hold anything.
std::optional<std::uint64_t> begin_of(const std::string& process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  std::string state;
  rest >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  std::string skipped;
  for (int field = 4; field < 22; ++field) rest >> skipped;
  std::uint64_t begin = 0;
  if (!(rest >> begin)) return std::nullopt;
  return begin;
}

Identity own_identity() {
  Identity own;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  boot.copy(own.boot.data(), own.boot.size() - 1);
  struct stat numbering {};
  if (stat("/proc/self/ns/pid", &numbering) == 0) own.numbering = numbering.st_ino;
  own.number = getpid();
  own.begin = begin_of("self").value_or(0);
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
    if (is_near && begin_of(std::to_string(other.number)) == other.begin)
      seen_.push_back({rank, static_cast<pid_t>(other.number), other.begin});
  }
}

void Processes::check() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < std::chrono::seconds(1)) return;
  looked_ = now;
  for (const Process& process : seen_) {
    if (begin_of(std::to_string(process.number)) == process.begin) continue;
    throw Error(ExitCode::mpi, fmt::format("rank {}'s process {} has ended; see what it said last",
                                           process.rank, process.number));
  }
}

}  // namespace polyring::interposer
