#include "collectives/tcp/connection.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace polyring {
namespace {

constexpr std::size_t kFrame = 128 << 10;

/// What the system may hold of unsent bytes: enough to keep the wire busy while this rank does other things,
/// and no more, since whatever is sent later queues behind it.
constexpr int kUnsent = 512 << 10;

/// How much is read at a time before others get their turn.
constexpr std::size_t kMostAtOnce = 4 << 20;

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket) : socket_(std::move(socket)), current_(incoming_.end()) {
  socket_.non_blocking(true);
  socket_.set_option(asio::ip::tcp::no_delay(true));
  setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsent, sizeof kUnsent);
}

void Connection::fail(const asio::error_code& error) {
  if (!failure_.empty()) return;
  failure_ = error == asio::error::eof ? "has closed its connection"
                                       : fmt::format("has lost its connection: {}", error.message());
}

void Connection::send(int tag, std::span<const std::byte> data, Ticket ticket) {
  outgoing_.push_back({tag, ticket, data, 0});
}

void Connection::begin_frame() {
  Outgoing& message = outgoing_.front();
  unsent_payload_ =
      message.data.subspan(message.begun, std::min(kFrame, message.data.size() - message.begun));
  message.begun += unsent_payload_.size();
  header_ = {static_cast<std::uint32_t>(message.tag), static_cast<std::uint32_t>(unsent_payload_.size()),
             message.data.size()};
  unsent_header_ = std::as_bytes(std::span(&header_, 1));
  in_frame_ = true;
}

void Connection::end_frame(std::vector<Ticket>& done) {
  in_frame_ = false;
  const Outgoing& message = outgoing_.front();
  if (message.begun == message.data.size()) {
    done.push_back(message.ticket);
    outgoing_.pop_front();
    return;
  }
  // Behind all others, but for the next of its tag.
  const auto next = std::find_if(std::next(outgoing_.begin()), outgoing_.end(),
                                 [&](const Outgoing& other) { return other.tag == message.tag; });
  outgoing_.splice(next, outgoing_, outgoing_.begin());
}

void Connection::write(std::vector<Ticket>& done) {
  while (!outgoing_.empty() && failure_.empty()) {
    if (!in_frame_) begin_frame();
    const std::array<asio::const_buffer, 2> parts{
        asio::const_buffer(unsent_header_.data(), unsent_header_.size()),
        asio::const_buffer(unsent_payload_.data(), unsent_payload_.size())};
    asio::error_code error;
    const std::size_t sent = socket_.write_some(parts, error);
    if (error == asio::error::would_block) return;
    if (error) return fail(error);
    const std::size_t of_header = std::min(sent, unsent_header_.size());
    unsent_header_ = unsent_header_.subspan(of_header);
    unsent_payload_ = unsent_payload_.subspan(sent - of_header);
    if (unsent_header_.empty() && unsent_payload_.empty()) end_frame(done);
  }
}

void Connection::receive(int tag, std::span<std::byte> data, Ticket ticket, std::vector<Ticket>& done) {
  const auto early = std::find_if(incoming_.begin(), incoming_.end(), [&](const Incoming& message) {
    return message.tag == tag && !message.awaited;
  });
  if (early == incoming_.end()) {
    incoming_.push_back({tag, ticket, true, false, 0, data, nullptr});
    ++awaited_;
    return;
  }
  if (early->data.size() != data.size()) {
    failure_ = fmt::format("has sent {} bytes where {} are awaited", early->data.size(), data.size());
  }
  const std::size_t arrived = std::min(early->arrived, data.size());
  if (arrived > 0) std::memcpy(data.data(), early->data.data(), arrived);
  if (early->complete()) {
    done.push_back(ticket);
    incoming_.erase(early);
    return;
  }
  // What is still to come goes to its place at once.
  early->data = data;
  early->ticket = ticket;
  early->awaited = true;
  early->early.reset();
  ++awaited_;
}

void Connection::enter_frame(const Header& header, std::vector<Ticket>& done) {
  const int tag = static_cast<int>(header.tag);
  current_ = std::find_if(incoming_.begin(), incoming_.end(),
                          [&](const Incoming& message) { return message.tag == tag && !message.complete(); });
  if (current_ == incoming_.end()) {
    auto early = std::make_unique_for_overwrite<std::byte[]>(header.length);
    const std::span<std::byte> data(early.get(), header.length);
    current_ = incoming_.insert(current_, {tag, 0, false, false, 0, data, std::move(early)});
  } else if (current_->data.size() != header.length) {
    failure_ = fmt::format("has sent {} bytes where {} are awaited", header.length, current_->data.size());
    return;
  }
  current_->begun = true;
  expected_ = header.bytes;
  arrive(0, done);
}

std::span<std::byte> Connection::rest_of_frame() {
  return expected_ == 0 ? std::span<std::byte>() : current_->data.subspan(current_->arrived, expected_);
}

/// So many bytes of the current frame are where they belong.
void Connection::arrive(std::size_t bytes, std::vector<Ticket>& done) {
  current_->arrived += bytes;
  expected_ -= bytes;
  if (!current_->awaited || !current_->complete()) return;
  done.push_back(current_->ticket);
  --awaited_;
  incoming_.erase(current_);
}

void Connection::read(std::vector<Ticket>& done) {
  for (std::size_t taken = 0; taken < kMostAtOnce && failure_.empty();) {
    // The next header may come along with the rest of the frame.
    const std::span<std::byte> straight = rest_of_frame();
    const std::array<asio::mutable_buffer, 2> parts{
        asio::mutable_buffer(straight.data(), straight.size()),
        asio::mutable_buffer(stash_.data() + stashed_, stash_.size() - stashed_)};
    asio::error_code error;
    const std::size_t got = socket_.read_some(parts, error);
    if (error == asio::error::would_block) return;
    if (error) return fail(error);
    const std::size_t in_place = std::min(got, straight.size());
    if (in_place > 0) arrive(in_place, done);
    stashed_ += got - in_place;
    unpack(done);
    if (got < asio::buffer_size(parts)) return;
    taken += got;
  }
}

void Connection::unpack(std::vector<Ticket>& done) {
  std::span<const std::byte> left(stash_.data(), stashed_);
  while (failure_.empty()) {
    if (const std::span<std::byte> to = rest_of_frame(); !to.empty()) {
      const std::size_t bytes = std::min(to.size(), left.size());
      if (bytes == 0) break;
      std::memcpy(to.data(), left.data(), bytes);
      left = left.subspan(bytes);
      arrive(bytes, done);
    } else {
      if (left.size() < sizeof(Header)) break;
      Header header;
      std::memcpy(&header, left.data(), sizeof header);
      left = left.subspan(sizeof header);
      enter_frame(header, done);
    }
  }
  std::memmove(stash_.data(), left.data(), left.size());
  stashed_ = left.size();
}

}  // namespace polyring
