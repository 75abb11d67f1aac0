// One connection between two ranks: messages in frames, straight from and into the users' memory.
//
// A frame is a header and at most kFrame bytes of one message. Messages of different tags take turns frame by
// frame, so that a long one does not hold up the others; messages of one tag follow each other. What comes
// before it is awaited is kept until then.
#pragma once

#include <array>
#include <asio.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/transport.hpp"

namespace polyring {

class Connection {
 public:
  explicit Connection(asio::ip::tcp::socket socket);

  /// They only take note; an early message's receive may be done at once.
  void send(int tag, std::span<const std::byte> data, Ticket ticket);
  void receive(int tag, std::span<std::byte> data, Ticket ticket, std::vector<Ticket>& done);

  /// Write what the system takes, and read what is there, without blocking; append the tickets of what is
  /// done by then. A send is done when the system has all of it.
  void write(std::vector<Ticket>& done);
  void read(std::vector<Ticket>& done);

  bool sends() const { return !outgoing_.empty(); }
  bool receives() const { return awaited_ > 0; }
  /// Why nothing can be read or written any more: "has closed its connection". Empty while it can.
  const std::string& failure() const { return failure_; }
  asio::ip::tcp::socket& socket() { return socket_; }

 private:
  struct Header {
    std::uint32_t tag;
    std::uint32_t bytes;   // of this frame
    std::uint64_t length;  // of the message
  };
  struct Outgoing {
    int tag;
    Ticket ticket;
    std::span<const std::byte> data;
    std::size_t begun;  // bytes in this frame and those before it
  };
  /// A message that is awaited, or has come at least in part. Those of one tag are in their order.
  struct Incoming {
    int tag;
    Ticket ticket;
    bool awaited;
    bool begun;
    std::size_t arrived;
    std::span<std::byte> data;  // where it goes: the user's memory, or `early`
    std::unique_ptr<std::byte[]> early;
    bool complete() const { return begun && arrived == data.size(); }
  };
  using Place = std::list<Incoming>::iterator;

  void begin_frame();
  void end_frame(std::vector<Ticket>& done);
  void enter_frame(const Header& header, std::vector<Ticket>& done);
  void arrive(std::size_t bytes, std::vector<Ticket>& done);
  void unpack(std::vector<Ticket>& done);
  std::span<std::byte> rest_of_frame();
  void fail(const asio::error_code& error);

  asio::ip::tcp::socket socket_;
  std::string failure_;

  std::list<Outgoing> outgoing_;  // the first one's turn
  Header header_{};
  std::span<const std::byte> unsent_header_;
  std::span<const std::byte> unsent_payload_;
  bool in_frame_ = false;

  std::list<Incoming> incoming_;
  std::size_t awaited_ = 0;
  Place current_;                      // whose frame is being read
  std::size_t expected_ = 0;           // bytes of that frame
  std::array<std::byte, 4096> stash_;  // headers, and the small messages between them
  std::size_t stashed_ = 0;
};

}  // namespace polyring
