// SPDX-License-Identifier: MIT
// A device below any driver: registers, doorbells, memory that it reaches, interrupts. What the
// bring-up harness needs of a new device or simulator; docs/bringup.md.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "registers.h"

namespace enpu::tools {

class BareDevice : public RegisterFile {
  public:
    // A write to the doorbell page of a queue.
    virtual void doorbell(uint32_t queue) = 0;
    // Memory of this process that the device reaches at bus addresses from memory_bus() on.
    virtual std::span<std::byte> memory() = 0;
    virtual uint64_t memory_bus() const = 0;
    // The local-memory BAR.
    virtual std::span<std::byte> local() = 0;
    // Messages of a vector that have arrived since the start.
    virtual uint64_t interrupts(uint32_t vector) = 0;
    // Function-level reset.
    virtual void function_reset() = 0;
    // Bytes of PCI configuration space; false when there is none (a model without a bus).
    virtual bool config(uint32_t /*offset*/, void* /*data*/, size_t /*bytes*/) { return false; }
};

// The functional model in this process; `options` as of libenpu's "sim:…". Throws Failure.
std::unique_ptr<BareDevice> open_model(const std::string& options);
// A PCI function ("0000:01:00.0") that vfio-pci holds. Throws Failure, with what is to be done.
std::unique_ptr<BareDevice> open_vfio(const std::string& address);

}  // namespace enpu::tools
