// SPDX-License-Identifier: MIT
#include "os/sim/page_table.h"

#include <memory>
#include <new>

#include "enpu_hw.h"

namespace enpu::sim {
namespace {

constexpr uint64_t kEntries = 512;
constexpr uint64_t kPage = ENPU_PAGE_SIZE;
constexpr uint64_t kLarge = ENPU_LARGE_PAGE_SIZE;
constexpr int kRootLevel = 3;

uint64_t index_of(uint64_t va, int level) {
    return va >> (12 + 9 * level) & (kEntries - 1);
}

}  // namespace

PageTable::PageTable(HostMemory* memory) : memory_(memory), root_(make(true)) {}

PageTable::~PageTable() {
    retire();
    destroy(root_);
}

uint64_t PageTable::root_bus() const {
    return root_->bus;
}

PageTable::Table* PageTable::make(bool with_children) {
    auto table = std::make_unique<Table>();
    if (with_children) table->children = new Table* [kEntries] {};
    table->entries = static_cast<uint64_t*>(HostMemory::allocate(kPage));
    if (table->entries != nullptr) table->bus = memory_->expose(table->entries, kPage);
    if (table->bus == 0) {
        if (table->entries != nullptr) HostMemory::release(table->entries, kPage);
        delete[] table->children;
        throw std::bad_alloc();
    }
    return table.release();
}

void PageTable::destroy(Table* table) {
    for (uint64_t i = 0; table->children != nullptr && i < kEntries; ++i) {
        if (table->children[i] != nullptr) destroy(table->children[i]);
    }
    memory_->hide(table->bus, kPage);
    HostMemory::release(table->entries, kPage);
    delete[] table->children;
    delete table;
}

void PageTable::store(Table* table, uint64_t index, uint64_t entry) {
    const bool was = table->entries[index] != 0;
    table->used += static_cast<uint32_t>(entry != 0) - static_cast<uint32_t>(was);
    __atomic_store_n(&table->entries[index], entry, __ATOMIC_RELEASE);
}

PageTable::Table* PageTable::walk(uint64_t va, int level, bool create) {
    Table* table = root_;
    for (int at = kRootLevel; at > level; --at) {
        Table*& child = table->children[index_of(va, at)];
        if (child == nullptr) {
            if (!create) return nullptr;
            child = make(at - 1 > 0);
            store(table, index_of(va, at), child->bus | ENPU_PTE_VALID);
        }
        table = child;
    }
    return table;
}

void PageTable::map(uint64_t va, uint64_t address, uint64_t bytes, uint64_t bits) {
    uint64_t done = 0;
    try {
        while (done < bytes) {
            const bool large =
                (((va + done) | (address + done)) & (kLarge - 1)) == 0 && bytes - done >= kLarge;
            const int level = large ? 1 : 0;
            Table* table = walk(va + done, level, true);
            store(table, index_of(va + done, level),
                  (address + done) | bits | ENPU_PTE_VALID | (large ? ENPU_PTE_LARGE : 0));
            done += large ? kLarge : kPage;
        }
    } catch (const std::bad_alloc&) {
        unmap(va, done);
        throw;
    }
}

void PageTable::unmap(uint64_t va, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes;) {
        Table* directory = walk(va + done, 1, false);
        if (directory == nullptr) return;
        const uint64_t index = index_of(va + done, 1);
        if ((directory->entries[index] & ENPU_PTE_LARGE) != 0) {
            store(directory, index, 0);
            done += kLarge;
            continue;
        }
        Table* leaf = directory->children[index];
        if (leaf == nullptr) return;
        store(leaf, index_of(va + done, 0), 0);
        done += kPage;
        if (leaf->used == 0) {
            // A large page may come to lie here.
            retired_.push_back(leaf);
            directory->children[index] = nullptr;
            store(directory, index, 0);
        }
    }
}

void PageTable::retire() {
    for (Table* table : retired_) destroy(table);
    retired_.clear();
}

}  // namespace enpu::sim
