// The functions of NCCL that the fake has. absent_calls.cpp has the others.
#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <new>
#include <set>
#include <system_error>
#include <vector>

#include "tests/software_gpu/nccl/groups.hpp"
#include "tests/software_gpu/nccl/root.hpp"
#include "tests/software_gpu/nccl/software_nccl.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace {

using namespace polyring::software_nccl;

ncclResult_t start(ncclComm_t* handle, int size, const ncclUniqueId& id, int rank, int device,
                   bool blocking) {
  if (handle == nullptr || size < 1 || rank < 0 || rank >= size) {
    return refuse(ncclInvalidArgument, fmt::format("a communicator of {} ranks has no rank {}", size, rank));
  }
  const std::string path(id.internal, strnlen(id.internal, sizeof id.internal));
  const auto communicator = std::make_shared<Communicator>(rank, size, device, blocking, path);
  *handle = add_handle(communicator);
  Groups& groups = Groups::of_thread();
  groups.begin();
  groups.add_start(communicator);
  const ncclResult_t result = groups.end();
  if (result == ncclSuccess || result == ncclInProgress) return result;
  take_handle(*handle, "the start", "a start that failed")->abort();
  *handle = nullptr;
  return result;
}

ncclResult_t start_here(ncclComm_t* handle, int size, const ncclUniqueId& id, int rank, bool blocking) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return refuse(ncclUnhandledCudaError, "there is no device");
  return start(handle, size, id, rank, device, blocking);
}

ncclResult_t issue(ncclComm_t handle, const char* call, Operation operation, const void* input, void* output,
                   cudaStream_t stream) {
  Groups& groups = Groups::of_thread();
  groups.begin();
  const CommunicatorPointer communicator = find_handle(handle, call);
  if (!communicator) {
    groups.fail(ncclInvalidArgument);
    groups.end();
    return ncclInvalidArgument;
  }
  const std::uint64_t bytes = operation.count * size_of(operation.type);
  const auto size = static_cast<std::uint64_t>(communicator->size());
  if (operation.what != What::receive)
    operation.input_bytes = operation.what == What::reduce_scatter ? size * bytes : bytes;
  if (operation.what != What::send)
    operation.output_bytes = operation.what == What::all_gather ? size * bytes : bytes;
  const ncclResult_t added = groups.add(communicator, {operation, input, output}, stream);
  const ncclResult_t ended = groups.end();
  return added != ncclSuccess ? added : ended;
}

Operation collective(What what, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction) {
  Operation operation;
  operation.what = what;
  operation.type = type;
  operation.reduction = reduction;
  operation.count = count;
  return operation;
}

Operation message(What what, std::size_t count, ncclDataType_t type, int peer) {
  Operation operation = collective(what, count, type, ncclSum);
  operation.peer = peer;
  return operation;
}

/// Handles of registered memory: of windows, and others.
std::mutex registered_mutex;
std::set<void*>& registered(bool windows) {
  static auto* const all = new std::set<void*>[2];
  return all[windows ? 1 : 0];
}

ncclResult_t register_memory(const ncclComm_t handle, const std::string& call, void* buffer, size_t bytes,
                             bool window, void** registration) {
  const CommunicatorPointer communicator = find_handle(handle, call.c_str());
  if (!communicator) return ncclInvalidArgument;
  if (polyring_software_gpu_device_of(buffer) != communicator->device() ||
      polyring_software_gpu_bytes_at(buffer) < bytes) {
    return refuse(ncclInvalidArgument, call + " of what is no memory of its device");
  }
  *registration = new char;
  const std::lock_guard lock(registered_mutex);
  registered(window).insert(*registration);
  return ncclSuccess;
}

ncclResult_t deregister_memory(const ncclComm_t handle, const std::string& call, void* registration,
                               bool window) {
  if (!find_handle(handle, call.c_str())) return ncclInvalidArgument;
  const std::lock_guard lock(registered_mutex);
  if (registered(window).erase(registration) == 0)
    return refuse(ncclInvalidArgument, call + " of what is not registered so");
  delete static_cast<char*>(registration);
  return ncclSuccess;
}

}  // namespace

extern "C" {

void polyring_software_nccl_plan(const char* lines) { replace_plan(lines); }

int polyring_software_nccl_registered(int windows) {
  const std::lock_guard lock(registered_mutex);
  return static_cast<int>(registered(windows != 0).size());
}

ncclResult_t ncclGetVersion(int* result) {
  *result = version();
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  try {
    *id = {};
    const std::string path = start_root();
    path.copy(id->internal, sizeof id->internal - 1);
    return ncclSuccess;
  } catch (const std::system_error& error) {
    return refuse(ncclSystemError, error.what());
  }
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  constexpr unsigned kMagic = 0xcafebeef;
  if (config == nullptr || config->magic != kMagic || config->size != sizeof *config) {
    return refuse(ncclInvalidArgument, "the ncclConfig_t was not made by NCCL_CONFIG_INITIALIZER");
  }
  return start_here(handle, size, id, rank, config->blocking != 0);
}

ncclResult_t ncclCommInitRank(ncclComm_t* handle, int size, ncclUniqueId id, int rank) {
  return start_here(handle, size, id, rank, true);
}

ncclResult_t ncclCommInitAll(ncclComm_t* handles, int size, const int* devices) {
  ncclUniqueId id;
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) return result;
  Groups& groups = Groups::of_thread();
  groups.begin();
  for (int rank = 0; rank < size; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    if (const ncclResult_t result = start(handles + rank, size, id, rank, device, true);
        result != ncclSuccess) {
      groups.fail(result);
    }
  }
  return groups.end();
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const CommunicatorPointer communicator = find_handle(handle, "ncclCommFinalize");
  return communicator ? communicator->finalize() : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const CommunicatorPointer communicator = take_handle(handle, "ncclCommDestroy", "ncclCommDestroy");
  if (!communicator) return ncclInvalidArgument;
  communicator->destroy();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const CommunicatorPointer communicator = take_handle(handle, "ncclCommAbort", "ncclCommAbort");
  if (!communicator) return ncclInvalidArgument;
  communicator->abort();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled CUDA error of the fake NCCL";
    case ncclSystemError:
      return "system error of the fake NCCL";
    case ncclInternalError:
      return "internal error of the fake NCCL";
    case ncclInvalidArgument:
      return "invalid argument of the fake NCCL";
    case ncclInvalidUsage:
      return "invalid usage of the fake NCCL";
    case ncclRemoteError:
      return "remote error of the fake NCCL";
    case ncclInProgress:
      return "operation in progress of the fake NCCL";
    default:
      return "unknown result of the fake NCCL";
  }
}

const char* ncclGetLastError(ncclComm_t handle) {
  thread_local std::string text;
  const CommunicatorPointer communicator =
      handle == nullptr ? nullptr : find_handle(handle, "ncclGetLastError");
  text = communicator ? communicator->last_fault() : "";
  if (text.empty()) text = last_said();
  return text.c_str();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  const CommunicatorPointer communicator = find_handle(handle, "ncclCommGetAsyncError");
  if (!communicator) return ncclInvalidArgument;
  *state = communicator->progress();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int* count) {
  const CommunicatorPointer communicator = find_handle(handle, "ncclCommCount");
  if (!communicator) return ncclInvalidArgument;
  *count = communicator->size();
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int* device) {
  const CommunicatorPointer communicator = find_handle(handle, "ncclCommCuDevice");
  if (!communicator) return ncclInvalidArgument;
  *device = communicator->device();
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t handle, int* rank) {
  const CommunicatorPointer communicator = find_handle(handle, "ncclCommUserRank");
  if (!communicator) return ncclInvalidArgument;
  *rank = communicator->rank();
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
  return cudaMalloc(pointer, bytes) == cudaSuccess ? ncclSuccess
                                                   : refuse(ncclUnhandledCudaError, "no memory");
}

ncclResult_t ncclMemFree(void* pointer) {
  return cudaFree(pointer) == cudaSuccess ? ncclSuccess : refuse(ncclUnhandledCudaError, "cudaFree failed");
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* buffer, size_t bytes, void** registration) {
  return register_memory(handle, "ncclCommRegister", buffer, bytes, false, registration);
}

ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registration) {
  return deregister_memory(handle, "ncclCommDeregister", registration, false);
}

#if NCCL_VERSION_CODE >= 22700
ncclResult_t ncclCommWindowRegister(ncclComm_t handle, void* buffer, size_t bytes, ncclWindow_t* window,
                                    int flags) {
  if (flags != NCCL_WIN_COLL_SYMMETRIC)
    return refuse(ncclInvalidArgument, "ncclCommWindowRegister of a window that is not symmetric");
  void* registration = nullptr;
  const ncclResult_t result =
      register_memory(handle, "ncclCommWindowRegister", buffer, bytes, true, &registration);
  *window = static_cast<ncclWindow_t>(registration);
  return result;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t handle, ncclWindow_t window) {
  return deregister_memory(handle, "ncclCommWindowDeregister", window, true);
}
#endif

ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t handle, cudaStream_t stream) {
  return issue(handle, "ncclAllReduce", collective(What::all_reduce, count, type, reduction), input, output,
               stream);
}

ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t handle, cudaStream_t stream) {
  return issue(handle, "ncclReduceScatter", collective(What::reduce_scatter, count, type, reduction), input,
               output, stream);
}

ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type,
                           ncclComm_t handle, cudaStream_t stream) {
  return issue(handle, "ncclAllGather", collective(What::all_gather, count, type, ncclSum), input, output,
               stream);
}

ncclResult_t ncclSend(const void* input, size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                      cudaStream_t stream) {
  return issue(handle, "ncclSend", message(What::send, count, type, peer), input, nullptr, stream);
}

ncclResult_t ncclRecv(void* output, size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                      cudaStream_t stream) {
  return issue(handle, "ncclRecv", message(What::receive, count, type, peer), nullptr, output, stream);
}

ncclResult_t ncclGroupStart() {
  Groups::of_thread().begin();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return Groups::of_thread().end(); }

}  // extern "C"
