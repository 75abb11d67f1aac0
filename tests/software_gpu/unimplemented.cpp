// Calls of the API that are not implemented: each names itself and ends the process. Those that are not even
// here end it too: the program's start, or its first call of them, finds no such symbol.
//
// No header of CUDA is included, as these have none of their parameters.
#include <cstdio>
#include <cstdlib>

#define POLYRING_UNIMPLEMENTED(name)                                      \
  extern "C" void name() {                                                \
    std::fprintf(stderr, "software GPU: %s is not implemented\n", #name); \
    std::abort();                                                         \
  }

// clang-format off
POLYRING_UNIMPLEMENTED(cudaDeviceGetDefaultMemPool)
POLYRING_UNIMPLEMENTED(cudaDeviceGetLimit)
POLYRING_UNIMPLEMENTED(cudaDeviceGetMemPool)
POLYRING_UNIMPLEMENTED(cudaDeviceSetCacheConfig)
POLYRING_UNIMPLEMENTED(cudaDeviceSetLimit)
POLYRING_UNIMPLEMENTED(cudaDeviceSetMemPool)
POLYRING_UNIMPLEMENTED(cudaFuncGetName)
POLYRING_UNIMPLEMENTED(cudaFuncSetCacheConfig)
POLYRING_UNIMPLEMENTED(cudaGetDriverEntryPoint)
POLYRING_UNIMPLEMENTED(cudaGetDriverEntryPointByVersion)
POLYRING_UNIMPLEMENTED(cudaGetExportTable)
POLYRING_UNIMPLEMENTED(cudaGetFuncBySymbol)
POLYRING_UNIMPLEMENTED(cudaGetKernel)
POLYRING_UNIMPLEMENTED(cudaGetSymbolAddress)
POLYRING_UNIMPLEMENTED(cudaGetSymbolSize)
POLYRING_UNIMPLEMENTED(cudaGraphAddDependencies)
POLYRING_UNIMPLEMENTED(cudaGraphAddKernelNode)
POLYRING_UNIMPLEMENTED(cudaGraphAddMemcpyNode)
POLYRING_UNIMPLEMENTED(cudaGraphAddMemsetNode)
POLYRING_UNIMPLEMENTED(cudaGraphClone)
POLYRING_UNIMPLEMENTED(cudaGraphCreate)
POLYRING_UNIMPLEMENTED(cudaGraphDebugDotPrint)
POLYRING_UNIMPLEMENTED(cudaGraphExecKernelNodeSetParams)
POLYRING_UNIMPLEMENTED(cudaGraphExecUpdate)
POLYRING_UNIMPLEMENTED(cudaGraphGetEdges)
POLYRING_UNIMPLEMENTED(cudaGraphInstantiateWithParams)
POLYRING_UNIMPLEMENTED(cudaLaunchCooperativeKernel)
POLYRING_UNIMPLEMENTED(cudaMallocFromPoolAsync)
POLYRING_UNIMPLEMENTED(cudaMallocManaged)
POLYRING_UNIMPLEMENTED(cudaMallocPitch)
POLYRING_UNIMPLEMENTED(cudaMemAdvise)
POLYRING_UNIMPLEMENTED(cudaMemPoolCreate)
POLYRING_UNIMPLEMENTED(cudaMemPoolDestroy)
POLYRING_UNIMPLEMENTED(cudaMemPoolSetAccess)
POLYRING_UNIMPLEMENTED(cudaMemPoolSetAttribute)
POLYRING_UNIMPLEMENTED(cudaMemPoolTrimTo)
POLYRING_UNIMPLEMENTED(cudaMemPrefetchAsync)
POLYRING_UNIMPLEMENTED(cudaMemcpy2D)
POLYRING_UNIMPLEMENTED(cudaMemcpy2DAsync)
POLYRING_UNIMPLEMENTED(cudaMemcpy3D)
POLYRING_UNIMPLEMENTED(cudaMemcpy3DAsync)
POLYRING_UNIMPLEMENTED(cudaMemcpy3DPeerAsync)
POLYRING_UNIMPLEMENTED(cudaMemcpyBatchAsync)
POLYRING_UNIMPLEMENTED(cudaMemcpyFromSymbol)
POLYRING_UNIMPLEMENTED(cudaMemcpyToSymbol)
POLYRING_UNIMPLEMENTED(cudaMemset2D)
POLYRING_UNIMPLEMENTED(cudaMemset2DAsync)
POLYRING_UNIMPLEMENTED(cudaOccupancyMaxActiveClusters)
POLYRING_UNIMPLEMENTED(cudaOccupancyMaxPotentialClusterSize)
POLYRING_UNIMPLEMENTED(cudaProfilerStart)
POLYRING_UNIMPLEMENTED(cudaProfilerStop)
POLYRING_UNIMPLEMENTED(cudaStreamAddCallback)
POLYRING_UNIMPLEMENTED(cudaStreamAttachMemAsync)
POLYRING_UNIMPLEMENTED(cudaStreamBeginCaptureToGraph)
POLYRING_UNIMPLEMENTED(cudaStreamCopyAttributes)
POLYRING_UNIMPLEMENTED(cudaStreamGetAttribute)
POLYRING_UNIMPLEMENTED(cudaStreamSetAttribute)
POLYRING_UNIMPLEMENTED(cudaStreamUpdateCaptureDependencies)
POLYRING_UNIMPLEMENTED(cudaUserObjectCreate)
