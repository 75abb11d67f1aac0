// What a rank that fails says to those who are connected to it.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "collectives/runtime/transports/tcp_connection.hpp"

namespace polyring::tcp {

/// What others are to know of the exception that is being handled on this rank; nothing where there is none.
std::optional<Error> failure_of(Rank rank);

/// As far as it can be said without waiting, and between two messages. The connection is of no use
/// afterwards.
void say_farewell(Connection& connection, const Error& farewell);

}  // namespace polyring::tcp
