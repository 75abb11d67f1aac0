// The functions of NCCL that Polyring calls, as nccl.h declares them, found in the library at run time.
#pragma once

#include <nccl.h>

/// What every NCCL since 2.7 has.
#define POLYRING_NCCL_NEEDED(CALL) \
  CALL(ncclGetVersion)             \
  CALL(ncclGetUniqueId)            \
  CALL(ncclCommInitRank)           \
  CALL(ncclCommGetAsyncError)      \
  CALL(ncclCommAbort)              \
  CALL(ncclCommDestroy)            \
  CALL(ncclAllReduce)              \
  CALL(ncclReduceScatter)          \
  CALL(ncclAllGather)              \
  CALL(ncclSend)                   \
  CALL(ncclRecv)                   \
  CALL(ncclGroupStart)             \
  CALL(ncclGroupEnd)               \
  CALL(ncclGetErrorString)

/// Symmetric memory (2.27), which older headers do not have.
#if NCCL_VERSION_CODE >= 22700
#define POLYRING_NCCL_SYMMETRIC(CALL) \
  CALL(ncclCommWindowRegister)        \
  CALL(ncclCommWindowDeregister)
#else
#define POLYRING_NCCL_SYMMETRIC(CALL)
#endif

/// What only newer ones have: communicators whose calls do not block and their end (2.14), the last error's
/// text (2.13), memory of its own that can be registered (2.19).
#define POLYRING_NCCL_OPTIONAL(CALL) \
  CALL(ncclCommInitRankConfig)       \
  CALL(ncclCommFinalize)             \
  CALL(ncclGetLastError)             \
  CALL(ncclMemAlloc)                 \
  CALL(ncclMemFree)                  \
  CALL(ncclCommRegister)             \
  CALL(ncclCommDeregister)           \
  POLYRING_NCCL_SYMMETRIC(CALL)

namespace polyring {

/// Null: this library has no such function.
struct NcclCalls {
#define POLYRING_NCCL_MEMBER(name) decltype(&::name) name = nullptr;
  POLYRING_NCCL_NEEDED(POLYRING_NCCL_MEMBER)
  POLYRING_NCCL_OPTIONAL(POLYRING_NCCL_MEMBER)
#undef POLYRING_NCCL_MEMBER
};

}  // namespace polyring
