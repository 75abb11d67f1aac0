#include "collectives/runtime/shared/outbox.hpp"

#include <cstring>
#include <new>

namespace polyring {

/// One page of the inbox.
void Outbox::fill(std::size_t begin) const {
  mapping_->fill(ControlBlock::inboxes_at(ranks_) + writer_ * sizeof(Inbox) + begin, kPage);
}

void Outbox::open() {
  fill(0);
  new (&inbox().read) std::atomic<std::uint32_t>{0};
  new (&inbox().entries[0]) Entry;
  links_.emplace_back();
}

/// The reader has to be told where the next offer will be, so that entry must be free as well.
bool Outbox::find_next() {
  const std::uint32_t next = links_[at_].next;
  if (next != at_ && is_free(next)) return true;
  const auto fresh = static_cast<std::uint32_t>(links_.size());
  if (fresh == Inbox::kEntries) return false;
  if (Inbox::at(fresh) % kPage == 0) fill(Inbox::at(fresh));
  new (&inbox().entries[fresh]) Entry;
  links_.push_back({next, 0});
  links_[at_].next = fresh;
  return true;
}

bool Outbox::is_free(std::uint32_t entry) {
  const auto was_read = [&] { return static_cast<std::int32_t>(read_ - links_[entry].written) >= 0; };
  if (was_read()) return true;
  read_ = inbox().read.load(std::memory_order_acquire);
  return was_read();
}

bool Outbox::write(const Offer& offer, std::span<const std::byte> data) {
  const bool first = links_.empty();
  if (first) open();
  if (!find_next()) return false;
  Entry& entry = inbox().entries[at_];
  Link& link = links_[at_];
  entry.offer = offer;
  entry.next = link.next;
  if (!data.empty()) std::memcpy(entry.data.data(), data.data(), data.size());
  link.written = ++written_;
  entry.sequence.store(written_, std::memory_order_release);
  at_ = link.next;
  if (first) {
    const std::uint64_t bit = std::uint64_t{1} << writer_ % ControlBlock::kWordBits;
    control().writers(writer_ / ControlBlock::kWordBits).fetch_or(bit, std::memory_order_release);
  }
  return true;
}

}  // namespace polyring
