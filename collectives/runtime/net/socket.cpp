#include "collectives/runtime/net/socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/error.hpp"

namespace polyring {
namespace {

struct Greeting {
  std::array<char, 8> magic{'p', 'o', 'l', 'y', 'r', 'i', 'n', '1'};
  std::uint64_t secret = 0;
  std::uint32_t rank = 0;
  std::uint32_t number = 0;
};

/// Connections that have not shown the secret yet.
constexpr std::size_t kMostUnknown = 512;

Socket new_socket() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  check_descriptor(socket.descriptor());
  return socket;
}

void send_at_once(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

sockaddr_in resolved(const Endpoint& endpoint) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int result = getaddrinfo(endpoint.host.c_str(), nullptr, &wanted, &first);
  if (result != 0) {
    throw Error(ExitCode::not_available, fmt::format("the host '{}' has no IPv4 address: {}; check its name",
                                                     endpoint.host, gai_strerror(result)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(first, &freeaddrinfo);
  sockaddr_in address{};
  std::memcpy(&address, first->ai_addr, sizeof(address));
  address.sin_port = htons(static_cast<std::uint16_t>(endpoint.port));
  return address;
}

}  // namespace

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void check_descriptor(int result) {
  if (result >= 0) return;
  throw Error(ExitCode::not_available,
              fmt::format("no connection can be had: {}{}", std::strerror(errno),
                          errno == EMFILE ? "; raise the limit of open files (ulimit -n)" : ""));
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

std::string to_text(const Endpoint& endpoint) { return fmt::format("{}:{}", endpoint.host, endpoint.port); }

Endpoint parse_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Endpoint endpoint;
  if (colon != std::string::npos && colon > 0) {
    endpoint.host = text.substr(0, colon);
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
    if (endpoint.host.find(':') != std::string::npos) {
      usage_error(
          "'{}' has more than one colon; IPv6 is not supported: give an IPv4 address or a host's name, and a "
          "port, "
          "as in node1:4711",
          text);
    }
    const bool whole = error == std::errc() && last == end;
    if (whole && endpoint.port >= 1 && endpoint.port <= 65535) return endpoint;
  }
  usage_error("'{}' is not an address; give a host and a port from 1 to 65535, as in node1:4711", text);
}

Socket begin_connecting(const Endpoint& to) {
  const sockaddr_in address = resolved(to);
  Socket socket = new_socket();
  send_at_once(socket);
  if (connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EINPROGRESS) {
    throw Error(ExitCode::not_available,
                fmt::format("{} cannot be reached: {}", to_text(to), std::strerror(errno)));
  }
  return socket;
}

Moved read_some(const Socket& socket, std::span<std::byte> to) {
  const ssize_t bytes = ::recv(socket.descriptor(), to.data(), to.size(), 0);
  if (bytes > 0) return {static_cast<std::size_t>(bytes)};
  if (bytes == 0) return {0, !to.empty()};
  return {0, false, would_block(errno) ? 0 : errno};
}

Moved write_some(const Socket& socket, std::span<const std::byte> from) {
  const ssize_t bytes = ::send(socket.descriptor(), from.data(), from.size(), MSG_NOSIGNAL);
  if (bytes >= 0) return {static_cast<std::size_t>(bytes)};
  return {0, false, would_block(errno) ? 0 : errno};
}

std::chrono::milliseconds since_last_heard(const Socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket.descriptor(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return std::chrono::milliseconds(info.tcpi_last_ack_recv);  // what closes a connection acknowledges too
}

Listener::Listener(const std::string& address, int port, std::uint64_t secret)
    : socket_(new_socket()), secret_(secret) {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_ANY);
  if (!address.empty()) own = resolved({address, 0});
  own.sin_port = htons(static_cast<std::uint16_t>(port));
  const int on = 1;
  setsockopt(socket_.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  socklen_t size = sizeof(own);
  if (bind(socket_.descriptor(), reinterpret_cast<const sockaddr*>(&own), size) != 0 ||
      listen(socket_.descriptor(), SOMAXCONN) != 0 ||
      getsockname(socket_.descriptor(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    const std::string why = std::strerror(errno);
    const char* const remedy = port == 0 ? "choose another interface" : "choose another port";
    throw Error(ExitCode::not_available,
                fmt::format("cannot listen at {}: {}; {}",
                            to_text({address.empty() ? "this host" : address, port}), why, remedy));
  }
  port_ = ntohs(own.sin_port);
}

std::vector<std::byte> Listener::greeting(std::uint64_t secret, std::uint32_t rank, std::uint32_t number) {
  const Greeting greeting{.secret = secret, .rank = rank, .number = number};
  const auto bytes = std::as_bytes(std::span(&greeting, 1));
  return {bytes.begin(), bytes.end()};
}

std::vector<Listener::Peer> Listener::accept() {
  // More wait in the system's backlog.
  while (unknown_.size() < kMostUnknown) {
    Socket socket(accept4(socket_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open() && (errno == EMFILE || errno == ENFILE)) check_descriptor(-1);
    if (!socket.is_open()) break;
    send_at_once(socket);
    unknown_.push_back({std::move(socket), {}});
  }
  std::vector<Peer> peers;
  std::erase_if(unknown_, [&](Unknown& one) {
    std::array<std::byte, sizeof(Greeting)> bytes;
    const Moved moved = read_some(one.socket, std::span(bytes).first(bytes.size() - one.said.size()));
    one.said.insert(one.said.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(moved.bytes));
    if (moved.ended || moved.error != 0) return true;
    if (one.said.size() < sizeof(Greeting)) return false;
    Greeting greeting;
    std::memcpy(&greeting, one.said.data(), sizeof(greeting));
    if (greeting.magic == Greeting{}.magic && greeting.secret == secret_)
      peers.push_back({std::move(one.socket), greeting.rank, greeting.number});
    return true;
  });
  // So many that say nothing are no ranks.
  if (unknown_.size() == kMostUnknown) unknown_.erase(unknown_.begin());
  return peers;
}

}  // namespace polyring
