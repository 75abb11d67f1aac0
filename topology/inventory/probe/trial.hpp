// Trying out in child processes what may crash or hang: hwloc 2.9 does on some damaged files, a driver does
// when its GPU has fallen off the bus.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"

namespace polyring::probe {

enum class Ending { by_itself, crashed, out_of_time };

/// From here on a person wants to know what is waited for.
inline constexpr Seconds kLongWait{2};

/// Runs the action in a child process, and says how that ended; an exception is an end by itself. What the
/// action prints and changes is lost, except what it writes into a Shared. A child that is out of time is
/// killed, with its own children of this kind, and not waited for when even that does not end it, as when it
/// sleeps inside a driver. Throws an
/// Error (internal) when no process can be started. Where `wait` is given, it is called once if the child
/// takes longer than kLongWait.
Ending try_out(const std::function<void()>& action, Seconds limit, const std::function<void()>& wait = {});

/// In a child process: it may crash, without a core file, a handler's help or a word about it, and ends when
/// its parent does, or when its alarm rings.
void prepare_to_crash();

struct TriedAnswer {
  Ending ending;
  std::string text;  // empty unless it ended by itself, and without an exception
};

/// Calls `answer` as try_out() does an action.
TriedAnswer try_answer(const std::function<std::string()>& answer, Seconds limit);

/// Calls answer(i) for each i below `count` in a few child processes, and returns what each call did: nothing
/// for one that crashed, threw, or took longer than `seconds`; the others go on. Throws an Error (internal)
/// when no process can be started.
std::vector<std::optional<std::string>> trial_answers(std::size_t count,
                                                      const std::function<std::string(std::size_t)>& answer,
                                                      unsigned seconds);

/// A value in memory that child processes share, so that an action can leave its results there. Whoever reads
/// them after a crash should trust none.
template <typename Value>
class Shared {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
  Shared() {
    void* memory = mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw Error(ExitCode::internal, fmt::format("mmap failed: {}", std::strerror(errno)));
    value_ = new (memory) Value{};
  }
  ~Shared() { munmap(value_, sizeof(Value)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  Value& operator*() const { return *value_; }
  Value* operator->() const { return value_; }

 private:
  Value* value_;
};

}  // namespace polyring::probe
