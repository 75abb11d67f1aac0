// HandleTable: gives objects numbers that C programs can hold. A number is never used again, so that what was
// freed is told from what lives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace polyring::library {

/// For several threads at once. A Handle is a pointer to an incomplete type, which is never dereferenced.
template <typename Handle, typename Object>
class HandleTable {
 public:
  Handle add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    objects_.emplace(++last_, std::move(object));
    return reinterpret_cast<Handle>(last_);
  }

  /// Null where there is none.
  std::shared_ptr<Object> find(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }

  std::shared_ptr<Object> take(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  mutable std::mutex mutex_;
  std::uintptr_t last_ = 0;
  std::map<std::uintptr_t, std::shared_ptr<Object>> objects_;
};

}  // namespace polyring::library
