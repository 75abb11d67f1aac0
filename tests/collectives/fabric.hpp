// Fabric: ranks joined by a transport of one's choice. What the conformance suite is run over: threads
// (thread_fabric.cpp), or the processes that mpirun started (mpi_fabric.cpp). All ranks run the same tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring::testing {

/// Which ranks are on one host, where hosts matter.
enum class Placement {
  one_host,
  halves,       // 2 + 2
  all_but_one,  // 3 + 1
  one_and_all,  // 1 + 3
  in_turn,      // even and odd ranks
};

struct Fabric {
  enum class Kind { threads, shared, composed, mpi, tcp } kind = Kind::threads;
  Placement placement = Placement::one_host;
  bool streaming = false;  // shared memory is written past the caches, however little it is
  /// Small limits: of the pieces of MPI's messages, of those of what is in no segment of shared memory, of
  /// TCP's messages that are sent without asking.
  bool pieces = false;

  std::string name() const;
};

/// The length of pieces and parts then, in shared memory, and TCP's limit.
inline constexpr std::size_t kShortPiece = 512;

/// All that the suite is run over.
std::vector<Fabric> fabrics();

/// The transport inside the emulated hosts of the fabric. Collective.
std::unique_ptr<Transport> make_near(const Fabric& fabric, const Bootstrap& bootstrap, WaitRules rules);

/// Runs `body` on so many ranks, each with its transport; where ranks are processes, the others wait. A
/// rank's transport lives until all ranks are done or have failed. Throws what a rank of this process has
/// thrown first.
void run_over(const Fabric& fabric, int ranks, const std::function<void(Transport&)>& body,
              Seconds timeout = {30});

/// The same for ranks that may do away with their transport. In one process only.
void run_over_own(const Fabric& fabric, int ranks,
                  const std::function<void(std::unique_ptr<Transport>)>& body);

/// Each rank's bytes, on every rank, by messages. All have equally many.
std::vector<std::vector<std::byte>> gather(Transport& transport, std::span<const std::byte> own);

/// The ranks for which the one that says this has waited in vain.
std::vector<Rank> waited_for(std::string sentence, Rank own);

}  // namespace polyring::testing
