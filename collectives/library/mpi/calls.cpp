#include "collectives/library/mpi/calls.hpp"

#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include "base/index.hpp"
#include "collectives/library/mpi/counters.hpp"
#include "collectives/library/mpi/failure.hpp"
#include "collectives/library/mpi/groups.hpp"
#include "collectives/library/mpi/types.hpp"
#include "collectives/runtime/mpi/handle.hpp"

namespace polyring::interposer {
namespace {

static_assert(kLeast.value == 8 * kFewest);
constexpr std::size_t kWord = 4;
constexpr std::size_t kMostGathered = std::size_t{1} << 30;  // MPI_Pack's int holds it

std::nullopt_t pass_on(Call call, Why why) {
  count_passed_on(call, why);
  return std::nullopt;
}

/// Why no call on this communicator is taken now, whatever it is.
std::optional<Why> shut(MPI_Comm comm) {
  if (is_nested()) return Why::nested;
  if (comm == MPI_COMM_NULL) return Why::arguments;
  return closed();
}

/// How MPI tells the program.
int fail(Call call, MPI_Comm comm, const std::exception& error) {
  int code = MPI_ERR_OTHER;
  try {
    note(error.what());
    code = error_code_of(error.what());
  } catch (const std::exception&) {  // there is no memory for the sentence
  }
  count_failed(call);
  return raise_error(comm, code);
}

/// Does all of a call: nothing may be thrown through the program's C functions.
template <typename Action>
std::optional<int> guarded(Call call, MPI_Comm comm, Action&& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    return fail(call, comm, error);
  }
}

/// The communicator's group for a call whose longer buffer is a block, or one of all ranks. Null: the call is
/// not taken, and the reason is counted.
KnownComm* joined_group(Call call, MPI_Comm comm, SizeClass size_class, std::size_t block,
                        bool of_all_ranks) {
  const Nested inside;
  KnownComm& group = group_of(comm);
  const std::size_t longer = of_all_ranks ? block * index(group.size()) : block;
  const std::optional<Why> why = group.refuses(size_class, Bytes{longer});
  if (!why && group.join(comm)) return &group;
  pass_on(call, why.value_or(Why::not_joined));
  return nullptr;
}

template <typename Action>
int taken(Call call, Action&& action) {
  const Nested inside;
  action();
  count_taken(call);
  return MPI_SUCCESS;
}

const std::byte* bytes(const void* address) { return static_cast<const std::byte*>(address); }
std::byte* bytes(void* address) { return static_cast<std::byte*>(address); }

/// The elements of some ranks of an allgather: in the program's types, and as they travel.
struct Blocks {
  const void* address;
  int count;  // of each block
  MPI_Datatype type;

  std::ptrdiff_t length() const {
    MPI_Aint begin = 0;
    MPI_Aint extent = 0;
    check_mpi(PMPI_Type_get_extent(type, &begin, &extent), "MPI_Type_get_extent");
    return extent * count;
  }
  const void* block(int rank) const { return bytes(address) + rank * length(); }
};

std::vector<std::byte> packed(const void* from, const Blocks& blocks, std::size_t size, MPI_Comm comm) {
  std::vector<std::byte> result(size);
  int position = 0;
  check_mpi(
      PMPI_Pack(from, blocks.count, blocks.type, result.data(), static_cast<int>(size), &position, comm),
      "MPI_Pack");
  return result;
}

void unpack(const std::vector<std::byte>& all, const Blocks& to, std::size_t size, MPI_Comm comm) {
  for (std::size_t rank = 0; rank < all.size() / size; ++rank) {
    int position = 0;
    check_mpi(PMPI_Unpack(all.data() + rank * size, static_cast<int>(size), &position,
                          const_cast<void*>(to.block(static_cast<int>(rank))), to.count, to.type, comm),
              "MPI_Unpack");
  }
}

/// Of `size` bytes of each rank.
void gather(KnownComm& group, const Blocks& own, const Blocks& all, std::size_t size, MPI_Comm comm) {
  const std::size_t whole = size * index(group.size());
  const bool in_place = own.address == MPI_IN_PLACE;
  const void* input = in_place ? all.block(group.rank()) : own.address;
  std::vector<std::byte> sent;
  if (!is_plain(own.type)) {
    sent = packed(input, own, size, comm);
    input = sent.data();
  }
  std::vector<std::byte> received(is_plain(all.type) ? 0 : whole);
  std::byte* const output = received.empty() ? bytes(const_cast<void*>(all.address)) : received.data();
  const CollectiveOf what{Collective::allgather, static_cast<Count>(whole / kWord), ElementKind::int32};
  group.run(what, bytes(input), output);
  if (!received.empty()) unpack(received, all, size, comm);
}

std::optional<int> allreduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  constexpr Call kCall = Call::allreduce;
  if (const std::optional<Why> why = shut(comm)) return pass_on(kCall, *why);
  const Reduced what = reduced(type, op);
  if (what.why_not) return pass_on(kCall, *what.why_not);
  const std::size_t size = index(count) * index(size_of(what.kind));
  if (size < kLeast.value) return pass_on(kCall, Why::small);
  KnownComm* const group = joined_group(kCall, comm, size_class_of(what.kind), size, false);
  if (group == nullptr) return std::nullopt;
  if (input == nullptr || output == nullptr || output == MPI_IN_PLACE) return pass_on(kCall, Why::arguments);
  return taken(kCall, [&] {
    group->run({Collective::allreduce, count, what.kind, what.op},
               bytes(input == MPI_IN_PLACE ? output : input), bytes(output));
  });
}

/// In place MPI has the result at the beginning of the buffer, and Polyring at the rank's block.
std::optional<int> reduce_scatter_block(const void* input, void* output, int count, MPI_Datatype type,
                                        MPI_Op op, MPI_Comm comm) {
  constexpr Call kCall = Call::reduce_scatter_block;
  if (const std::optional<Why> why = shut(comm)) return pass_on(kCall, *why);
  const Reduced what = reduced(type, op);
  if (what.why_not) return pass_on(kCall, *what.why_not);
  const std::size_t block = index(count) * index(size_of(what.kind));
  if (block < kLeast.value) return pass_on(kCall, Why::small);
  KnownComm* const group = joined_group(kCall, comm, size_class_of(what.kind), block, true);
  if (group == nullptr) return std::nullopt;
  if (input == nullptr || output == nullptr || output == MPI_IN_PLACE) return pass_on(kCall, Why::arguments);
  return taken(kCall, [&] {
    const bool in_place = input == MPI_IN_PLACE;
    std::byte* const result = bytes(output) + (in_place ? block * index(group->rank()) : 0);
    const CollectiveOf all{Collective::reduce_scatter, Count{count} * group->size(), what.kind, what.op};
    group->run(all, bytes(in_place ? output : input), result);
    if (in_place && group->rank() != 0) std::memcpy(output, result, block);
  });
}

/// Ranks may describe the same bytes by different counts and types, so only the bytes count.
std::optional<int> allgather(const void* input, int send_count, MPI_Datatype send_type, void* output,
                             int count, MPI_Datatype type, MPI_Comm comm) {
  constexpr Call kCall = Call::allgather;
  if (const std::optional<Why> why = shut(comm)) return pass_on(kCall, *why);
  if (count <= 0) return pass_on(kCall, count == 0 ? Why::small : Why::arguments);
  const std::size_t size = index(count) * bytes_of_type(type);
  if (size < kLeast.value) return pass_on(kCall, Why::small);
  if (size % kWord != 0) return pass_on(kCall, Why::words);
  if (size > kMostGathered) return pass_on(kCall, Why::large);
  KnownComm* const group = joined_group(kCall, comm, SizeClass::gathered, size, true);
  if (group == nullptr) return std::nullopt;
  const bool in_place = input == MPI_IN_PLACE;
  const bool fits = in_place || (send_count >= 0 && index(send_count) * bytes_of_type(send_type) == size);
  const bool has_buffers =
      (input != nullptr || !is_plain(send_type)) && (output != nullptr || !is_plain(type));
  if (!fits || !has_buffers) return pass_on(kCall, Why::arguments);
  return taken(kCall, [&] {
    const Blocks all{output, count, type};
    gather(*group, in_place ? Blocks{MPI_IN_PLACE, count, type} : Blocks{input, send_count, send_type}, all,
           size, comm);
  });
}

}  // namespace

std::optional<int> take_allreduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op,
                                  MPI_Comm comm) {
  return guarded(Call::allreduce, comm, [&] { return allreduce(input, output, count, type, op, comm); });
}

std::optional<int> take_reduce_scatter_block(const void* input, void* output, int count, MPI_Datatype type,
                                             MPI_Op op, MPI_Comm comm) {
  return guarded(Call::reduce_scatter_block, comm,
                 [&] { return reduce_scatter_block(input, output, count, type, op, comm); });
}

std::optional<int> take_allgather(const void* input, int send_count, MPI_Datatype send_type, void* output,
                                  int count, MPI_Datatype type, MPI_Comm comm) {
  return guarded(Call::allgather, comm,
                 [&] { return allgather(input, send_count, send_type, output, count, type, comm); });
}

}  // namespace polyring::interposer
