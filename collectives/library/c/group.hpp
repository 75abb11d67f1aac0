// Group: a Communicator for C programs. Any thread may use it; each call holds it for itself.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "collectives/library/c/polyring.h"
#include "collectives/runtime/communicator.hpp"

namespace polyring::library {

/// What polyring_options say. Null: the defaults. Throws a usage Error that names what cannot be.
struct GroupOptions {
  explicit GroupOptions(const polyring_options* options);

  CommunicatorOptions communicator;
  bool check = false;
};

/// Throws a usage Error for a value that the header does not name.
ElementKind element_kind(polyring_type type);
ReduceOp reduce_op(polyring_op op);

class Group {
 public:
  /// Collective.
  Group(std::unique_ptr<Bootstrap> bootstrap, GroupOptions options);
  /// Gives up what is under way.
  ~Group() { give_up(); }

  /// Never changes, so it needs no lock.
  const Communicator& communicator() const { return communicator_; }

  /// A number for test() and wait(), which no other operation of the group has.
  using Request = std::uint64_t;

  /// `count`: elements of the longer of the two buffers. Throws a usage Error for null pointers and counts
  /// that cannot be.
  Request start(CollectiveOf what, const void* input, void* output);
  void run(CollectiveOf what, const void* input, void* output);
  void broadcast(void* buffer, Count count, ElementKind kind, int root);
  void barrier();

  /// Whether it is over, or never was. What it throws has ended the operation.
  bool test(Request request);
  void wait(Request request);
  /// Collective where nothing is under way: waits until no rank needs this one any more. From now on all
  /// calls fail, also where this throws.
  void end();

  void* allocate(Bytes bytes);
  /// Throws a usage Error for memory that is not allocate()'s.
  void free(void* memory);

 private:
  void give_up() noexcept;
  void agree(const CollectiveOf& what, int root);
  void meet();
  void run_now(const CollectiveOf& what, const std::byte* input, std::byte* output);

  std::mutex mutex_;
  std::unique_ptr<Bootstrap> bootstrap_;
  bool check_;
  Communicator communicator_;
  std::map<void*, Memory> memory_;
  Request last_ = 0;
  std::map<Request, Operation> operations_;
};

}  // namespace polyring::library
