// MPI's own collectives as a benchmark's contenders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/contenders/collective_call.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// The MPI library's own allreduce of `count` elements, with the algorithm that it chooses. float16 and
/// bfloat16, which MPI does not know, go through a user-defined operation; avg is a sum and a division.
/// Counts beyond an int are cut into several calls.
std::unique_ptr<CollectiveCall> make_mpi_allreduce(const MpiWorld& world, ElementKind kind, ReduceOp op,
                                                   Count count);

/// Throws a usage Error where MPI cannot do it in one call: for blocks of more elements than an int counts.
/// `count` is that of the longer buffer.
void check_mpi_count(Collective collective, int ranks, Count count);

/// MPI's own call of any collective. Throws as check_mpi_count() does.
std::unique_ptr<CollectiveCall> make_mpi_call(Collective collective, const MpiWorld& world, ElementKind kind,
                                              ReduceOp op, Count count);

/// Whether MPI's own call of it takes buffers on GPUs: where the library says so (MPIX_Query_cuda_support(),
/// of Open MPI and MPICH), and nothing of it is done by functions of ours, which are the host's.
bool mpi_takes_gpu_memory(Collective collective, ElementKind kind, ReduceOp op);

/// Its name: "MPI_Reduce_scatter_block".
std::string mpi_function(Collective collective);

class MpiTools;

/// The algorithms among which the MPI library lets its user choose, each beside the others in one process.
class MpiAlgorithms {
 public:
  /// To be called before MPI is initialised: without it Open MPI's communicators take no algorithm. It
  /// changes nothing else; where none is asked for, the library chooses as ever.
  static void allow();

  explicit MpiAlgorithms(const MpiWorld& world);
  ~MpiAlgorithms();
  MpiAlgorithms(const MpiAlgorithms&) = delete;
  MpiAlgorithms& operator=(const MpiAlgorithms&) = delete;

  /// The library's own names: "ring", "recursive_doubling". None where why_none() has a reason.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& why_none() const { return why_none_; }

  /// MPI_Allreduce with one of names(). Collective, for the first use of a name. The result must not outlive
  /// this object.
  std::unique_ptr<CollectiveCall> make(const std::string& name, ElementKind kind, ReduceOp op, Count count);

 private:
  class Library;
  class OpenMpi;
  class Mpich;

  const MpiWorld& world_;
  std::unique_ptr<MpiTools> tools_;
  std::unique_ptr<Library> library_;
  std::vector<std::string> names_;
  std::string why_none_;
};

}  // namespace polyring
