#include "collectives/library/mpi/failure.hpp"

#include <cstdio>
#include <map>
#include <mutex>

namespace polyring::interposer {
namespace {

/// MPI_ERR_OTHER where there is none.
int error_class() {
  static const int own = [] {
    int made = MPI_ERR_OTHER;
    if (PMPI_Add_error_class(&made) != MPI_SUCCESS) return MPI_ERR_OTHER;
    PMPI_Add_error_string(made, "an error of Polyring, whose library was preloaded");
    return made;
  }();
  return own;
}

int new_error_code(const std::string& sentence) {
  int code = MPI_ERR_OTHER;
  if (error_class() == MPI_ERR_OTHER || PMPI_Add_error_code(error_class(), &code) != MPI_SUCCESS)
    return MPI_ERR_OTHER;
  const std::string text = "polyring: " + sentence;
  PMPI_Add_error_string(code, text.substr(0, MPI_MAX_ERROR_STRING - 1).c_str());
  return code;
}

struct Codes {
  std::mutex mutex;
  std::map<std::string, int> of_sentence;
};

}  // namespace

int error_code_of(const std::string& sentence) {
  static auto* const codes = new Codes;  // other libraries' destructors may still use it
  const std::lock_guard lock(codes->mutex);
  const auto [known, is_new] = codes->of_sentence.try_emplace(sentence, MPI_ERR_OTHER);
  if (is_new) known->second = new_error_code(sentence);
  return known->second;
}

void say(std::string_view sentence, std::string_view more) noexcept {
  std::fprintf(stderr, "polyring: %.*s%s%.*s\n", static_cast<int>(sentence.size()), sentence.data(),
               more.empty() ? "" : " ", static_cast<int>(more.size()), more.data());
}

int raise_error(MPI_Comm comm, int code) {
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace polyring::interposer
