// A vendor's call on host memory, for data on a GPU: they are copied to the host before it and back after it.
#pragma once

#include <memory>

#include "bench/contenders/collective_call.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

/// `call` does `what` on host memory. The copies go through memory that the GPU copies to by itself, as long
/// as both buffers. Keeps the transport. Throws Error(ExitCode::not_available) where there is no such memory.
std::unique_ptr<CollectiveCall> make_staged(std::unique_ptr<CollectiveCall> call, Transport& transport,
                                            const CollectiveOf& what);

/// The same of a call that takes GPU memory itself.
std::unique_ptr<CollectiveCall> make_unstaged(std::unique_ptr<CollectiveCall> call);

}  // namespace polyring
