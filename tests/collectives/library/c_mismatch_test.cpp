// Ranks that do different things: none may crash, hang or be told that all is well.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>

#include "tests/collectives/library/ranks.hpp"

namespace polyring::testing {
namespace {

constexpr std::size_t kCount = 8;

polyring_options options_of(double timeout, int check, polyring_transport transport) {
  polyring_options options = POLYRING_OPTIONS_DEFAULT;
  options.timeout = timeout;
  options.check = check;
  options.transport = transport;
  options.interface_name = transport == POLYRING_TRANSPORT_NETWORK ? "lo" : nullptr;
  return options;
}

struct Call {
  const char* name;
  std::function<polyring_result(polyring_comm)> call;
};

const std::vector<Call>& calls() {
  static const std::vector<Call> all{
      {"allreduce",
       [](polyring_comm comm) {
         std::vector<float> values(kCount, 1);
         return polyring_allreduce(comm, values.data(), values.data(), kCount, POLYRING_FLOAT32,
                                   POLYRING_SUM);
       }},
      {"started allreduce",
       [](polyring_comm comm) {
         std::vector<float> values(3 * kCount, 1);
         polyring_request request = POLYRING_REQUEST_NULL;
         const polyring_result result = polyring_start_allreduce(
             comm, values.data(), values.data(), values.size(), POLYRING_FLOAT32, POLYRING_SUM, &request);
         return result == POLYRING_SUCCESS ? polyring_wait(&request) : result;
       }},
      {"reduce-scatter",
       [](polyring_comm comm) {
         std::vector<double> values(2 * kCount, 1);
         std::vector<double> block(kCount);
         return polyring_reduce_scatter(comm, values.data(), block.data(), kCount, POLYRING_FLOAT64,
                                        POLYRING_MAX);
       }},
      {"allgather",
       [](polyring_comm comm) {
         std::vector<float> block(kCount, 1);
         std::vector<float> values(2 * kCount);
         return polyring_allgather(comm, block.data(), values.data(), kCount, POLYRING_FLOAT32);
       }},
      {"broadcast",
       [](polyring_comm comm) {
         std::vector<double> values(1000, 1);
         return polyring_broadcast(comm, values.data(), values.size(), POLYRING_FLOAT64, 1);
       }},
      {"barrier", [](polyring_comm comm) { return polyring_barrier(comm); }},
      {"nothing but its end", [](polyring_comm) { return POLYRING_SUCCESS; }}};
  return all;
}

bool is_end(const Call& call) { return &call == &calls().back(); }

/// Each of two ranks does one of the calls, and another that is the same.
void do_different_things(const polyring_options& options, const Call& first, const Call& second) {
  polyring_unique_id id{};
  ASSERT_OK(polyring_get_unique_id(&id));
  std::atomic<int> told = 0;
  each_rank(2, [&](int rank) {
    polyring_comm comm = POLYRING_COMM_NULL;
    ASSERT_OK(polyring_comm_create(&comm, &id, rank, 2, &options));
    const polyring_result result = (rank == 0 ? first : second).call(comm);
    const polyring_result next = result == POLYRING_SUCCESS ? POLYRING_SUCCESS : polyring_barrier(comm);
    const polyring_result end = polyring_comm_free(comm);
    for (const polyring_result each : {result, next, end}) {
      EXPECT_TRUE(each == POLYRING_SUCCESS || each == POLYRING_ERROR_MISMATCH ||
                  each == POLYRING_ERROR_CONNECTION || each == POLYRING_ERROR_TIMEOUT)
          << each << ": " << polyring_error_text();
      if (each == POLYRING_ERROR_MISMATCH) ++told;
    }
    if (options.check != 0 && !is_end(first) && !is_end(second)) {
      EXPECT_EQ(result, POLYRING_ERROR_MISMATCH) << polyring_error_text();
      EXPECT_EQ(next, POLYRING_SUCCESS) << "nothing was done: " << polyring_error_text();
    }
  });
  EXPECT_GT(told, 0);
}

TEST(CLibraryMismatch, IsFoundBeforeAnythingIsDone) {
  for (const Call& first : calls()) {
    for (const Call& second : calls()) {
      if (first.name == second.name) continue;
      if (is_end(second) || (is_end(first) && &second != &calls().front())) continue;  // each waits a second
      SCOPED_TRACE(std::string(first.name) + " and " + second.name);
      do_different_things(options_of(10, 1, POLYRING_TRANSPORT_SHARED), first, second);
    }
  }
}

/// Where sizes differ.
TEST(CLibraryMismatch, IsAnErrorWithoutComparing) {
  for (const polyring_transport transport : {POLYRING_TRANSPORT_SHARED, POLYRING_TRANSPORT_NETWORK}) {
    for (const char* name : {"started allreduce", "allgather", "barrier", "nothing but its end"}) {
      SCOPED_TRACE(name);
      const auto other = std::find_if(calls().begin(), calls().end(),
                                      [&](const Call& call) { return call.name == std::string_view(name); });
      do_different_things(options_of(5, 0, transport), calls().front(), *other);
    }
  }
}

TEST(CLibraryMismatch, OfOptionsIsFoundAtCreation) {
  const auto differ = [](const std::function<void(polyring_options&)>& change, const char* words) {
    for (const Meeting meeting : {Meeting::unique_id, Meeting::group}) {
      polyring_unique_id id{};
      ASSERT_OK(polyring_get_unique_id(&id));
      ThreadGroup group(2);
      each_rank(2, [&](int rank) {
        polyring_options options = options_of(10, 0, POLYRING_TRANSPORT_AUTOMATIC);
        if (rank == 1) change(options);
        polyring_comm comm = POLYRING_COMM_NULL;
        const polyring_group own = group.of_rank(rank);
        const polyring_result result = meeting == Meeting::unique_id
                                           ? polyring_comm_create(&comm, &id, rank, 2, &options)
                                           : polyring_comm_create_from_group(&comm, &own, rank, 2, &options);
        EXPECT_EQ(result, POLYRING_ERROR_ARGUMENT);
        EXPECT_NE(std::string(polyring_error_text()).find(words), std::string::npos) << polyring_error_text();
      });
    }
  };
  differ([](polyring_options& options) { options.check = 1; }, "check 0, and rank 1 those with check 1");
  differ([](polyring_options& options) { options.algorithm = "ring"; },
         "the algorithm multi-ring, and rank 1 those with the algorithm ring");
  differ([](polyring_options& options) { options.transport = POLYRING_TRANSPORT_NETWORK; },
         "the transport 0, and rank 1 those with the transport 2");
}

TEST(CLibraryMismatch, AnAlgorithmThatNobodyKnowsIsRefusedAtCreation) {
  polyring_options options = POLYRING_OPTIONS_DEFAULT;
  options.algorithm = "bogus";
  polyring_unique_id id{};
  ASSERT_OK(polyring_get_unique_id(&id));
  polyring_comm comm = POLYRING_COMM_NULL;
  EXPECT_EQ(polyring_comm_create(&comm, &id, 0, 1, &options), POLYRING_ERROR_ARGUMENT);
  EXPECT_NE(std::string(polyring_error_text()).find("'bogus'"), std::string::npos) << polyring_error_text();
}

/// A watchdog's work. The other rank is told, too, long before its time limit.
TEST(CLibraryMismatch, AnAbortEndsTheCallOfAnotherThread) {
  const polyring_options options = options_of(600, 0, POLYRING_TRANSPORT_SHARED);
  polyring_unique_id id{};
  ASSERT_OK(polyring_get_unique_id(&id));
  std::atomic<bool> aborted = false;
  each_rank(2, [&](int rank) {
    polyring_comm comm = POLYRING_COMM_NULL;
    ASSERT_OK(polyring_comm_create(&comm, &id, rank, 2, &options));
    if (rank == 0) {
      std::thread watchdog([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ASSERT_OK(polyring_comm_abort(comm));
        aborted = true;
      });
      EXPECT_EQ(polyring_barrier(comm), POLYRING_ERROR_CONNECTION);
      EXPECT_NE(std::string(polyring_error_text()).find("aborted"), std::string::npos);
      watchdog.join();
    } else {
      while (!aborted) std::this_thread::yield();
      const polyring_result first = polyring_barrier(comm);  // rank 0's word may have come before
      EXPECT_TRUE(first == POLYRING_SUCCESS || first == POLYRING_ERROR_CONNECTION) << first;
      EXPECT_EQ(polyring_barrier(comm), POLYRING_ERROR_CONNECTION);
      EXPECT_NE(std::string(polyring_error_text()).find("rank 0 has given up"), std::string::npos)
          << polyring_error_text();
    }
    polyring_comm_free(comm);
  });
}

}  // namespace
}  // namespace polyring::testing
