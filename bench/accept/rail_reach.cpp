#include "bench/accept/rail_reach.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "base/random_token.hpp"
#include "collectives/runtime/net/address.hpp"
#include "collectives/runtime/net/socket.hpp"

namespace polyring {
namespace {

constexpr std::chrono::seconds kLongest{2};

struct Listening {
  std::unique_ptr<Listener> listener;
  std::string endpoint;
};

/// The kernel takes connections by itself, as long as this is there.
Listening& listening() {
  static Listening own;
  return own;
}

/// Empty: it was reached.
std::string why_unreached(const std::string& endpoint) {
  try {
    const Socket socket = begin_connecting(parse_endpoint(endpoint));
    pollfd one{socket.descriptor(), POLLOUT, 0};
    if (::poll(&one, 1, static_cast<int>(std::chrono::milliseconds(kLongest).count())) != 1)
      return "no answer";
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    return error == 0 ? "" : std::strerror(error);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::string listen_on(const std::string& interface) {
  const std::string address = choose_address(network_interfaces(), interface, "", true);
  auto listener = std::make_unique<Listener>(address, 0, random_token());
  const std::string endpoint = to_text(Endpoint{address, listener->port()});
  listening() = {std::move(listener), endpoint};
  return endpoint;
}

void stop_listening() { listening() = {}; }

std::map<std::size_t, std::string> unreached_of(const std::vector<std::string>& all) {
  std::map<std::size_t, std::string> found;
  if (!listening().listener) return found;
  const auto own = std::ranges::find(all, listening().endpoint);
  if (own == all.end()) return found;
  const auto place = static_cast<std::size_t>(own - all.begin());
  for (const std::size_t further : {std::size_t{1}, all.size() / 2}) {
    const std::size_t to = (place + further) % all.size();
    if (to == place || found.contains(to)) continue;
    if (std::string why = why_unreached(all[to]); !why.empty()) found[to] = std::move(why);
  }
  return found;
}

}  // namespace polyring
