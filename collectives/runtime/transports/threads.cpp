#include "collectives/runtime/transports/threads.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <exception>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.hpp"

namespace polyring {

ThreadGroup::ThreadGroup(int size, Seconds timeout) : timeout_(timeout) {
  for (int rank = 0; rank < size; ++rank) ranks_.emplace_back();
}

void ThreadGroup::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = reason;
  for (Mailbox& mailbox : ranks_) mailbox.changed.notify_all();
}

void ThreadTransport::send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) {
  const std::lock_guard lock(group_.mutex_);
  ThreadGroup::Mailbox& mailbox = group_.ranks_[static_cast<std::size_t>(to)];
  mailbox.offers.push_back({rank_, tag, data, ticket});
  ++sends_[static_cast<std::size_t>(to)];
  mailbox.changed.notify_one();
}

void ThreadTransport::receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) {
  wants_.push_back({from, tag, data, ticket});
}

std::vector<ThreadTransport::Match> ThreadTransport::take_matches() {
  std::vector<Match> matches;
  auto& offers = group_.ranks_[static_cast<std::size_t>(rank_)].offers;
  for (auto offer = offers.begin(); offer != offers.end();) {
    const auto want = std::find_if(wants_.begin(), wants_.end(), [&](const Want& candidate) {
      return candidate.source == offer->source && candidate.tag == offer->tag;
    });
    if (want == wants_.end()) {
      ++offer;
      continue;
    }
    matches.push_back({*offer, *want});
    wants_.erase(want);
    offer = offers.erase(offer);
  }
  return matches;
}

std::vector<Rank> ThreadTransport::awaited() const {
  std::set<Rank> ranks;
  for (const Want& want : wants_) ranks.insert(want.source);
  for (Rank to = 0; to < size(); ++to) {
    if (sends_[static_cast<std::size_t>(to)] > 0) ranks.insert(to);
  }
  return {ranks.begin(), ranks.end()};
}

bool ThreadTransport::poll(std::vector<Ticket>& done) {
  std::unique_lock lock(group_.mutex_);
  return poll(done, lock);
}

bool ThreadTransport::poll(std::vector<Ticket>& done, std::unique_lock<std::mutex>& lock) {
  if (!group_.failure_.empty()) throw Error(ExitCode::internal, group_.failure_);
  auto& mailbox = group_.ranks_[static_cast<std::size_t>(rank_)];
  const std::size_t before = done.size();
  take_local(done);
  for (const ThreadGroup::Taken& taken : mailbox.taken) {
    done.push_back(taken.ticket);
    --sends_[static_cast<std::size_t>(taken.destination)];
  }
  mailbox.taken.clear();

  const std::vector<Match> matches = take_matches();
  if (!matches.empty()) {
    lock.unlock();
    for (const Match& match : matches) {
      assert(match.offer.data.size() == match.want.data.size());
      if (!match.want.data.empty()) {
        std::memcpy(match.want.data.data(), match.offer.data.data(), match.offer.data.size());
      }
      done.push_back(match.want.ticket);
    }
    lock.lock();
    for (const Match& match : matches) {
      ThreadGroup::Mailbox& sender = group_.ranks_[static_cast<std::size_t>(match.offer.source)];
      sender.taken.push_back({rank_, match.offer.ticket});
      sender.changed.notify_one();
    }
  }
  return done.size() > before;
}

void ThreadTransport::wait(std::vector<Ticket>& done) {
  auto& mailbox = group_.ranks_[static_cast<std::size_t>(rank_)];
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(group_.timeout_.value);
  std::unique_lock lock(group_.mutex_);
  while (!poll(done, lock)) {
    if (mailbox.changed.wait_until(lock, limit) == std::cv_status::timeout) {
      throw Error(ExitCode::timeout, fmt::format("rank {} waited {} in vain for rank {}", rank_,
                                                 to_text(group_.timeout_), fmt::join(awaited(), ", ")));
    }
  }
}

void ThreadTransport::abandon() {
  std::unique_lock lock(group_.mutex_);
  std::vector<Ticket> unwanted;
  take_local(unwanted);
  wants_.clear();
  for (Rank to = 0; to < size(); ++to) {
    auto& offers = group_.ranks_[static_cast<std::size_t>(to)].offers;
    sends_[static_cast<std::size_t>(to)] -= static_cast<int>(
        std::erase_if(offers, [&](const ThreadGroup::Offer& offer) { return offer.source == rank_; }));
  }
  // The others are being copied at this moment, or have been.
  auto& mailbox = group_.ranks_[static_cast<std::size_t>(rank_)];
  const auto matched = static_cast<std::size_t>(std::accumulate(sends_.begin(), sends_.end(), 0));
  mailbox.changed.wait(lock, [&] { return mailbox.taken.size() == matched; });
  mailbox.taken.clear();
  std::fill(sends_.begin(), sends_.end(), 0);
}

void run_ranks(int ranks, const std::function<void(ThreadTransport&)>& body, Seconds timeout) {
  ThreadGroup group(ranks, timeout);
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](Rank rank) {
    try {
      ThreadTransport transport(group, rank);
      body(transport);
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
      group.abort(fmt::format("rank {} failed: {}", rank, error.what()));
    }
  };
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace polyring
