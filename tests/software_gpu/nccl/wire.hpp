// Messages between the fake NCCL's ranks and its root, over sockets that are files: these work between
// processes, and across network namespaces.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace polyring::software_nccl {

enum class Kind : std::int32_t {
  hello,     // rank to root: a Hello
  welcome,   // root to rank: all have come
  group,     // rank to root: `items` Operations, and their inputs
  result,    // root to rank: their outputs
  goodbye,   // rank to root: no more groups
  farewell,  // root to rank: so have all
  fault,     // root to rank: the communicator's end, a sentence
};

struct Message {
  Kind kind = Kind::hello;
  ncclResult_t code = ncclSuccess;  // of a fault
  std::uint64_t items = 0;
  std::vector<std::byte> content;
};

/// What a rank says of itself.
struct Hello {
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t version = 0;
  std::int32_t shares_gpu = 0;
  char host[64] = {};
  char bus_id[32] = {};
};

/// Owns a connection. A read or write takes as long as the other end lets it.
class Connection {
 public:
  Connection() = default;
  explicit Connection(int descriptor) : descriptor_(descriptor) {}
  ~Connection();
  Connection(Connection&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

  /// False when the other end has gone.
  bool write(const Message& message) const;
  std::optional<Message> read() const;
  /// Ends a read or a write of another thread.
  void shut_down() const;

 private:
  int descriptor_ = -1;
};

/// A socket that listens at a new path. Throws std::system_error.
std::pair<Connection, std::string> listen_at_new_path();
/// One that is not open if nobody listens there.
Connection connect_to(const std::string& path);
/// The next that came to a listening socket.
Connection accept_from(const Connection& listener);

}  // namespace polyring::software_nccl
