// The groups of the fake NCCL: what a thread's calls add up to until its outermost ncclGroupEnd().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/software_gpu/nccl/communicator.hpp"

namespace polyring::software_nccl {

using CommunicatorPointer = std::shared_ptr<Communicator>;

/// The communicators that there are, by handle. Handles are numbers, so that one that is no more is told
/// from one that is.
ncclComm_t add_handle(CommunicatorPointer communicator);
/// Null, and said, where the handle is none, or one that has ended.
CommunicatorPointer find_handle(ncclComm_t handle, const char* call);
/// The same, and its end.
CommunicatorPointer take_handle(ncclComm_t handle, const char* call, const char* how_it_ended);

/// Says it; returns the code.
ncclResult_t refuse(ncclResult_t code, const std::string& sentence);

/// One thread's.
class Groups {
 public:
  static Groups& of_thread();

  void begin() { ++depth_; }
  /// Launches what the group has, if it is the outermost.
  ncclResult_t end();
  /// Adds the start of a communicator; inside begin() and end().
  void add_start(const CommunicatorPointer& communicator);
  /// Checks an operation, and adds it; inside begin() and end().
  ncclResult_t add(const CommunicatorPointer& communicator, Issued issued, cudaStream_t stream);
  /// The whole group fails with it.
  ncclResult_t fail(ncclResult_t code);

 private:
  struct Part {
    CommunicatorPointer communicator;
    Work work;
  };

  ncclResult_t check(const Communicator& communicator, const Issued& issued, cudaStream_t stream) const;
  ncclResult_t launch();

  int depth_ = 0;
  ncclResult_t failure_ = ncclSuccess;
  std::vector<CommunicatorPointer> starts_;
  std::vector<Part> parts_;
};

}  // namespace polyring::software_nccl
