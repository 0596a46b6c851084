// SPDX-License-Identifier: MIT
// Reference counting of everything that the C API hands out.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace enpu {

class Object {
  public:
    Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() const {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

  protected:
    virtual ~Object() = default;

  private:
    mutable std::atomic<uint32_t> references_{1};
};

// Owns one reference. adopt() takes the reference that `new` made, the constructor takes one more.
template <typename T>
class Ref {
  public:
    Ref() = default;
    explicit Ref(T* object) : object_(object) {
        if (object_ != nullptr) object_->retain();
    }
    static Ref adopt(T* object) {
        Ref ref;
        ref.object_ = object;
        return ref;
    }
    Ref(const Ref& other) : Ref(other.object_) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (object_ != nullptr) object_->release();
    }

    T* get() const { return object_; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    explicit operator bool() const { return object_ != nullptr; }
    // Gives the reference to the caller.
    T* leak() { return std::exchange(object_, nullptr); }

  private:
    T* object_ = nullptr;
};

}  // namespace enpu
