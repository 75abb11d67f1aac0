// Gloo's allreduces as a benchmark's contenders: the library with which PyTorch reduces in host memory, over
// TCP.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/contenders/collective_call.hpp"
#include "collectives/runtime/world.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// Whether this build has Gloo.
bool has_gloo();
/// "0.5.0", of the Gloo that this was built with; empty without.
std::string gloo_version();

/// Its algorithms: "ring" and "bcube" are gloo::allreduce's, "ring-chunked" and "halving-doubling" the older
/// classes, which reduce in place: out of place they copy first. All combine with the kernels that Polyring's
/// own executor uses, which are faster than Gloo's and know bfloat16.
const std::vector<std::string>& gloo_algorithms();

/// Throws a usage Error when `largest` elements are more than one of `algorithms` can count.
void check_gloo(const std::string& algorithm, ElementKind kind, Count largest);

/// All ranks, connected with each other over TCP. To be destroyed when every rank has ended its last run, as
/// after a barrier: a closed connection fails the others.
class Gloo {
 public:
  /// Collective. Over the interface of this name, or as choose_address() has it. Throws
  /// Error(ExitCode::not_available) where this build has no Gloo or no such interface is here, and
  /// Error(ExitCode::timeout) when the ranks do not find each other in time.
  Gloo(const World& world, const std::string& interface, Seconds timeout);
  ~Gloo();
  Gloo(const Gloo&) = delete;
  Gloo& operator=(const Gloo&) = delete;

  /// One of gloo_algorithms(). Its run() throws Error(ExitCode::timeout) when a rank does not answer. Where
  /// one rank gives it another output than in the run before, all must: the older classes make their
  /// connections anew. The result must not outlive this object, and all ranks must destroy it, which may wait
  /// for the last of them.
  std::unique_ptr<CollectiveCall> make(const std::string& algorithm, ElementKind kind, ReduceOp op,
                                       Count count);

 private:
  struct Connections;
  std::unique_ptr<Connections> connections_;
};

}  // namespace polyring
