// A program of DDL's, in the manner of its public users; with the word `mpi`, one that has MPI's ends itself.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ddl.hpp>
#include <ddl_mpi.hpp>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kCount = 10'007;

int rank = -1;
int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "rank %d: %s; the last failure: %s\n", rank, what, ddl_error_text());
}

void expect_refused(DDL_Result result, const char* said) {
  expect(result == DDL_ERROR_ARGUMENT, said);
  expect(std::strstr(ddl_error_text(), said) != nullptr, said);
}

void fill(float* data) {
  for (std::size_t i = 0; i < kCount; ++i) data[i] = static_cast<float>(i % 100) + static_cast<float>(rank);
}

bool is_sum(const float* data, int size) {
  const float ranks = static_cast<float>(size * (size - 1) / 2);
  for (std::size_t i = 0; i < kCount; ++i)
    if (data[i] != static_cast<float>(i % 100) * static_cast<float>(size) + ranks) return false;
  return true;
}

float* allocate() {
  void* memory = nullptr;
  const std::size_t count = ddl_malloc(&memory, 64, kCount * sizeof(float)) / sizeof(float);
  expect(count == kCount, "there is no memory");
  return static_cast<float*>(memory);
}

/// Of a call after the first.
void expect_later_options(const char* options, int size) {
  expect(ddl_init(options) == DDL_SUCCESS, "ddl_init() once more");
  expect(ddl_init(nullptr) == DDL_SUCCESS, "ddl_init() without options");
  expect_refused(ddl_init("-foo"), "unknown DDL option '-foo'");
  expect_refused(ddl_init("-mode p:7x9"), "the options ask for the grid 7x9, and the ranks have");
  const std::string flat = "-mode p:" + std::to_string(size) + "x1";
  expect_refused(ddl_init(flat.c_str()), "the options ask for the grid");
}

void use(const char* options) {
  expect_refused(ddl_rank(&rank), "MPI is not running");
  expect(ddl_allreduce(&rank, 1) == DDL_ERROR_ARGUMENT, "an allreduce before ddl_init()");
  expect_refused(ddl_init("-mode p:7x9"), "make 63 ranks");
  expect_refused(ddl_init("-foo"), "unknown DDL option '-foo'");
  const std::string said = options == nullptr ? "" : options;
  setenv("DDL_OPTIONS", "-bar", 1);
  expect_refused(ddl_init(nullptr), "unknown DDL option '-bar'");
  setenv("DDL_OPTIONS", said.c_str(), 1);
  options = std::getenv("DDL_OPTIONS");
  expect(ddl_init(options) == DDL_SUCCESS, "ddl_init()");
  int size = 0;
  expect(ddl_rank(&rank) == DDL_SUCCESS && ddl_size(&size) == DDL_SUCCESS, "ddl_rank() and ddl_size()");
  float* const gradients = allocate();
  fill(gradients);
  expect(ddl_allreduce(gradients, kCount) == DDL_SUCCESS, "ddl_allreduce()");
  expect(is_sum(gradients, size), "the sums");
  std::vector<float> own(kCount);  // memory that is not DDL's
  fill(own.data());
  expect(ddl_allreduce(own.data(), kCount, DDL_TYPE_FLOAT, DDL_OP_SUM) == DDL_SUCCESS,
         "ddl_allreduce() of own memory");
  expect(is_sum(own.data(), size), "the sums in own memory");
  std::vector<std::uint16_t> halves(777, 0x3c00);  // 1
  expect(ddl_allreduce(halves.data(), halves.size(), DDL_TYPE_HALF) == DDL_SUCCESS,
         "ddl_allreduce() of halves");
  const std::uint16_t sums[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
  for (const std::uint16_t half : halves) expect(half == sums[size], "the sums of halves");
  expect(ddl_free(gradients) == DDL_SUCCESS, "ddl_free()");
  expect_refused(ddl_free(gradients), "not ddl_malloc()'s, or was freed");
  expect_refused(ddl_free(own.data()), "not ddl_malloc()'s");
  expect_later_options(options, size);
  expect_refused(ddl_allreduce(own.data(), 1, static_cast<DDL_Type>(7)), "no type 7");
  expect_refused(ddl_allreduce(nullptr, 1), "null pointer");
  void* memory = nullptr;
  expect(ddl_malloc(nullptr, 64, 1) == 0 && ddl_malloc(&memory, 3, 1) == 0, "memory that cannot be");
  expect(ddl_finalize() == DDL_SUCCESS, "ddl_finalize()");
  int finalized = 0;
  MPI_Finalized(&finalized);
  expect(finalized != 0, "MPI is not finalized");
  expect_refused(ddl_init(options), "MPI is finalized");
}

void use_with_mpi(const char* options) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  int size = 0;
  expect(ddl_rank(&rank) == DDL_SUCCESS && ddl_size(&size) == DDL_SUCCESS, "ddl_rank() and ddl_size()");
  float* const gradients = allocate();
  fill(gradients);
  expect(ddl_allreduce_mpi(options, gradients, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == DDL_SUCCESS,
         "ddl_allreduce_mpi()");
  expect(is_sum(gradients, size), "the sums");
  // The even ranks, and the odd ones.
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  float ones[100];
  for (float& one : ones) one = 1;
  expect(ddl_allreduce_mpi("", ones, 100, MPI_FLOAT, MPI_SUM, half) == DDL_SUCCESS,
         "ddl_allreduce_mpi() of some ranks");
  expect_refused(ddl_allreduce_mpi("-mode p:7x9", ones, 100, MPI_FLOAT, MPI_SUM, half),
                 "have none of their own");
  const int others = (size + 1 - rank % 2) / 2;
  for (const float sum : ones) expect(sum == static_cast<float>(others), "the sums of some ranks");
  MPI_Comm_free(&half);
  expect_refused(ddl_allreduce_mpi("", ones, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_FLOAT");
  expect_refused(ddl_allreduce_mpi("", ones, 100, MPI_FLOAT, MPI_SUM, MPI_COMM_NULL), "MPI_COMM_NULL");
  MPI_Finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const char* const options = std::getenv("DDL_OPTIONS");
  const bool with_mpi = argc > 1 && std::strcmp(argv[1], "mpi") == 0;
  with_mpi ? use_with_mpi(options) : use(options);
  return failures == 0 ? 0 : 1;
}
