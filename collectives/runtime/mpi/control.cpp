#include "collectives/runtime/mpi/control.hpp"

#include <array>
#include <cstring>

namespace polyring {
namespace {

constexpr std::size_t kLongestName = 256;
constexpr std::size_t kLongestDescription = 4096;
constexpr std::size_t kLargestNumber = sizeof(std::int64_t);

std::vector<MpiControl::Choice> choices_of(MPI_T_enum type) {
  std::vector<MpiControl::Choice> choices;
  if (type == MPI_T_ENUM_NULL) return choices;
  std::array<char, kLongestName> name{};
  int length = static_cast<int>(name.size());
  int number = 0;
  check_mpi(MPI_T_enum_get_info(type, &number, name.data(), &length), "MPI_T_enum_get_info");
  for (int i = 0; i < number; ++i) {
    int value = 0;
    length = static_cast<int>(name.size());
    check_mpi(MPI_T_enum_get_item(type, i, &value, name.data(), &length), "MPI_T_enum_get_item");
    choices.push_back({value, name.data()});
  }
  return choices;
}

}  // namespace

MpiTools::MpiTools() {
  int provided = 0;
  check_mpi(MPI_T_init_thread(MPI_THREAD_FUNNELED, &provided), "MPI_T_init_thread");
}

MpiTools::~MpiTools() { MPI_T_finalize(); }

void MpiControl::Free::operator()(MPI_T_cvar_handle* handle) const {
  MPI_T_cvar_handle_free(handle);
  delete handle;
}

std::optional<MpiControl> MpiControl::find(const char* name) {
  int index = 0;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return std::nullopt;
  std::array<char, kLongestName> own_name{};
  std::array<char, kLongestDescription> description{};
  int name_length = static_cast<int>(own_name.size());
  int description_length = static_cast<int>(description.size());
  int verbosity = 0;
  int binding = 0;
  int scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum enumerators = MPI_T_ENUM_NULL;
  check_mpi(MPI_T_cvar_get_info(index, own_name.data(), &name_length, &verbosity, &type, &enumerators,
                                description.data(), &description_length, &binding, &scope),
            "MPI_T_cvar_get_info");
  MpiControl control;
  check_mpi(MPI_Type_size(type, &control.size_), "MPI_Type_size");
  int count = 0;
  auto handle = std::make_unique<MPI_T_cvar_handle>();
  check_mpi(MPI_T_cvar_handle_alloc(index, nullptr, handle.get(), &count), "MPI_T_cvar_handle_alloc");
  control.handle_.reset(handle.release());
  if (count != 1 || control.size_ > static_cast<int>(kLargestNumber)) return std::nullopt;
  control.choices_ = choices_of(enumerators);
  control.description_ = description.data();
  return control;
}

int MpiControl::read() const {
  std::array<std::byte, kLargestNumber> bytes{};
  check_mpi(MPI_T_cvar_read(*handle_, bytes.data()), "MPI_T_cvar_read");
  if (size_ == 1) return static_cast<int>(bytes[0]);
  int value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

void MpiControl::write(int value) const {
  // MPI reads as many bytes as the variable has.
  std::array<std::byte, kLargestNumber> bytes{};
  const std::int64_t number = value;
  std::memcpy(bytes.data(), &number, sizeof number);
  check_mpi(MPI_T_cvar_write(*handle_, bytes.data()), "MPI_T_cvar_write");
}

}  // namespace polyring
