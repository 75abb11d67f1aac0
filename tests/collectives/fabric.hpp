// Fabric: ranks as threads, joined by a transport of one's choice. What the conformance suite is run over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collectives/transport.hpp"

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
  enum class Kind { threads, shared, composed } kind = Kind::threads;
  Placement placement = Placement::one_host;
  bool streaming = false;  // shared memory is written past the caches, however little it is
  bool pieces = false;     // what is in no segment goes by short pieces

  std::string name() const;
};

/// All that the suite is run over.
std::vector<Fabric> fabrics();

/// Runs `body` on so many threads, each with its transport. A rank's transport lives until all ranks are done
/// or have failed. Throws what the first to fail has thrown.
void run_over(const Fabric& fabric, int ranks, const std::function<void(Transport&)>& body,
              Seconds timeout = {30});

}  // namespace polyring::testing
