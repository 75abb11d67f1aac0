#include "collectives/runtime/transports/tcp_farewell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>

namespace polyring::tcp {

std::optional<Error> failure_of(Rank rank) {
  const std::exception_ptr failure = std::current_exception();
  if (!failure) return std::nullopt;
  const auto told = [&](ExitCode code, const char* what) {
    return Error(code, fmt::format("rank {} has failed: {}", rank, what));
  };
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return told(error.code(), error.what());
  } catch (const std::exception& error) {
    return told(ExitCode::internal, error.what());
  } catch (...) {
    return told(ExitCode::internal, "an exception of an unknown kind");
  }
}

void say_farewell(Connection& connection, const Error& farewell) {
  const bool greets = !connection.outgoing.empty() && !connection.outgoing.front().frame;
  if (!connection.socket.is_open() || connection.sent > 0 || greets) return;
  const std::string_view sentence = farewell.what();
  const Frame frame{FrameKind::farewell, static_cast<std::int32_t>(farewell.code()), sentence.size(), 0};
  std::vector<std::byte> all(sizeof(frame) + sentence.size());
  std::memcpy(all.data(), &frame, sizeof(frame));
  std::ranges::copy(std::as_bytes(std::span(sentence)), all.begin() + sizeof(frame));
  write_some(connection.socket, all);
  // Where a socket is closed with something unread, the other end may lose what it has not read yet.
  constexpr int kMostReads = 64;
  Moved moved{1, false, 0};
  for (int reads = 0; reads < kMostReads && moved.bytes > 0; ++reads)
    moved = read_some(connection.socket, connection.buffer);
}

}  // namespace polyring::tcp
