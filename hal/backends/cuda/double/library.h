// SPDX-License-Identifier: MIT
// What the doubles of cuBLASLt and cuDNN share. They check what a caller may get wrong (life times,
// types, layouts, room, alignment) and compute plainly on the host, in the stream's turn.
#pragma once

#include <cstring>
#include <set>

#include "double.h"
#include "scalar.h"

namespace enpu::hal::cuda::fake {

// Handles and descriptors that live. A pointer that is none of them is the caller's mistake.
class Objects {
  public:
    template <typename T>
    T* add(T* made) {
        std::lock_guard lock(world().mutex);
        all_.insert(made);
        ++world().live.library_objects;
        return made;
    }
    bool has(const void* object) const {
        std::lock_guard lock(world().mutex);
        return all_.count(object) != 0;
    }
    // False when it does not live: nothing is deleted.
    template <typename T>
    bool drop(T* object) {
        {
            std::lock_guard lock(world().mutex);
            if (all_.erase(object) == 0) return false;
            --world().live.library_objects;
        }
        delete object;
        return true;
    }
    static Objects& all() {
        static Objects* objects = new Objects;
        return *objects;
    }

  private:
    std::set<const void*> all_;
};

// An element by the type number that both libraries are told apart by before.
enum class Element { kFloat, kHalf, kBfloat };
inline uint64_t bytes_of(Element type) {
    return type == Element::kFloat ? 4 : 2;
}
inline float load(Element type, uint64_t base, int64_t index) {
    const auto* at = reinterpret_cast<const char*>(base) + index * int64_t(bytes_of(type));
    uint16_t bits = 0;
    float value = 0;
    if (type == Element::kFloat)
        std::memcpy(&value, at, 4);
    else
        std::memcpy(&bits, at, 2);
    if (type == Element::kHalf) value = ops::half_to_float({bits});
    if (type == Element::kBfloat) value = ops::bfloat_to_float({bits});
    return value;
}
inline void store(Element type, uint64_t base, int64_t index, float value) {
    auto* at = reinterpret_cast<char*>(base) + index * int64_t(bytes_of(type));
    const uint16_t bits = type == Element::kHalf     ? ops::float_to_half(value).bits
                          : type == Element::kBfloat ? ops::float_to_bfloat(value).bits
                                                     : uint16_t{0};
    if (type == Element::kFloat)
        std::memcpy(at, &value, 4);
    else
        std::memcpy(at, &bits, 2);
}

// The room that an operation uses is its own while it runs: it is marked, and looked at afterwards.
class Room {
  public:
    Room(uint64_t address, uint64_t bytes)
        : words_(reinterpret_cast<uint64_t*>(address)), count_(bytes / 8) {
        const uint64_t mark = reinterpret_cast<uint64_t>(this);
        for (uint64_t i = 0; i < count_; ++i) words_[i] = mark;
    }
    bool untouched() const {
        const uint64_t mark = reinterpret_cast<uint64_t>(this);
        for (uint64_t i = 0; i < count_; ++i)
            if (words_[i] != mark) return false;
        return true;
    }

  private:
    uint64_t* words_;
    uint64_t count_;
};
constexpr uint64_t kRoomBytes = 64 << 10;  // that each operation of the doubles wants

}  // namespace enpu::hal::cuda::fake
