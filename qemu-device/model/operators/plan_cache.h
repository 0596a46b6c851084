// SPDX-License-Identifier: MIT
// Keeps what is expensive to make for a combination of shapes and parameters. Bounded: the one used
// longest ago goes first.
#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <unordered_map>

namespace enpu::ops {

// Key is a struct without padding (it is hashed and compared as bytes). Thread-safe.
template <class Key, class Plan>
class PlanCache {
    static_assert(std::has_unique_object_representations_v<Key>);

  public:
    explicit PlanCache(size_t limit) : limit_(limit) {}

    // The plan of a key; make() builds it when there is none. Two threads may build the same plan
    // at once: one is kept.
    template <class Make>
    std::shared_ptr<const Plan> get(const Key& key, Make&& make) {
        if (auto found = find(key)) return found;
        std::shared_ptr<const Plan> made = make();
        const std::lock_guard lock(mutex_);
        const auto place = index_.find(key);
        if (place != index_.end()) return place->second->plan;
        entries_.push_front({key, made});
        index_.emplace(key, entries_.begin());
        if (entries_.size() > limit_) {
            index_.erase(entries_.back().key);
            entries_.pop_back();
        }
        return made;
    }

    size_t size() const {
        const std::lock_guard lock(mutex_);
        return entries_.size();
    }

  private:
    struct Entry {
        Key key;
        std::shared_ptr<const Plan> plan;
    };
    struct Hash {
        size_t operator()(const Key& key) const {
            return std::hash<std::string_view>{}(
                {reinterpret_cast<const char*>(&key), sizeof(key)});
        }
    };
    struct Equal {
        bool operator()(const Key& a, const Key& b) const {
            return std::memcmp(&a, &b, sizeof(a)) == 0;
        }
    };

    std::shared_ptr<const Plan> find(const Key& key) {
        const std::lock_guard lock(mutex_);
        const auto place = index_.find(key);
        if (place == index_.end()) return nullptr;
        entries_.splice(entries_.begin(), entries_, place->second);
        return place->second->plan;
    }

    const size_t limit_;
    mutable std::mutex mutex_;
    std::list<Entry> entries_;  // most recently used first
    std::unordered_map<Key, typename std::list<Entry>::iterator, Hash, Equal> index_;
};

}  // namespace enpu::ops
