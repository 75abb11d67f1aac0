#include "collectives/runtime/mpi/process_manager.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>

namespace polyring {
namespace {

/// The major and minor number after `label` and spaces; (0, 0) where there are none.
std::tuple<int, int> version_after(std::string_view label, std::string_view text) {
  const std::size_t found = text.find(label);
  if (found == std::string_view::npos) return {};
  text.remove_prefix(found + label.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int major = 0;
  int minor = 0;
  const char* end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, major);
  if (wrong != std::errc{} || dot == end || *dot != '.') return {};
  std::from_chars(dot + 1, end, minor);
  return {major, minor};
}

/// -1 where there is none.
int manager_socket() {
  const char* text = std::getenv("PMI_FD");
  const int descriptor = text == nullptr ? 0 : std::atoi(text);
  int type = 0;
  socklen_t length = sizeof type;
  const bool is_socket = descriptor > 0 && getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
  return is_socket ? descriptor : -1;
}

}  // namespace

bool is_mpich_on_ucx(std::string_view library_version) {
  return library_version.find("ch4:ucx") != std::string_view::npos;
}

bool may_hang_in_finalize(std::string_view library_version) {
  const std::tuple<int, int> version = version_after("MPICH Version:", library_version);
  return is_mpich_on_ucx(library_version) && version > std::tuple(0, 0) && version < std::tuple(4, 2);
}

bool speaks_pmi1(std::string_view library_version) {
  // --with-pmi=slurm, --with-pmi2=…, --with-pmix=…, --with-pmilib=… are others.
  const std::string_view client =
      library_version.substr(std::min(library_version.find("--with-pmi"), library_version.size()));
  const char* version = std::getenv("MPIR_CVAR_PMI_VERSION");  // of MPICH 4.1
  return manager_socket() > 0 && (client.empty() || client.starts_with("--with-pmi=simple ")) &&
         (version == nullptr || std::string_view(version) == "1");
}

bool leave_process_manager() {
  const int manager = manager_socket();
  constexpr std::string_view kFinalize = "cmd=finalize\n";
  if (send(manager, kFinalize.data(), kFinalize.size(), MSG_NOSIGNAL) < 0) return false;
  constexpr int kLongestWaitMs = 30'000;  // it may have to wait for a core
  pollfd answer{manager, POLLIN, 0};
  std::array<char, 64> said{};
  return poll(&answer, 1, kLongestWaitMs) == 1 && recv(manager, said.data(), said.size(), 0) > 0;
}

void await_output_read() {
  constexpr std::chrono::milliseconds kPeriod{1};
  const auto over_at = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto is_unread = [](int descriptor) {
    struct stat file {};
    int unread = 0;
    return fstat(descriptor, &file) == 0 && S_ISFIFO(file.st_mode) &&
           ioctl(descriptor, FIONREAD, &unread) == 0 && unread > 0;
  };
  while ((is_unread(STDOUT_FILENO) || is_unread(STDERR_FILENO)) &&
         std::chrono::steady_clock::now() < over_at) {
    std::this_thread::sleep_for(kPeriod);
  }
}

void abort_process_manager(int code) {
  const int manager = manager_socket();
  const std::string words = fmt::format("cmd=abort exitcode={}\n", code);
  if (send(manager, words.data(), words.size(), MSG_NOSIGNAL) < 0) return;
  constexpr int kLongestWaitMs = 5'000;
  pollfd hung_up{manager, 0, 0};  // what it may say is for the library, whose call waits for that
  poll(&hung_up, 1, kLongestWaitMs);
}

}  // namespace polyring
