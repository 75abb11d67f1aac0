// Ranks of the C library as threads, each with a communicator of its own.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collectives/library/c/polyring.h"

namespace polyring::testing {

#define EXPECT_OK(call) EXPECT_EQ(call, POLYRING_SUCCESS) << polyring_error_text()
#define ASSERT_OK(call) ASSERT_EQ(call, POLYRING_SUCCESS) << polyring_error_text()
#define EXPECT_FAILS(call, code, text)                                          \
  do {                                                                          \
    EXPECT_EQ(call, code) << polyring_error_text();                             \
    EXPECT_NE(std::string(polyring_error_text()).find(text), std::string::npos) \
        << "'" << polyring_error_text() << "' does not say '" << (text) << "'"; \
  } while (false)

/// How the ranks find each other.
enum class Meeting { unique_id, group, store };
inline constexpr Meeting kMeetings[] = {Meeting::unique_id, Meeting::group, Meeting::store};

/// An allgather of threads.
class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks)
      : ranks_(ranks), barrier_(ranks), contexts_(static_cast<std::size_t>(ranks)) {}

  polyring_group of_rank(int rank) {
    contexts_[static_cast<std::size_t>(rank)] = {this, rank};
    return {&contexts_[static_cast<std::size_t>(rank)], allgather};
  }

 private:
  struct Context {
    ThreadGroup* group = nullptr;
    int rank = 0;
  };

  static int allgather(void* context, const void* own, void* all, size_t bytes) {
    const auto [group, rank] = *static_cast<Context*>(context);
    {
      const std::lock_guard lock(group->mutex_);
      group->bytes_.resize(static_cast<std::size_t>(group->ranks_) * bytes);
      std::memcpy(group->bytes_.data() + static_cast<std::size_t>(rank) * bytes, own, bytes);
    }
    group->barrier_.arrive_and_wait();
    std::memcpy(all, group->bytes_.data(), group->bytes_.size());
    group->barrier_.arrive_and_wait();
    return 0;
  }

  int ranks_;
  std::barrier<> barrier_;
  std::mutex mutex_;
  std::vector<char> bytes_;
  std::vector<Context> contexts_;
};

/// A store in memory.
class ThreadStore {
 public:
  polyring_store of_prefix(const char* prefix) { return {this, prefix, set, get}; }

 private:
  static int set(void* context, const char* key, const void* value, size_t bytes) {
    auto& store = *static_cast<ThreadStore*>(context);
    const std::lock_guard lock(store.mutex_);
    store.values_[key].assign(static_cast<const char*>(value), bytes);
    store.changed_.notify_all();
    return 0;
  }

  static int get(void* context, const char* key, void* value, size_t capacity, size_t* bytes,
                 double timeout) {
    auto& store = *static_cast<ThreadStore*>(context);
    std::unique_lock lock(store.mutex_);
    if (!store.changed_.wait_for(lock, std::chrono::duration<double>(timeout),
                                 [&] { return store.values_.contains(key); }))
      return 1;
    const std::string& found = store.values_[key];
    *bytes = found.size();
    std::memcpy(value, found.data(), std::min(capacity, found.size()));
    return 0;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// Each rank in a thread of its own.
template <typename Action>
void each_rank(int ranks, Action&& action) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&action, rank] { action(rank); });
}

/// The same with a communicator, which is freed in the end.
template <typename Action>
void with_ranks(int ranks, const polyring_options* options, Action&& action,
                Meeting meeting = Meeting::unique_id) {
  polyring_unique_id id{};
  ASSERT_OK(polyring_get_unique_id(&id));
  ThreadGroup group(ranks);
  ThreadStore store;
  each_rank(ranks, [&](int rank) {
    polyring_comm comm = POLYRING_COMM_NULL;
    const polyring_group own = group.of_rank(rank);
    const polyring_store stored = store.of_prefix("test");
    switch (meeting) {
      case Meeting::unique_id:
        ASSERT_OK(polyring_comm_create(&comm, &id, rank, ranks, options));
        break;
      case Meeting::group:
        ASSERT_OK(polyring_comm_create_from_group(&comm, &own, rank, ranks, options));
        break;
      case Meeting::store:
        ASSERT_OK(polyring_comm_create_from_store(&comm, &stored, rank, ranks, options));
        break;
    }
    action(rank, comm);
    EXPECT_OK(polyring_comm_free(comm));
  });
}

}  // namespace polyring::testing
