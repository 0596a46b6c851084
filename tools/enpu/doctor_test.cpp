// SPDX-License-Identifier: MIT
#include "doctor.h"

#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>

#include "lib/fake_tree.h"

namespace enpu::tools {
namespace {

Finding finding(const FakeTree& tree, const std::string& check) {
    for (const Finding& found : examine({tree.root()})) {
        if (found.check == check) return found;
    }
    return {"missing: " + check, State::kSkipped, "", "", ""};
}

// The check that fails, its remedy, and that nothing after it is blamed.
void expect_failure(const FakeTree& tree, const std::string& check, const std::string& mend) {
    bool failed = false;
    for (const Finding& found : examine({tree.root()})) {
        INFO(found.check << ": " << found.found);
        if (found.check == check) {
            REQUIRE(found.state == State::kFailed);
            REQUIRE(found.mend.find(mend) != std::string::npos);
            REQUIRE_FALSE(found.means.empty());
            failed = true;
        } else if (found.check == "memlock") {
            break;
        } else {
            REQUIRE(found.state == (failed ? State::kSkipped : State::kOk));
        }
    }
    REQUIRE(failed);
}

}  // namespace

TEST_CASE("doctor: a healthy tree is well") {
    FakeTree tree;
    tree.device();
    for (const char* check :
         {"pci device", "pci bars", "kernel module", "driver", "node", "permission"})
        REQUIRE(finding(tree, check).state == State::kOk);
}

TEST_CASE("doctor: each fault is found at its place, with what mends it") {
    FakeTree tree;
    tree.device();
    SECTION("no device") {
        tree.write(std::string(FakeTree::kPci) + "/device", "0x1111\n");
        expect_failure(tree, "pci device", "scripts/guest");
    }
    SECTION("a BAR without an address") {
        tree.write(std::string(FakeTree::kPci) + "/resource", "0xfe000000 0xfe03ffff 0x40200\n");
        expect_failure(tree, "pci bars", "pref64-reserve");
    }
    SECTION("module not loaded") {
        tree.remove("/sys/module/enpu");
        expect_failure(tree, "kernel module", "insmod");
    }
    SECTION("no driver") {
        tree.remove(std::string(FakeTree::kPci) + "/driver");
        expect_failure(tree, "driver", "drivers/enpu/bind");
    }
    SECTION("another driver") {
        tree.link(std::string(FakeTree::kPci) + "/driver", "../../../bus/pci/drivers/vfio-pci");
        expect_failure(tree, "driver", "drivers/vfio-pci/unbind");
    }
    SECTION("no accel device") {
        tree.remove(std::string(FakeTree::kPci) + "/accel");
        expect_failure(tree, "node", "dmesg");
    }
    SECTION("no node") {
        tree.remove("/dev/accel/accel0");
        expect_failure(tree, "node", "udevadm");
    }
}

}  // namespace enpu::tools
