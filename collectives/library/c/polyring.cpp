#include "collectives/library/c/polyring.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "collectives/library/c/bootstraps.hpp"
#include "collectives/library/c/failure.hpp"
#include "collectives/library/c/group.hpp"
#include "collectives/library/c/handle_table.hpp"
#include "collectives/library/c/unique_id.hpp"
#include "collectives/runtime/bootstraps/tcp.hpp"

using namespace polyring;
using namespace polyring::library;

namespace {

struct StartedRequest {
  std::weak_ptr<Group> group;  // nothing: it was freed
  Group::Request request = 0;
};

std::shared_ptr<Group> group_of(const StartedRequest& started) {
  std::shared_ptr<Group> group = started.group.lock();
  if (!group) usage_error("the request's communicator was freed, and has given it up");
  return group;
}

/// What programs hold. Never destroyed: other libraries' destructors may still call.
struct Handles {
  HandleTable<polyring_comm, Group> groups;
  HandleTable<polyring_request, StartedRequest> requests;
};

Handles& handles() {
  static auto* const all = new Handles;
  return *all;
}

std::shared_ptr<Group> group_of(polyring_comm comm) {
  std::shared_ptr<Group> group = handles().groups.find(comm);
  if (!group) usage_error("there is no such communicator: it was never created, or was freed");
  return group;
}

template <typename Pointer>
void need(const Pointer* pointer, std::string_view what) {
  if (pointer == nullptr) usage_error("{} is a null pointer; give the address of a variable", what);
}

/// What the program gave for the creation may be gone later, when GPUs' ranks meet again.
std::unique_ptr<Bootstrap> lasting(std::unique_ptr<Bootstrap> given, const GroupOptions& options) {
  const bool lasts = dynamic_cast<const TcpBootstrap*>(given.get()) != nullptr;
  if (lasts || options.gpu == kHostMemory) return given;
  return over_tcp(*given, options.communicator.timeout);
}

template <typename MakeBootstrap>
polyring_result create(polyring_comm* comm, const polyring_options* options, MakeBootstrap&& make) {
  return guarded([&] {
    need(comm, "the communicator");
    *comm = POLYRING_COMM_NULL;
    GroupOptions said(options);
    std::unique_ptr<Bootstrap> bootstrap = make(said);
    compare_options(*bootstrap, said);
    bootstrap = lasting(std::move(bootstrap), said);
    *comm = handles().groups.add(std::make_shared<Group>(std::move(bootstrap), std::move(said)));
  });
}

template <typename What>
polyring_result run(polyring_comm comm, const void* input, void* output, What&& what) {
  return guarded([&] {
    const std::shared_ptr<Group> group = group_of(comm);
    group->run(what(*group), input, output);
  });
}

/// `begin` starts something of a group, and returns its Request.
template <typename Begin>
polyring_result start(polyring_comm comm, polyring_request* request, Begin&& begin) {
  return guarded([&] {
    need(request, "the request");
    *request = POLYRING_REQUEST_NULL;
    const std::shared_ptr<Group> group = group_of(comm);
    auto started = std::make_shared<StartedRequest>();
    started->request = begin(*group);
    started->group = group;
    *request = handles().requests.add(std::move(started));
  });
}

template <typename What>
polyring_result enqueue(polyring_comm comm, const void* input, void* output, void* stream, What&& what) {
  return guarded([&] {
    const std::shared_ptr<Group> group = group_of(comm);
    group->enqueue(what(*group), input, output, stream);
  });
}

CollectiveOf allreduce_of(std::size_t count, polyring_type type, polyring_op op) {
  return {Collective::allreduce, to_count(count), element_kind(type), reduce_op(op)};
}

CollectiveOf reduce_scatter_of(const Group& group, std::size_t count, polyring_type type, polyring_op op) {
  return {Collective::reduce_scatter, to_count(count) * group.communicator().size(), element_kind(type),
          reduce_op(op)};
}

CollectiveOf allgather_of(const Group& group, std::size_t count, polyring_type type) {
  return {Collective::allgather, to_count(count) * group.communicator().size(), element_kind(type)};
}

}  // namespace

const char* polyring_version(void) { return POLYRING_VERSION; }

const char* polyring_error_text(void) { return error_text(); }

const char* polyring_error_name(polyring_result result) {
  switch (result) {
    case POLYRING_SUCCESS:
      return "POLYRING_SUCCESS";
    case POLYRING_ERROR_INTERNAL:
      return "POLYRING_ERROR_INTERNAL";
    case POLYRING_ERROR_CUDA:
      return "POLYRING_ERROR_CUDA";
    case POLYRING_ERROR_NCCL:
      return "POLYRING_ERROR_NCCL";
    case POLYRING_ERROR_TIMEOUT:
      return "POLYRING_ERROR_TIMEOUT";
    case POLYRING_ERROR_NOT_AVAILABLE:
      return "POLYRING_ERROR_NOT_AVAILABLE";
    case POLYRING_ERROR_ARGUMENT:
      return "POLYRING_ERROR_ARGUMENT";
    case POLYRING_ERROR_MISMATCH:
      return "POLYRING_ERROR_MISMATCH";
    case POLYRING_ERROR_CONNECTION:
      return "POLYRING_ERROR_CONNECTION";
  }
  return "no polyring_result";
}

polyring_result polyring_get_unique_id(polyring_unique_id* id) {
  return guarded([&] {
    need(id, "the id");
    *id = make_unique_id();
  });
}

polyring_result polyring_unique_id_at(polyring_unique_id* id, const char* address, const char* secret) {
  return guarded([&] {
    need(id, "the id");
    need(address, "the address");
    *id = unique_id_at(address, secret == nullptr ? "" : secret);
  });
}

polyring_result polyring_comm_create(polyring_comm* comm, const polyring_unique_id* id, int rank, int ranks,
                                     const polyring_options* options) {
  return create(comm, options, [&](const GroupOptions& said) {
    need(id, "the id");
    return std::make_unique<TcpBootstrap>(library::group_of(*id, rank, ranks, said.communicator.timeout));
  });
}

polyring_result polyring_comm_create_from_group(polyring_comm* comm, const polyring_group* group, int rank,
                                                int ranks, const polyring_options* options) {
  return create(comm, options, [&](const GroupOptions&) {
    need(group, "the group");
    return std::make_unique<GroupBootstrap>(*group, rank, ranks);
  });
}

polyring_result polyring_comm_create_from_store(polyring_comm* comm, const polyring_store* store, int rank,
                                                int ranks, const polyring_options* options) {
  return create(comm, options, [&](const GroupOptions& said) {
    need(store, "the store");
    return std::make_unique<StoreBootstrap>(*store, rank, ranks, said.communicator.timeout);
  });
}

polyring_result polyring_comm_free(polyring_comm comm) {
  return guarded([&] {
    const std::shared_ptr<Group> group = handles().groups.take(comm);
    if (!group) usage_error("there is no such communicator: it was never created, or was freed before");
    group->end();
  });
}

polyring_result polyring_comm_abort(polyring_comm comm) {
  return guarded([&] { group_of(comm)->abort(); });
}

polyring_result polyring_comm_rank(polyring_comm comm, int* rank) {
  return guarded([&] {
    need(rank, "the rank");
    *rank = group_of(comm)->communicator().rank();
  });
}

polyring_result polyring_comm_size(polyring_comm comm, int* ranks) {
  return guarded([&] {
    need(ranks, "the number of ranks");
    *ranks = group_of(comm)->communicator().size();
  });
}

polyring_result polyring_comm_hosts(polyring_comm comm, int* hosts) {
  return guarded([&] {
    need(hosts, "the number of hosts");
    *hosts = group_of(comm)->communicator().hosts().count();
  });
}

polyring_result polyring_comm_transport(polyring_comm comm, const char** transport) {
  return guarded([&] {
    need(transport, "the transport");
    *transport = group_of(comm)->communicator().joined().name.c_str();
  });
}

polyring_result polyring_comm_planning(polyring_comm comm, const char** planning) {
  return guarded([&] {
    need(planning, "the planning");
    *planning = group_of(comm)->planning().c_str();
  });
}

polyring_result polyring_mem_alloc(polyring_comm comm, size_t bytes, void** memory) {
  return guarded([&] {
    need(memory, "the memory");
    *memory = nullptr;
    *memory = group_of(comm)->allocate({bytes});
  });
}

polyring_result polyring_mem_free(polyring_comm comm, void* memory) {
  return guarded([&] { group_of(comm)->free(memory); });
}

polyring_result polyring_mem_register(polyring_comm comm, void* buffer, size_t bytes) {
  return guarded([&] { group_of(comm)->register_memory(buffer, bytes); });
}

polyring_result polyring_mem_deregister(polyring_comm comm, void* buffer) {
  return guarded([&] { group_of(comm)->deregister_memory(buffer); });
}

polyring_result polyring_allreduce(polyring_comm comm, const void* input, void* output, size_t count,
                                   polyring_type type, polyring_op op) {
  return run(comm, input, output, [&](const Group&) { return allreduce_of(count, type, op); });
}

polyring_result polyring_reduce_scatter(polyring_comm comm, const void* input, void* output, size_t count,
                                        polyring_type type, polyring_op op) {
  return run(comm, input, output,
             [&](const Group& group) { return reduce_scatter_of(group, count, type, op); });
}

polyring_result polyring_allgather(polyring_comm comm, const void* input, void* output, size_t count,
                                   polyring_type type) {
  return run(comm, input, output, [&](const Group& group) { return allgather_of(group, count, type); });
}

polyring_result polyring_broadcast(polyring_comm comm, void* buffer, size_t count, polyring_type type,
                                   int root) {
  return guarded([&] {
    const std::shared_ptr<Group> group = group_of(comm);
    group->wait(group->start_broadcast(buffer, to_count(count), element_kind(type), root));
  });
}

polyring_result polyring_barrier(polyring_comm comm) {
  return guarded([&] { group_of(comm)->barrier(); });
}

polyring_result polyring_start_allreduce(polyring_comm comm, const void* input, void* output, size_t count,
                                         polyring_type type, polyring_op op, polyring_request* request) {
  return start(comm, request,
               [&](Group& group) { return group.start(allreduce_of(count, type, op), input, output); });
}

polyring_result polyring_start_reduce_scatter(polyring_comm comm, const void* input, void* output,
                                              size_t count, polyring_type type, polyring_op op,
                                              polyring_request* request) {
  return start(comm, request, [&](Group& group) {
    return group.start(reduce_scatter_of(group, count, type, op), input, output);
  });
}

polyring_result polyring_start_allgather(polyring_comm comm, const void* input, void* output, size_t count,
                                         polyring_type type, polyring_request* request) {
  return start(comm, request,
               [&](Group& group) { return group.start(allgather_of(group, count, type), input, output); });
}

polyring_result polyring_start_broadcast(polyring_comm comm, void* buffer, size_t count, polyring_type type,
                                         int root, polyring_request* request) {
  return start(comm, request, [&](Group& group) {
    return group.start_broadcast(buffer, to_count(count), element_kind(type), root);
  });
}

polyring_result polyring_start_barrier(polyring_comm comm, polyring_request* request) {
  return start(comm, request, [](Group& group) { return group.start_barrier(); });
}

polyring_result polyring_test(polyring_request* request, int* done) {
  return guarded([&] {
    need(request, "the request");
    need(done, "the answer");
    *done = 1;
    if (*request == POLYRING_REQUEST_NULL) return;
    const std::shared_ptr<StartedRequest> started = handles().requests.find(*request);
    if (!started) usage_error("there is no such request: it is over, or was never started");
    try {
      *done = group_of(*started)->test(started->request) ? 1 : 0;
    } catch (...) {
      handles().requests.take(std::exchange(*request, POLYRING_REQUEST_NULL));
      throw;
    }
    if (*done == 1) handles().requests.take(std::exchange(*request, POLYRING_REQUEST_NULL));
  });
}

polyring_result polyring_wait(polyring_request* request) {
  return guarded([&] {
    need(request, "the request");
    if (*request == POLYRING_REQUEST_NULL) return;
    const std::shared_ptr<StartedRequest> started =
        handles().requests.take(std::exchange(*request, POLYRING_REQUEST_NULL));
    if (!started) usage_error("there is no such request: it is over, or was never started");
    group_of(*started)->wait(started->request);
  });
}

polyring_result polyring_enqueue_allreduce(polyring_comm comm, const void* input, void* output, size_t count,
                                           polyring_type type, polyring_op op, void* stream) {
  return enqueue(comm, input, output, stream, [&](const Group&) { return allreduce_of(count, type, op); });
}

polyring_result polyring_enqueue_reduce_scatter(polyring_comm comm, const void* input, void* output,
                                                size_t count, polyring_type type, polyring_op op,
                                                void* stream) {
  return enqueue(comm, input, output, stream,
                 [&](const Group& group) { return reduce_scatter_of(group, count, type, op); });
}

polyring_result polyring_enqueue_allgather(polyring_comm comm, const void* input, void* output, size_t count,
                                           polyring_type type, void* stream) {
  return enqueue(comm, input, output, stream,
                 [&](const Group& group) { return allgather_of(group, count, type); });
}

polyring_result polyring_stream_wait(polyring_comm comm, void* stream) {
  return guarded([&] { group_of(comm)->wait_for_stream(stream); });
}

polyring_result polyring_enqueued_wait(polyring_comm comm) {
  return guarded([&] { group_of(comm)->wait_for_enqueued(); });
}
