// SPDX-License-Identifier: MIT
#include "tensor_file.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace enpu::conformance {
namespace {

[[noreturn]] void damaged() {
    throw std::runtime_error("the tensor is damaged or of a kind that is not read");
}

// The wire format: a key (field number, kind), then a value.
class Reader {
  public:
    explicit Reader(const std::string& bytes)
        : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
    Reader(const char* begin, const char* end) : at_(begin), end_(end) {}

    bool done() const { return at_ == end_; }
    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (at_ == end_) damaged();
            const auto byte = static_cast<unsigned char>(*at_++);
            value |= uint64_t{byte & 127u} << shift;
            if (byte < 128) return value;
        }
        damaged();
    }
    Reader part() {
        const uint64_t size = varint();
        if (size > static_cast<uint64_t>(end_ - at_)) damaged();
        const char* begin = at_;
        at_ += size;
        return {begin, at_};
    }
    void fixed(void* to, size_t size) {
        if (size > static_cast<size_t>(end_ - at_)) damaged();
        std::memcpy(to, at_, size);
        at_ += size;
    }
    void skip(unsigned kind) {
        char ignored[8];
        if (kind == 0) varint();
        if (kind == 1) fixed(ignored, 8);
        if (kind == 2) part();
        if (kind == 5) fixed(ignored, 4);
        if (kind == 3 || kind == 4 || kind > 5) damaged();
    }
    const char* begin() const { return at_; }
    size_t size() const { return static_cast<size_t>(end_ - at_); }

  private:
    const char* at_;
    const char* end_;
};

void append(std::vector<std::byte>& bytes, const void* data, size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + size);
}

// Elements of int32_data, int64_data, float_data, double_data: packed or one by one.
void read_elements(Reader& reader, unsigned kind, size_t fixed_size, size_t element_bytes,
                   std::vector<std::byte>& to) {
    auto one = [&](Reader& r) {
        char value[8] = {};
        if (fixed_size) {
            r.fixed(value, fixed_size);
        } else {
            const uint64_t v = r.varint();
            std::memcpy(value, &v, sizeof(v));
        }
        append(to, value, element_bytes);
    };
    if (kind != 2) return one(reader);
    Reader part = reader.part();
    while (!part.done()) one(part);
}

}  // namespace

size_t type_bytes(int32_t type) {
    switch (type) {
        case 2:
        case 3:
        case 9:
            return 1;  // u8 i8 bool
        case 4:
        case 5:
        case 10:
        case 16:
            return 2;  // u16 i16 f16 bf16
        case 1:
        case 6:
        case 12:
            return 4;  // f32 i32 u32
        case 7:
        case 11:
        case 13:
            return 8;  // i64 f64 u64
        default:
            return 0;
    }
}

std::string read_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    if (!in) throw std::runtime_error("'" + path + "' cannot be read");
    return bytes.str();
}

StoredTensor parse_tensor(const std::string& bytes) {
    // The type decides how elements are stored, and may come after them.
    StoredTensor tensor;
    for (Reader reader(bytes); !reader.done();) {
        const uint64_t key = reader.varint();
        if (key == (2u << 3)) {
            tensor.type = static_cast<int32_t>(reader.varint());
        } else {
            reader.skip(static_cast<unsigned>(key & 7));
        }
    }
    const size_t size = type_bytes(tensor.type);
    if (size == 0) damaged();
    for (Reader reader(bytes); !reader.done();) {
        const uint64_t key = reader.varint();
        const auto kind = static_cast<unsigned>(key & 7);
        switch (key >> 3) {
            case 1: {
                if (kind == 0) {
                    tensor.dims.push_back(static_cast<int64_t>(reader.varint()));
                } else {
                    Reader part = reader.part();
                    while (!part.done()) tensor.dims.push_back(static_cast<int64_t>(part.varint()));
                }
                break;
            }
            case 4:
                read_elements(reader, kind, 4, size, tensor.bytes);
                break;
            case 5:
            case 7:
            case 11:
                read_elements(reader, kind, 0, size, tensor.bytes);
                break;
            case 9: {
                const Reader part = reader.part();
                append(tensor.bytes, part.begin(), part.size());
                break;
            }
            case 10:
                read_elements(reader, kind, 8, size, tensor.bytes);
                break;
            default:
                reader.skip(kind);
        }
    }
    uint64_t count = 1;
    for (int64_t dim : tensor.dims) {
        if (dim < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count)) damaged();
    }
    if (__builtin_mul_overflow(count, uint64_t{size}, &count) || count != tensor.bytes.size())
        damaged();
    return tensor;
}

}  // namespace enpu::conformance
