#include "tests/software_gpu/errors.hpp"

#include "tests/software_gpu/process.hpp"

namespace polyring::software_gpu {
namespace {

struct Known {
  cudaError_t code;
  const char* name;
  const char* meaning;
};

#define ROW(code, meaning) \
  { code, #code, meaning }
constexpr Known kKnown[] = {
    ROW(cudaSuccess, "no error"),
    ROW(cudaErrorInvalidValue, "invalid argument"),
    ROW(cudaErrorMemoryAllocation, "out of memory"),
    ROW(cudaErrorInitializationError, "initialization error"),
    ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ROW(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ROW(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    ROW(cudaErrorDevicesUnavailable, "all CUDA-capable devices are busy or unavailable"),
    ROW(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ROW(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ROW(cudaErrorInvalidDevice, "invalid device ordinal"),
    ROW(cudaErrorDeviceUninitialized, "invalid device context"),
    ROW(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    ROW(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    ROW(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ROW(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    ROW(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    ROW(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ROW(cudaErrorNotReady, "device not ready"),
    ROW(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ROW(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ROW(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ROW(cudaErrorHostMemoryAlreadyRegistered, "part or all of the memory range is already registered"),
    ROW(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    ROW(cudaErrorLaunchFailure, "unspecified launch failure"),
    ROW(cudaErrorNotPermitted, "operation not permitted"),
    ROW(cudaErrorNotSupported, "operation not supported"),
    ROW(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ROW(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    ROW(cudaErrorStreamCaptureMerge, "operation would merge two captures"),
    ROW(cudaErrorStreamCaptureUnmatched, "capture was not begun in this stream"),
    ROW(cudaErrorStreamCaptureUnjoined, "capture has work that is not joined to its first stream"),
    ROW(cudaErrorStreamCaptureIsolation, "capture would depend on work outside of it"),
    ROW(cudaErrorStreamCaptureImplicit, "operation would use the default stream of a context that captures"),
    ROW(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capture"),
    ROW(cudaErrorStreamCaptureWrongThread, "capture was begun by another thread"),
    ROW(cudaErrorUnknown, "unknown error"),
};
#undef ROW

const Known* known(cudaError_t code) {
  for (const Known& row : kKnown)
    if (row.code == code) return &row;
  return nullptr;
}

thread_local cudaError_t last_error = cudaSuccess;

/// The error of the current device, which no call clears.
cudaError_t lasting_error() {
  const Process* process = Process::if_begun();
  if (process == nullptr || !process->has_devices()) return cudaSuccess;
  return process->current().error();
}

}  // namespace

std::optional<cudaError_t> error_of_name(std::string_view name) {
  for (const Known& row : kKnown)
    if (row.name == name) return row.code;
  return std::nullopt;
}

cudaError_t remember(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

void check_may_call(Needs needs) {
  require(!in_host_function(), cudaErrorNotPermitted);
  if (needs == Needs::nothing) return;
  const Process& process = Process::get();
  require(!process.is_forked(), cudaErrorInitializationError);
  require(process.plan.driver_version >= CUDART_VERSION / 1000 * 1000, cudaErrorInsufficientDriver);
  require(process.has_devices(), cudaErrorNoDevice);
  if (needs == Needs::working) require(process.current().error() == cudaSuccess, process.current().error());
}

}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaGetLastError(void) {
  const cudaError_t found = last_error;
  last_error = cudaSuccess;
  const cudaError_t lasting = lasting_error();
  return lasting != cudaSuccess ? lasting : found;
}

cudaError_t cudaPeekAtLastError(void) {
  const cudaError_t lasting = lasting_error();
  return lasting != cudaSuccess ? lasting : last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  const Known* row = known(error);
  return row != nullptr ? row->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const Known* row = known(error);
  return row != nullptr ? row->meaning : "unrecognized error code";
}
}
