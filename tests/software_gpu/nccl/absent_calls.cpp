// The functions of NCCL that the fake does not have: each ends the process and names itself. Without nccl.h,
// whose declarations these would contradict.
#include <cstdio>
#include <cstdlib>

// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define POLYRING_ABSENT(name)                                                             \
  extern "C" void name() {                                                                \
    std::fputs("software NCCL: " #name " is not implemented by the fake NCCL\n", stderr); \
    std::abort();                                                                         \
  }

POLYRING_ABSENT(ncclAlltoAll)
POLYRING_ABSENT(ncclBcast)
POLYRING_ABSENT(ncclBroadcast)
POLYRING_ABSENT(ncclCommInitRankScalable)
POLYRING_ABSENT(ncclCommRevoke)
POLYRING_ABSENT(ncclCommShrink)
POLYRING_ABSENT(ncclCommSplit)
POLYRING_ABSENT(ncclGather)
POLYRING_ABSENT(ncclGroupSimulateEnd)
POLYRING_ABSENT(ncclRedOpCreatePreMulSum)
POLYRING_ABSENT(ncclRedOpDestroy)
POLYRING_ABSENT(ncclReduce)
POLYRING_ABSENT(ncclResetDebugInit)
POLYRING_ABSENT(ncclScatter)
