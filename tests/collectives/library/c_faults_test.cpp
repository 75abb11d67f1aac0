// The C library on what cannot be, and on ranks that fail: codes and sentences, never a crash or a hang.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>

#include "tests/collectives/library/ranks.hpp"

namespace polyring::testing {
namespace {

polyring_options options_of(double timeout, int check = 0) {
  polyring_options options = POLYRING_OPTIONS_DEFAULT;
  options.timeout = timeout;
  options.check = check;
  return options;
}

TEST(CLibraryFaults, NullPointersAndWrongValues) {
  with_ranks(1, nullptr, [](int, polyring_comm comm) {
    float value = 1;
    float* const none = nullptr;
    int number = 0;
    polyring_request request = POLYRING_REQUEST_NULL;
    constexpr auto kWrong = POLYRING_ERROR_ARGUMENT;
    const auto reduce = [&](const void* in, void* out, std::size_t count, int type = 0, int op = 0) {
      return polyring_allreduce(comm, in, out, count, static_cast<polyring_type>(type),
                                static_cast<polyring_op>(op));
    };
    EXPECT_FAILS(reduce(none, &value, 1), kWrong, "null pointer");
    EXPECT_FAILS(reduce(&value, none, 1), kWrong, "null pointer");
    EXPECT_OK(reduce(none, none, 0));
    EXPECT_FAILS(reduce(&value, &value, static_cast<std::size_t>(-1)), kWrong, "negative");
    EXPECT_FAILS(reduce(&value, &value, 1, 6), kWrong, "no type 6");
    EXPECT_FAILS(reduce(&value, &value, 1, 0, -1), kWrong, "no operation -1");
    EXPECT_FAILS(polyring_broadcast(comm, &value, 1, POLYRING_FLOAT32, 1), kWrong, "no root 1 of 1");
    EXPECT_FAILS(polyring_start_broadcast(comm, &value, 1, POLYRING_FLOAT32, -1, &request), kWrong,
                 "no root -1 of 1");
    EXPECT_FAILS(polyring_start_barrier(comm, nullptr), kWrong, "null pointer");
    void* memory = nullptr;
    EXPECT_FAILS(polyring_mem_alloc(comm, static_cast<std::size_t>(-1), &memory),
                 POLYRING_ERROR_NOT_AVAILABLE, "see whether the size is negative");
    EXPECT_FAILS(polyring_mem_alloc(comm, std::size_t{1} << 50, &memory), POLYRING_ERROR_NOT_AVAILABLE,
                 "use smaller sizes");
    EXPECT_EQ(memory, nullptr);
    EXPECT_FAILS(polyring_comm_rank(comm, nullptr), kWrong, "null pointer");
    EXPECT_FAILS(polyring_comm_transport(comm, nullptr), kWrong, "null pointer");
    EXPECT_FAILS(polyring_comm_planning(comm, nullptr), kWrong, "null pointer");
    EXPECT_FAILS(polyring_mem_alloc(comm, 1, nullptr), kWrong, "null pointer");
    EXPECT_FAILS(polyring_start_allreduce(comm, &value, &value, 1, POLYRING_FLOAT32, POLYRING_SUM, nullptr),
                 kWrong, "null pointer");
    EXPECT_FAILS(polyring_test(nullptr, &number), kWrong, "null pointer");
    EXPECT_FAILS(polyring_test(&request, nullptr), kWrong, "null pointer");
    EXPECT_FAILS(polyring_wait(nullptr), kWrong, "null pointer");
    EXPECT_FAILS(polyring_get_unique_id(nullptr), kWrong, "null pointer");
    // The communicator is as before.
    EXPECT_OK(reduce(&value, &value, 1));
    EXPECT_EQ(value, 1);
  });
}

TEST(CLibraryFaults, BuffersThatOverlap) {
  with_ranks(2, nullptr, [](int, polyring_comm comm) {
    std::vector<float> values(101, 1);
    EXPECT_FAILS(
        polyring_allreduce(comm, values.data(), values.data() + 1, 100, POLYRING_FLOAT32, POLYRING_SUM),
        POLYRING_ERROR_ARGUMENT, "the buffers overlap");
    EXPECT_OK(polyring_allreduce(comm, values.data(), values.data(), 100, POLYRING_FLOAT32, POLYRING_SUM));
    EXPECT_EQ(values[99], 2);
  });
}

TEST(CLibraryFaults, CommunicatorsThatCannotBe) {
  polyring_comm comm = POLYRING_COMM_NULL;
  polyring_unique_id id{};
  constexpr auto kWrong = POLYRING_ERROR_ARGUMENT;
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 0, 1, nullptr), kWrong, "no id of polyring_get_unique_id()");
  std::memset(id.bytes, 'x', sizeof(id.bytes));
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 0, 1, nullptr), kWrong, "no id of polyring_get_unique_id()");
  EXPECT_FAILS(polyring_comm_create(&comm, nullptr, 0, 1, nullptr), kWrong, "null pointer");
  ASSERT_OK(polyring_get_unique_id(&id));
  EXPECT_FAILS(polyring_comm_create(nullptr, &id, 0, 1, nullptr), kWrong, "null pointer");
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 2, 2, nullptr), kWrong, "no rank 2 of 2");
  EXPECT_FAILS(polyring_comm_create(&comm, &id, -1, 0, nullptr), kWrong, "no rank -1 of 0");
  polyring_options options = options_of(0);
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 0, 1, &options), kWrong, "time limit of 0 seconds");
  options = POLYRING_OPTIONS_DEFAULT;
  options.transport = static_cast<polyring_transport>(9);
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 0, 1, &options), kWrong, "no transport 9");
  options = {};
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 0, 1, &options), kWrong, "POLYRING_OPTIONS_DEFAULT");
  const polyring_group group{nullptr, nullptr};
  EXPECT_FAILS(polyring_comm_create_from_group(&comm, &group, 0, 1, nullptr), kWrong, "no allgather");
  const polyring_group failing{nullptr, [](void*, const void*, void*, size_t) { return 17; }};
  EXPECT_FAILS(polyring_comm_create_from_group(&comm, &failing, 0, 1, nullptr), POLYRING_ERROR_CONNECTION,
               "returned 17");
  const polyring_store store{nullptr, "x", nullptr, nullptr};
  EXPECT_FAILS(polyring_comm_create_from_store(&comm, &store, 0, 1, nullptr), kWrong, "no set or no get");
  EXPECT_EQ(comm, POLYRING_COMM_NULL);
}

TEST(CLibraryFaults, AddressesThatCannotBe) {
  polyring_unique_id id{};
  constexpr auto kWrong = POLYRING_ERROR_ARGUMENT;
  EXPECT_FAILS(polyring_unique_id_at(&id, nullptr, nullptr), kWrong, "null pointer");
  EXPECT_FAILS(polyring_unique_id_at(&id, "node1", nullptr), kWrong, "node1");
  EXPECT_FAILS(polyring_unique_id_at(&id, "node1:70000", nullptr), kWrong, "70000");
  EXPECT_FAILS(polyring_unique_id_at(&id, "node1:4711", "two words"), kWrong, "without blanks");
  EXPECT_FAILS(polyring_unique_id_at(&id, (std::string(120, 'n') + ":1").c_str(), nullptr), kWrong,
               "too long for an id");
}

TEST(CLibraryFaults, WhatWasFreedIsTold) {
  polyring_comm freed = POLYRING_COMM_NULL;
  with_ranks(1, nullptr, [&](int, polyring_comm comm) { freed = comm; });
  float value = 1;
  int rank = 0;
  for (const polyring_comm comm : {freed, POLYRING_COMM_NULL, reinterpret_cast<polyring_comm>(&value)}) {
    EXPECT_FAILS(polyring_allreduce(comm, &value, &value, 1, POLYRING_FLOAT32, POLYRING_SUM),
                 POLYRING_ERROR_ARGUMENT, "no such communicator");
    EXPECT_FAILS(polyring_comm_rank(comm, &rank), POLYRING_ERROR_ARGUMENT, "no such communicator");
    EXPECT_FAILS(polyring_comm_free(comm), POLYRING_ERROR_ARGUMENT, "no such communicator");
  }
}

/// Rank 1 never takes part; rank 0's request outlives its communicator.
TEST(CLibraryFaults, FreedWhileAnOperationIsUnderWay) {
  const polyring_options options = options_of(0.5);
  polyring_unique_id id{};
  ASSERT_OK(polyring_get_unique_id(&id));
  each_rank(2, [&](int rank) {
    polyring_comm comm = POLYRING_COMM_NULL;
    ASSERT_OK(polyring_comm_create(&comm, &id, rank, 2, &options));
    if (rank == 1) {
      EXPECT_NE(polyring_comm_free(comm), POLYRING_SUCCESS) << "rank 0 does not need it any more";
      EXPECT_FAILS(polyring_comm_free(comm), POLYRING_ERROR_ARGUMENT, "no such communicator");
      return;
    }
    std::vector<float> values(1000, 1);
    polyring_request request = POLYRING_REQUEST_NULL;
    ASSERT_OK(polyring_start_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_FLOAT32,
                                       POLYRING_SUM, &request));
    ASSERT_OK(polyring_comm_free(comm));
    EXPECT_FAILS(polyring_wait(&request), POLYRING_ERROR_ARGUMENT, "was freed");
    EXPECT_EQ(request, POLYRING_REQUEST_NULL);
  });
}

/// Memory stays until the communicator is freed, for which no rank waits.
TEST(CLibraryFaults, AbortedWhileAnOperationIsUnderWay) {
  const polyring_options options = options_of(20);
  polyring_unique_id id{};
  ASSERT_OK(polyring_get_unique_id(&id));
  each_rank(2, [&](int rank) {
    polyring_comm comm = POLYRING_COMM_NULL;
    ASSERT_OK(polyring_comm_create(&comm, &id, rank, 2, &options));
    void* memory = nullptr;
    ASSERT_OK(polyring_mem_alloc(comm, 4000, &memory));
    auto* const values = static_cast<float*>(memory);
    polyring_request request = POLYRING_REQUEST_NULL;
    if (rank == 0) {
      ASSERT_OK(
          polyring_start_allreduce(comm, values, values, 1000, POLYRING_FLOAT32, POLYRING_SUM, &request));
    }
    ASSERT_OK(polyring_comm_abort(comm));
    if (rank == 0) {
      EXPECT_FAILS(polyring_wait(&request), POLYRING_ERROR_CONNECTION, "aborted");
    }
    EXPECT_FAILS(polyring_barrier(comm), POLYRING_ERROR_CONNECTION, "aborted");
    values[999] = 1;
    ASSERT_OK(polyring_comm_free(comm));
    EXPECT_FAILS(polyring_comm_abort(comm), POLYRING_ERROR_ARGUMENT, "no such communicator");
  });
}

TEST(CLibraryFaults, DifferentCallsAreTold) {
  const polyring_options options = options_of(20, 1);
  with_ranks(3, &options, [](int rank, polyring_comm comm) {
    std::vector<float> values(100, 1);
    const std::size_t count = rank == 2 ? 99 : 100;
    EXPECT_FAILS(
        polyring_allreduce(comm, values.data(), values.data(), count, POLYRING_FLOAT32, POLYRING_SUM),
        POLYRING_ERROR_MISMATCH, "rank 2 calls allreduce of 99 float by sum");
    const polyring_op op = rank == 1 ? POLYRING_MAX : POLYRING_SUM;
    EXPECT_FAILS(polyring_allreduce(comm, values.data(), values.data(), 100, POLYRING_FLOAT32, op),
                 POLYRING_ERROR_MISMATCH, "rank 1 calls allreduce of 100 float by max");
    EXPECT_FAILS(polyring_broadcast(comm, values.data(), 100, POLYRING_FLOAT32, rank == 0 ? 1 : 0),
                 POLYRING_ERROR_MISMATCH,
                 "rank 0 calls a broadcast of 100 float from rank 1, and rank 1 calls");
    ASSERT_OK(polyring_allreduce(comm, values.data(), values.data(), 100, POLYRING_FLOAT32, POLYRING_SUM));
    EXPECT_EQ(values, std::vector<float>(100, 3));
  });
}

TEST(CLibraryFaults, NobodyAnswers) {
  polyring_unique_id id{};
  ASSERT_OK(polyring_get_unique_id(&id));
  polyring_comm comm = POLYRING_COMM_NULL;
  const polyring_options options = options_of(0.3);
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 0, 3, &options), POLYRING_ERROR_TIMEOUT, "rank 1, rank 2");
  // Nobody listens any more.
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 1, 3, &options), POLYRING_ERROR_TIMEOUT, "to reach rank 0");
  ThreadStore store;
  const polyring_store own = store.of_prefix("p");
  EXPECT_FAILS(polyring_comm_create_from_store(&comm, &own, 1, 2, &options), POLYRING_ERROR_TIMEOUT,
               "rank 0's key p/0/0");
  EXPECT_EQ(comm, POLYRING_COMM_NULL);
}

/// Listens where a rank 0 should, and says the same to all who come.
class Stranger {
 public:
  explicit Stranger(std::string answer) : answer_(std::move(answer)) {
    sockaddr_in own{};
    socklen_t size = sizeof(own);
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&own), size), 0);
    EXPECT_EQ(listen(socket_, 8), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size), 0);
    port_ = ntohs(own.sin_port);
    answering_ = std::jthread([this] {
      for (int one = accept(socket_, nullptr, nullptr); one >= 0; one = accept(socket_, nullptr, nullptr)) {
        connections_.push_back(one);
        if (!answer_.empty()) send(one, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      }
    });
  }
  ~Stranger() {
    shutdown(socket_, SHUT_RDWR);
    answering_.join();
    for (const int one : connections_) close(one);
    close(socket_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  std::string answer_;
  int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  int port_ = 0;
  std::vector<int> connections_;
  std::jthread answering_;
};

/// Rank 0 of an id at this address does not answer as it should: the others give up in time.
void join_in_vain(const std::string& address, polyring_result code, const char* sentence) {
  polyring_unique_id id{};
  ASSERT_OK(polyring_unique_id_at(&id, address.c_str(), "secret"));
  const polyring_options options = options_of(0.3);
  polyring_comm comm = POLYRING_COMM_NULL;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FAILS(polyring_comm_create(&comm, &id, 1, 2, &options), code, sentence);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << address;
  EXPECT_EQ(comm, POLYRING_COMM_NULL);
}

TEST(CLibraryFaults, AnIdThatNobodyAnswers) {
  std::string free_port;
  {
    const Stranger silent("");
    join_in_vain(silent.address(), POLYRING_ERROR_TIMEOUT, "for rank 0");
    free_port = silent.address();
  }
  join_in_vain(free_port, POLYRING_ERROR_TIMEOUT, "to reach rank 0");
  const Stranger server("HTTP/1.1 400 Bad Request\r\n\r\n");
  join_in_vain(server.address(), POLYRING_ERROR_ARGUMENT, "not rank 0 of this group");
  const Stranger boaster(std::string("\1\1") +
                         std::string(1000, '\x7f'));  // of more bytes than there is memory
  join_in_vain(boaster.address(), POLYRING_ERROR_ARGUMENT, "not rank 0 of this group");
}

/// Rank 1 comes too late, when rank 0 has gone.
TEST(CLibraryFaults, ARankThatDoesNotCome) {
  const polyring_options options = options_of(0.5);
  polyring_unique_id id{};
  ASSERT_OK(polyring_get_unique_id(&id));
  each_rank(2, [&](int rank) {
    polyring_comm comm = POLYRING_COMM_NULL;
    ASSERT_OK(polyring_comm_create(&comm, &id, rank, 2, &options));
    std::vector<float> values(100'000, 1);
    const auto reduce = [&] {
      return polyring_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_FLOAT32,
                                POLYRING_SUM);
    };
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      EXPECT_NE(reduce(), POLYRING_SUCCESS);
    } else {
      EXPECT_FAILS(reduce(), POLYRING_ERROR_TIMEOUT, "rank 1");
      EXPECT_FAILS(reduce(), POLYRING_ERROR_TIMEOUT, "rank 1");  // it is broken
    }
    EXPECT_OK(polyring_comm_free(comm));
  });
}

/// What a process has found; 0 when all was as it should be.
enum Found { as_expected = 0, no_communicator = 1, no_failure = 2, too_late = 3, wrong_code = 4 };

/// Rank 1 is killed between two of the others' allreduces.
int survive(const polyring_unique_id& id, int rank, const polyring_options& options) {
  polyring_comm comm = POLYRING_COMM_NULL;
  if (polyring_comm_create(&comm, &id, rank, 3, &options) != POLYRING_SUCCESS) return no_communicator;
  std::vector<float> values(1'000'000, 1);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1'000'000; ++i) {
    if (rank == 1 && i == 3) std::raise(SIGKILL);
    const polyring_result result =
        polyring_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_FLOAT32, POLYRING_AVG);
    if (result == POLYRING_SUCCESS) continue;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (taken.count() > options.timeout / 2) return too_late;
    const bool right = result == POLYRING_ERROR_TIMEOUT || result == POLYRING_ERROR_CONNECTION ||
                       result == POLYRING_ERROR_NOT_AVAILABLE;  // the memory of the one that has ended
    return right && polyring_comm_free(comm) == POLYRING_SUCCESS ? as_expected : wrong_code;
  }
  return no_failure;
}

TEST(CLibraryFaults, ARankThatIsKilled) {
  for (const polyring_transport transport : {POLYRING_TRANSPORT_AUTOMATIC, POLYRING_TRANSPORT_NETWORK}) {
    polyring_options options = options_of(60);  // long before that somebody looks whether it lives
    options.transport = transport;
    options.interface_name = "lo";
    polyring_unique_id id{};
    ASSERT_OK(polyring_get_unique_id(&id));
    std::vector<pid_t> children;
    for (int rank = 0; rank < 3; ++rank) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) _exit(survive(id, rank, options));
      children.push_back(child);
    }
    for (int rank = 0; rank < 3; ++rank) {
      int status = 0;
      ASSERT_EQ(waitpid(children[static_cast<std::size_t>(rank)], &status, 0),
                children[static_cast<std::size_t>(rank)]);
      if (rank == 1) {
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      } else {
        EXPECT_TRUE(WIFEXITED(status)) << "rank " << rank << " was ended by signal " << WTERMSIG(status);
        EXPECT_EQ(WEXITSTATUS(status), as_expected) << "rank " << rank << ", transport " << transport;
      }
    }
  }
}

TEST(CLibraryFaults, NamesOfResults) {
  EXPECT_STREQ(polyring_error_name(POLYRING_ERROR_TIMEOUT), "POLYRING_ERROR_TIMEOUT");
  EXPECT_STREQ(polyring_error_name(static_cast<polyring_result>(99)), "no polyring_result");
  EXPECT_NE(std::string(polyring_version()), "");
}

}  // namespace
}  // namespace polyring::testing
