// TCP sockets: their owner, and the few calls on them that Polyring needs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace polyring {

/// Owns a descriptor. Sockets are closed on exec, never block, and send small messages at once.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void close();

 private:
  int descriptor_ = -1;
};

/// Where a socket listens: an IPv4 address or a host's name, and a port.
struct Endpoint {
  std::string host;
  int port = 0;

  bool operator==(const Endpoint&) const = default;
};

std::string to_text(const Endpoint& endpoint);
/// "node1:4711". Throws a usage Error for anything that is not a name or an IPv4 address and a port from 1 to
/// 65535.
Endpoint parse_endpoint(const std::string& text);

/// Whether a call has to be tried again later, of errno.
bool would_block(int error);

/// Throws Error(ExitCode::not_available), with errno, where a call has returned −1.
void check_descriptor(int result);

/// Begins to connect. Until that has succeeded reads and writes would block, and where it fails they say why.
/// Throws Error(ExitCode::not_available) where the host's name has no IPv4 address, or there is no way to it.
Socket begin_connecting(const Endpoint& to);

/// What a read or a write of a socket came to.
struct Moved {
  std::size_t bytes = 0;
  bool ended = false;  // the other end has closed, and all that it sent was read
  int error = 0;       // errno; 0 also where the socket would have blocked
};
Moved read_some(const Socket& socket, std::span<std::byte> to);
Moved write_some(const Socket& socket, std::span<const std::byte> from);

/// How long ago the other end was last heard of: of a connection that it has closed, and on which nothing was
/// under way, how long ago that was. 0 where the system does not say.
std::chrono::milliseconds since_last_heard(const Socket& socket);

/// A socket that listens, and lets in only those who know a secret.
class Listener {
 public:
  /// `address` is an IPv4 address of this host's, or empty for all of them; port 0 stands for any that is
  /// free. Throws Error(ExitCode::not_available) where another program has the port, or the address is not
  /// this host's.
  Listener(const std::string& address, int port, std::uint64_t secret);

  int port() const { return port_; }

  struct Peer {
    Socket socket;
    std::uint32_t rank = 0;
    std::uint32_t number = 0;
  };
  /// Those who have connected by now and shown the secret. Does not block. Others' connections are closed.
  /// Throws Error(ExitCode::not_available) where this process has too many files open.
  std::vector<Peer> accept();

  /// What a peer sends first.
  static std::vector<std::byte> greeting(std::uint64_t secret, std::uint32_t rank, std::uint32_t number);

 private:
  struct Unknown {
    Socket socket;
    std::vector<std::byte> said;
  };

  Socket socket_;
  int port_ = 0;
  std::uint64_t secret_;
  std::vector<Unknown> unknown_;  // have not said all of it yet
};

}  // namespace polyring
