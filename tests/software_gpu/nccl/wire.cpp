#include "tests/software_gpu/nccl/wire.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <system_error>

namespace polyring::software_nccl {
namespace {

struct Header {
  Kind kind;
  ncclResult_t code;
  std::uint64_t items;
  std::uint64_t bytes;
};

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

bool read_all(int descriptor, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t taken = recv(descriptor, bytes.data(), bytes.size(), 0);
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(taken));
  }
  return true;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw std::system_error(ENAMETOOLONG, std::generic_category(), path);
  }
  path.copy(address.sun_path, path.size());
  return address;
}

int new_socket() {
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "socket");
  return descriptor;
}

}  // namespace

Connection::~Connection() {
  if (is_open()) close(descriptor_);
}

bool Connection::write(const Message& message) const {
  const Header header{message.kind, message.code, message.items, message.content.size()};
  return write_all(descriptor_, std::as_bytes(std::span(&header, 1))) &&
         write_all(descriptor_, message.content);
}

std::optional<Message> Connection::read() const {
  Header header{};
  if (!read_all(descriptor_, std::as_writable_bytes(std::span(&header, 1)))) return std::nullopt;
  Message message{header.kind, header.code, header.items, std::vector<std::byte>(header.bytes)};
  if (!read_all(descriptor_, message.content)) return std::nullopt;
  return message;
}

void Connection::shut_down() const {
  if (is_open()) shutdown(descriptor_, SHUT_RDWR);
}

std::pair<Connection, std::string> listen_at_new_path() {
  const char* const folder = std::getenv("TMPDIR");
  std::random_device random;
  const std::string path =
      fmt::format("{}/software-nccl-{:08x}{:08x}", folder != nullptr && *folder != 0 ? folder : "/tmp",
                  random(), random());
  const sockaddr_un address = address_of(path);
  Connection listener(new_socket());
  constexpr int kWaiting = 1024;
  if (bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.descriptor(), kWaiting) != 0) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  return {std::move(listener), path};
}

Connection connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  Connection connection(new_socket());
  while (connect(connection.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) return {};
  }
  return connection;
}

Connection accept_from(const Connection& listener) {
  return Connection(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
}

}  // namespace polyring::software_nccl
