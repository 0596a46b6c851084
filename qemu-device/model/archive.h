// SPDX-License-Identifier: MIT
// Writes and reads values little-endian, one after the other. A visitor that is given either kind
// names each value once, so that what is read is what was written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace enpu::model {

class Writer {
  public:
    template <class T>
    void value(const T& v) {
        static_assert(std::is_integral_v<T>);
        const auto wide = static_cast<uint64_t>(v);
        for (unsigned i = 0; i < sizeof(T); ++i)
            bytes_.push_back(static_cast<uint8_t>(wide >> (8 * i)));
    }
    // A struct whose layout the hardware fixes.
    template <class T>
    void raw(const T& v) {
        const auto* from = reinterpret_cast<const uint8_t*>(&v);
        bytes_.insert(bytes_.end(), from, from + sizeof(T));
    }
    // An enum from 0 to `last`.
    template <class T>
    void choice(const T& v, T) {
        value(static_cast<uint32_t>(v));
    }
    static constexpr bool kLoads = false;
    const std::vector<uint8_t>& bytes() const { return bytes_; }

  private:
    std::vector<uint8_t> bytes_;
};

// What lies past the end reads as 0 and leaves the reader failed, and so does a value that its type
// does not have.
class Reader {
  public:
    Reader(const void* bytes, size_t size)
        : next_(static_cast<const uint8_t*>(bytes)), left_(size) {}

    template <class T>
    void value(T& v) {
        static_assert(std::is_integral_v<T>);
        uint8_t raw[sizeof(T)] = {};
        take(raw, sizeof(T));
        uint64_t wide = 0;
        for (unsigned i = 0; i < sizeof(T); ++i) wide |= uint64_t{raw[i]} << (8 * i);
        if (std::is_same_v<T, bool> && wide > 1) {
            failed_ = true;
            wide = 0;
        }
        v = static_cast<T>(wide);
    }
    template <class T>
    void raw(T& v) {
        static_assert(std::is_trivially_copyable_v<T>);
        take(&v, sizeof(T));
    }
    template <class T>
    void choice(T& v, T last) {
        uint32_t number = 0;
        value(number);
        if (number > static_cast<uint32_t>(last)) {
            failed_ = true;
            number = 0;
        }
        v = static_cast<T>(number);
    }
    static constexpr bool kLoads = true;
    bool failed() const { return failed_; }
    size_t left() const { return left_; }

  private:
    void take(void* to, size_t size) {
        if (size > left_) {
            failed_ = true;
            left_ = 0;
            return;
        }
        std::memcpy(to, next_, size);
        next_ += size;
        left_ -= size;
    }

    const uint8_t* next_;
    size_t left_;
    bool failed_ = false;
};

}  // namespace enpu::model
