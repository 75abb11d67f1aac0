// One of the connections of a TCP transport to another rank: what travels on it, and what is to be done with
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "collectives/runtime/net/socket.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring::tcp {

enum class FrameKind : std::uint32_t {
  message,   // followed by its bytes
  ask,       // the sender has a message, and waits
  clear,     // the receiver has a place for it
  body,      // that message, followed by its bytes
  farewell,  // the sender has failed; followed by a sentence. The tag is its exit code
};

/// What precedes everything on a connection. Both ends have the same byte order.
struct Frame {
  FrameKind kind = FrameKind::message;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;  // of the message
  std::uint64_t id = 0;     // the sender's, of a message that was asked for
};

/// Frames that one look at a connection may take in without a system call each.
inline constexpr std::size_t kBufferBytes = std::size_t{32} << 10;

/// What is to be sent.
struct Outgoing {
  std::optional<Frame> frame;  // what it begins with; a greeting has none
  std::span<const std::byte> data;
  std::optional<Ticket> ticket;  // to be handed back when all of it is on its way

  std::size_t head() const { return frame ? sizeof(Frame) : 0; }
};

/// A receive that was started.
struct Want {
  int tag = 0;
  std::span<std::byte> to;
  Ticket ticket = 0;
};

/// A message that no receive was started for.
struct Early {
  int tag = 0;
  std::vector<std::byte> data;
  std::optional<Frame> ask;  // it is still at its sender
};

/// One of the connections to another rank.
struct Connection {
  Rank peer = 0;
  Socket socket;
  bool ended = false;    // the other end has closed it
  bool writing = false;  // its socket is watched for room
  int open = 0;          // sends and receives whose tickets are out
  std::vector<std::byte> greeting;

  std::deque<Outgoing> outgoing;
  std::size_t sent = 0;                                // bytes of the first
  std::unordered_map<std::uint64_t, Outgoing> asking;  // by id

  std::vector<std::byte> buffer = std::vector<std::byte>(kBufferBytes);
  std::size_t begin = 0;  // of what was read and not looked at yet
  std::size_t end = 0;
  /// The message that is being read.
  struct Body {
    std::span<std::byte> rest;
    Want want;    // what it is for
    Early early;  // or where it is kept
    bool is_early = false;
    bool is_farewell = false;  // kept as an early message is
  };
  std::optional<Body> body;
  std::deque<Want> wants;
  std::deque<Early> earlies;
  std::unordered_map<std::uint64_t, Want> cleared;  // by the sender's id
};

}  // namespace polyring::tcp
