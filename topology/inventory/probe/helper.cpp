#include "topology/inventory/probe/helper.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <thread>

#include "base/children.hpp"

namespace polyring::probe {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// Whether something can be read from the socket, or its other end is gone, before that time is over.
bool is_ready(int socket, Milliseconds longest) {
  const auto deadline = Clock::now() + longest;
  while (true) {
    pollfd watched{socket, POLLIN, 0};
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
    const int ready = poll(&watched, 1, std::max(0, static_cast<int>(left.count())));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

bool read_byte(int socket) {
  char byte = 0;
  ssize_t got = 0;
  do got = recv(socket, &byte, 1, 0);
  while (got < 0 && errno == EINTR);
  return got == 1;
}

bool write_byte(int socket) {
  const char byte = 1;
  return send(socket, &byte, 1, MSG_NOSIGNAL) == 1;
}

}  // namespace

HelperRequests::Next HelperRequests::wait(Milliseconds longest) {
  if (!is_ready(socket_, longest)) return Next::nothing;
  return read_byte(socket_) ? Next::asked : Next::over;
}

void HelperRequests::answered() { write_byte(socket_); }

Helper::Helper(const std::function<void(HelperRequests&)>& serve) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ExitCode::internal, fmt::format("socketpair failed: {}", std::strerror(errno)));
  child_ = fork();
  if (child_ < 0) {
    const int why = errno;
    close(ends[0]);
    close(ends[1]);
    throw Error(ExitCode::internal, fmt::format("fork failed: {}", std::strerror(why)));
  }
  if (child_ == 0) {
    prepare_to_crash();
    close(ends[0]);
    HelperRequests requests(ends[1]);
    try {
      serve(requests);
    } catch (const std::exception&) {
      // The parent sees that it is gone.
    }
    _exit(0);
  }
  close(ends[1]);
  socket_ = ends[0];
}

Helper::~Helper() {
  constexpr int kTries = 200;
  const WaitableChildren waitable;
  close(socket_);
  kill(child_, SIGKILL);
  for (int i = 0; i < kTries && waitpid(child_, nullptr, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(Milliseconds(1));
}

Ending Helper::ask(Seconds limit) {
  if (ending_ != Ending::by_itself) return ending_;
  const Milliseconds longest(static_cast<std::int64_t>(limit.value * 1e3));
  const bool asked = write_byte(socket_);
  if (asked && !is_ready(socket_, longest))
    ending_ = Ending::out_of_time;
  else if (!asked || !read_byte(socket_))
    ending_ = Ending::crashed;
  if (ending_ != Ending::by_itself) kill(child_, SIGKILL);
  return ending_;
}

}  // namespace polyring::probe
