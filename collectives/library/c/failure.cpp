#include "collectives/library/c/failure.hpp"

#include <string>

namespace polyring::library {
namespace {

thread_local std::string last_sentence;

void keep(const char* sentence) noexcept {
  try {
    last_sentence = sentence;
  } catch (const std::bad_alloc&) {
    last_sentence.clear();
  }
}

polyring_result result_of(ExitCode code) {
  switch (code) {
    case ExitCode::cuda:
      return POLYRING_ERROR_CUDA;
    case ExitCode::nccl:
      return POLYRING_ERROR_NCCL;
    case ExitCode::timeout:
      return POLYRING_ERROR_TIMEOUT;
    case ExitCode::not_available:
      return POLYRING_ERROR_NOT_AVAILABLE;
    case ExitCode::usage:
      return POLYRING_ERROR_ARGUMENT;
    case ExitCode::wrong_result:
      return POLYRING_ERROR_MISMATCH;
    case ExitCode::mpi:
      return POLYRING_ERROR_CONNECTION;
    default:
      return POLYRING_ERROR_INTERNAL;
  }
}

}  // namespace

polyring_result failure_of_current_exception() noexcept {
  try {
    throw;
  } catch (const MismatchError& error) {
    keep(error.what());
    return POLYRING_ERROR_MISMATCH;
  } catch (const Error& error) {
    keep(error.what());
    return result_of(error.code());
  } catch (const std::bad_alloc&) {
    keep("there is no memory left in this process");
  } catch (const std::exception& error) {
    keep(error.what());
  } catch (...) {
    keep("an exception of an unknown kind");
  }
  return POLYRING_ERROR_INTERNAL;
}

const char* error_text() noexcept { return last_sentence.c_str(); }

}  // namespace polyring::library
