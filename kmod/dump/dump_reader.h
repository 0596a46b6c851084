// SPDX-License-Identifier: MIT
// Reads a device dump (drm/enpu_dump.h), anywhere: nothing but the file is needed. Dumps are data
// from a less trusted side: every size in them is checked.
#pragma once

#include <drm/enpu_dump.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "enpu_hw.h"

namespace enpu::dump {

struct Section {
    uint32_t type = 0;
    uint32_t index = 0;
    std::span<const uint8_t> payload;
};

// What a reader takes: a whole dump, or also the first part of one (a file that was cut off).
enum class Accept { kWhole, kCutOff };

// A dump that has passed all checks; owns its bytes.
class Dump {
  public:
    // False, with the reason, when the bytes are no dump of a version this reader knows. Of one
    // that is cut off the sections are those that are there whole.
    static bool parse(std::span<const uint8_t> bytes, Dump* dump, std::string* error,
                      Accept accept = Accept::kWhole);

    const enpu_dump_header& header() const { return header_; }
    bool whole() const { return whole_; }  // not cut off
    bool complete() const { return !(header_.flags & ENPU_DUMP_INCOMPLETE); }
    const std::vector<Section>& sections() const { return sections_; }
    // The first section of a type, or nullptr.
    const Section* find(uint32_t type) const;

    // The elements of a section; a part of one at the end is left out.
    template <typename T>
    static std::vector<T> elements(const Section& section) {
        std::vector<T> all(section.payload.size() / sizeof(T));
        if (!all.empty()) memcpy(all.data(), section.payload.data(), all.size() * sizeof(T));
        return all;
    }
    // The structure of the first section of a type; false when there is none. One of an older minor
    // version is filled up with zeroes.
    template <typename T>
    bool get(uint32_t type, T* out) const {
        const Section* section = find(type);
        if (!section) return false;
        *out = T{};
        memcpy(out, section->payload.data(), std::min(sizeof(T), section->payload.size()));
        return true;
    }
    // A register by its offset; false when the dump does not have it.
    bool reg(uint32_t offset, uint64_t* value) const;

  private:
    bool check_whole(size_t end, std::string* error) const;

    std::vector<uint8_t> bytes_;
    enpu_dump_header header_{};
    std::vector<Section> sections_;
    bool whole_ = false;
};

// The whole dump as text, with the names of the data sheet.
std::string describe(const Dump& dump);

}  // namespace enpu::dump
